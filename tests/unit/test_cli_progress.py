"""The lines of a watch: pace and time left, and when a line is printed at all."""

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelinja_jobs.cli.painters import JsonPainter, LinePainter
from sidelinja_jobs.cli.progress import STANDSTILL_SECONDS, Pace, ended_line, live_line
from sidelinja_jobs.cli.rows import JobRow
from sidelinja_jobs.cli.screen import Screen
from sidelinja_jobs.cli.text import columns

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
WIDE = Screen(width=120, is_terminal=True, has_colours=False, has_blocks=True)
JOB = JobRow(
    id=UUID("a1b2c3d4-0000-4000-8000-000000000000"), job_type="whisper_transcribe", status="running", priority=0,
    attempts=0, max_attempts=3, created_at=START, started_at=START, completed_at=None, scheduled_for=START,
    worker_id="w1", lease_until=None, progress=None, progress_note=None, cancel_requested_at=None, unique_key=None,
    parent_id=None, postponements=0, error_class=None, error_msg=None, is_paused=False, read_at=START,
)  # fmt: skip


def job(seconds: float = 0, **changes: Any) -> JobRow:
    """The job as read so many seconds after its start."""
    return dataclasses.replace(JOB, read_at=START + timedelta(seconds=seconds), **changes)


def pace(*readings: tuple[float, float], **changes: Any) -> tuple[Pace, JobRow]:
    seen = Pace()
    read = JOB
    for seconds, progress in readings:
        read = job(seconds, progress=progress, **changes)
        seen.see(read)
    return seen, read


def test_time_left_follows_the_pace_of_the_changes() -> None:
    assert Pace.seconds_left(*pace((10, 0.1), (20, 0.2), (30, 0.3))) == pytest.approx(70)


def test_time_left_runs_on_between_changes() -> None:
    assert Pace.seconds_left(*pace((10, 0.1), (20, 0.2), (25, 0.2))) == pytest.approx(75)


def test_first_run_is_reckoned_from_its_start() -> None:
    assert Pace.seconds_left(*pace((30, 0.25))) == pytest.approx(90)


def test_resumed_run_gives_no_estimate_from_its_first_share() -> None:
    assert Pace.seconds_left(*pace((5, 0.6), attempts=1)) is None
    assert Pace.seconds_left(*pace((5, 0.6), (15, 0.7), attempts=1)) == pytest.approx(30)


def test_another_run_starts_from_nothing() -> None:
    seen, _ = pace((10, 0.1), (20, 0.5))
    again = job(100, progress=0.1, started_at=START + timedelta(seconds=99), attempts=1)
    seen.see(again)

    assert seen.seconds_left(again) is None


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1)), max_size=30))
def test_time_left_is_never_negative(readings: list[tuple[float, float]]) -> None:
    seen, read = pace(*sorted(readings))

    left = seen.seconds_left(read)
    assert left is None or left >= 0


def test_running_job_shows_bar_share_time_left_and_note() -> None:
    seen, read = pace((10, 0.1), (60, 0.6), progress_note="transkriberer del 6 av 10", attempts=1)

    assert live_line(read, seen, WIDE) == (
        "a1b2c3d4 whisper_transcribe running   2/3  ████████████          60%  40s left  transkriberer del 6 av 10"
    )


def test_without_reported_progress_there_is_no_bar() -> None:
    assert live_line(job(65), Pace(), WIDE) == "a1b2c3d4 whisper_transcribe running   1/3  1m05s"


def test_standstill_is_told_although_heartbeats_arrive() -> None:
    seen, read = pace((10, 0.8), (10 + STANDSTILL_SECONDS, 0.8))

    assert "no progress for 2m00s" in live_line(read, seen, WIDE)


def test_expired_lease_is_told() -> None:
    read = job(60, progress=0.5, lease_until=START + timedelta(seconds=50))

    assert "no heartbeat, lease over since 10s" in live_line(read, Pace(), WIDE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "pending"}, "pending   0/3  due 5s"),
        ({"status": "pending", "is_paused": True}, "pending   0/3  paused"),
        ({"status": "pending", "scheduled_for": START + timedelta(hours=1)}, "pending   0/3  in 59m"),
        ({"status": "retry", "attempts": 1, "scheduled_for": START + timedelta(seconds=30), "error_class": "OSError",
          "error_msg": "\x1b[2Jborte\nmer"}, r"retry     1/3  in 25s  OSError: \x1b[2Jborte"),
        ({"cancel_requested_at": START}, "running, cancelling 1/3"),
    ],
)  # fmt: skip
def test_waiting_job_says_what_it_waits_for(changes: dict[str, Any], words: str) -> None:
    assert words in live_line(job(5, **changes), Pace(), WIDE)


def test_last_line_says_how_it_ended() -> None:
    done = job(90, status="completed", attempts=1, completed_at=START + timedelta(seconds=80))
    failed = job(90, status="error", attempts=3, completed_at=START, error_class="ValueError", error_msg="nei\nmer")

    assert ended_line(done, WIDE) == "a1b2c3d4 whisper_transcribe completed 2/3  took 1m20s"
    assert ended_line(failed, WIDE) == "a1b2c3d4 whisper_transcribe error     3/3  took 0s  ValueError: nei"


@given(st.integers(20, 200), st.text(max_size=80), st.text(max_size=80), st.floats(0, 1))
def test_no_line_reaches_the_edge_of_the_screen(width: int, name: str, note: str, progress: float) -> None:
    narrow = dataclasses.replace(WIDE, width=width)
    read = job(100, job_type=name, progress=progress, progress_note=note)

    assert columns(live_line(read, Pace(), narrow)) < width
    assert "\n" not in live_line(read, Pace(), narrow)


def test_lines_come_at_changes_and_not_for_every_bit_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    painter = LinePainter()
    for seconds, progress in ((1, 0.01), (2, 0.02), (3, 0.03), (4, 0.2), (5, 0.21), (20, 0.22)):
        painter.paint([job(seconds, progress=progress)], [], "")
    painter.paint([job(21, progress=0.22, cancel_requested_at=START)], [], "")
    painter.paint([], [job(22, status="error", error_class="cancelled", completed_at=START)], "")

    shares = [line.split("%")[0].split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert shares[:4] == ["1", "20", "22", "22"]
    assert len(shares) == 5


def test_json_lines_come_for_every_change_and_only_then(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    painter = JsonPainter()
    for seconds, progress in ((1, 0.1), (2, 0.1), (3, 0.1 + 2**-20)):
        painter.paint([job(seconds, progress=progress)], [], "")

    printed = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [line["progress"] for line in printed] == [0.1, 0.1 + 2**-20]
    assert printed[0]["attempt"] == 1
    assert printed[0]["at"] == "2026-11-29T12:00:01Z"


def test_remark_is_made_once_until_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    for painter in (LinePainter(), JsonPainter()):
        for text in ("database away", "database away", "other"):
            painter.say(text)

        assert capsys.readouterr().err == "jobs: database away\njobs: other\n"
