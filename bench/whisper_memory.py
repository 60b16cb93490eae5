"""Memory of one engine process over many files.

    .venv/bin/python bench/whisper_memory.py [--audio FILE …] [--files 20] [--limit 50]

Transcribes twenty files (the given ones in turn) in one process, as jobs that follow each other, and prints what the
process holds after each. Exit code 1 when the last quarter holds more than the second one by more than `--limit` MB.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "shared"), str(ROOT)]

from services.whisper.messages import EngineRequest, ModelRequest, SpeechRequest  # noqa: E402
from services.whisper.model_fetch import cache_root, fetch_model  # noqa: E402
from sidelinja_jobs import ChildProcess  # noqa: E402

SAMPLE = ROOT / "demo" / "sample.mp3"


def ignore(_: Any) -> None:
    """Takes the units; their text does not matter here."""


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audio", type=Path, nargs="+", default=[SAMPLE], help="audio files, taken in turn")
    parser.add_argument("--files", type=int, default=20, help="how many files to transcribe")
    parser.add_argument("--language", default="en")
    parser.add_argument("--limit", type=float, default=50.0, help="MB that the memory may grow by")
    options = parser.parse_args()
    model = ModelRequest(fetch_model(cache_root(), "base").folder, "int8", 0)
    engine = ChildProcess("services.whisper.engine:transcribe", name="whisper engine")
    held = []
    try:
        for number in range(options.files):
            audio = options.audio[number % len(options.audio)].resolve()
            speech = SpeechRequest(options.language, unit_seconds=60)
            report = engine.call(EngineRequest(model, speech, audio.parent, audio.name), ignore)
            held.append(engine.rss_bytes / 1e6)
            print(f"{number + 1:3} {audio.name:30} {held[-1]:7.1f} MB, peak {report.peak_rss_bytes / 1e6:7.1f} MB")
    finally:
        engine.close()
    half = len(held) // 2
    first, second = statistics.median(held[half // 2 : half]), statistics.median(held[-half // 2 :])
    print(f"median of files {half // 2 + 1} to {half}: {first:.1f} MB, of the last {half - half // 2}: {second:.1f} MB")
    print(f"spread from the third file on: {max(held[2:]) - min(held[2:]):.1f} MB")
    return int(second - first > options.limit)


if __name__ == "__main__":
    sys.exit(main())
