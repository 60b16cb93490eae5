"""The child's side of child.py: reads requests from a pipe, calls the function, sends what it emits and returns."""

import ctypes
import importlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from sidelinja_jobs.errors import ChildError, HandlerError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
Function = Callable[[Any, Callable[[Any], None]], Any]


def main() -> None:
    """The child's main function; its arguments come from `ChildProcess`."""
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
    serve(Connection(int(file_descriptor)), getattr(importlib.import_module(module), name))


def serve(pipe: "Connection[Any, Any]", function: Function) -> None:
    """Answers requests until the parent closes the pipe."""

    def emit(content: Any) -> None:
        pipe.send_bytes(_packed("message", content))

    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        pipe.send_bytes(_answer(function, request, emit))


def _answer(function: Function, request: Any, emit: Callable[[Any], None]) -> bytes:
    try:
        return _packed("result", function(request, emit))
    except HandlerError as error:
        try:
            return _packed("error", error)
        except Exception:  # a field of it cannot cross: its message and class still do
            plain = HandlerError.__new__(type(error))
            plain.args, plain.error_class = (str(error),), error.error_class
            return _packed("error", plain)
    except BaseException as error:  # also SystemExit: a function does not end the child
        return _packed("error", _child_error(error))


def _child_error(error: BaseException) -> ChildError:
    try:
        text = str(error) or type(error).__name__
    except Exception as broken:
        text = f"{type(error).__name__}, whose text raised {type(broken).__name__}"
    return ChildError(text, child_class=type(error).__name__, child_traceback=traceback.format_exc())


def _packed(kind: str, content: Any) -> bytes:
    return bytes(ForkingPickler.dumps((kind, content)))
