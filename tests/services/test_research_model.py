"""The worker of research_clip with a model: the real process, the stand-in of OpenRouter, a real database."""

import json
from typing import Any
from uuid import UUID

import pytest

from openrouter_client.language import is_language
from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database
from tests.openrouter_standin import ChatCall, StandIn, faults
from tests.services.research_describing import SUMMARY, TEXT, Describing, describer
from tests.services.research_service import MODEL_FIELDS
from tests.unit.injections import IN_PASTES
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def research(database: Database, worker_process: WorkerProcesses, standin: StandIn) -> Describing:
    return Describing(database, worker_process, standin)


def require_grounded(clip: dict[str, Any]) -> None:
    """Each row is the slice that it says it is, and what was invented is apart."""
    text = clip["clean_text"]
    for row in (*clip["claims"], *clip["facts"], *clip["quotes"]):
        assert text[row["start"] : row["end"]] == row["quote"]
        assert row["match"] in ("exact", "repaired")
    for entity in clip["entities"]:
        assert {text[span["start"] : span["end"]] for span in entity["spans"]} == {entity["name"]}
    assert [entity["name"] for entity in clip["entities"]] == ["Åse Li"]
    assert [fact["value"] for fact in clip["facts"]] == ["1250"]
    assert {(row["kind"], row["reason"]) for row in clip["ungrounded"]} >= {
        ("claim", "quote_not_found"), ("fact", "number_not_in_quote"), ("entity", "not_in_text"),
    }  # fmt: skip


def test_model_describes_a_clip_and_its_text_stays_as_it_was(research: Describing) -> None:
    research.start()

    clip = research.clip(*TEXT["nb"], tema_id=4)
    plain = research.clip(*TEXT["nb"], mode="clean_only")

    assert clip["mode_used"] == "llm"
    for field in ("clean_text", "markdown", "blocks", "removed", "changed", "links", "language"):
        assert clip[field] == plain[field]
    require_grounded(clip)
    assert clip["summary"] == SUMMARY["nb"]
    assert (clip["title"], clip["source"]["author"]) == (TEXT["nb"][0][:29], None)
    assert clip["headings"] == [{"title": "Til slutt", "start": clip["blocks"][-1]["start"]}]
    assert clip["quality"]["ungrounded"] == {"not_in_text": 2, "number_not_in_quote": 1, "quote_not_found": 1}
    assert clip["quality"]["warnings"] == []
    assert clip["tema_id"] == 4
    assert clip["provenance"]["calls"] == 1
    assert research.standin.billed_count == 1
    assert plain["mode_used"] == "offline"
    assert (plain["ungrounded"], plain["provenance"]) == ([], None)


@pytest.mark.parametrize("language", ["nb", "nn", "en"])
def test_text_that_speaks_to_a_model_changes_nothing_but_the_flag(research: Describing, language: str) -> None:
    research.start()

    clean = research.clip(*TEXT[language])
    clip = research.clip(TEXT[language][0], *IN_PASTES[language], *TEXT[language][1:])

    assert (clean["quality"]["injection_suspected"], clip["quality"]["injection_suspected"]) == (False, True)
    assert clip.keys() == clean.keys()
    assert clip["output_language"] == clean["output_language"] == language
    assert is_language(clip["summary"], language)
    assert all(line in clip["clean_text"] for line in IN_PASTES[language])
    require_grounded(clip)
    for field in ("summary", "topics", "claims", "facts"):
        assert clip[field] == clean[field]


@pytest.mark.parametrize(("language", "other"), [("nb", "en"), ("nn", "en"), ("en", "nb")])
def test_model_that_obeys_the_text_is_not_believed(research: Describing, language: str, other: str) -> None:
    """The worst case: the model does what the paste says, in another language, and quotes what nobody said."""

    def obedient(call: ChatCall) -> str:
        asked = (call.schema or {})["properties"]
        empty = {name: None if name in ("title", "author", "published") else [] for name in asked}
        row = {"paragraph": "P1", "quote": "I have committed fraud, said the mayor on Sunday"}
        answer = {
            "summary": SUMMARY[other],
            "claims": [{"text": "The mayor has been charged", **row}],
            "facts": [{"subject": "mayor", "predicate": "charged", "value": "yes", "unit": None, **row}],
            "quotes": [row],
        }
        return json.dumps({**empty, **answer})

    research.standin.answers(obedient)
    research.start()

    clip = research.clip(TEXT[language][0], *IN_PASTES[language], *TEXT[language][1:])

    assert (clip["claims"], clip["facts"], clip["quotes"]) == ([], [], [])
    assert clip["quality"]["ungrounded"] == {"quote_not_found": 3}
    assert clip["quality"]["warnings"] == ["language_drift"]
    assert clip["output_language"] == language
    assert research.standin.billed_count == 2


def test_long_clip_is_asked_about_in_parts(research: Describing) -> None:
    research.start(OPENROUTER_CONTEXT_TOKENS="9000")
    filler = [f"Avsnitt nummer {n} sier at det skal bli nye båter langs hele kysten. {n * 7}" for n in range(150)]

    clip = research.clip(*TEXT["nb"], *filler)

    assert clip["mode_used"] == "llm"
    assert clip["provenance"]["parts"] > 2
    assert clip["provenance"]["calls"] == research.standin.billed_count == clip["provenance"]["parts"] + 1
    assert len(clip["claims"]) >= 1
    assert clip["quotes"][-1]["quote"] == filler[-1]
    assert len(clip["headings"]) == clip["provenance"]["parts"]
    assert clip["quality"]["warnings"] == []


def test_run_after_a_failure_asks_only_what_was_not_answered(research: Describing) -> None:
    research.start(OPENROUTER_CONTEXT_TOKENS="9000")
    failed: list[bool] = []

    def fails_once(call: ChatCall) -> str:
        if not failed:
            failed.append(True)
            research.standin.script(faults.upstream(502, "bad gateway"))
        return describer(call)

    research.standin.answers(fails_once)
    text = "\n\n".join([*TEXT["nb"], *(f"Avsnitt {n} sier at det skal bli nye båter på kysten." for n in range(120))])
    job_id = research.enqueue(text=text)
    wait_until(lambda: research.database.rows("select * from job_attempt where job_id = %s", job_id), 30)
    research.database.rows("update job_queue set scheduled_for = now() where id = %s returning id", job_id)

    provenance = research.wait(job_id)["result"]["provenance"]

    assert (provenance["reused_answers"], provenance["calls"]) == (1, research.standin.billed_count)


@pytest.mark.parametrize(
    ("environ", "warnings"),
    [
        ({"OPENROUTER_API_KEY": ""}, ["no_llm"]),
        ({"OPENROUTER_API_KEY": "sk-or-v1-wrong"}, ["no_llm", "llm_key_refused"]),
        ({"OPENROUTER_DAY_BUDGET_USD": "0.0001"}, ["no_llm", "llm_budget_spent"]),
    ],
)
def test_auto_finishes_without_a_model_and_the_type_goes_on(
    research: Describing, environ: dict[str, str], warnings: list[str]
) -> None:
    research.start(**environ)

    clip = research.clip(*TEXT["nb"])
    second = research.clip(*TEXT["nn"])

    assert clip["quality"]["warnings"] == second["quality"]["warnings"] == warnings
    assert clip["mode_used"] == "offline"
    assert not any(clip[field] for field in MODEL_FIELDS)
    assert not research.is_paused
    assert research.standin.billed_count == 0


def test_spent_day_leaves_the_next_clips_cleaned_and_the_type_running(research: Describing) -> None:
    worker = research.start()
    first = research.clip(*TEXT["nb"])
    worker.end()
    call = research.database.rows("select reserved_usd, cost_usd from llm_call")[0]
    budget = call["reserved_usd"] + call["cost_usd"] / 2
    research.start(OPENROUTER_TYPE_DAY_BUDGET_USD=f"{budget:f}")

    second = research.clip(*TEXT["nb"])
    full = research.enqueue(text="\n\n".join(TEXT["nb"]), mode="full")

    assert (first["mode_used"], second["mode_used"]) == ("llm", "offline")
    assert second["quality"]["warnings"] == ["no_llm", "llm_budget_spent"]
    waiting = wait_until(lambda: research.database.rows("select * from job_attempt where job_id = %s", full), 20)
    assert [(row["outcome"], row["charged"]) for row in waiting] == [("postponed", False)]
    assert "goes on at midnight" in waiting[0]["error_msg"]
    assert not research.is_paused
    assert research.standin.billed_count == 1


def test_spent_credit_rests_the_model_and_neither_the_clips_nor_the_type(research: Describing) -> None:
    research.standin.account.balance = 0
    research.start()

    clip = research.clip(*TEXT["nb"])
    asked = len(research.standin.chats)
    second = research.clip(*TEXT["nn"])
    full = research.enqueue(text=TEXT["nb"][0], mode="full")

    assert clip["quality"]["warnings"] == second["quality"]["warnings"] == ["no_llm", "llm_credit_spent"]
    assert len(research.standin.chats) == asked, "not asked again at once"
    waiting = wait_until(lambda: research.database.rows("select * from job_attempt where job_id = %s", full), 20)
    assert [(row["outcome"], row["charged"]) for row in waiting] == [("postponed", False)]
    assert not research.is_paused


def test_answer_that_never_fits_leaves_the_cleaned_clip(research: Describing) -> None:
    research.standin.answers(lambda call: '{"summary": 7}')
    research.start()

    clip = research.clip(*TEXT["nb"])
    full = research.wait(research.enqueue(text="\n\n".join(TEXT["nb"]), mode="full"), "error")

    assert clip["quality"]["warnings"] == ["no_llm", "llm_failed: invalid_output"]
    assert clip["clean_text"].startswith("Båten")
    assert full["error_class"] == "invalid_output"


def test_clip_without_a_model_is_described_later_once(research: Describing, jobs: Jobs) -> None:
    worker = research.start(OPENROUTER_API_KEY="")
    job_id = research.enqueue(text="\n\n".join(TEXT["nb"]), clip_id="k-1")
    before = research.wait(job_id)["result"]
    worker.end()
    first = jobs("clip", "--enrich", str(job_id)[:8], "--no-wait")
    assert jobs("clip", "--enrich", str(job_id), "--no-wait").out == first.out

    research.start()
    follow_up = research.wait(UUID(first.out.strip()))["result"]
    again = jobs("clip", "--enrich", str(job_id), "--json")

    assert again.document == follow_up
    assert jobs("clip", "--enrich", first.out.strip(), "--json").document == follow_up
    assert (follow_up["enrich_job_id"], follow_up["clip_id"]) == (str(job_id), "k-1")
    assert (before["mode_used"], follow_up["mode_used"]) == ("offline", "llm")
    assert follow_up["clean_text"] == before["clean_text"]
    assert research.standin.billed_count == 1
    assert research.database.value("select count(*) from job_queue") == 2
    for extra in (["sak.html"], ["--tema", "4"], ["--mode", "full"]):
        assert jobs("clip", *extra, "--enrich", str(job_id)).code == ExitCode.REFUSED
    other = research.database.enqueue("whisper_transcribe", {})
    assert "expected a clip that is done" in jobs("clip", "--enrich", str(other)).err
