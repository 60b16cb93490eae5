"""What a run did: the result of the job, and the checkpoint from which a second attempt goes on counting."""

from collections import Counter
from collections.abc import Iterable
from datetime import date
from itertools import islice
from typing import Any

import msgspec

from services.stats.addresses import looks_masked
from services.stats.counting import LATE
from services.stats.log_files import LogFile
from services.stats.tally import Tally, Window, WindowKey
from sidelinja_jobs.json_text import clean_text

METHOD = "iab23-cal-oslo-1"
RESULT_VERSION = 1
WAITING, BROKEN, GONE = "waiting", "broken", "gone"
_HALF = 0.5
_FEWEST_REQUESTS = 100  # below, one address with most of them says nothing
_LISTENERS_LOOKED_AT = 1000
_MOST_FILES = 50


class FileReport(msgspec.Struct):
    """What was read of one file."""

    name: str
    start: int
    end: int
    lines: int = 0
    bad: int = 0
    state: str = "live"


class Unfinished(msgspec.Struct):
    """A compressed file whose end cannot be read. What is before `byte` (uncompressed), `lines` lines, is counted."""

    source: str
    name: str
    byte: int
    lines: int
    file_bytes: int  # compressed
    state: str  # waiting: it may be being written; broken: for a day it has not changed; gone: it is not there any more


class Report(msgspec.Struct):
    """Sums of all batches that were committed. No address, no user agent and no path is in it."""

    lines: int = 0
    counted: int = 0
    late: int = 0
    query_dropped: int = 0
    lost_bytes: int = 0
    last_moment: float = 0.0
    excluded: dict[str, int] = {}
    bad: dict[str, int] = {}
    files: dict[str, FileReport] = {}
    unfinished: list[Unfinished] = []
    days: set[date] = set()
    warnings: set[str] = set()

    @classmethod
    def restored(cls, data: Any) -> "Report":
        """What an earlier attempt of the same job had committed; nothing, where its checkpoint has another form."""
        try:
            report = msgspec.convert(data, cls)
        except msgspec.ValidationError:
            return cls()
        report.unfinished.clear()  # this attempt looks at the files again
        return report

    def with_batch(self, source: str, file: LogFile, start: int, end: int, state: str, tally: Tally) -> "Report":
        """The report once this batch is committed."""
        new = msgspec.convert(msgspec.to_builtins(self), Report)
        new.lines += tally.lines
        new.counted += tally.counted
        new.query_dropped += tally.query_dropped
        new.last_moment = max(new.last_moment, tally.last_moment)
        reasons = tally.by_reason()
        new.late += reasons.pop(LATE, 0)
        for total, fresh in ((new.excluded, reasons), (new.bad, tally.bad)):
            for reason, count in fresh.items():
                total[reason] = total.get(reason, 0) + count
        new.days |= {day for day, today in tally.days.items() if today.windows or today.excluded}
        new.warnings |= warnings_of(tally)
        key = f"{source}:{file.fingerprint.hex()[:16]}"
        if len(new.files) < _MOST_FILES or key in new.files:
            entry = new.files.setdefault(key, FileReport(clean_text(file.name), start, end))
            entry.name, entry.end, entry.state = clean_text(file.name), end, state
            entry.lines += tally.lines
            entry.bad += tally.bad.total()
        return new

    @property
    def sums(self) -> dict[str, int]:
        """All lines, by what became of them."""
        excluded, bad = sum(self.excluded.values()), sum(self.bad.values())
        return {"counted": self.counted, "excluded": excluded, "late": self.late, "bad": bad}

    @property
    def is_waiting(self) -> bool:
        """Whether lines may still come of a file that is being compressed."""
        return any(file.state == WAITING for file in self.unfinished)

    def note_unfinished(self, file: Unfinished) -> None:
        self.unfinished.append(file)
        if file.state != WAITING:
            self.warn("incomplete_gzip")

    def warn(self, text: str) -> None:
        self.warnings.add(text)


def warnings_of(tally: Tally) -> set[str]:
    """What in a batch looks as if the log, or the proxy before it, was not set up for counting."""
    found: set[str] = {"durations_in_ms"} if tally.short_durations else set()
    keys = [key for today in tally.days.values() for key in _some_of(today.windows)]
    if not keys:
        return found
    if any(agent.is_hashed for agent in {key[2] for key in keys}):
        found.add("ua_hashed")
    if all(looks_masked(key[3]) for key in keys):
        found.add("masked_ips")
    ((address, most),) = Counter([key[3] for key in keys]).most_common(1)
    if tally.counted >= _FEWEST_REQUESTS and most > len(keys) * _HALF and address not in tally.allowed:
        found.add("one_ip_over_50_percent")  # of the listeners
    return found


def _some_of(windows: dict[WindowKey, Window]) -> Iterable[WindowKey]:
    """Enough of a day's listeners, from all over the batch."""
    return islice(windows, 0, None, len(windows) // _LISTENERS_LOOKED_AT + 1)
