"""What the child processes of the tests run: `work` does what the first word of its request says."""

import itertools
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from sidelinja_jobs import ComeBackLaterError, PermanentError, RetryLaterError

Emit = Callable[[Any], None]
_calls = itertools.count(1)  # lives as long as the process


class TwoArgumentsError(Exception):
    """Cannot be unpickled: its constructor wants two arguments, and its args hold one."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class OpenFileError(PermanentError):
    """Cannot be pickled: it holds an open file."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no file {path}", error_class="own")
        self.file = Path(os.devnull).open()  # noqa: SIM115


def work(request: tuple[Any, ...], emit: Emit) -> Any:
    number = next(_calls)
    what, *arguments = request
    if what == "calls":
        return {"pid": os.getpid(), "calls": number}
    return ACTIONS[what](emit, *arguments)


def emit_many(emit: Emit, count: int) -> str:
    for number in range(count):
        emit({"number": number})
    return "emitted"


def fail(_emit: Emit, how: str) -> NoReturn:
    raise {
        "value": ValueError("bad \x00 \ud800 value"),
        "permanent": PermanentError("never", error_class="no_file"),
        "retry": RetryLaterError("later", seconds=77),
        "back": ComeBackLaterError("noon", until=datetime(2030, 1, 1, tzinfo=UTC)),
        "two arguments": TwoArgumentsError(1, 2),
        "open file": OpenFileError("/x"),
        "exit": SystemExit(3),
        "keyboard": KeyboardInterrupt(),
    }[how]


def die(emit: Emit, number: int) -> None:
    emit("half way")
    os.kill(os.getpid(), number)


def grow(_emit: Emit, size: int) -> None:
    content = bytearray(size)
    time.sleep(0.8)  # long enough to be seen
    os.kill(os.getpid(), signal.SIGKILL * bool(content))


def spin(emit: Emit, _seconds: float = 0) -> NoReturn:
    emit(os.getpid())
    while True:
        pass


def sleep(emit: Emit, seconds: float) -> str:
    emit(os.getpid())
    time.sleep(seconds)
    return "slept"


def write(_emit: Emit) -> str:
    print("x" * 100_000)
    sys.stderr.write("to stderr\n")
    os.write(1, b"\x00\x00\x00\x05raw bytes")
    return "written"


def half(emit: Emit, seconds: float) -> None:
    """Sends the length of a message that never comes. The pipe's number is the first argument of the process."""
    emit(os.getpid())
    os.write(int(sys.argv[1]), b"\x7f\xff\xff\xff")
    time.sleep(seconds)


def grandchild(emit: Emit) -> None:
    emit(subprocess.Popen(["sleep", "60"]).pid)
    time.sleep(60)


def hang_up(_emit: Emit, seconds: float) -> None:
    os.close(int(sys.argv[1]))
    time.sleep(seconds)


ACTIONS: dict[str, Callable[..., Any]] = {
    "echo": lambda _emit, content: content,
    "emit": emit_many,
    "raise": fail,
    "return function": lambda _emit: lambda: None,
    "emit function": lambda emit: emit(lambda: None),
    "die": die,
    "exit": lambda _emit, code: os._exit(code),
    "surroundings": lambda _emit: (set(os.environ), resource.getrlimit(resource.RLIMIT_CORE)),
    "memory": lambda _emit, size: len(bytearray(size)),
    "grow": grow,
    "spin": spin,
    "sleep": sleep,
    "write": write,
    "half": half,
    "grandchild": grandchild,
    "hang up": hang_up,
}
