"""The child process: killable, limited, warm between calls, gone with its parent."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sidelinja_jobs import ChildDiedError, ChildError, ChildProcess, ChildTimeoutError, JobStopped, PermanentError
from sidelinja_jobs.errors import ComeBackLaterError, RetryLaterError, StopReason
from tests.databases import ROOT
from tests.waiting import wait_until


@pytest.fixture
def child() -> Iterator[Callable[..., ChildProcess]]:
    """Makes child processes, which end with the test."""
    made: list[ChildProcess] = []

    def make(**options: Any) -> ChildProcess:
        made.append(ChildProcess("tests.child_module:work", **options))
        return made[-1]

    yield make
    for process in made:
        process.close()


def test_a_child_stays_warm_between_calls_and_is_started_anew_after_its_end(child: Callable[..., ChildProcess]) -> None:
    process = child()
    assert process.pid is None

    first, second = process.call(("calls",)), process.call(("calls",))
    assert (first["pid"], first["calls"], second["calls"]) == (second["pid"], 1, 2)
    assert process.pid == first["pid"]

    process.close()
    assert process.pid is None
    third = process.call(("calls",))
    assert third["calls"] == 1

    os.kill(third["pid"], signal.SIGKILL)  # between two calls, by someone else
    wait_until(lambda: process.pid is None)
    assert process.call(("calls",))["calls"] == 1


def test_messages_and_results_of_any_size_cross(child: Callable[..., ChildProcess]) -> None:
    process = child()
    seen: list[Any] = []

    assert process.call(("emit", 5000), on_message=seen.append) == "emitted"
    assert [message["number"] for message in seen] == list(range(5000))
    large = os.urandom(20_000_000)
    assert process.call(("echo", large)) == large
    assert process.call(("write",)) == "written"
    assert process.call(("echo", "text \x00 \ud800")) == "text \x00 \ud800"
    assert process.calls == 4, "one process for all of them"


def test_errors_cross_with_their_fields_and_leave_the_child_warm(child: Callable[..., ChildProcess]) -> None:
    process = child()
    pid = process.call(("calls",))["pid"]

    with pytest.raises(PermanentError, match="never") as permanent:
        process.call(("raise", "permanent"))
    assert permanent.value.error_class == "no_file"
    with pytest.raises(RetryLaterError) as retry:
        process.call(("raise", "retry"))
    assert retry.value.seconds == 77
    with pytest.raises(ComeBackLaterError) as back:
        process.call(("raise", "back"))
    assert back.value.until.year == 2030
    with pytest.raises(ChildError, match="value") as other:
        process.call(("raise", "value"))
    assert other.value.child_class == "ValueError"
    assert "child_module.py" in other.value.child_traceback
    with pytest.raises(ChildError, match="1 and 2") as unpicklable:
        process.call(("raise", "two arguments"))
    assert unpicklable.value.child_class == "TwoArgumentsError"

    assert process.call(("calls",))["pid"] == pid


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (("return function",), "pickle"),
        (("emit function",), "pickle"),
        (("raise", "open file"), "no file /x"),
        (("raise", "exit"), "3"),
        (("raise", "keyboard"), "KeyboardInterrupt"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_pickled_or_is_no_exception_is_an_error_that_says_so(
    child: Callable[..., ChildProcess], request_: tuple[str, ...], words: str
) -> None:
    process = child()

    with pytest.raises((ChildError, PermanentError), match=words):
        process.call(request_)
    assert process.call(("echo", 1)) == 1


def test_a_request_that_cannot_be_pickled_is_the_callers_error(child: Callable[..., ChildProcess]) -> None:
    process = child()

    with pytest.raises((AttributeError, TypeError, ValueError), match=r"pickle|local"):
        process.call(("echo", lambda: None))
    assert process.call(("echo", 1)) == 1


@pytest.mark.parametrize(
    ("request_", "words", "last"),
    [
        (("die", signal.SIGKILL), r"killed by signal 9 (SIGKILL), perhaps for want of memory", "'half way'"),
        (("die", signal.SIGSEGV), r"killed by signal 11 (SIGSEGV)", "'half way'"),
        (("exit", 137), "exited with code 137", "none"),
        (("exit", 0), "exited with code 0", "none"),
    ],
    ids=["kill", "segfault", "exit", "quiet exit"],
)
def test_a_dead_child_leaves_what_is_known_of_it(
    child: Callable[..., ChildProcess], request_: tuple[Any, ...], words: str, last: str
) -> None:
    process = child(name="engine")
    process.call(("echo", 1))

    with pytest.raises(ChildDiedError, match=re.escape(f"engine {words}; peak memory ")) as died:
        process.call(request_)

    assert 5 < peak_mib(died.value) < 2000
    assert str(died.value).endswith(f"; last message {last}")
    assert process.call(("calls",))["calls"] == 1


def peak_mib(error: ChildDiedError) -> int:
    found = re.search(r"peak memory (\d+) MiB", str(error))
    assert found is not None
    return int(found[1])


def test_the_peak_memory_is_the_childs_own(child: Callable[..., ChildProcess]) -> None:
    """Linux counts the parent's memory at the time of the fork into ru_maxrss of a child."""
    ballast = bytearray(400_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    process = child()
    process.call(("echo", 1))
    small, large = child(), child()

    with pytest.raises(ChildDiedError) as died:
        small.call(("die", signal.SIGKILL))
    assert peak_mib(died.value) < 190
    del ballast
    with pytest.raises(ChildDiedError) as grown:
        large.call(("grow", 300_000_000))
    assert peak_mib(grown.value) >= 286


def test_a_child_over_its_memory_limit_raises_and_lives(child: Callable[..., ChildProcess]) -> None:
    process = child(memory_limit_bytes=600_000_000)
    assert process.call(("memory", 1_000_000)) == 1_000_000

    with pytest.raises(ChildError) as over:
        process.call(("memory", 2_000_000_000))
    assert over.value.child_class == "MemoryError"
    assert process.call(("memory", 1_000_000)) == 1_000_000
    assert process.calls == 3


@pytest.mark.parametrize("what", ["spin", "half", "hang up"])
def test_a_child_that_does_not_answer_in_time_is_killed(child: Callable[..., ChildProcess], what: str) -> None:
    process = child()
    pids: list[int] = []
    process.call(("echo", 1))
    started = time.monotonic()

    with pytest.raises((ChildTimeoutError, ChildDiedError)):
        process.call((what, 60), on_message=pids.append, timeout_seconds=1)

    assert time.monotonic() - started < 4
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert process.pid is None


@pytest.mark.timeout(30)
def test_a_request_to_a_child_that_never_reads_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "stuck_module.py").write_text("import time\ntime.sleep(60)\ndef work(request, emit): pass\n")
    process = ChildProcess("stuck_module:work")
    started = time.monotonic()

    with pytest.raises(ChildTimeoutError):
        process.call(b"x" * 10_000_000, timeout_seconds=1)

    assert time.monotonic() - started < 4
    process.close()


def test_an_exception_in_the_parent_kills_the_child(child: Callable[..., ChildProcess]) -> None:
    process = child()
    pids: list[int] = []

    def stop(pid: int) -> None:
        pids.append(pid)
        raise JobStopped(StopReason.SHUTDOWN)

    with pytest.raises(JobStopped):
        process.call(("spin",), on_message=stop)

    assert not psutil.pid_exists(pids[0])
    assert process.call(("echo", 1)) == 1


def test_signals_of_the_terminal_do_not_reach_the_child(child: Callable[..., ChildProcess]) -> None:
    process = child()

    def interrupt(pid: int) -> None:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)

    assert process.call(("sleep", 0.3), on_message=interrupt) == "slept"


@pytest.mark.parametrize("target", ["no_such_module:work", "tests.child_module:nothing", "tests.child_module"])
def test_a_target_that_is_not_there_says_so(capfd: pytest.CaptureFixture[str], target: str) -> None:
    process = ChildProcess(target)

    with pytest.raises((ChildDiedError, ChildError)) as died:
        process.call(("echo", 1))

    shown = str(died.value) + capfd.readouterr().err
    assert target.rpartition(":")[2] in shown or "no_such_module" in shown
    process.close()


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "from sidelinja_jobs import ChildProcess\n"
        "ChildProcess('tests.child_module:work').call(('spin',), on_message=lambda pid: print(pid, flush=True))\n"
    )
    path = os.pathsep.join([str(ROOT / "shared"), str(ROOT)])
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)

        parent.kill()

        wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 3)


def test_a_child_whose_parent_died_before_it_could_ask_for_its_own_death_ends_at_once(
    child: Callable[..., ChildProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)  # the child is told of a parent that is not its own

    with pytest.raises(ChildDiedError, match="exited with code 0"):
        child().call(("echo", 1))


def test_what_a_child_has_started_dies_with_it(child: Callable[..., ChildProcess]) -> None:
    pids: list[int] = []
    process = child()
    process.call(("echo", 1))

    with pytest.raises(ChildTimeoutError):
        process.call(("grandchild",), on_message=pids.append, timeout_seconds=0.5)

    assert pids
    wait_until(lambda: not psutil.pid_exists(pids[0]) or psutil.Process(pids[0]).status() == psutil.STATUS_ZOMBIE, 3)


def test_starting_anew_leaks_no_file_descriptors(child: Callable[..., ChildProcess]) -> None:
    process = child()
    process.call(("echo", 1))
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(3):
        with pytest.raises(ChildDiedError):
            process.call(("exit", 1))
        process.call(("echo", 1))

    assert len(os.listdir("/proc/self/fd")) == before
    process.close()
    assert len(os.listdir("/proc/self/fd")) == before - 1
