"""What counting costs: lines per CPU second and peak memory, as a share of decoding alone, beside other programs.

    make bench-stats ARGS="[--lines 1000000] [--rounds 3] [--repeat 1]"

Each way runs in a process of its own, over the same synthetic file (bench/stats_lines.py), rounds interleaved; the
table shows medians, the last line is JSON. "decode" reads and decodes lines with the worker's reader; "rules" applies
all rules and unites the ranges of each listener; "batch" adds all that comes before the statement that writes a batch:
keyed hashes, columns. "worker" is a whole run of the handler with its own PostgreSQL, of which only the worker's CPU is
counted. "goaccess" and "duckdb" are left out
where they are not installed; both count requests of files, which is less than what the rules do. --repeat reads the
file that often in one process: memory must not grow.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "shared"), str(ROOT)]

from bench.stats_lines import synthetic_lines  # noqa: E402
from services.stats.addresses import AddressBook, Networks  # noqa: E402
from services.stats.agents import AgentBook, OwnList  # noqa: E402
from services.stats.columns import Hashes, window_columns  # noqa: E402
from services.stats.counting import Counting  # noqa: E402
from services.stats.line_reader import LineReader  # noqa: E402
from services.stats.lines import decode_lines  # noqa: E402
from services.stats.log_files import find_log_files  # noqa: E402
from services.stats.parsing import BATCH_LINES  # noqa: E402
from services.stats.paths import Layout  # noqa: E402
from services.stats.process import tune_garbage_collection  # noqa: E402
from services.stats.tally import Tally  # noqa: E402

WAYS = ("decode", "rules", "batch", "worker", "duckdb", "goaccess")
DUCKDB_QUERY = """
select count(*) from (
  select request.uri, request.remote_ip, request.headers['User-Agent'][1] as agent,
         cast(to_timestamp(ts - duration) as date) as day, sum(size) as bytes
    from read_json('{file}', format = 'newline_delimited', columns = {{
         ts: 'DOUBLE', duration: 'DOUBLE', size: 'BIGINT', status: 'INTEGER',
         request: 'STRUCT(method VARCHAR, uri VARCHAR, remote_ip VARCHAR, headers MAP(VARCHAR, VARCHAR[]))'}})
   where status in (200, 206) and request.method = 'GET' and size > 2
   group by all having bytes >= 500000)
"""


def decode(file: Path) -> None:
    (log,), _ = find_log_files(file.parent, file.name)
    for piece in LineReader(log, 0).pieces():
        decode_lines(piece.chunk)


def rules(file: Path) -> None:
    _count(file, lambda tally: None)


def batch(file: Path) -> None:
    hashes = Hashes(bytes(range(32)))

    def encode(tally: Tally) -> None:
        for today in tally.days.values():
            window_columns(today.windows, hashes)

    _count(file, encode)


def _count(file: Path, use: Callable[[Tally], None]) -> None:
    (log,), _ = find_log_files(file.parent, file.name)
    counting = Counting(Layout("Lyd"), "Europe/Oslo", AgentBook(OwnList()), AddressBook(Networks(), Networks()))
    for piece in LineReader(log, 0).pieces():
        counting.read(piece.chunk, piece.offset)
        if counting.tally.lines >= BATCH_LINES:
            use(counting.take())
    use(counting.take())


def worker(file: Path) -> float:
    """A run of the handler against an embedded PostgreSQL; its own CPU seconds."""
    from demo.embedded_postgres import NOT_DURABLE, EmbeddedPostgres
    from tests.databases import Server
    from tests.queue.stats_support import Stats

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user, who has to get in
        with EmbeddedPostgres(Path(folder) / "pg", settings=NOT_DURABLE) as postgres:
            server = Server(postgres.dsn())
            server.prepare()
            stats = Stats(server.create_database(), Path(folder), run_seconds=3600)
            (stats.logs / "access.log").symlink_to(file)
            before = time.process_time()
            stats.run()
            return time.process_time() - before


def duckdb(file: Path) -> None:
    import duckdb as engine  # type: ignore[import-not-found]  # only where somebody has installed it

    engine.sql(DUCKDB_QUERY.format(file=file)).fetchall()


def goaccess(file: Path) -> None:
    subprocess.run(
        ["goaccess", str(file), "--log-format=CADDY", "--no-global-config", "-o", f"{file.parent}/goaccess.json"],
        check=True, capture_output=True,
    )  # fmt: skip


RUN: dict[str, Callable[[Path], float | None]] = {
    "decode": decode, "rules": rules, "batch": batch, "worker": worker, "duckdb": duckdb, "goaccess": goaccess,
}  # fmt: skip


def is_there(way: str) -> bool:
    if way == "goaccess":
        return shutil.which("goaccess") is not None
    if way == "duckdb":
        return subprocess.run([sys.executable, "-c", "import duckdb"], capture_output=True).returncode == 0
    return True


def measured(way: str, file: Path, repeat: int) -> dict[str, float]:
    """CPU seconds, seconds and peak memory of a process of its own."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, __file__, "--way", way, "--file", str(file), "--repeat", str(repeat)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads(done.stdout.splitlines()[-1])
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": told.get("own_cpu", whole), "wall": time.monotonic() - started, "peak_mb": told["peak_mb"]}


def in_this_process(way: str, file: Path, repeat: int) -> None:
    tune_garbage_collection()
    before = time.process_time()
    own = [RUN[way](file) for _ in range(repeat)]
    spent = sum(own) if way == "worker" else time.process_time() - before  # type: ignore[arg-type]
    told = {} if way == "goaccess" else {"own_cpu": spent}
    print(json.dumps(told | {"peak_mb": peak_mb(way)}))


def peak_mb(way: str) -> float:
    """Of this process since its start; getrusage would begin with its parent's peak."""
    if way == "goaccess":
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@click.command()
@click.option("--lines", default=1_000_000, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--repeat", default=1, show_default=True)
@click.option("--way", "ways", multiple=True, type=click.Choice(WAYS))
@click.option("--file", "given", type=click.Path(path_type=Path))
def main(lines: int, rounds: int, repeat: int, ways: tuple[str, ...], given: Path | None) -> None:
    """Measures and prints."""
    if given is not None:
        in_this_process(ways[0], given, repeat)
        return
    chosen = [way for way in ways or WAYS if is_there(way)]
    with tempfile.TemporaryDirectory(prefix="bench-stats-") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "access.log"
        with file.open("wb") as log:
            log.writelines(synthetic_lines(lines))
        click.echo(
            f"{lines} lines, {file.stat().st_size >> 20} MiB, read {repeat} times, load {os.getloadavg()[0]:.1f}"
        )
        found: dict[str, list[dict[str, float]]] = {way: [] for way in chosen}
        for number in range(rounds):
            for way in chosen[:: -1 if number % 2 else 1]:
                found[way].append(measured(way, file, repeat))
        show(found, lines * repeat)


def show(found: dict[str, list[dict[str, float]]], lines: int) -> None:
    medians: dict[str, dict[str, Any]] = {
        way: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]} for way, rounds in found.items()
    }
    base = medians.get("decode", {}).get("cpu")
    click.echo(f"{'way':10}{'CPU s':>9}{'lines/CPU s':>13}{'wall s':>9}{'peak MB':>9}{'x decode':>10}")
    for way, row in medians.items():
        row["lines_per_cpu_second"] = round(lines / row["cpu"])
        share = f"{row['cpu'] / base:.2f}" if base else ""
        click.echo(
            f"{way:10}{row['cpu']:9.2f}{row['lines_per_cpu_second']:13}{row['wall']:9.1f}{row['peak_mb']:9.0f}{share:>10}"
        )
    click.echo(json.dumps(medians))


if __name__ == "__main__":
    main()
