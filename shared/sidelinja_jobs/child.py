"""A child process that can be killed, for native or hostile work (a speech engine, parsers of untrusted files).

Native code cannot be interrupted inside a process; a process can always be killed. The child is started afresh (never
forked), stays warm between calls, dies with its parent, and is limited in memory and time. child_server.py is its side.
"""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from sidelinja_jobs.child_watch import Limit, Watch
from sidelinja_jobs.errors import ChildDiedError, ChildError, ChildTimeoutError

_LOOK_SECONDS = 0.1  # between two looks at the child's memory
_END_SECONDS = 2.0  # for a child whose pipe is closed to end by itself, so that its own exit code is seen
_SECRETS = ("DATABASE_URL", "PASSWORD", "SECRET", "TOKEN", "KEY")
_START = "from sidelinja_jobs.child_server import main; main()"


class ChildProcess:
    """Runs `function(request, emit)` of `target` ("package.module:function") in a process of its own.

    `on_end` is told why a child ended: died, timeout, stopped (an exception in the parent), recycle or closed.
    """

    def __init__(
        self,
        target: str,
        *,
        memory_limit_bytes: int | None = None,
        name: str = "child",
        on_end: Callable[[str], None] | None = None,
    ) -> None:
        self.target, self.name = target, name
        self._memory_limit_bytes, self._on_end = memory_limit_bytes, on_end
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection[Any, Any] | None = None
        self._last_message = ""
        self._peak_bytes = 0
        self._own_peak_bytes = 0
        self.calls = 0  # of the child that is alive

    @property
    def pid(self) -> int | None:
        """Process id of the child that is alive, or None."""
        if self._process is None or self._process.returncode is not None:
            return None
        # Without reaping it: its exit status and memory are wanted later.
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return None if ended else self._process.pid

    @property
    def rss_bytes(self) -> int:
        """Memory that the child holds now; 0 when there is none."""
        if self.pid is None:
            return 0
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            return pages * resource.getpagesize()
        return 0

    def call(
        self,
        request: Any,
        on_message: Callable[[Any], None] | None = None,
        timeout_seconds: Limit = None,
        silence_seconds: Limit = None,
    ) -> Any:
        """Sends a request and returns what the function returns; `on_message` gets what it emits meanwhile.

        Any exception here, also one that stops the job, kills the child; the next call starts another. A limit may be
        a function, which is asked again and again: what is right may change while the work goes on.

        Raises:
            HandlerError: as raised by the function.
            ChildError: it raised something else.
            ChildDiedError, ChildTimeoutError: it died, or was killed after `timeout_seconds`, or because it neither
                emitted nor answered for `silence_seconds`.
        """
        try:
            pipe = self._ensure()
            with self._watched(timeout_seconds, silence_seconds) as watch:
                kind, content = self._exchange(pipe, request, on_message, watch)
        except BaseException as error:
            reasons: dict[type[BaseException], str] = {ChildDiedError: "died", ChildTimeoutError: "timeout"}
            self._end(reasons.get(type(error), "stopped"))
            raise
        if kind == "result":
            return content
        raise content  # the function raised; the child itself is well

    def recycle(self) -> None:
        """Ends a child that has grown old, between two calls; the next call starts another."""
        self._end("recycle")

    def close(self) -> None:
        """Kills the child if it is alive."""
        self._end("closed")

    def _end(self, reason: str) -> None:
        if self._process is not None:
            self._kill(self._process)
            self._process.wait()
            if self._on_end is not None:
                self._on_end(reason)
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None
        self.calls = 0

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        """With all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def _ensure(self) -> "Connection[Any, Any]":
        self._last_message = ""
        if self._pipe is not None and self.pid is not None:
            self.calls += 1
            return self._pipe
        self._end("died")
        self.calls = 1
        ours, theirs = socket.socketpair()
        arguments = [str(theirs.fileno()), str(os.getpid()), str(self._memory_limit_bytes or 0), self.target]
        self._own_peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self._peak_bytes = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *arguments],
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # so that what it starts itself can be killed with it
            stdin=subprocess.DEVNULL,
            env={**_without_secrets(os.environ), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()
        self._pipe = Connection(ours.detach())
        return self._pipe

    @contextlib.contextmanager
    def _watched(self, timeout: Limit, silence: Limit) -> Iterator[Watch | None]:
        """From another thread, since sending to a child that does not read blocks, too."""
        if self._process is None or (timeout is None and silence is None):
            yield None
            return
        watch = Watch(self._process.pid, timeout, silence)
        watch.start()
        try:
            yield watch
        except ChildDiedError:
            if watch.verdict is not None:
                raise ChildTimeoutError(f"{self.name} {watch.verdict}", is_silent=watch.is_silent) from None
            raise
        finally:
            watch.end()  # before the process is reaped and its id can be another's

    def _exchange(
        self,
        pipe: "Connection[Any, Any]",
        request: Any,
        on_message: Callable[[Any], None] | None,
        watch: Watch | None,
    ) -> tuple[str, Any]:
        try:
            self._note_memory()
            pipe.send(request)
            self._note_memory()
            while True:
                while not pipe.poll(_LOOK_SECONDS):
                    self._note_memory()
                answer = pipe.recv_bytes()
                kind, content = self._unpack(answer)
                if kind != "message":
                    return kind, content
                self._last_message = repr(content)[:200]
                with watch.paused() if watch else contextlib.nullcontext():
                    if on_message is not None:
                        on_message(content)
        except (EOFError, ConnectionError):
            raise self._death() from None

    def _unpack(self, answer: bytes) -> tuple[str, Any]:
        try:
            unpacked: tuple[str, Any] = ForkingPickler.loads(answer)
            return unpacked
        except Exception as error:
            raise ChildError(f"{self.name} sent what cannot be read: {type(error).__name__}: {error}") from error

    def _note_memory(self) -> None:
        assert self._process is not None  # noqa: S101 - a call is going on
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = Path(f"/proc/{self._process.pid}/status").read_text()
            peak_kib = int(status.split("VmHWM:")[1].split()[0])
            self._peak_bytes = max(self._peak_bytes, peak_kib * 1024)

    def _death(self) -> ChildDiedError:
        exit_code, peak = self._reap()
        number = -exit_code if exit_code < 0 else None
        how = f"killed by signal {number} ({_signal_name(number)})" if number else f"exited with code {exit_code}"
        if number == signal.SIGKILL:
            how += ", perhaps for want of memory"
        return ChildDiedError(
            f"{self.name} {how}; peak memory {peak // 1_048_576} MiB; last message {self._last_message or 'none'}"
        )

    def _reap(self) -> tuple[int, int]:
        """Exit code, negative for a signal, and peak memory in bytes of a child whose pipe is closed."""
        process = self._process
        assert process is not None  # noqa: S101 - a call is going on
        give_up_at = time.monotonic() + _END_SECONDS
        reaped, status, usage = os.wait4(process.pid, os.WNOHANG)
        while not reaped:
            time.sleep(0.02)
            if time.monotonic() >= give_up_at:
                self._kill(process)
            reaped, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        # Linux counts what the parent had at the fork; only what is more than that is surely the child's own.
        peak = usage.ru_maxrss * 1024
        return process.returncode, max(self._peak_bytes, peak if peak > self._own_peak_bytes else 0)


def _without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """What runs hostile input has no use for the database and the keys."""
    return {name: value for name, value in environ.items() if not any(part in name for part in _SECRETS)}


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return "unknown"
