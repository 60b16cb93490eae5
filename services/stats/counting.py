"""The counting rules, line by line: which requests count, for whom, on which day, and with which bytes.

Modelled on the IAB Tech Lab's Podcast Technical Measurement Guidelines 2.3 with calendar days; not certified. The
numbers R1 to R36 stand where each rule is kept; docs/statistics.md lists them. Whether a minute was fetched (R14 to
R16) is decided in the database, over all that a day brought.
"""

from collections.abc import Mapping, Set
from datetime import date

from services.stats.addresses import AddressBook, Standing
from services.stats.agents import NO_AGENT, Agent, AgentBook
from services.stats.coverage import (
    LARGEST_FILE,
    NO_RANGE,
    PROBE,
    ContentRanges,
    Coverage,
    Span,
    multiple_coverage,
    total_of,
)
from services.stats.instants import (
    EARLIEST,
    LONGEST_DURATION,
    NANOSECOND,
    SHORTEST_NANOSECONDS,
    Days,
    duration_of,
    seconds_of,
)
from services.stats.lines import BadLine, Headers, Line, Request, decode_lines, nth_line, shape_of
from services.stats.paths import Kind, Layout, host_of_referrer
from services.stats.tally import DayTally, Episode, Feed, Tally, Window

NOT_ACCESS = "not_access"  # a line of another logger in the same file
OTHER_HOST = "other_host"
LATE = "late"  # of a day that is closed
_ACCESS = "http.log.access"
_BAD = frozenset(("ts", "ip", "schema"))
_MOST_PATHS = 50_000
_NONE: list[Span] = []


class Facts:
    """What is known of an episode before its lines are read; by show and name."""

    def __init__(self, published: Mapping[tuple[str, str], float], totals: Mapping[tuple[str, str], int]) -> None:
        self._published, self._totals = published, totals

    def episode(self, show: str, name: str) -> Episode:
        return Episode(show, name, self._published.get((show, name), 0.0), self._totals.get((show, name), 0))


NO_FACTS = Facts({}, {})


class Targets(dict[str, Episode | Feed | None]):
    """R11: from a path as it was sent to an episode or feed, one object for all spellings; None for neither."""

    def __init__(self, layout: Layout, facts: Facts) -> None:
        super().__init__()
        self._layout, self._facts = layout, facts
        self._known: dict[tuple[str, str], Episode | Feed] = {}

    def __missing__(self, path: str) -> Episode | Feed | None:
        found = self._layout.target_of(path)
        key = (found.show, found.name)
        if found.kind is Kind.OTHER:
            target = None
        elif key in self._known:
            target = self._known[key]
        else:
            target = Feed(found.name) if found.kind is Kind.FEED else self._facts.episode(*key)
            self._known[key] = target
        self[path] = target
        return target

    def forget(self) -> None:
        """Between batches, when there are many."""
        if len(self) > _MOST_PATHS:
            self.clear()


class Counting:
    """Applies the rules to one source's lines. Holds addresses and user agents in memory for a while."""

    def __init__(
        self,
        layout: Layout,
        zone: str,
        agents: AgentBook,
        addresses: AddressBook,
        *,
        facts: Facts = NO_FACTS,
        closed: Set[date] = frozenset(),
        whole_duration: float = NANOSECOND,
    ) -> None:
        self._layout, self._days, self._whole_duration = layout, Days(zone), whole_duration
        self._agents, self._addresses = agents, addresses
        self._has_lists, self._has_countries = addresses.has_lists, addresses.has_countries
        self._targets, self._ranges = Targets(layout, facts), ContentRanges()
        self._closed = closed
        self._hosts: dict[str, bool] = {}
        self._has_hosts = bool(layout.hosts)
        self._more_spans = _NONE
        self._day_start = self._day_end = 0.0
        self.day, self._is_closed = date.min, False
        self._begin_tally()

    def take(self) -> Tally:
        """The tally so far; begins a new one and forgets what need not be known longer."""
        done = self.tally
        self._begin_tally()
        for book in (self._addresses, self._agents, self._targets):
            book.forget()
        return done

    def read(self, chunk: bytes, offset: int = 0) -> None:
        """Counts the lines of a chunk of whole lines; `offset` is its place in the file, for the record of bad ones."""
        tally, judge = self.tally, self._judge
        lines = decode_lines(chunk)
        tally.lines += len(lines)
        for index, line in enumerate(lines):
            if type(line) is BadLine:
                tally.add_bad(line.reason, offset + line.offset, line.sample)
                continue
            reason = judge(line)  # type: ignore[arg-type]  # type() is cheaper than isinstance(), but no guard
            if reason is None:
                continue
            if reason in _BAD:
                place, text = nth_line(chunk, index)
                tally.add_bad(reason, offset + place, shape_of(text))
            else:
                self._excluded[reason] += 1
        self._note_moment(lines)

    def _judge(self, line: Line) -> str | None:
        """Why a line is not counted; None when it is."""
        moment, duration = line.ts, line.duration
        if type(moment) is float and type(duration) is float and 0.0 <= duration < LONGEST_DURATION:
            start = moment - duration
        else:
            start = -1.0
        if not self._day_start <= start < self._day_end:
            start = self._turn_to_day_of(line)
            if start < 0:
                return "ts"
        request, logger = line.request, line.logger
        if request is None or self._is_closed or (logger and not logger.startswith(_ACCESS)):
            return self._reason_of_no_request(line)
        if request.method != "GET":
            return "method"  # R1
        if self._has_hosts and not self._is_served(request.host):
            return OTHER_HOST
        uri = request.uri
        target = self._targets[uri] if "?" not in uri else self._without_query(uri)
        status = line.status
        if type(target) is not Episode or (status != 200 and status != 206):
            return self._reason_of_no_episode(line, request, target)
        headers = request.headers
        if headers is None or not headers.user_agent:
            return NO_AGENT  # R8
        agent = self._agents[headers.user_agent[0]]  # R9
        text = request.client_ip or request.remote_ip or request.remote_addr
        address = self._addresses.key_of(text)
        is_denied = self._has_lists and address is not None and self._is_denied(text, address)
        if address is None or is_denied or agent.exclusion is not None or start < target.published:
            return _refusal(agent, address, is_denied=is_denied)
        return self._count(line, headers, target, agent, address, start)

    def _count(
        self, line: Line, headers: Headers, episode: Episode, agent: Agent, address: bytes, start: float
    ) -> str | None:
        """Adds an answer's bytes to its listener's window; a reason, when it has none that count."""
        size, answered = line.size, line.resp_headers
        if not 0 <= size <= LARGEST_FILE:
            return "schema"
        if line.status == 206 and answered is not None and answered.content_range:
            covered = self._ranges[answered.content_range[0]]  # R3
        else:
            covered = self._coverage_without_range(line, headers, episode)
        if isinstance(covered, str):
            return covered
        first, end, total = covered
        if end > first + size:
            end = first + size
        # R20, R24, R25, R34: one listener, whatever it asked
        key = (episode, total or episode.known_total, agent, address)
        referrer = host_of_referrer(headers.referer[0]) if headers.referer else ""
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = Window(start, referrer, first, end, size, 1)
            if self._has_countries:
                window.country = self._addresses.country_of(address)
        else:
            window.add(start, first, end, size, referrer)
        if self._more_spans:
            for span in self._more_spans:
                window.add_span(*span)
            self._more_spans = _NONE
        return None

    def _is_denied(self, text: str, address: bytes) -> bool:
        standing = self._addresses.standing_of(text)
        if standing is Standing.ALLOWED:
            self.tally.allowed.add(address)
        return standing is Standing.DENIED

    def _coverage_without_range(self, line: Line, headers: Headers, episode: Episode) -> Coverage | str:
        """Of the whole file, or of parts: what comes after the first part waits in `_more_spans`."""
        if line.status == 200:  # R2, R7: whatever was asked for
            total = total_of(line) or episode.known_total
            return 0, total or line.size, total
        spans, is_probe = multiple_coverage(headers.range[0] if headers.range else "", line.size, episode.known_total)
        if is_probe or not spans:
            return PROBE if is_probe else NO_RANGE
        self._more_spans = spans[1:]  # R4
        return *spans[0], episode.known_total

    def _reason_of_no_request(self, line: Line) -> str:
        if line.request is None and line.logger.startswith(_ACCESS):
            return "schema"
        return LATE if self._is_closed else NOT_ACCESS  # nothing is added to a closed day but late lines

    def _reason_of_no_episode(self, line: Line, request: Request, target: Episode | Feed | None) -> str:
        """R5 and R10; a fetch of a feed counts for itself, also one that was answered with "not modified"."""
        if line.status < 0:
            return "schema"
        if type(target) is not Feed:
            return "not_media" if line.status in (200, 206) else "status"
        if line.status not in (200, 304):
            return "status"
        headers = request.headers
        agent = self._agents[headers.user_agent[0]] if headers is not None and headers.user_agent else None
        if agent is None or agent.exclusion == NO_AGENT:
            return NO_AGENT
        self._feeds[target, agent] += 1
        return "feed"

    def _turn_to_day_of(self, line: Line) -> float:
        """Finds the request's start and goes to its local day (R26); -1 when the line's times cannot be read."""
        moment = seconds_of(line.ts if line.ts is not None else line.time)
        duration = duration_of(line.duration, self._whole_duration)
        if type(line.duration) is int and self._whole_duration == NANOSECOND:
            self.tally.short_durations += 0 < line.duration < SHORTEST_NANOSECONDS
        if moment is None or duration is None or moment - duration < EARLIEST:
            return -1.0
        start = moment - duration
        if not self._day_start <= start < self._day_end:
            self._day_start, self._day_end, self.day = self._days.bounds_of(start)
            self._is_closed = self.day in self._closed
            today: DayTally = self.tally.days[self.day]
            self._windows, self._excluded, self._feeds = today.windows, today.excluded, today.feeds
        return start

    def _begin_tally(self) -> None:
        self.tally = Tally()
        self._day_start = self._day_end = 0.0  # the next line finds its day anew

    def _note_moment(self, lines: list[Line | BadLine]) -> None:
        """When the chunk's last line was written: for how far behind the log the counts are."""
        for line in reversed(lines):
            if type(line) is Line and (moment := seconds_of(line.ts if line.ts is not None else line.time)) is not None:
                self.tally.last_moment = max(self.tally.last_moment, moment)
                return

    def _is_served(self, host: str) -> bool:
        if host not in self._hosts:
            if len(self._hosts) > _MOST_PATHS:
                self._hosts.clear()
            self._hosts[host] = self._layout.serves(host)
        return self._hosts[host]

    def _without_query(self, uri: str) -> Episode | Feed | None:
        self.tally.query_dropped += 1
        return self._targets[uri.partition("?")[0]]


def _refusal(agent: Agent, address: bytes | None, *, is_denied: bool) -> str:
    if agent.exclusion == NO_AGENT:
        return NO_AGENT
    if address is None:
        return "ip"
    if is_denied:
        return "deny_ip"  # R13, R36
    return agent.exclusion or "pre_release"  # R30, R32, R33; R12
