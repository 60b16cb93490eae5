"""Time limits of a call to a child process: the whole call, and the time without a sign of life."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

Limit = float | Callable[[], float | None] | None

_LOOK_SECONDS = 1.0  # at most, since a limit may change


class Watch(threading.Thread):
    """Kills a process that exceeds a limit; `verdict` then says which."""

    def __init__(self, pid: int, timeout: Limit, silence: Limit) -> None:
        super().__init__(name="child-watch", daemon=True)
        self._pid, self._timeout, self._silence = pid, timeout, silence
        self._began = self._heard = time.monotonic()
        self._is_paused = False
        self._ended = threading.Event()
        self.verdict: str | None = None
        self.is_silent = False

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While the parent is busy with what it heard, the child cannot be heard."""
        self._is_paused = True
        try:
            yield
        finally:
            self._heard = time.monotonic()
            self._is_paused = False

    def run(self) -> None:
        """Looks until a limit is exceeded, or until the end."""
        rest = self._judge()
        while self.verdict is None and not self._ended.wait(min(max(rest, 0.01), _LOOK_SECONDS)):
            rest = self._judge()
        if self.verdict is not None:
            os.kill(self._pid, signal.SIGKILL)

    def end(self) -> None:
        """Stops looking; the process is not killed after this."""
        self._ended.set()
        self.join()

    def _judge(self) -> float:
        """Seconds until the next limit; sets the verdict when there are none left."""
        now = time.monotonic()
        timeout, silence = _value(self._timeout), _value(self._silence)
        to_timeout = _LOOK_SECONDS if timeout is None else self._began + timeout - now
        to_silence = _LOOK_SECONDS if silence is None or self._is_paused else self._heard + silence - now
        if to_timeout <= 0:
            self.verdict = f"did not finish in {timeout:g} s and was killed"
        elif to_silence <= 0:
            self.is_silent = True
            self.verdict = f"gave no sign of life for {silence:g} s and was killed"
        return min(to_timeout, to_silence)


def _value(limit: Limit) -> float | None:
    return limit() if callable(limit) else limit
