"""`make demo`: the whole system on one machine, without Docker. One MP3 goes in, its transcript comes out, and where
a language model is at hand (OPENROUTER_API_KEY or OPENROUTER_BASE_URL), its titles, summary, chapters and quotes.

Exit code 0 means that the job completed and, for the sample in the repository, that its words came out right.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from demo.embedded_postgres import EmbeddedPostgresError
from demo.environment import analysis_settings
from demo.report import NO_ANALYSIS, sample_text, show_analysis, show_row, show_transcript, word_error_rate
from demo.stack import DATABASE, ROOT, DemoError, Stack, running_stack, say
from sidelinja_jobs.errors import JobQueueError
from sidelinja_jobs.init_files import MigrationError
from sidelinja_jobs.log import configure_logging

HERE = Path(__file__).parent
JOBS = [sys.executable, str(ROOT / "shared" / "jobs")]
ACCEPTED_WORD_ERROR_RATE = 0.15  # of the sample, by the model base; measured: 0.03


def main() -> int:
    """Runs the demo; returns the exit code."""
    options = read_options()
    configure_logging("console", "warning")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_as_ctrl_c_does)
    started = time.monotonic()
    try:
        analysis = analysis_settings()
        with running_stack(options.model, analysis) as stack:
            run(stack, options, has_analysis=bool(analysis))
    except (DemoError, EmbeddedPostgresError, JobQueueError, MigrationError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        place = error.filename2 or error.filename or "the demo's folder"
        print(
            f"demo: {place}: {error.strerror}. Next: room there, and your right to read and write it", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; everything that it had started was ended", file=sys.stderr)
        return 130
    print(f"\nDone in {time.monotonic() - started:.0f} s. Everything that was started was ended again.")
    return 0


def run(stack: Stack, options: argparse.Namespace, *, has_analysis: bool) -> None:
    """Enqueues the file, follows the job and the one that it is followed by to their ends, shows what came out."""
    name = put_into_media(options.mp3, stack.media)
    payload = {"path": name, "language": options.language}
    job_id = enqueue(stack, payload | {"analyze": "true"} if has_analysis else payload)
    job = followed(stack, job_id, "whisper")
    show_transcript(job["result"]["text"], job["result"]["notes"])
    if has_analysis:
        show_analysis(followed(stack, follow_up_of(stack, job_id), "openrouter")["result"])
    else:
        print(NO_ANALYSIS)
    show_row(stack.postgres, DATABASE, stack.reader_password())
    show_files(stack)
    if options.is_sample:
        check_words(job["result"]["text"])


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--mp3", type=Path, default=HERE / "sample.mp3", help="your own recording")
    parser.add_argument("--language", help="of the recording; default: en for the sample, else detected")
    parser.add_argument("--model", default="base", help="name of the Whisper model")
    options = parser.parse_args()
    options.mp3 = options.mp3.expanduser()
    if not options.mp3.is_file():
        parser.error(f"no such file: {options.mp3}. Next: make demo MP3=path/to/episode.mp3")
    options.is_sample = options.mp3.resolve() == HERE / "sample.mp3"
    options.language = options.language or ("en" if options.is_sample else "auto")
    return options


def put_into_media(file: Path, media: Path) -> str:
    """Links the file into the worker's media folder, or copies it; returns its path there."""
    place = media / file.name
    try:
        os.link(file.resolve(), place)
    except OSError:  # another file system
        shutil.copyfile(file, place)
    return place.name


def enqueue(stack: Stack, payload: dict[str, str]) -> str:
    fields = [f"{name}={value}" for name, value in payload.items()]
    say(f"jobs enqueue whisper_transcribe {shlex.join(fields)}")
    answer = jobs(stack, "enqueue", "whisper_transcribe", "--json", *fields)
    return str(json.loads(answer)["id"])


def followed(stack: Stack, job_id: str, service: str) -> dict[str, Any]:
    """The job at its end, which is completed, or the demo has failed."""
    watch(stack, job_id)
    job = show(stack, job_id)
    if job["status"] != "completed":
        raise DemoError(
            f"the job ended as {job['status']}: {job.get('error_class')}: {job.get('error_msg')}\n"
            f"The worker's log:\n{stack.worker_log_tail(service)}"
        )
    return job


def follow_up_of(stack: Stack, job_id: str) -> str:
    """The analysis that the transcription enqueued in its completing transaction."""
    listed = json.loads(jobs(stack, "list", "--type", "openrouter_analyze", "--json"))
    return next(str(row["id"]) for row in listed if row["parent_id"] == job_id)


def watch(stack: Stack, job_id: str) -> None:
    """Shows the live line of the job until it ends."""
    say(f"jobs watch {job_id}\n")
    subprocess.run([*JOBS, "watch", job_id], env=stack.operator_environ(), cwd=ROOT, check=False)


def show(stack: Stack, job_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(jobs(stack, "show", job_id, "--json"))
    return answer


def jobs(stack: Stack, *arguments: str) -> str:
    """What the command line answers."""
    asked = subprocess.run(
        [*JOBS, *arguments],
        env=stack.operator_environ(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        raise DemoError(f"jobs {arguments[0]} ended with exit code {asked.returncode}: {asked.stderr.strip()}")
    return asked.stdout


def show_files(stack: Stack) -> None:
    written = sorted(file.name for file in stack.media.iterdir())
    print(f"In the media folder: {', '.join(written)}")


def check_words(text: str) -> None:
    rate = word_error_rate(sample_text(HERE), text)
    print(f"Word error rate against sample.txt: {rate:.1%} (accepted: {ACCEPTED_WORD_ERROR_RATE:.0%})")
    if rate > ACCEPTED_WORD_ERROR_RATE:
        raise DemoError(f"too many wrong words: {rate:.1%}, expected at most {ACCEPTED_WORD_ERROR_RATE:.0%}")


def end_as_ctrl_c_does(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
