"""What counting costs: lines per CPU second and peak memory, as a share of decoding alone, beside other programs.

    make bench-stats ARGS="[--lines 1000000] [--rounds 3] [--way worker …] [--once goaccess]"

Each way runs in a process of its own, over the same synthetic file (bench/stats_lines.py), rounds interleaved; the
table shows medians, the last line is JSON. "worker" is the whole worker, `python -m services.stats` with a PostgreSQL
of its own: its CPU from claim to result, its children's included, and the server's beside it. GoAccess is installed
where that is possible, DuckDB into an environment of its own in the user's cache; both count requests of files, which
is less than what the rules do. What cannot be had is named.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from bench.stats_lines import synthetic_lines
from bench.stats_programs import PROGRAMS, Figures, UnavailableError
from bench.stats_ways import WAYS

ROOT = Path(__file__).resolve().parent.parent
ALL = (*WAYS, *PROGRAMS)
Rounds = dict[str, list[Figures]]


def measured(way: str, file: Path) -> Figures:
    """CPU seconds, seconds, peak memory."""
    if way in PROGRAMS:
        return PROGRAMS[way](file)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "stats_ways.py"), way, str(file)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    figures: Figures = json.loads(done.stdout)
    return figures | {"wall": time.monotonic() - started}


@click.command()
@click.option("--lines", default=1_000_000, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--way", "ways", multiple=True, type=click.Choice(ALL), help="Several times; all, if none is given.")
@click.option("--once", multiple=True, type=click.Choice(ALL), help="In the first round alone.")
def main(lines: int, rounds: int, ways: tuple[str, ...], once: tuple[str, ...]) -> None:
    """Measures and prints."""
    with tempfile.TemporaryDirectory(prefix="bench-stats-") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "access.log"
        with file.open("wb") as log:
            log.writelines(synthetic_lines(lines))
        click.echo(f"{lines} lines, {file.stat().st_size >> 20} MiB, {os.cpu_count()} cores")
        found: Rounds = {}
        for number in range(rounds):
            chosen = [way for way in ways or ALL if not number or way not in once]
            measure_round(file, chosen[:: -1 if number % 2 else 1], found)
        show(found, lines)


def measure_round(file: Path, ways: list[str], found: Rounds) -> None:
    for way in ways:
        try:
            figures = measured(way, file)
        except UnavailableError as error:
            click.echo(f"bench-stats: {way} is left out: {error}", err=True)
            continue
        found.setdefault(way, []).append(figures)
        click.echo(f"  {way}: {figures['cpu']:.2f} CPU s, load {os.getloadavg()[0]:.1f}", err=True)


def show(found: Rounds, lines: int) -> None:
    medians: dict[str, dict[str, Any]] = {
        way: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]} for way, rounds in found.items()
    }
    base = medians.get("decode", {}).get("cpu")
    click.echo(
        f"{'way':10}{'CPU s':>9}{'lines/CPU s':>13}{'x decode':>10}{'peak MB':>9}{'wall s':>9}{'server CPU s':>14}"
    )
    for way in sorted(medians, key=ALL.index):
        row = medians[way]
        row["lines_per_cpu_second"] = round(lines / row["cpu"])
        share = f"{row['cpu'] / base:.2f}" if base else ""
        server = f"{row['server_cpu']:.1f}" if "server_cpu" in row else ""
        click.echo(
            f"{way:10}{row['cpu']:14.2f}{row['lines_per_cpu_second']:14}{share:>14}{row['peak_mb']:14.0f}"
            f"{row['wall']:14.1f}{server:>14}"
        )
    click.echo(json.dumps(medians))


if __name__ == "__main__":
    main()
