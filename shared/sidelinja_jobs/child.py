"""A child process that can be killed, for native or hostile work (a speech engine, parsers of untrusted files).

Native code cannot be interrupted inside a process; a process can always be killed. The child is started afresh (never
forked), stays warm between calls, dies with its parent, and is limited in memory and time.
"""

import contextlib
import ctypes
import importlib
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from sidelinja_jobs.errors import (
    ChildDeath,
    ChildDiedError,
    ChildError,
    ChildTimeoutError,
    HandlerError,
)

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_WAIT_SECONDS = 0.5
_START = "from sidelinja_jobs.child import main; main()"


class ChildProcess:
    """Runs `function(request, emit)` of `target` ("package.module:function") in a process of its own."""

    def __init__(self, target: str, *, memory_limit_bytes: int | None = None, name: str = "child") -> None:
        self.target, self.name = target, name
        self._memory_limit_bytes = memory_limit_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection[Any, Any] | None = None
        self._last_message = ""
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """Process id of the child that is alive, or None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def restarts(self) -> int:
        """How often a new process was needed after the first."""
        return max(self.starts - 1, 0)

    def call(
        self,
        request: Any,
        on_message: Callable[[Any], None] | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Sends a request and returns what the function returns; `on_message` gets what it emits meanwhile.

        Any exception here, also one that stops the job, kills the child; the next call starts another.

        Raises:
            HandlerError: as raised by the function.
            ChildError: it raised something else.
            ChildDiedError, ChildTimeoutError: it died, or was killed after `timeout_seconds`.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        try:
            pipe = self._ensure()
            self._last_message = ""
            try:
                pipe.send(request)
            except (BrokenPipeError, ConnectionResetError):
                raise self._died() from None
            while True:
                kind, content = self._receive(pipe, deadline)
                if kind == "message":
                    self._last_message = repr(content)[:200]
                    if on_message is not None:
                        on_message(content)
                elif kind == "result":
                    return content
                else:
                    break
        except BaseException:
            self.close()
            raise
        raise content  # the function raised; the child itself is well

    def close(self) -> None:
        """Kills the child if it is alive."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def _ensure(self) -> "Connection[Any, Any]":
        if self._pipe is not None and self.pid is not None:
            return self._pipe
        self.close()
        ours, theirs = socket.socketpair()
        arguments = [str(theirs.fileno()), str(os.getpid()), str(self._memory_limit_bytes or 0), self.target]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()
        self._pipe = Connection(ours.detach())
        self.starts += 1
        return self._pipe

    def _receive(self, pipe: "Connection[Any, Any]", deadline: float | None) -> tuple[str, Any]:
        while not pipe.poll(_WAIT_SECONDS):
            if deadline is not None and time.monotonic() >= deadline:
                raise ChildTimeoutError(f"{self.name} did not finish in time and was killed")
        try:
            message: tuple[str, Any] = pipe.recv()
            return message
        except (EOFError, OSError, pickle.UnpicklingError):
            raise self._died() from None

    def _died(self) -> ChildDiedError:
        process = self._process
        assert process is not None  # noqa: S101 - _ensure has made it
        process.kill()
        _, status, usage = os.wait4(process.pid, 0) if process.returncode is None else (0, 0, None)
        exit_code = os.waitstatus_to_exitcode(status) if process.returncode is None else process.returncode
        process.returncode = exit_code
        number = -exit_code if exit_code < 0 else None
        peak = usage.ru_maxrss * 1024 if usage is not None else 0
        how = f"killed by signal {number} ({_signal_name(number)})" if number else f"exited with code {exit_code}"
        if number == signal.SIGKILL:
            how += ", perhaps for want of memory"
        death = ChildDeath(exit_code, number, peak, self._last_message)
        return ChildDiedError(
            f"{self.name} {how}; peak memory {peak // 1_048_576} MiB; last message {self._last_message or 'none'}",
            death,
        )


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return "unknown"


# -------------------------------------------------------------------- in the child


def _serve(pipe: "Connection[Any, Any]", function: Callable[[Any, Callable[[Any], None]], Any]) -> None:
    def emit(content: Any) -> None:
        pipe.send(("message", content))

    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = ("result", function(request, emit))
        except HandlerError as error:
            answer = ("error", error)
        except Exception as error:
            text = str(error) or type(error).__name__
            answer = (
                "error",
                ChildError(text, child_class=type(error).__name__, child_traceback=traceback.format_exc()),
            )
        pipe.send(answer)


def main() -> None:
    """The child's main function."""
    file_descriptor, parent, memory_limit, target = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group: the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        return  # it died before the line above
    if int(memory_limit):
        resource.setrlimit(resource.RLIMIT_AS, (int(memory_limit), int(memory_limit)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module, _, name = target.partition(":")
    _serve(Connection(int(file_descriptor)), getattr(importlib.import_module(module), name))
