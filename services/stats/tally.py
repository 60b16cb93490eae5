"""What the lines of one batch came to, before it is written: windows, and how many lines were left out and why.

A window is what one listener got of one version of an episode on one day. Everything here is a sum, a union or a
minimum, so the order of lines and where batches are cut make no difference (R18).
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date

import msgspec

from services.stats.addresses import Address
from services.stats.agents import Agent
from services.stats.coverage import Span, union_of
from services.stats.lines import BadLine

_MANY_SPANS = 64
MOST_BAD_LINES = 100  # that are kept of one batch


@dataclass(eq=False)
class Episode:
    """An episode's file as requests name it. One object for all spellings, so it is compared by identity."""

    show: str
    name: str
    published: float = 0.0  # seconds since 1970
    known_total: int = 0  # the file's size, for answers that do not say it


@dataclass(eq=False)
class Feed:
    """A feed's path; one object for all spellings."""

    name: str


class Window(msgspec.Struct, gc=False):
    """What one listener got of one version of an episode on one day."""

    address: Address
    first_start: float
    referrer: str  # host of the earliest request's Referer
    spans: list[Span]
    byte_count: int
    requests: int

    def add(self, start: float, spans: list[Span], byte_count: int, referrer: str) -> None:
        self.requests += 1
        self.byte_count += byte_count
        self.spans += spans
        if len(self.spans) > _MANY_SPANS:
            self.spans = union_of(self.spans)
        if start < self.first_start or (start == self.first_start and referrer < self.referrer):
            self.first_start, self.referrer = start, referrer


WindowKey = tuple[Episode, int, Agent, bytes]  # file size (0 unknown), address
FeedKey = tuple[Feed, Agent]


@dataclass
class DayTally:
    """What a batch has of one day."""

    windows: dict[WindowKey, Window] = field(default_factory=dict)
    excluded: Counter[str] = field(default_factory=Counter)  # lines, by reason
    feeds: Counter[FeedKey] = field(default_factory=Counter)


@dataclass
class Tally:
    """One batch."""

    lines: int = 0
    query_dropped: int = 0  # (R11) requests whose query was left out of the episode's key
    last_moment: float = 0.0  # of the last line that has one, seconds since 1970
    days: defaultdict[date, DayTally] = field(default_factory=lambda: defaultdict(DayTally))
    bad: Counter[str] = field(default_factory=Counter)
    bad_lines: list[BadLine] = field(default_factory=list)  # the first of them, at their offset in the file

    @property
    def counted(self) -> int:
        """Lines that counted: each is counted, left out for a reason, or bad."""
        return self.lines - self.bad.total() - sum(day.excluded.total() for day in self.days.values())

    def by_reason(self) -> Counter[str]:
        """How many lines were left out for each reason, all days together."""
        return sum((day.excluded for day in self.days.values()), Counter())

    def add_bad(self, reason: str, offset: int, sample: str) -> None:
        self.bad[reason] += 1
        if len(self.bad_lines) < MOST_BAD_LINES:
            self.bad_lines.append(BadLine(reason, offset, sample))
