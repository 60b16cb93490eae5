"""The second tries of one run, at most one of each kind, and what the queue is told when they are used up."""

from decimal import Decimal
from typing import Any

import pytest

from openrouter_client.outcomes import TooLongError, TruncatedError
from sidelinja_jobs.errors import ComeBackLaterError, HandlerError, PauseJobTypeError, PermanentError
from tests.openrouter_standin import StandIn, faults
from tests.services.asking_support import GOOD, Asking

# Second tries.


def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_was_wrong(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.with_document("no words", lambda document: {"title": document["title"]}))

    answer = asking.ask()

    first, second = standin.chats
    assert answer.data == GOOD
    assert "the field 'words' is missing" in second.text
    assert '{"title"' not in second.text  # not the wrong answer itself
    assert second.text.startswith(first.text)
    assert standin.billed_count == 2


def test_a_second_answer_that_does_not_fit_ends_the_job_and_may_be_paid_anew_by_a_retry(
    asking: Asking, standin: StandIn
) -> None:
    standin.answers(lambda _: "Det kan jeg ikke svare på.")

    with pytest.raises(PermanentError, match="no JSON object") as caught:
        asking.ask()

    assert caught.value.error_class == "invalid_output"
    assert len(standin.chats) == 2
    assert all(call["discarded_at"] and call["response"] for call in asking.calls())
    asking.next_run()
    standin.answers(lambda _: '{"title": "a", "words": []}')
    assert asking.ask().data == {"title": "a", "words": []}


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_an_empty_answer_is_not_taken_from_the_cache_by_the_next_run(
    asking: Asking, standin: StandIn, value: Any
) -> None:
    """OpenRouter has cached it like any other: the next run says that it wants a new one."""
    standin.script(faults.empty(value))
    with pytest.raises(HandlerError, match="empty"):
        asking.ask()
    asking.next_run()

    answer = asking.ask()

    assert (answer.data, answer.is_cache_hit, answer.is_possible_duplicate) == (GOOD, False, False)
    assert [call.headers.get("x-openrouter-cache-clear") for call in standin.chats] == [None, "true"]
    asking.next_run()
    assert asking.ask().is_reused


def test_a_second_answer_whose_core_is_right_may_be_accepted(asking: Asking, standin: StandIn) -> None:
    standin.answers(lambda _: '{"title": "a"}')

    answer = asking.ask(accepts=lambda data: isinstance(data, dict) and "title" in data)

    assert answer.data == {"title": "a"}
    assert answer.warnings == ("accepted although the field 'words' is missing",)


@pytest.mark.parametrize("fault", [faults.fenced(), faults.in_prose(), faults.trailing_comma(), faults.in_parts()])
def test_small_faults_of_form_cost_no_second_call(asking: Asking, standin: StandIn, fault: Any) -> None:
    standin.script(fault)

    answer = asking.ask()

    assert answer.data == GOOD
    assert answer.is_repaired is (fault.name != "in parts")
    assert len(standin.chats) == 1


def test_an_answer_that_was_cut_off_gets_twice_the_room_once(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.cut_off())

    answer = asking.ask()

    first, second = standin.chats
    assert answer.data == GOOD
    assert second.max_tokens == 2 * (first.max_tokens or 0)


def test_an_answer_that_is_cut_off_twice_is_for_the_caller_to_split(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.cut_off(), faults.cut_off(0.99))

    with pytest.raises(TruncatedError):
        asking.ask()
    asking.next_run()
    with pytest.raises(TruncatedError):
        asking.ask()  # known from the ledger, not paid again

    assert len(standin.chats) == 2
    assert asking.states() == [("received", "provider")] * 2


def test_more_room_than_the_model_has_is_not_asked_for(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.cut_off())

    with pytest.raises(TruncatedError, match="does not fit"):
        asking.ask(asking.question(max_output_tokens=40_000))

    assert len(standin.chats) == 1


def test_a_prompt_that_is_too_long_is_for_the_caller_to_split(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.refused(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"))

    with pytest.raises(TooLongError):
        asking.ask()

    assert asking.states() == [("failed", "unbilled")]


def test_a_provider_that_cannot_hold_to_the_schema_is_asked_without_it(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.upstream(400, "Invalid schema for response_format 'summary': maxItems is not permitted"))

    standin.answers(lambda call: '{"title": "uten skjema", "words": []}')

    answer = asking.ask()

    first, second = standin.chats
    assert (first.schema is None, second.schema is None) == (False, True)
    assert "JSON Schema:" in second.text
    assert answer.data["title"] == "uten skjema"


def test_less_room_is_asked_for_where_the_credit_is_short(asking: Asking, standin: StandIn) -> None:
    asked = asking.question()
    standin.script(faults.affords(1250, 700))

    answer = asking.ask(asked)

    assert answer.data == GOOD
    assert 500 <= (standin.chats[1].max_tokens or 0) <= 0.95 * 700, "a little less than what is said to be affordable"


def test_too_little_credit_for_an_answer_of_use_rests_the_type(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.affords(1250, 20))

    with pytest.raises(PauseJobTypeError) as caught:
        asking.ask()

    assert (caught.value.error_class, caught.value.origin) == ("credits", "worker")
    assert len(standin.chats) == 1


def test_no_ask_sends_more_than_its_few_tries(asking: Asking, standin: StandIn) -> None:
    """Each second try at most once, whatever comes in whichever order."""
    for script in (
        [faults.cut_off(), faults.content("nei"), faults.cut_off()],
        [faults.content("nei"), faults.cut_off(), faults.content("nei")],
        [faults.content("nei"), faults.content("nei"), faults.content("nei")],
        [faults.affords(1250, 700), faults.cut_off(), faults.cut_off()],
    ):
        before = len(standin.chats)
        standin.script(*script)
        with pytest.raises(HandlerError):
            asking.ask(asking.question(f"Nummer {before}"))
        assert len(standin.chats) - before <= 3
        standin.forget_script()


# What the queue is told.


def test_no_key_rests_the_type_and_sends_nothing(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(api_key=None)

    with pytest.raises(PauseJobTypeError, match="OPENROUTER_API_KEY") as caught:
        asking.ask()

    assert caught.value.error_class == "no_api_key"
    assert standin.requests == []
    assert asking.calls() == []


def test_a_refused_key_rests_the_type_and_is_watched(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(api_key="sk-or-v1-" + "0" * 40)

    with pytest.raises(PauseJobTypeError) as caught:
        asking.ask()

    assert caught.value.error_class == "auth"
    assert asking.doubts == 1
    assert asking.states() == [("failed", "unbilled")]


def test_a_wait_that_the_server_names_is_this_jobs_alone(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.rate_limited(retry_after="30"))

    with pytest.raises(ComeBackLaterError) as caught:
        asking.ask()

    assert caught.value.error_class == "rate_limited"


def test_spent_credit_and_a_spent_key_are_told_apart(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.no_credits())
    with pytest.raises(PauseJobTypeError) as caught:
        asking.ask()
    assert (caught.value.error_class, asking.doubts) == ("credits", 0)

    standin.account.balance = Decimal(0)
    standin.script(faults.no_credits())
    with pytest.raises(PauseJobTypeError) as caught:
        asking.ask()
    assert (caught.value.error_class, asking.doubts) == ("key_limit", 1)
