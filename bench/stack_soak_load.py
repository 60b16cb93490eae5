"""The load of the stack's soak: pieces of the sample, pastes, lines of an access log, and jobs that are wrong."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.producer import Order
from tests.e2e.running_stack import SAMPLE, RunningStack
from tests.unit.stats_support import line
from tests.waiting import wait_until

PIECES = 3  # of the sample, nine seconds each
PASTE = "Les også: Noe annet\n\nFerga {} går klokka åtte fra Halsnøy, sier rederiet.\n\nDel på Facebook\n"
LINES_A_SECOND = 5
# Within what two cores work off, faults included.
ORDERS = (
    Order(
        "whisper_transcribe", 6,
        [{"path": f"piece{n}.mp3", "language": "en", "force": True, "analyze": True} for n in range(PIECES)],
    ),
    Order("research_clip", 1, [{"mode": "clean_only", "text": PASTE.format(n)} for n in range(20)]),
    Order("research_clip", 15, [{"mode": "full", "text": PASTE.format(f"nr. {n}")} for n in range(20)]),
    Order("research_clip", 60, [{"nonsense": True}]),
)  # fmt: skip


def cut_pieces(folder: Path) -> Iterator[str]:
    """Writes the pieces and names them. MP3 can be cut anywhere: a decoder finds the next frame."""
    sample = SAMPLE.read_bytes()
    size = len(sample) // PIECES
    for number in range(PIECES):
        name = f"piece{number}.mp3"
        (folder / name).write_bytes(sample[number * size : (number + 1) * size])
        yield name


class LogWriter:
    """Appends lines to an access log as a web server would, each request by a listener of its own."""

    def __init__(self, folder: Path) -> None:
        self._file, self._over = folder / "access.log", threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self.lines = 0

    def __enter__(self) -> "LogWriter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._over.wait(1):
            batch = [self._line(self.lines + number) for number in range(LINES_A_SECOND)]
            with self._file.open("ab") as log:
                log.writelines(batch)
            self.lines += len(batch)

    def _line(self, number: int) -> bytes:
        return line(at=time.time(), ip=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")


def finish_log(stack: RunningStack, lines: int) -> None:
    """Pulls the next run forward until all lines are counted; those of the last minute are not."""

    def is_read() -> bool:
        stack.compose("run", "--rm", "-T", "jobs", "stats", "run", check=False)  # one may be running
        return int(stack.sql("select coalesce(sum(lines + bad), 0) from stats.file")) >= lines

    wait_until(is_read, 120, every=5, what=f"{lines} lines to be counted")
