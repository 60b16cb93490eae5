"""What a list of jobs is filtered by: read from a query string, written into one, said in words, given to the queries.

What cannot be read is a problem, told beside its field, and matches no job at all: a slip in a filter must not widen
what an action is done to.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from uuid import UUID

from starlette.datastructures import ImmutableMultiDict

from services.admin.pages.job_source import NEWEST, OLDEST, Sought
from services.admin.words import Speech

STATUSES = ("pending", "running", "retry", "error", "completed")
SHORTEST_PREFIX = 4
LONGEST_TEXT = 200
_HEX = re.compile(r"[0-9a-f]{1,32}")
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_ESCAPED = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class JobFilter:
    """A filter; empty parts match everything. `problems`: field -> what is wrong, as a key of words."""

    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    error_class: str = ""
    fingerprint: str = ""
    worker: str = ""
    text: str = ""
    id_prefix: str = ""
    since: str = ""
    until: str = ""
    zone: tzinfo = UTC
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.pairs()

    @property
    def is_group(self) -> bool:
        """Whether it asks for one group of errors."""
        return bool(self.fingerprint)

    def pairs(self) -> Pairs:
        """The filter as fields of a query string, in a fixed order."""
        single = {
            "class": self.error_class,
            "group": self.fingerprint,
            "worker": self.worker,
            "q": self.text,
            "id": self.id_prefix,
            "since": self.since,
            "until": self.until,
        }
        several = [("type", name) for name in self.types] + [("status", name) for name in self.statuses]
        return several + [(name, value) for name, value in single.items() if value]

    def sought(self, as_of: datetime = NEWEST) -> Sought:
        """For the queries. Jobs made after `as_of` are left out."""
        lower, upper = id_range(self.id_prefix) if self.id_prefix else (None, None)
        return Sought(
            types=list(self.types) or None,
            statuses=list(self.statuses) or None,
            error_class=self.error_class or None,
            fingerprint=self.fingerprint or None,
            worker=self.worker or None,
            pattern=f"%{self.text.translate(_ESCAPED)}%" if self.text else None,
            lower=lower,
            upper=upper,
            since=moment_of(self.since, self.zone) or OLDEST,
            until=min(moment_of(self.until, self.zone, end=True) or NEWEST, as_of),
        )

    def in_words(self, speech: Speech) -> list[str]:
        """Each part as a few words."""
        said = [speech.t("filter.said_type", value=", ".join(self.types))] if self.types else []
        if self.statuses:
            names = ", ".join(speech.t(f"status.{name}") for name in self.statuses)
            said.append(speech.t("filter.said_status", value=names))
        for part in ("error_class", "fingerprint", "worker", "text", "id_prefix", "since", "until"):
            if value := getattr(self, part):
                said.append(speech.t(f"filter.said_{part}", value=value))
        return said or [speech.t("filter.said_all")]


def read_filter(given: ImmutableMultiDict[str, str], zone: tzinfo) -> JobFilter:
    """The filter that a query string holds."""
    problems: list[tuple[str, str]] = []

    def text(name: str, problem: str = "filter.bad_text", limit: int = LONGEST_TEXT) -> str:
        value = given.get(name, "").strip()
        if "\0" in value or len(value) > limit:
            problems.append((name, problem))
            return ""
        return value

    def checked(name: str, fits: bool, value: str, problem: str) -> str:
        if value and not fits:
            problems.append((name, problem))
        return value if fits else ""

    prefix = text("id").lower().replace("-", "")
    prefix = checked("id", _is_prefix(prefix), prefix, "filter.bad_id")
    group = text("group")
    since, until = text("since"), text("until")
    statuses = [name for name in given.getlist("status") if name]
    types = [name for name in given.getlist("type") if name]
    if any("\0" in name or len(name) > 1000 for name in types) or len(types) > 100:
        problems.append(("type", "filter.bad_text"))
        types = []
    if not set(statuses) <= set(STATUSES):
        problems.append(("status", "filter.bad_status"))
    return JobFilter(
        types=tuple(dict.fromkeys(types)),
        statuses=tuple(name for name in STATUSES if name in statuses),
        error_class=text("class"),
        fingerprint=checked("group", bool(_FINGERPRINT.fullmatch(group)), group, "filter.bad_id"),
        worker=text("worker"),
        text=text("q"),
        id_prefix=prefix,
        since=checked("since", moment_of(since, zone) is not None, since, "filter.bad_time"),
        until=checked("until", moment_of(until, zone) is not None, until, "filter.bad_time"),
        zone=zone,
        problems=tuple(problems),
    )


def id_range(prefix: str) -> tuple[UUID, UUID]:
    """The lowest and the highest id that begin with these hexadecimal digits."""
    return UUID(prefix.ljust(32, "0")), UUID(prefix.ljust(32, "f"))


def _is_prefix(text: str) -> bool:
    return bool(_HEX.fullmatch(text)) and len(text) >= SHORTEST_PREFIX


def moment_of(text: str, zone: tzinfo, *, end: bool = False) -> datetime | None:
    """A moment on the wall clock of the zone; a day alone is its beginning, or with `end` that of the next."""
    try:
        if len(text) == len("2026-11-29"):
            day = date.fromisoformat(text) + timedelta(days=1 if end else 0)
            moment = datetime(day.year, day.month, day.day, tzinfo=zone)
        else:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment.astimezone(UTC) if OLDEST.year <= moment.year < NEWEST.year else None
    except (ValueError, OverflowError):
        return None
