"""How fast the worker's engine transcribes on a GPU, by batch size.

    .venv/bin/python bench/whisper_gpu.py [--model large-v3-turbo] [--audio FILE --text FILE] [--batch 1 --batch 16]

Each batch size gets an engine process of its own, as a worker starts it, warmed up by a short file; then the audio is
transcribed once more and timed. Batch 0 lets the engine choose by the GPU's memory, and is halved where that does not
suffice. Where no GPU works it says why and ends with exit code 1; --device cpu measures the CPU beside it.
On a host the libraries of services/whisper/requirements-gpu.lock have to be installed, as in the image.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "shared"), str(ROOT)]

from bench.whisper_overhead import LANGUAGE, LONGER, LONGER_TEXT, SAMPLE, SAMPLE_TEXT  # noqa: E402
from demo.report import word_error_rate  # noqa: E402
from services.whisper.messages import (  # noqa: E402
    SAMPLE_RATE,
    EngineReport,
    EngineRequest,
    ModelRequest,
    SpeechRequest,
    UnitResult,
)
from services.whisper.model_fetch import cache_root, fetch_model  # noqa: E402
from sidelinja_jobs import ChildError, ChildProcess  # noqa: E402


def transcribed(child: ChildProcess, model: ModelRequest, file: Path) -> tuple[list[UnitResult], EngineReport]:
    """The units of one file."""
    units: list[UnitResult] = []

    def receive(message: Any) -> None:
        if isinstance(message, UnitResult):
            units.append(message)

    report: EngineReport = child.call(EngineRequest(model, SpeechRequest(LANGUAGE), file.parent, file.name), receive)
    return units, report


def gpu_megabytes(pid: int | None) -> int | None:
    """What the process holds of the GPU's memory; None where nobody can tell."""
    if (program := shutil.which("nvidia-smi")) is None:
        return None
    query = ["--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    done = subprocess.run([program, *query], check=False, capture_output=True, text=True)
    rows = [line.split(", ") for line in done.stdout.splitlines()]
    return next((int(used) for found, used in rows if found == str(pid) and used.isdigit()), None)


def measured(folder: Path, device: str, batch: int, audio: Path, text: str) -> dict[str, Any]:
    """One batch size, in an engine process of its own."""
    model = ModelRequest(folder, "auto", 0, device, batch)
    child = ChildProcess("services.whisper.engine:transcribe", name="whisper engine")
    try:
        _, loaded = transcribed(child, model, SAMPLE)
        started = time.monotonic()
        units, report = transcribed(child, model, audio)
        wall = time.monotonic() - started
        said = " ".join(row["text"] for unit in units for row in unit.segments)
        return {
            "batch": batch,
            "device": report.device,
            "compute_type": report.compute_type,
            "used_batch": report.batch_size,
            "load_s": loaded.load_seconds,
            "wall_s": round(wall, 2),
            "times_real_time": round(units[-1].end_sample / SAMPLE_RATE / wall, 1),
            "wrong_percent": round(100 * word_error_rate(text, said), 2),
            "gpu_mb": gpu_megabytes(child.pid),
        }
    finally:
        child.close()


@click.command(help=__doc__)
@click.option("--model", default="base", show_default=True, help="A model that model_fetch knows.")
@click.option("--device", type=click.Choice(["cuda", "cpu"]), default="cuda", show_default=True)
@click.option("--batch", "batches", type=click.IntRange(0, 64), multiple=True, default=(1, 4, 16, 0), show_default=True)
@click.option("--audio", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="An MP3 in English.")
@click.option("--text", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="What is said in it.")
def main(model: str, device: str, batches: tuple[int, ...], audio: Path | None, text: Path | None) -> None:
    if (audio is None) != (text is None):
        raise click.UsageError("--audio and --text belong together")
    if audio is None or text is None:
        audio, text = (LONGER, LONGER_TEXT) if LONGER.is_file() else (SAMPLE, SAMPLE_TEXT)
    folder, spoken = fetch_model(cache_root(), model).folder, text.read_text(encoding="utf-8")
    for batch in batches:
        try:
            row = measured(folder, device, batch, audio.resolve(), spoken)
        except ChildError as error:
            raise click.ClickException(f"batch {batch}: {error}") from error
        print(json.dumps({"model": model, **row}), flush=True)


if __name__ == "__main__":
    main()
