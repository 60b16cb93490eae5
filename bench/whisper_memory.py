"""Memory of one engine process over many files.

    .venv/bin/python bench/whisper_memory.py [--audio FILE --audio FILE …] [--files 20] [--limit 50]

Transcribes twenty files (the given ones in turn) in one process, as jobs that follow each other, and prints what the
process holds after each. Exit code 1 when the last quarter holds more than the second one by more than `--limit` MB.
"""

import statistics
import sys
from pathlib import Path
from typing import Any

import click

from services.whisper.messages import EngineRequest, ModelRequest, SpeechRequest
from services.whisper.model_fetch import cache_root, fetch_model
from sidelinja_jobs import ChildProcess

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "demo" / "sample.mp3"
AUDIO = click.Path(path_type=Path, exists=True, dir_okay=False)


def ignore(_: Any) -> None:
    """Takes the units; their text does not matter here."""


@click.command(help=__doc__)
@click.option("--audio", "files", type=AUDIO, multiple=True, default=[SAMPLE], help="Audio, taken in turn.")
@click.option("--files", "count", default=20, show_default=True, help="How many files to transcribe.")
@click.option("--language", default="en", show_default=True)
@click.option("--limit", default=50.0, show_default=True, help="MB that the memory may grow by.")
def main(files: tuple[Path, ...], count: int, language: str, limit: float) -> None:
    model = ModelRequest(fetch_model(cache_root(), "base").folder, "int8", 0)
    engine = ChildProcess("services.whisper.engine:transcribe", name="whisper engine")
    held = []
    try:
        for number in range(count):
            audio = files[number % len(files)].resolve()
            speech = SpeechRequest(language, unit_seconds=60)
            report = engine.call(EngineRequest(model, speech, audio.parent, audio.name), ignore)
            held.append(engine.rss_bytes / 1e6)
            print(f"{number + 1:3} {audio.name:30} {held[-1]:7.1f} MB, peak {report.peak_rss_bytes / 1e6:7.1f} MB")
    finally:
        engine.close()
    half = len(held) // 2
    first, second = statistics.median(held[half // 2 : half]), statistics.median(held[-half // 2 :])
    print(f"median of files {half // 2 + 1} to {half}: {first:.1f} MB, of the last {half - half // 2}: {second:.1f} MB")
    print(f"spread from the third file on: {max(held[2:]) - min(held[2:]):.1f} MB")
    sys.exit(int(second - first > limit))


if __name__ == "__main__":
    main()
