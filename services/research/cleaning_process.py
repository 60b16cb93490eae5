"""The process that reads pastes, seen from the worker: parsers of untrusted text run where they can be killed.

The worker sends a paste and gets the clip as JSON text, so that nothing but bytes is taken from the process, and a clip
that no model describes is stored without having been read.
"""

import msgspec

from services.research.memory import keep_large_blocks_apart, return_memory
from services.research.paste import Clip, Paste
from services.research.settings import ResearchSettings
from sidelinja_jobs import ChildDiedError, ChildError, ChildProcess, ChildTimeoutError, PermanentError
from sidelinja_jobs.errors import HandlerError
from sidelinja_jobs.metrics import count_child_ends

TARGET = "services.research.cleaning_answer:answer"
JOB_TYPE = "research_clip"
SealedClip = dict[str, msgspec.Raw]  # the fields of a clip, as JSON
_LARGE_LETTERS = 300_000  # a process that read so much is ended at once: the clip, too, takes memory to be written
_GROWN_BYTES = 64 << 20  # memory that an idle process keeps after a large paste: above this it is renewed


class Cleaner:
    """One such process, warm between jobs."""

    def __init__(self, settings: ResearchSettings) -> None:
        self._settings = settings
        keep_large_blocks_apart()
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

    def clean(self, paste: Paste) -> SealedClip:
        """The clip of a paste.

        Raises:
            PermanentError: it takes longer, or more memory, than a paste may (too_complex), or is too long.
            HandlerError: the process died for another reason (child_died).
        """
        self._has_read_much = len(paste.text) + len(paste.html or "") > _LARGE_LETTERS
        if self._has_read_much:
            return_memory()
        try:
            answer = self._child.call(paste, timeout_seconds=self._settings.clean_seconds)
            clip: SealedClip = msgspec.json.decode(answer, type=SealedClip)
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


def opened(clip: SealedClip) -> Clip:
    """The clip itself."""
    return {name: msgspec.json.decode(value) for name, value in clip.items()}


def _too_complex(what: str) -> PermanentError:
    return PermanentError(
        f"the paste is too complex: {what}. Next: paste the part that matters, or its text alone",
        error_class="too_complex",
    )
