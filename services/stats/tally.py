"""What the lines of one batch came to, before it is written: windows, and how many lines were left out and why.

A window is what one listener got of one version of an episode on one day. Everything here is a sum, a union or a
minimum, so the order of lines and where batches are cut make no difference (R18).
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date

import msgspec

from services.stats.addresses import UNKNOWN_COUNTRY
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
    """What one listener got of one version of an episode on one day.

    Players ask for one piece after the other, so there is mostly one span of bytes, from `first` to before `end`.
    """

    first_start: float
    referrer: str  # host of the earliest request's Referer
    first: int
    end: int
    byte_count: int
    requests: int
    country: str = UNKNOWN_COUNTRY
    apart: list[Span] | None = None  # spans that did not touch the first one

    def add(self, start: float, first: int, end: int, byte_count: int, referrer: str) -> None:
        """Another request."""
        self.requests += 1
        self.byte_count += byte_count
        self.add_span(first, end)
        if start < self.first_start or (start == self.first_start and referrer < self.referrer):
            self.first_start, self.referrer = start, referrer

    def add_span(self, first: int, end: int) -> None:
        if first <= self.end and end >= self.first:
            if first < self.first:
                self.first = first
            if end > self.end:
                self.end = end
        elif self.apart is None:
            self.apart = [(first, end)]
        else:
            self.apart.append((first, end))
            if len(self.apart) > _MANY_SPANS:
                self.apart = union_of(self.apart)


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
    short_durations: int = 0  # responses that took less time than any does
    last_moment: float = 0.0  # of the last line that has one, seconds since 1970
    days: defaultdict[date, DayTally] = field(default_factory=lambda: defaultdict(DayTally))
    allowed: set[bytes] = field(default_factory=set)  # addresses that may have any volume (R31)
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
