"""Parts of the statistics, each measured in a process of its own: `python bench/stats_ways.py WAY FILE`.

"decode" reads and decodes lines with the worker's reader; "rules" applies all rules and unites the ranges of each
listener; "columns" adds what comes before the statement that writes a batch: keyed hashes, columns, warnings. Prints
CPU seconds and peak memory as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from services.stats.addresses import AddressBook, Networks
from services.stats.agents import AgentBook, OwnList
from services.stats.columns import Hashes, window_columns
from services.stats.counting import Counting
from services.stats.line_reader import LineReader
from services.stats.lines import decode_lines
from services.stats.log_files import find_log_files
from services.stats.parsing import BATCH_LINES
from services.stats.paths import Layout
from services.stats.process import tune_garbage_collection
from services.stats.report import warnings_of
from services.stats.tally import Tally


def decode(file: Path) -> None:
    (log,) = find_log_files(file.parent, file.name).files
    for piece in LineReader(log, 0).pieces():
        decode_lines(piece.chunk)


def rules(file: Path) -> None:
    _count(file, lambda tally: None)


def columns(file: Path) -> None:
    hashes = Hashes(bytes(range(32)))

    def encode(tally: Tally) -> None:
        warnings_of(tally)
        for today in tally.days.values():
            if today.windows:
                window_columns(today.windows, hashes, tally.allowed)

    _count(file, encode)


def _count(file: Path, use: Callable[[Tally], None]) -> None:
    (log,) = find_log_files(file.parent, file.name).files
    counting = Counting(Layout("Lyd"), "Europe/Oslo", AgentBook(OwnList()), AddressBook(Networks(), Networks()))
    for piece in LineReader(log, 0).pieces():
        counting.read(piece.chunk, piece.offset)
        if counting.tally.lines >= BATCH_LINES:
            use(counting.take())
    use(counting.take())


WAYS: dict[str, Callable[[Path], None]] = {"decode": decode, "rules": rules, "columns": columns}


def peak_mb(pid: int | str = "self") -> float:
    """Of a process since its start; getrusage would begin with its parent's peak."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    tune_garbage_collection()
    before = time.process_time()
    WAYS[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps({"cpu": time.process_time() - before, "peak_mb": peak_mb()}))
