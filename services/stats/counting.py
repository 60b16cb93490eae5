"""The counting rules, line by line: which requests count, for whom, on which day, and with which bytes.

Modelled on the IAB Tech Lab's Podcast Technical Measurement Guidelines 2.3 with calendar days; not certified. The
numbers R1 to R36 stand where each rule is kept; docs/statistics.md lists them. Whether a minute was fetched (R14 to
R16) is decided in the database, over all that a day brought.
"""

from collections.abc import Mapping, Set
from datetime import date

from services.stats.addresses import AddressBook
from services.stats.agents import Agent, AgentBook
from services.stats.coverage import (
    LARGEST_FILE,
    Span,
    multiple_coverage,
    single_coverage,
    total_of,
    whole_coverage,
)
from services.stats.instants import EARLIEST, LATEST, Days, duration_of, seconds_of
from services.stats.lines import BadLine, Line, Request, decode_lines, nth_line, shape_of
from services.stats.paths import Kind, Layout, host_of_referrer
from services.stats.tally import Episode, Feed, Tally, Window

NOT_ACCESS = "not_access"  # a line of another logger in the same file
OTHER_HOST = "other_host"
LATE = "late"  # of a day that is closed
_ACCESS = "http.log.access"
_BAD = frozenset(("ts", "ip", "schema"))
_LONGEST_DURATION = 864_000.0
_MOST_PATHS = 50_000
_NO_SPAN: list[Span] = []


class Facts:
    """What is known of an episode before its lines are read; by show and name."""

    def __init__(self, published: Mapping[tuple[str, str], float], totals: Mapping[tuple[str, str], int]) -> None:
        self._published, self._totals = published, totals

    def episode(self, show: str, name: str) -> Episode:
        return Episode(show, name, self._published.get((show, name), 0.0), self._totals.get((show, name), 0))


NO_FACTS = Facts({}, {})


class Counting:
    """Applies the rules to one source's lines. Holds addresses and user agents for as long as a batch."""

    def __init__(
        self,
        layout: Layout,
        zone: str,
        agents: AgentBook,
        addresses: AddressBook,
        *,
        facts: Facts = NO_FACTS,
        closed: Set[date] = frozenset(),
    ) -> None:
        self._layout, self._days = layout, Days(zone)
        self._agents, self._addresses = agents, addresses
        self._facts, self._closed = facts, closed
        self._targets: dict[str, Episode | Feed | None] = {}
        self._episodes: dict[tuple[str, str], Episode] = {}
        self._feeds: dict[str, Feed] = {}
        self._hosts: dict[str, bool] = {}
        self._start = self._day_start = self._day_end = 0.0
        self._day = date.min
        self._is_closed = False
        self.tally = Tally()

    def take(self) -> Tally:
        """The tally so far; begins a new one and forgets what need not be known longer."""
        done, self.tally = self.tally, Tally()
        self._addresses.forget()
        self._agents.forget()
        if len(self._targets) > _MOST_PATHS:
            self._targets.clear()
        return done

    def read(self, chunk: bytes, offset: int = 0) -> None:
        """Counts the lines of a chunk of whole lines; `offset` is its place in the file, for the record of bad ones."""
        tally, judge, excluded = self.tally, self._judge, self.tally.excluded
        lines = decode_lines(chunk)
        tally.lines += len(lines)
        for index, line in enumerate(lines):
            if type(line) is BadLine:
                tally.add_bad(line.reason, offset + line.offset, line.sample)
                continue
            reason = judge(line)  # type: ignore[arg-type]  # Line, as the other was seen above
            if reason is None:
                tally.counted += 1
            elif reason in _BAD:
                place, text = nth_line(chunk, index)
                tally.add_bad(reason, offset + place, shape_of(text))
            else:
                excluded[self._day, reason] += 1

    def _judge(self, line: Line) -> str | None:
        """Why a line is not counted; None when it is."""
        if not self._has_moment(line):
            return "ts"
        request = line.request
        if request is None:
            return "schema" if line.logger.startswith(_ACCESS) else NOT_ACCESS
        if line.logger and not line.logger.startswith(_ACCESS):
            return NOT_ACCESS
        if self._is_closed:
            return LATE
        if request.method != "GET":
            return "method"  # R1
        if self._layout.hosts and not self._is_served(request.host):
            return OTHER_HOST
        target = self._target_of(request.uri)
        if type(target) is Feed:
            return self._count_feed(line, request, target)  # R10
        status = line.status
        if status != 200 and status != 206:
            return "status" if status >= 0 else "schema"  # R5
        if target is None:
            return "not_media"  # R10
        return self._count_episode(line, request, target)  # type: ignore[arg-type]  # neither Feed nor None

    def _count_episode(self, line: Line, request: Request, episode: Episode) -> str | None:
        agent = self._agent_of(request)
        if agent is None:
            return "no_ua"  # R8
        address = self._addresses.find(request.client_ip or request.remote_ip or request.remote_addr)
        if address is None:
            return "ip"
        if address.is_denied:
            return "deny_ip"  # R13, R36
        if agent.exclusion is not None:
            return agent.exclusion  # R30, R32, R33
        if self._start < episode.published:
            return "pre_release"  # R12
        spans, total, reason = self._coverage(line, request, episode)
        if reason is not None:
            return reason
        headers = request.headers
        referer = headers.referer if headers is not None else None
        referrer = host_of_referrer(referer[0]) if referer else ""
        key = (self._day, episode, total, agent, address.key)  # R24, R25, R34: one listener, whatever it asked
        window = self.tally.windows.get(key)
        if window is None:
            window = self.tally.windows[key] = Window(address, self._start, referrer, [])
        window.add(self._start, spans, line.size, referrer)
        return None

    def _coverage(self, line: Line, request: Request, episode: Episode) -> tuple[list[Span], int, str | None]:
        """The bytes that were sent, the size of the file they are of (R20), and a reason not to count."""
        size = line.size
        if not 0 <= size <= LARGEST_FILE:
            return _NO_SPAN, 0, "schema"
        if line.status == 200:  # R2, R7: whatever was asked for
            total = total_of(line) or episode.known_total
            return [whole_coverage(size, total)], total, None
        headers = line.resp_headers
        content_range = headers.content_range if headers is not None else None
        if content_range:  # R3
            found = single_coverage(content_range[0], size)
            if found is None:
                return _NO_SPAN, 0, "range"
            span, total, is_probe = found
            return [span], total or episode.known_total, "probe" if is_probe else None  # R6
        asked = request.headers.range if request.headers is not None else None
        if not asked:
            return _NO_SPAN, 0, "range"
        total = episode.known_total
        spans, is_probe = multiple_coverage(asked[0], size, total)  # R4
        return spans, total, "probe" if is_probe else None if spans else "range"

    def _count_feed(self, line: Line, request: Request, feed: Feed) -> str:
        """A fetch of a feed, also one that was answered with "not modified"."""
        if line.status not in (200, 304):
            return "status"
        agent = self._agent_of(request)
        if agent is None:
            return "no_ua"
        self.tally.feeds[self._day, feed, agent] += 1
        return "feed"

    def _agent_of(self, request: Request) -> Agent | None:
        headers = request.headers
        values = headers.user_agent if headers is not None else None
        if not values:
            return None
        text = values[0]  # R9
        return self._agents.find(text) if text and not text.isspace() else None

    def _has_moment(self, line: Line) -> bool:
        """Finds the request's start and its local day (R26); False when the line's times cannot be read."""
        moment, duration = line.ts, line.duration
        if not (type(moment) is float and type(duration) is float and moment < 1e11):
            return self._has_odd_moment(line)
        if not 0.0 <= duration < _LONGEST_DURATION:
            return False
        return self._turn_to(moment, moment - duration)

    def _has_odd_moment(self, line: Line) -> bool:
        moment = seconds_of(line.ts if line.ts is not None else line.time)
        duration = duration_of(line.duration)
        return moment is not None and duration is not None and self._turn_to(moment, moment - duration)

    def _turn_to(self, moment: float, start: float) -> bool:
        self._start = start
        if not self._day_start <= start < self._day_end:
            if not EARLIEST <= start < LATEST:
                return False
            self._day_start, self._day_end, self._day = self._days.bounds_of(start)
            self._is_closed = self._day in self._closed
        tally = self.tally
        if moment > tally.last_moment:
            tally.last_moment = moment
        if moment < tally.first_moment:
            tally.first_moment = moment
        return True

    def _is_served(self, host: str) -> bool:
        if host not in self._hosts:
            if len(self._hosts) > _MOST_PATHS:
                self._hosts.clear()
            self._hosts[host] = self._layout.serves(host)
        return self._hosts[host]

    def _target_of(self, uri: str) -> Episode | Feed | None:
        """R11: one object for all spellings of a path."""
        if "?" in uri:
            uri = uri.partition("?")[0]
            self.tally.query_dropped += 1
        try:
            return self._targets[uri]
        except KeyError:
            target = self._targets[uri] = self._resolve(uri)
            return target

    def _resolve(self, path: str) -> Episode | Feed | None:
        found = self._layout.target_of(path)
        if found.kind is Kind.OTHER:
            return None
        if found.kind is Kind.FEED:
            return self._feeds.setdefault(found.name, Feed(found.name))
        key = (found.show, found.name)
        if key not in self._episodes:
            self._episodes[key] = self._facts.episode(*key)
        return self._episodes[key]
