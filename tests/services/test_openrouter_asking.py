"""Asking through the ledger: what is sent, kept and used again, and never paid twice where that can be helped."""

from typing import Any

import psycopg
import pytest

from openrouter_client.request import Message
from sidelinja_jobs.errors import HandlerError, JobStopped, LeaseLostError, PermanentError, StopReason
from tests.databases import Database
from tests.openrouter_standin import Answer, ChatCall, Endpoint, Model, StandIn, faults
from tests.services.asking_support import GOOD, Asking, check

# One call.


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
    asking.ask(asking.question("Først noe annet, som vekker tjeneren"))
    asking.with_settings(read_seconds=1.0)
    standin.script(faults.silent_halfway())

    with pytest.raises(HandlerError):
        asking.ask()

    call = asking.calls()[-1]
    assert call["generation_id"].startswith("gen-")
    assert call["state"] == "unknown"


# Never twice.


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
    asking.lose_answer()
    asking.next_run()

    answer = asking.ask()

    assert standin.billed_count == 1
    assert (answer.is_cache_hit, answer.is_possible_duplicate, answer.usage.cost_usd) == (True, False, 0)
    assert answer.cost_usd == standin.billed_usd  # what the job cost, in all its runs
    assert asking.states() == [("unknown", "generation"), ("received", "cache")]
    assert asking.calls()[0]["cost_usd"] == standin.billing[0].cost  # asked for by its id
    asking.next_run()
    assert not asking.ask().is_possible_duplicate  # nor later, from the ledger


def test_a_lost_call_is_paid_again_once_and_flagged_where_nothing_has_it(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(cache_seconds=0)
    asking.ask()
    asking.lose_answer(generation_id=None)
    asking.next_run()

    answer = asking.ask()

    assert standin.billed_count == 2
    assert answer.is_possible_duplicate
    assert "may have been paid for twice" in answer.warnings[0]
    assert asking.states() == [("unknown", "unknown"), ("received", "provider")]
    assert asking.calls()[1]["is_possible_duplicate"]


def test_a_question_that_is_lost_again_and_again_is_not_paid_for_ever(asking: Asking, standin: StandIn) -> None:
    asking.with_settings(cache_seconds=0, read_seconds=1.0)
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
    asking.with_settings(read_seconds=20.0)
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


# Trouble around it.


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


# Servers of one's own.


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
