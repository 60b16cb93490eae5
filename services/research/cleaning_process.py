"""The process that reads pastes, seen from both sides: parsers of untrusted text run where they can be killed.

The worker's side sends a paste and gets the clip as JSON text, so that nothing but bytes is taken from the process.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import msgspec

from services.research.cleaner import Paste
from services.research.clip import Clip, make_clip
from services.research.settings import ResearchSettings
from sidelinja_jobs import ChildDiedError, ChildError, ChildProcess, ChildTimeoutError, PermanentError
from sidelinja_jobs.errors import HandlerError
from sidelinja_jobs.metrics import count_child_ends

TARGET = "services.research.cleaning_process:answer"
JOB_TYPE = "research_clip"
MOST_LINES = 100_000
_LARGE_LETTERS = 300_000  # a process that read so much is ended at once: the clip, too, takes memory to be written
_GROWN_BYTES = 64 << 20  # memory that an idle process keeps after a large paste: above this it is renewed


def answer(paste: Paste, emit: Callable[[Any], None]) -> bytes:
    """The process's side: one paste, one clip."""
    lines = paste.text.count("\n") + paste.text.count("\r")
    if lines > MOST_LINES:
        raise PermanentError(
            f"the text has {lines} lines, at most {MOST_LINES} are taken. Next: paste the part that matters",
            error_class="too_long",
        )
    return msgspec.json.encode(make_clip(paste))


class Cleaner:
    """One such process, warm between jobs."""

    def __init__(self, settings: ResearchSettings) -> None:
        self._settings = settings
        self._child = ChildProcess(
            TARGET,
            memory_limit_bytes=settings.clean_memory_mb << 20,
            name="clip cleaner",
            on_end=count_child_ends(JOB_TYPE),
        )
        self._jobs = 0
        self._has_read_much = False

    @property
    def pid(self) -> int | None:
        """The process, where one is alive."""
        return self._child.pid

    def clean(self, paste: Paste) -> Clip:
        """The clip of a paste.

        Raises:
            PermanentError: it takes longer, or more memory, than a paste may (too_complex), or is too long.
            HandlerError: the process died for another reason (child_died).
        """
        self._has_read_much = len(paste.text) + len(paste.html or "") > _LARGE_LETTERS
        if self._has_read_much:
            _return_memory()
        try:
            clip: Clip = msgspec.json.decode(self._child.call(paste, timeout_seconds=self._settings.clean_seconds))
        except ChildTimeoutError as error:
            raise _too_complex(f"cleaning took longer than {self._settings.clean_seconds:g} s") from error
        except ChildDiedError as error:
            raise HandlerError(f"{error}", error_class="child_died") from error
        except ChildError as error:
            if error.child_class != "MemoryError":
                raise
            self._child.recycle()
            raise _too_complex(f"cleaning needs more than {self._settings.clean_memory_mb} MB of memory") from error
        return clip

    def between_jobs(self) -> None:
        """Ends a process that did its number of jobs, read a large paste or grew; the next job starts another."""
        self._jobs += 1
        is_due = self._settings.clean_max_jobs and self._jobs >= self._settings.clean_max_jobs
        if is_due or self._has_read_much or self._child.rss_bytes > _GROWN_BYTES:
            self._child.recycle()
            self._jobs = 0

    def close(self) -> None:
        """Ends the process."""
        self._child.close()


def _return_memory() -> None:
    """Gives back what reading a large payload took and no longer needs, so that the cleaner has room."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone has it
    if trim is not None:
        trim(0)


def _too_complex(what: str) -> PermanentError:
    return PermanentError(
        f"the paste is too complex: {what}. Next: paste the part that matters, or its text alone",
        error_class="too_complex",
    )
