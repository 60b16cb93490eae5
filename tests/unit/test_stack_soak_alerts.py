"""What the stack's soak makes of alerts: each firing needs a cause, and what has to be told is told, and its end."""

import pytest

from bench.stack_soak_alerts import ECHO_SECONDS, Deed, judge

BEGUN = 1000.0
NOBODYS = ("NoWorker", "nobodys")
FAILED = ("ManyFailures", "whisper_transcribe")
HAS_TO = Deed(*NOBODYS, 1100, 1200)
MAY = Deed(*FAILED, 1100, 1200, has_to_be_told=False)


def test_an_alert_that_fires_while_its_cause_lasts_and_ends_after_it_is_true() -> None:
    assert judge({NOBODYS: [1150, 1200 + ECHO_SECONDS]}, {NOBODYS}, [HAS_TO], BEGUN) == []


@pytest.mark.parametrize("raised", [{}, {FAILED: [1150.0]}])
def test_what_may_be_told_is_true_told_or_not(raised: dict[tuple[str, str], list[float]]) -> None:
    assert judge(raised, set(), [MAY], BEGUN) == []


@pytest.mark.parametrize("at", [1099.0, 1201 + ECHO_SECONDS])
@pytest.mark.parametrize("deed", [HAS_TO, MAY])
def test_an_alert_before_or_long_after_its_cause_is_untrue(deed: Deed, at: float) -> None:
    name = (deed.alert, deed.subject)

    (said,) = judge({name: [1150, at]}, {name}, [deed], BEGUN)
    assert said == f"{name[0]} {name[1]} fired 1 times without a cause, at {at - BEGUN:.0f} s first"


def test_the_cause_of_another_alert_or_of_another_subject_is_none() -> None:
    (said,) = judge({("ManyFailures", "research_clip"): [1150.0]}, set(), [MAY], BEGUN)
    assert "without a cause" in said


def test_silence_about_what_has_to_be_told_is_untrue() -> None:
    assert judge({}, set(), [HAS_TO], BEGUN) == ["NoWorker nobodys kept silent for 100 s"]


def test_an_alert_whose_end_nobody_was_told_is_untrue() -> None:
    assert judge({NOBODYS: [1150.0]}, set(), [HAS_TO], BEGUN) == ["NoWorker nobodys: nobody was told that it is over"]
