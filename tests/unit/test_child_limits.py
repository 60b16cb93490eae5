"""Limits of a child process that change while it works, its silence, its recycling, and what it may know."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sidelinja_jobs import ChildProcess, ChildTimeoutError

_kept: list[bytearray] = []


def chatter(request: tuple[int, float], emit: Callable[[Any], None]) -> str:
    """The child's function: so many messages, each after a pause."""
    messages, pause = request
    for number in range(messages):
        time.sleep(pause)
        emit(number)
    return "done"


def hoard(megabytes: int, _emit: Callable[[Any], None]) -> int:
    """The child's function: holds on to memory."""
    _kept.append(bytearray(b"x" * (megabytes << 20)))
    return len(_kept)


@pytest.fixture
def ends() -> list[str]:
    return []


@pytest.fixture
def make(ends: list[str]) -> Iterator[Callable[[str], ChildProcess]]:
    made: list[ChildProcess] = []

    def start(function: str) -> ChildProcess:
        made.append(ChildProcess(f"{__name__}:{function}", on_end=ends.append))
        return made[-1]

    yield start
    for child in made:
        child.close()


def test_child_that_gives_no_sign_of_life_is_killed(make: Callable[..., ChildProcess], ends: list[str]) -> None:
    child = make("chatter")
    heard: list[int] = []
    child.call((1, 0.0))  # started, so that only its work is timed

    with pytest.raises(ChildTimeoutError, match=r"no sign of life for 1 s") as caught:
        child.call((3, 30.0), heard.append, silence_seconds=1)

    assert caught.value.is_silent
    assert heard == []
    assert ends == ["timeout"]


def test_child_that_talks_may_take_longer_than_the_silence_that_is_allowed(make: Callable[..., ChildProcess]) -> None:
    child = make("chatter")
    child.call((1, 0.0))
    heard: list[int] = []

    assert child.call((6, 0.4), heard.append, silence_seconds=1.5) == "done"
    assert heard == list(range(6))


def test_time_that_the_parent_takes_is_no_silence_of_the_child(make: Callable[..., ChildProcess]) -> None:
    child = make("chatter")
    child.call((1, 0.0))

    assert child.call((2, 0.0), lambda _: time.sleep(1.2), silence_seconds=0.8) == "done"


def test_limit_may_change_while_the_child_works(make: Callable[..., ChildProcess]) -> None:
    child = make("chatter")
    child.call((1, 0.0))
    limits = {"timeout": 60.0}

    with pytest.raises(ChildTimeoutError, match=r"did not finish in 0\.5 s") as caught:
        child.call((600, 0.1), lambda _: limits.update(timeout=0.5), timeout_seconds=lambda: limits["timeout"])

    assert not caught.value.is_silent


def test_old_child_is_recycled_between_calls(make: Callable[..., ChildProcess], ends: list[str]) -> None:
    child = make("hoard")
    assert child.rss_bytes == 0
    child.call(1)
    before = child.rss_bytes
    child.call(64)
    first = child.pid

    assert child.rss_bytes > before + (60 << 20)
    assert child.calls == 2
    child.recycle()
    child.recycle()

    assert child.pid is None
    assert ends == ["recycle"]
    assert child.call(1) == 1
    assert child.calls == 1
    assert child.pid != first


def test_a_child_knows_no_secret_and_leaves_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"DATABASE_URL", "DATABASE_PASSWORD_FILE", "OPENROUTER_API_KEY", "WEBHOOK_SECRET", "ACCESS_TOKEN"}
    for name in secrets | {"MEDIA_ROOT"}:
        monkeypatch.setenv(name, "x")

    with contextlib.closing(ChildProcess("tests.child_module:work")) as child:
        names, core = child.call(("surroundings",))

    assert "MEDIA_ROOT" in names
    assert (names & secrets, core) == (set(), (0, 0))
