"""Folders that come from elsewhere, a disk or a share, and may be away for a while: no job is to blame for that.

The rule, whatever went wrong in a run: the volume is away when its root cannot be listed, or holds nothing but hidden
names, as the place of a mount does while nothing is mounted; or when the error is one that a medium gives and no path
does (MEDIUM_ERRORS). Then the job comes back later, at no cost. In every other case the error stands as it is.
"""

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sidelinja_jobs.errors import ChildError, ComeBackLaterError, HandlerError

# Of disks that were pulled out, shares whose server is down, file systems whose process has died.
MEDIUM_ERRORS = frozenset((
    errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ECONNABORTED, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH,
    errno.ENETUNREACH, errno.ENODEV, errno.EREMOTEIO, errno.ENOLINK, errno.ESHUTDOWN,
))  # fmt: skip
# Half as long as it has been away by now: the twenty times that the queue lets a job come back are then ten hours.
LEAST_WAIT_SECONDS, MOST_WAIT_SECONDS = 60.0, 3600.0


class MediumError(HandlerError):
    """Bytes that are there cannot be read: what a child process tells of an OSError of MEDIUM_ERRORS."""

    error_class = "medium_error"


@dataclass(frozen=True)
class Volume:
    """A root folder. `setting` names it for people."""

    setting: str
    root: Path
    may_be_empty: bool = False  # one that is written to, and has held nothing yet

    def problem(self) -> str | None:
        """Why it counts as away; None when it is there."""
        try:
            with os.scandir(self.root) as entries:
                holds_something = any(not entry.name.startswith(".") for entry in entries)
        except OSError as error:
            return f"{self.setting} {self.root} cannot be listed: {error.strerror}"
        if holds_something or self.may_be_empty:
            return None
        return f"{self.setting} {self.root} is empty, so perhaps not mounted"


class VolumeWatch:
    """Makes "come back later" of whatever fails while a volume is away. One a process: it remembers since when."""

    def __init__(self, *, most_wait_seconds: float = MOST_WAIT_SECONDS) -> None:
        self._most_wait_seconds = most_wait_seconds
        self._away_since: float | None = None

    @contextlib.contextmanager
    def waiting_for(self, *volumes: Volume) -> Iterator[None]:
        """Around a run of a handler.

        Raises:
            ComeBackLaterError: something failed, and one of the volumes is away.
        """
        try:
            yield
        except (HandlerError, ChildError, OSError) as error:
            problem = next(filter(None, (volume.problem() for volume in volumes)), None) or _problem_of_medium(error)
            if problem is None:
                self._away_since = None
                raise
            raise ComeBackLaterError(
                f"{problem}. Next: see to the disk or share, and mount it; the job comes back by itself, `jobs retry` "
                "runs it now",
                until=datetime.now(UTC) + timedelta(seconds=self._wait_seconds()),
            ) from error
        self._away_since = None

    def _wait_seconds(self) -> float:
        now = time.monotonic()
        self._away_since = self._away_since or now
        return min(max((now - self._away_since) / 2, LEAST_WAIT_SECONDS), self._most_wait_seconds)


def _problem_of_medium(error: BaseException) -> str | None:
    """The text of an error that goes back to a medium's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MediumError) or (isinstance(cause, OSError) and cause.errno in MEDIUM_ERRORS):
            return str(error)
        cause = cause.__cause__
    return None
