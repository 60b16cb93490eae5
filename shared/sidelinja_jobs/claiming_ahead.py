"""Claims the next batch while the present one is worked, in a thread and on a connection of its own."""

import threading
from collections.abc import Callable

from sidelinja_jobs.run import Run


class ClaimAhead:
    """Holds one batch at most, and not for long: what is not taken in time is given back for other workers."""

    def __init__(
        self, claim: Callable[[], list[Run]], give_back: Callable[[list[Run]], None], keep_seconds: float
    ) -> None:
        """Neither function may raise; both are called in the thread."""
        self._claim, self._give_back, self._keep_seconds = claim, give_back, keep_seconds
        self._changed = threading.Condition()
        self._is_asked = self._is_closed = False
        self._runs: list[Run] = []
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Begins a claim, unless one is under way or its batch still waits."""
        with self._changed:
            if self._is_asked or self._runs or self._is_closed:
                return
            self._is_asked = True
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="claims", daemon=True)
            self._thread.start()

    def take(self) -> list[Run]:
        """What was claimed since `ask`, as soon as the claim has ended; nothing when it was not asked."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_asked)
            runs, self._runs = self._runs, []
            self._changed.notify_all()
        return runs

    def close(self) -> None:
        """Gives back what nobody took, and ends the thread."""
        runs = self.take()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            if runs:
                self._give_back(runs)
            self._thread.join(timeout=1)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_asked or self._is_closed)
                if self._is_closed:
                    return
            runs = self._claim()
            with self._changed:
                self._runs, self._is_asked = runs, False
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._runs, self._keep_seconds)
                left, self._runs = self._runs, []
            if left:
                self._give_back(left)
