"""What a watch knows of one running job: how fast it gets on, and the line that says so."""

from collections import deque
from datetime import datetime

from sidelinja_jobs.cli.durations import age, brief
from sidelinja_jobs.cli.lookup import short
from sidelinja_jobs.cli.rows import WAITING, JobRow
from sidelinja_jobs.cli.screen import Screen
from sidelinja_jobs.cli.states import error_text, now_text, status_colour, status_text, took_text
from sidelinja_jobs.cli.tables import bar
from sidelinja_jobs.cli.text import columns, cut, first_line, neutral, pad

_BAR_COLUMNS, _TYPE_COLUMNS, _STATUS_COLUMNS = 20, 24, 9
# An estimate from less than this is a guess.
_SHORTEST_SECONDS, _SMALLEST_SHARE = 3.0, 0.02
# Heartbeats say that a worker lives, not that it gets on.
STANDSTILL_SECONDS = 120.0
# The pace of the last changes counts: a resumed run begins far along, and its beginning says nothing.
_REMEMBERED_CHANGES = 20


class Pace:
    """Moments at which a run's progress changed, by the database's clock."""

    def __init__(self) -> None:
        self._run: datetime | None = None
        self._changes: deque[tuple[datetime, float]] = deque(maxlen=_REMEMBERED_CHANGES)

    def see(self, job: JobRow) -> None:
        """Takes in what was just read; another run of the job starts from nothing."""
        if job.status != "running" or job.started_at != self._run:
            self._run = job.started_at
            self._changes.clear()
        if job.status == "running" and job.progress is not None:
            if self._changes and job.progress < self._changes[-1][1]:
                self._changes.clear()
            if not self._changes or job.progress > self._changes[-1][1]:
                self._changes.append((job.read_at, job.progress))

    def seconds_left(self, job: JobRow) -> float | None:
        """An estimate, once there is enough to go by."""
        if not self._changes or job.started_at is None:
            return None
        (first_at, first), (last_at, last) = self._changes[0], self._changes[-1]
        if last <= first and job.attempts == 0 and last >= _SMALLEST_SHARE:
            first_at, first = job.started_at, 0.0
        passed = (last_at - first_at).total_seconds()
        if passed < _SHORTEST_SECONDS or last - first <= 0:
            return None
        since = (job.read_at - last_at).total_seconds()
        return max(0.0, (1.0 - last) * passed / (last - first) - since)

    def standstill_seconds(self, job: JobRow) -> float:
        """How long the progress has not changed."""
        return (job.read_at - self._changes[-1][0]).total_seconds() if self._changes else 0.0


def live_line(job: JobRow, pace: Pace, screen: Screen, hint: str = "", type_columns: int = 0) -> str:
    """The line of a job that has not ended, in one row of the screen."""
    state = _running(job, pace, screen) if job.status == "running" else _waiting(job, hint)
    return _line(job, state, screen, type_columns)


def ended_line(job: JobRow, screen: Screen, type_columns: int = 0) -> str:
    """The last line of a job: how it ended."""
    parts = (took_text(job), error_text(job) if job.status == "error" else "")
    return _line(job, neutral("  ".join(part for part in parts if part)), screen, type_columns)


def type_text(job: JobRow) -> str:
    """The job's type in no more than its share of the line."""
    return cut(neutral(job.job_type), _TYPE_COLUMNS)


def _line(job: JobRow, state: str, screen: Screen, type_columns: int) -> str:
    """Id, type, status, attempt and state, cut to one row: the last column of a terminal would wrap the line."""
    room = 10_000 if screen.width is None else screen.width - 1
    head = cut(f"{short(job.id)} {pad(type_text(job), type_columns)} ", room)
    status = cut(pad(status_text(job), _STATUS_COLUMNS), room - columns(head))
    rest = cut(f" {job.attempt}/{job.max_attempts}  {state}", room - columns(head) - columns(status))
    return head + screen.paint(status, status_colour(job)) + rest.rstrip()


def _running(job: JobRow, pace: Pace, screen: Screen) -> str:
    """Bar, share, note and time left; without reported progress, the time it has taken."""
    note = neutral(first_line(job.progress_note or ""))
    if job.lease_until is not None and job.lease_until < job.read_at:
        note = f"no heartbeat, lease over since {age(job.lease_until, job.read_at)}"
    if job.progress is None:
        return "  ".join(part for part in (age(job.started_at, job.read_at), note) if part)
    left, stands = pace.seconds_left(job), pace.standstill_seconds(job)
    if stands >= STANDSTILL_SECONDS:
        time = f"no progress for {brief(stands)}"
    else:
        time = age(job.started_at, job.read_at) if left is None else f"{brief(left)} left"
    drawn = bar(job.progress, _BAR_COLUMNS, blocks=screen.has_blocks)
    return "  ".join(part for part in (f"{drawn} {int(job.progress * 100):3d}%", time, note) if part)


def _waiting(job: JobRow, hint: str) -> str:
    assert job.status in WAITING, job.status  # noqa: S101 - the caller has sorted them
    error = error_text(job) if job.status == "retry" else ""
    return neutral("  ".join(part for part in (now_text(job), error, hint) if part))
