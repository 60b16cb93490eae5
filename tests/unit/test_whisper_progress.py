"""What a job says of how far it is, how fast it goes, and how long it will take."""

from dataclasses import replace

import pytest

from services.whisper.messages import UnitProgress
from services.whisper.progress import Speedometer, clock, progress_of


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (UnitProgress("transcribing", 200, 725), (200 / 725, "transcribing 3:20 of 12:05")),
        (UnitProgress("transcribing", 3800, 10_000), (0.38, "transcribing 1:03:20 of 2:46:40")),
        (UnitProgress("reading", 61, None), (0.0, "reading 1:01")),
        (UnitProgress("transcribing", 900, 725), (0.99, "transcribing 15:00")),
        (UnitProgress("transcribing", 724.9, 725), (0.99, "transcribing 12:04 of 12:05")),
    ],
)
def test_progress_says_how_far_it_is_and_never_that_it_is_done(
    message: UnitProgress, expected: tuple[float, str]
) -> None:
    fraction, note = progress_of(message)

    assert (pytest.approx(expected[0]), expected[1]) == (fraction, note)
    assert clock(0) == "0:00"


def test_progress_tells_units_speed_and_the_time_that_is_left() -> None:
    message = UnitProgress("transcribing", 600, 3600)

    assert progress_of(message, 2, 8.0)[1] == "transcribing 10:00 of 1:00:00, 2 units done, 8.0x, 6:15 left"
    assert progress_of(message, 1, 250.0)[1] == "transcribing 10:00 of 1:00:00, 1 unit done, 250x, 0:12 left"
    assert progress_of(replace(message, total_seconds=None), 2, 8.0)[1] == "transcribing 10:00, 2 units done, 8.0x"


def test_speed_counts_from_the_first_unit_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("services.whisper.progress.time.monotonic", lambda: now[0])
    speedometer = Speedometer()

    assert speedometer.speed(UnitProgress("transcribing", 600, 3600)) is None
    speedometer.begin(600)
    speedometer.begin(900)  # a later unit does not start the clock again
    now[0] = 200.0
    assert speedometer.speed(UnitProgress("reading", 1600, 3600)) is None
    assert speedometer.speed(UnitProgress("transcribing", 700, 3600)) is None  # too little for a guess
    assert speedometer.speed(UnitProgress("transcribing", 1600, 3600)) == 10.0
