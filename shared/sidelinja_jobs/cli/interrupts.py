"""Ctrl-C that takes effect at once."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupted(BaseException):
    """Ctrl-C.

    For a KeyboardInterrupt psycopg would ask the server to cancel, and wait ten seconds for one that hangs.
    """


@contextlib.contextmanager
def prompt_interrupts() -> Iterator[None]:
    """Ctrl-C raises Interrupted, unless someone else has decided what it does."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted
