"""`make demo`, as a person runs it: as a process of its own, with a real PostgreSQL, worker and model."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.databases import ROOT
from tests.openrouter_standin import StandIn
from tests.waiting import wait_until

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def own_tmp() -> Iterator[Path]:
    """A folder for everything the demo makes, open to the user that root's PostgreSQL runs as."""
    folder = Path(tempfile.mkdtemp(prefix="jobbko-test-demo-"))
    folder.chmod(0o755)
    yield folder
    for process in processes_of(folder):
        process.kill()
    shutil.rmtree(folder)


def start_demo(own_tmp: Path, *arguments: str, **environ: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(own_tmp), "PYTHONUNBUFFERED": "1", **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def demo_in_a_terminal(own_tmp: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of a demo whose input and output are a terminal."""
    ours, its = os.openpty()
    demo = subprocess.Popen(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(own_tmp), "TERM": "xterm"},
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    shown = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        try:
            while piece := terminal.read(4096):
                shown += piece
        except OSError:  # Linux says so when the last writer is gone
            pass
    return demo.wait(30), shown.decode()


def processes_of(folder: Path) -> list[psutil.Process]:
    """Processes that were started with the folder in their command or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            told = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if any(str(folder) in word for word in told):
            found.append(process)
    return found


def assert_nothing_is_left(folder: Path) -> None:
    wait_until(lambda: not processes_of(folder), 5, what="all processes of the demo to be gone")
    assert list(folder.iterdir()) == []


def test_demo_transcribes_the_sample_shows_the_row_and_leaves_nothing(own_tmp: Path) -> None:
    demo = start_demo(own_tmp)
    output, _ = demo.communicate()

    assert demo.returncode == 0, output
    assert "still more respectable than he was" in " ".join(output.split())
    assert "| completed" in output.split("The row, in SQL")[1]
    assert "Word error rate against sample.txt" in output
    assert "sample.en.vtt" in output
    assert "OPENROUTER_API_KEY=" in output.partition("no language model is at hand. Next:")[2]
    assert_nothing_is_left(own_tmp)


def test_demo_goes_on_to_the_analysis_where_a_language_model_is_at_hand(
    own_tmp: Path, samples: Path, standin: StandIn
) -> None:
    settings = {"OPENROUTER_BASE_URL": standin.base_url, "OPENROUTER_PROFILE": "openrouter"}
    recording = str(samples / "audio" / "jfk.mp3")
    demo = start_demo(own_tmp, "--mp3", recording, OPENROUTER_API_KEY=standin.key, **settings)
    output, _ = demo.communicate()

    assert demo.returncode == 0, output
    analysis = output.split("Analysis:")[1].split("The row, in SQL")[0]
    assert "google/gemini-2.5-flash" in analysis
    assert standin.billed_count == 1
    assert "no language model is at hand" not in output
    assert standin.key not in output
    assert_nothing_is_left(own_tmp)


def test_demo_in_a_terminal_takes_a_recording_of_ones_own(own_tmp: Path, samples: Path) -> None:
    exit_code, output = demo_in_a_terminal(own_tmp, "--mp3", str(samples / "audio" / "jfk.mp3"))

    assert exit_code == 0, output
    assert "ask not what your country can do for you" in " ".join(output.split())
    assert_nothing_is_left(own_tmp)


def test_demo_fails_with_the_reason_and_the_workers_log(own_tmp: Path, tmp_path: Path) -> None:
    no_audio = tmp_path / "letter.mp3"
    no_audio.write_text("Kjære redaksjon, dette er et brev.\n" * 50)

    demo = start_demo(own_tmp, "--mp3", str(no_audio))
    output, _ = demo.communicate()

    assert demo.returncode == 1, output
    assert "the job ended as error" in output
    assert "The worker's log:" in output
    assert_nothing_is_left(own_tmp)


@pytest.mark.parametrize(
    ("arguments", "environ", "told"),
    [
        (["--mp3", "/nowhere.mp3"], {}, "no such file: /nowhere.mp3. Next: make demo MP3="),
        (["--model", "large"], {}, "no source is known for 'large'; known are base"),
        ([], {"XDG_CACHE_HOME": "/proc/nowhere"}, "demo: /proc/nowhere: No such file or directory. Next: room there"),
    ],
    ids=["file", "model", "cache"],
)
def test_demo_that_cannot_begin_says_why(
    own_tmp: Path, arguments: list[str], environ: dict[str, str], told: str
) -> None:
    demo = start_demo(own_tmp, *arguments, **environ)
    output, _ = demo.communicate()

    assert demo.returncode in (1, 2)
    assert told in output
    assert "Traceback" not in output
    assert_nothing_is_left(own_tmp)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_interrupted_demo_ends_what_it_started(own_tmp: Path, number: signal.Signals) -> None:
    with start_demo(own_tmp) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "jobs watch" in line:
                break
        assert len(processes_of(own_tmp)) > 2

        demo.send_signal(number)

        assert demo.wait(60) == 130
        assert "interrupted" in demo.stdout.read()
    assert_nothing_is_left(own_tmp)
