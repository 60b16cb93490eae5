"""What the worker's way of transcribing costs beside calling faster-whisper directly, in CPU seconds and wrong words.

    make bench-whisper ARGS="[--audio FILE --text FILE] [--rounds 3] [--threads 1]"

All use the same model, precision and number of threads, warmed up, in processes of their own. "direct" is one call of
WhisperModel.transcribe with the worker's settings, its own decoding and its VAD filter; "defaults" is the same call
with no settings but the language. "worker" is all that a job does but the database: digest of the file, engine
process, decoding by packets, units, guards, checkpoints as JSON, output files.
Take an undamaged file that was not joined from others: "direct" would end at the first joint and win by losing text.
Rounds are interleaved, every other one in reverse order; the table shows medians, the last line is JSON.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
import psutil

from demo.report import word_error_rate
from services.whisper.formats import rendered
from services.whisper.media import open_source
from services.whisper.messages import EngineRequest, ModelRequest, SpeechRequest, UnitResult
from services.whisper.model_fetch import cache_root, fetch_model
from services.whisper.payload import WhisperPayload
from services.whisper.resume import as_checkpoint
from services.whisper.transcript import Origin, build_transcript
from sidelinja_jobs import ChildProcess

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "demo" / "sample.mp3"
LONGER = ROOT.parent / "shared" / "samples" / "audio" / "ljspeech-2min.mp3"
SAMPLE_TEXT, LONGER_TEXT = SAMPLE.with_suffix(".txt"), LONGER.with_suffix(".txt")
LANGUAGE = "en"

Measured = tuple[float, float, list[str]]  # CPU seconds, wall seconds, texts of the segments


def measure(work: Callable[[], list[str]], cpu: Callable[[], float]) -> Measured:
    started, spent = time.monotonic(), cpu()
    texts = work()
    return cpu() - spent, time.monotonic() - started, texts


def direct(audio: Path, threads: int) -> Measured:
    """faster-whisper called as its README does, with the worker's settings."""
    from services.whisper.recognizer import TEMPERATURES
    from services.whisper.units import KEPT_PAUSE_SECONDS, PADDING_SECONDS

    vad = {
        "min_silence_duration_ms": int(KEPT_PAUSE_SECONDS * 1000),
        "speech_pad_ms": int(PADDING_SECONDS * 1000),
    }
    settings = {"beam_size": 5, "temperature": TEMPERATURES, "condition_on_previous_text": False}
    return in_one_call(audio, threads, vad_filter=True, vad_parameters=vad, **settings)


def defaults(audio: Path, threads: int) -> Measured:
    """faster-whisper called with nothing but the language."""
    return in_one_call(audio, threads)


def in_one_call(audio: Path, threads: int, **settings: Any) -> Measured:
    os.environ["OMP_NUM_THREADS"] = str(threads)
    from faster_whisper import WhisperModel

    folder = str(fetch_model(cache_root(), "base").folder)
    model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=threads)

    def transcribe(file: Path) -> list[str]:
        segments, _ = model.transcribe(str(file), language=LANGUAGE, **settings)
        return [segment.text.strip() for segment in segments]

    transcribe(SAMPLE)
    return measure(lambda: transcribe(audio), time.process_time)


def worker(audio: Path, threads: int) -> Measured:
    """What a job does, apart from the database."""
    model = fetch_model(cache_root(), "base")
    child = ChildProcess("services.whisper.engine:transcribe")
    request = ModelRequest(model.folder, "int8", threads)

    def transcribe(file: Path) -> list[str]:
        units: list[UnitResult] = []

        def receive(message: Any) -> None:
            if isinstance(message, UnitResult):
                msgspec.json.encode(as_checkpoint(message, "key"))
                units.append(message)

        with open_source(file.parent, file.name) as source:
            digest = source.sha256()
            child.call(
                EngineRequest(request, SpeechRequest(LANGUAGE), file.parent, file.name, source.identity), receive
            )
            source.require_unchanged()
        origin = Origin(file.name, digest, 0, model, "int8", "cpu", {}, "", True, None)
        transcript = build_transcript(units, origin)
        rendered(transcript, WhisperPayload(path=file.name))
        return [row["text"] for row in transcript["segments"]]

    def cpu() -> float:
        times = psutil.Process(child.pid).cpu_times()
        return time.process_time() + float(times.user + times.system)

    transcribe(SAMPLE)
    try:
        return measure(lambda: transcribe(audio), cpu)
    finally:
        child.close()


WAYS = {"direct": direct, "worker": worker, "defaults": defaults}
FIGURES = ("cpu_seconds", "wall_seconds", "words", "wrong_percent")


def run_in_a_process(way: str, audio: Path, text: Path, threads: int) -> dict[str, Any]:
    files = ["--audio", str(audio), "--text", str(text)]
    done = subprocess.run(
        [sys.executable, __file__, "--way", way, *files, "--threads", str(threads)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def compare(audio: Path, text: Path, rounds: int, threads: int) -> dict[str, Any]:
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in list(WAYS) if number % 2 == 0 else reversed(list(WAYS)):
            found[way].append(run_in_a_process(way, audio, text, threads))
            print(f"round {number + 1} {way}: {found[way][-1]['cpu_seconds']:.2f} CPU s", flush=True)
    medians = {
        way: {name: round(statistics.median(run[name] for run in runs), 2) for name in FIGURES}
        for way, runs in found.items()
    }
    overhead = medians["worker"]["cpu_seconds"] / medians["direct"]["cpu_seconds"] - 1
    return {"rounds": rounds, "threads": threads, **medians, "overhead_percent": round(100 * overhead, 2)}


@click.command(help=__doc__)
@click.option("--audio", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="An MP3 in English.")
@click.option("--text", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="What is said in it.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--way", type=click.Choice(list(WAYS)), hidden=True)
def main(audio: Path | None, text: Path | None, rounds: int, threads: int, way: str | None) -> None:
    if (audio is None) != (text is None):
        raise click.UsageError("--audio and --text belong together")
    if audio is None or text is None:
        audio, text = (LONGER, LONGER_TEXT) if LONGER.is_file() else (SAMPLE, SAMPLE_TEXT)
    if way is not None:
        cpu_seconds, wall_seconds, texts = WAYS[way](audio.resolve(), threads)
        found = " ".join(texts)
        wrong = 100 * word_error_rate(text.read_text(encoding="utf-8"), found)
        figures = (cpu_seconds, wall_seconds, len(found.split()), wrong)
        print(json.dumps(dict(zip(FIGURES, figures, strict=True))))
        return
    compared = compare(audio, text, rounds, threads)
    print(f"\n{'way':8} {'CPU s':>8} {'wall s':>8} {'words':>6} {'wrong %':>8}")
    for name in WAYS:
        row = compared[name]
        print(
            f"{name:8} {row['cpu_seconds']:8.2f} {row['wall_seconds']:8.2f} {row['words']:6.0f} "
            f"{row['wrong_percent']:8.2f}"
        )
    wrong = compared["worker"]["wrong_percent"] - compared["direct"]["wrong_percent"]
    print(
        f"the worker's way beside direct: {compared['overhead_percent']:+.1f} % CPU (goal: under 3 %), "
        f"{wrong:+.2f} points of wrong words (goal: within 0.5)\n"
    )
    print(json.dumps(compared))


if __name__ == "__main__":
    main()
