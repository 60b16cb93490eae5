"""Asking through the ledger: what is sent, paid, kept and used again, and what the queue is told."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from openrouter_client import calls as calls_module
from openrouter_client.outcomes import TooLongError, TruncatedError
from openrouter_client.request import Message
from sidelinja_jobs.errors import (
    ComeBackLaterError,
    HandlerError,
    JobStopped,
    LeaseLostError,
    PauseJobTypeError,
    PermanentError,
    StopReason,
)
from tests.databases import Database
from tests.openrouter_standin import Answer, ChatCall, Endpoint, Model, StandIn, faults
from tests.services.asking_support import GOOD, Asking, check


@pytest.fixture
def asking(database: Database, standin: StandIn) -> Iterator[Asking]:
    made = Asking(database, standin)
    database.rows("update job_type set lease_seconds = 600 where name = 'test_job'")
    yield made
    made.close()
    assert standin.contract_problems == []


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "GENERATION_WAITS_SECONDS", (0.0, 0.1, 0.1))


# ---------------------------------------------------------------- one call


def test_an_answer_comes_with_where_it_is_from_and_what_it_cost(asking: Asking, standin: StandIn) -> None:
    answer = asking.ask()

    (billed,) = standin.billing
    assert (answer.data, answer.model, answer.provider) == (GOOD, "google/gemini-2.5-flash", "Google")
    assert (answer.cost_usd, answer.cost_source, answer.generation_id) == (
        billed.cost,
        "provider",
        billed.generation_id,
    )
    assert (answer.usage.prompt_tokens, answer.finish_reason) == (billed.prompt_tokens, "stop")
    assert (answer.is_reused, answer.is_cache_hit, answer.is_possible_duplicate, answer.is_repaired) == (False,) * 4
    assert answer.warnings == ()


def test_the_ledger_holds_the_call_before_during_and_after(
    asking: Asking, standin: StandIn, database: Database
) -> None:
    seen: list[Any] = []

    def look(call: ChatCall) -> Answer:
        seen.extend(database.rows("select state, reserved_usd from llm_call"))
        return Answer('{"title": "a", "words": []}')

    standin.answers(look)
    answer = asking.ask()

    (call,) = asking.calls()
    assert seen == [{"state": "sent", "reserved_usd": call["reserved_usd"]}]  # committed before the first byte
    assert (call["state"], call["cost_usd"], call["cost_source"]) == ("received", answer.cost_usd, "provider")
    assert (call["generation_id"], call["http_status"], call["finish_reason"]) == (answer.generation_id, 200, "stop")
    assert call["reserved_usd"] > call["cost_usd"] > 0
    assert call["usage"]["prompt_tokens"] == answer.usage.prompt_tokens


def test_the_generations_id_is_stored_before_the_answer(asking: Asking, standin: StandIn, database: Database) -> None:
    standin.script(faults.silent_halfway())

    with pytest.raises(HandlerError):
        asking.ask()

    (call,) = asking.calls()
    assert call["generation_id"].startswith("gen-")


# ---------------------------------------------------------------- never twice


def test_an_answer_that_was_paid_for_is_used_by_the_next_run(asking: Asking, standin: StandIn) -> None:
    first = asking.ask()
    asking.next_run()

    second = asking.ask()

    assert second.is_reused
    assert not second.is_possible_duplicate
    assert (second.data, second.cost_usd, second.usage) == (first.data, first.cost_usd, first.usage)
    assert standin.billed_count == 1
    assert len(standin.chats) == 1


def test_another_question_is_another_call(asking: Asking, standin: StandIn) -> None:
    asking.ask()
    asking.ask(asking.question("Og dette?"))
    asking.ask(asking.question(step="another step"))

    assert len(standin.chats) == 3
    assert standin.billed_count == 2  # the third is the first one's bytes: OpenRouter's cache has it
    assert asking.states() == [("received", "provider"), ("received", "provider"), ("received", "cache")]


def test_an_answer_with_what_no_database_can_hold_is_read_back_as_it_was(asking: Asking, standin: StandIn) -> None:
    standin.answers(lambda _: '{"title": "NUL \\u0000, half \\ud83d", "words": ["\\u202e"]}')
    first = asking.ask()
    asking.next_run()

    second = asking.ask()

    assert second.is_reused
    assert first.data == second.data == {"title": "NUL \ufffd, half \ufffd", "words": ["\u202e"]}


def test_a_lost_call_is_sent_again_for_nothing_where_the_cache_has_it(asking: Asking, standin: StandIn) -> None:
    asking.ask()
    lose_answer(asking)
    asking.next_run()

    answer = asking.ask()

    assert standin.billed_count == 1
    assert (answer.is_cache_hit, answer.is_possible_duplicate, answer.cost_usd) == (True, False, 0)
    assert asking.states() == [("unknown", "generation"), ("received", "cache")]
    assert asking.calls()[0]["cost_usd"] == standin.billing[0].cost  # asked for by its id


def test_a_lost_call_is_paid_again_once_and_flagged_where_nothing_has_it(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(cache_seconds=0)
    asking.ask()
    lose_answer(asking, generation_id=None)
    asking.next_run()

    answer = asking.ask()

    assert standin.billed_count == 2
    assert answer.is_possible_duplicate
    assert "may have been paid for twice" in answer.warnings[0]
    assert asking.states() == [("unknown", "unknown"), ("received", "provider")]
    assert asking.calls()[1]["is_possible_duplicate"]


def test_a_question_that_is_lost_again_and_again_is_not_paid_for_ever(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(cache_seconds=0)
    standin.script(*[faults.silent()] * 2)
    for _ in range(2):
        with pytest.raises(HandlerError):
            asking.ask()
        asking.next_run()

    with pytest.raises(PermanentError, match="sent 2 times without an answer") as caught:
        asking.ask()

    assert caught.value.error_class == "timeout"
    assert standin.billed_count == 2
    asking.next_run()  # a person retries: then it is asked again
    assert asking.ask().data == GOOD


def test_a_call_that_was_free_of_charge_is_not_held_against_the_question(asking: Asking, standin: StandIn) -> None:
    for fault in (faults.overloaded(), faults.died_halfway(), faults.refused(502)):
        standin.script(fault)
        with pytest.raises(HandlerError):
            asking.ask()
    assert asking.states() == [("failed", "unbilled")] * 3

    answer = asking.ask()

    assert not answer.is_possible_duplicate
    assert standin.billed_count == 1


def test_a_run_that_is_stopped_in_the_middle_of_a_call_says_so(
    asking: Asking, standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often: a deployment is no reason to give a question up."""
    asking.with_settings(cache_seconds=0)
    send = asking.model.client.send

    def stop(*_: Any) -> Any:
        raise JobStopped(StopReason.SHUTDOWN)

    for _ in range(4):
        monkeypatch.setattr(asking.model.client, "send", stop)
        with pytest.raises(JobStopped):
            asking.ask()
        asking.next_run()
    monkeypatch.setattr(asking.model.client, "send", send)

    assert [call["error_class"] for call in asking.calls()] == ["stopped"] * 4
    assert asking.ask().is_possible_duplicate


def test_a_run_that_was_lost_sends_nothing(asking: Asking, standin: StandIn) -> None:
    stale = asking.claim
    asking.next_run()
    asking.claim = stale

    with pytest.raises(LeaseLostError):
        asking.ask()

    assert standin.chats == []


def lose_answer(asking: Asking, **columns: Any) -> None:
    """As if the process had died after it sent: the row still says so, and the answer is nowhere."""
    values = {"state": "sent", "response": None, "cost_usd": None, "cost_source": None, "usage": None} | columns
    assignments = ", ".join(f"{name} = %s" for name in values)
    asking.database.rows(f"update llm_call set {assignments} where state = 'received'", *values.values())


# ---------------------------------------------------------------- second tries


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
    asking.with_settings(cache_seconds=0)
    standin.answers(lambda _: '{"title": "a", "words": []}')
    assert asking.ask().data == {"title": "a", "words": []}


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
    assert 500 <= (standin.chats[1].max_tokens or 0) <= 700


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


# ---------------------------------------------------------------- what the queue is told


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


# ---------------------------------------------------------------- money


def test_the_jobs_budget_ends_the_job_with_the_numbers(asking: Asking, standin: StandIn) -> None:
    with pytest.raises(PermanentError, match=r"job's budget of 0\.0001 USD") as caught:
        asking.ask(max_cost_usd=Decimal("0.0001"))

    assert caught.value.error_class == "budget_exceeded"
    assert standin.chats == []


def test_a_payload_cannot_raise_the_budget_of_the_settings(asking: Asking) -> None:
    asking.with_settings(job_budget_usd=Decimal("0.0001"))

    with pytest.raises(PermanentError, match=r"job's budget of 0\.0001 USD"):
        asking.ask(max_cost_usd=Decimal(50))


def test_a_spent_day_rests_the_type_until_midnight(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(day_budget_usd=Decimal("0.0035"))
    asking.ask()
    asking.database.rows("update llm_call set cost_usd = 0.003")

    with pytest.raises(PauseJobTypeError, match="OPENROUTER_DAY_BUDGET_USD") as caught:
        asking.ask(asking.question("Et spørsmål til"))

    assert (caught.value.origin, caught.value.until.hour, caught.value.until.minute) == ("budget", 0, 0)
    assert len(standin.chats) == 1


def test_the_dearest_of_the_models_is_what_a_call_can_cost(asking: Asking, standin: StandIn) -> None:
    asking.ask()
    asking.with_settings(fallback_models="openai/gpt-small", cache_seconds=0)
    asking.ask(asking.question("dyrere i ledd"))

    cheap, dear = asking.calls()
    assert dear["reserved_usd"] > cheap["reserved_usd"]


@pytest.mark.parametrize(
    ("fault", "source"),
    [(faults.usage("none", None), "generation"), (faults.usage("zeros", dict.fromkeys(
        ("prompt_tokens", "completion_tokens", "total_tokens", "cost"), 0)), "generation")],
)  # fmt: skip
def test_a_cost_that_the_answer_does_not_tell_is_asked_for(
    asking: Asking, standin: StandIn, fault: Any, source: str
) -> None:
    standin.script(fault)

    answer = asking.ask()

    assert (answer.cost_source, answer.cost_usd) == (source, standin.billing[0].cost)
    assert asking.states() == [("received", source)]


def test_a_cost_that_nobody_tells_is_estimated_and_said_to_be(database: Database) -> None:
    with StandIn(generation_lag_seconds=60) as standin:
        asking = Asking(database, standin)
        standin.script(faults.usage("none", None))

        answer = asking.ask()

        assert answer.cost_source == "estimate"
        assert answer.cost_usd > 0
        assert "the cost is an estimate" in answer.warnings
        asking.close()


def test_a_key_of_ones_own_at_the_provider_pays_both(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.byok(0.02, 0.001))

    assert asking.ask().cost_usd == Decimal("0.021")


def test_another_model_than_the_one_asked_for_is_told(asking: Asking, standin: StandIn) -> None:
    standin.script(faults.answered_by("openai/gpt-small"))

    answer = asking.ask()

    assert answer.warnings == ("openai/gpt-small answered, google/gemini-2.5-flash was asked",)
    assert asking.calls()[0]["model_used"] == "openai/gpt-small"


# ---------------------------------------------------------------- trouble around it


def test_the_answer_is_kept_although_the_ledgers_connection_breaks_meanwhile(
    asking: Asking, standin: StandIn, database: Database
) -> None:
    def cut(_: ChatCall) -> Answer:
        database.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test side'"
            " and datname = current_database()"
        )
        return Answer('{"title": "a", "words": []}')

    standin.answers(cut)

    assert asking.ask().data == {"title": "a", "words": []}
    assert asking.states() == [("received", "provider")]
    assert asking.calls()[0]["generation_id"] is not None


def test_the_key_stands_nowhere_in_the_ledger(asking: Asking, standin: StandIn) -> None:
    standin.answers(lambda _: f'{{"title": "{standin.key}", "words": []}}')
    asking.ask()
    standin.script(faults.refused(500, f"No good: Bearer {standin.key}"))
    with pytest.raises(HandlerError) as caught:
        asking.ask(asking.question("en gang til"))

    assert standin.key not in repr(asking.calls())
    assert standin.key not in repr(caught.value)


# ---------------------------------------------------------------- servers of one's own


def test_a_server_of_ones_own_costs_nothing_and_needs_no_key(database: Database) -> None:
    with StandIn(is_generic=True, key="") as standin:
        asking = Asking(database, standin, api_key=None, model="local")

        answer = asking.ask()

        assert (answer.cost_usd, answer.cost_source, answer.warnings) == (0, "local", ())
        assert asking.states() == [("received", "local")]
        asking.close()


def test_a_server_that_cuts_a_long_prompt_without_a_word_is_found_out(database: Database) -> None:
    models = (Model("local", (Endpoint(context_tokens=1000),)),)
    with StandIn(is_generic=True, key="", cuts_silently=True, models=models) as standin:
        asking = Asking(database, standin, api_key=None, model="local")
        long = asking.question(messages=(Message("user", "Dette er en lang historie. " * 400),), max_output_tokens=300)

        with pytest.raises(PermanentError, match="it cuts what is too long") as caught:
            asking.ask(long, check=check)

        assert caught.value.error_class == "config"
        asking.close()


def test_a_reused_answer_needs_no_server(asking: Asking, standin: StandIn) -> None:
    asking.ask()
    asking.next_run()
    standin.script(*[faults.refused(500)] * 5)

    assert asking.ask().is_reused


def test_whatever_the_database_says_of_a_wrong_call_is_not_swallowed(asking: Asking, database: Database) -> None:
    database.rows("drop function find_llm_calls")

    with pytest.raises(psycopg.errors.UndefinedFunction):
        asking.ask()
