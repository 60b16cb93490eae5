"""The worker of research_clip as a process, on a real database."""

import io
import os
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from services.research.clip import restore_lines
from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database
from tests.services.research_service import JOB_TYPE, MODEL_FIELDS, Research
from tests.unit.marked_pastes import CORPUS, load_paste
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcesses

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def research(database: Database, worker_process: WorkerProcesses) -> Research:
    return Research(database, worker_process)


def test_paste_becomes_a_clip_with_its_ids_without_a_model(research: Research) -> None:
    paste = load_paste(CORPUS / "news-nn-rovvilt")
    research.start()

    job = research.wait(
        research.enqueue(
            text=paste.content, pasted_at="2026-08-20T06:15:00Z", tema_id=7, clip_id="k-1", note="til torsdag"
        )
    )

    clip = job["result"]
    assert clip["title"] == paste.expected["title"]
    assert (clip["language"], clip["kind"], clip["mode_used"]) == ("nn", "plain", "offline")
    assert clip["source"]["published"] == "2026-08-19T17:05"
    assert (clip["tema_id"], clip["clip_id"], clip["note"]) == (7, "k-1", "til torsdag")
    assert "episode_id" not in clip
    assert clip["quality"]["warnings"] == ["no_llm"]
    assert not any(clip[field] for field in MODEL_FIELDS)
    assert "Kjøp tilgang" not in clip["clean_text"]
    assert [line.text for line in paste.lines] == [" ".join(line.split()) for line in restore_lines(clip)]


def test_page_of_a_clipboard_keeps_links_and_becomes_markdown(research: Research) -> None:
    paste = load_paste(CORPUS / "html-news-nb-strom")
    research.start()

    job = research.wait(
        research.enqueue(html=paste.content, mode="clean_only", source_url=paste.expected["source_url"])
    )

    clip = job["result"]
    assert clip["quality"]["warnings"] == []
    assert {link["url"] for link in clip["links"]} == set(paste.expected["links"])
    assert clip["markdown"].startswith(
        "# Halve bygda var uten strøm i 19 timer\n\n*Hanne-Lise Kvernberg · 2026-11-16T07:30 · [Storheim Blad]"
    )
    assert "[driftsmeldinger](https://www.storheimnett.example/driftsmelding)" in clip["markdown"]
    assert "\n- 19 timer og 9 minutter\n" in clip["markdown"]


def test_job_that_needs_a_model_waits_for_one_and_the_type_goes_on(research: Research) -> None:
    research.start()
    full = research.enqueue(text="Et avsnitt om havn og kai.", mode="full")
    other = research.enqueue(text="Et avsnitt om havn og kai.")

    research.wait(other)
    waiting = wait_until(lambda: research.database.rows("select * from job_attempt where job_id = %s", full), 20)

    assert [row["outcome"] for row in waiting] == ["postponed"]
    assert "make key" in waiting[0]["error_msg"]
    assert research.database.job(full)["attempts"] == 0
    assert research.database.value("select paused_until from job_type where name = %s", JOB_TYPE) is None


def test_job_that_waited_for_a_model_most_of_a_day_ends_and_says_what_is_missing(research: Research) -> None:
    full = research.enqueue(text="Et avsnitt om havn og kai.", mode="full")
    now_again = "update job_queue set scheduled_for = now() where id = %s and status = 'pending' returning id"
    research.start(POLL_SECONDS="0.1")

    def ended() -> dict[str, Any] | None:
        research.database.rows(now_again, full)
        job = research.database.job(full)
        return job if job["status"] == "error" else None

    job = wait_until(ended, 60, what="the job to give up")

    assert job["error_class"] == "no_api_key"
    assert "waited 18 times" in job["error_msg"]


@pytest.mark.parametrize(
    ("payload", "error_class", "words"),
    [
        ({"text": "et ord " * 150_000}, "too_long", "text has 1050000 bytes"),
        ({"html": "<p>et ord</p>" * 400_000}, "too_long", "html has 5200000 bytes"),
        ({"text": "a b\n" * 110_000}, "too_long", "more than 50000 lines"),
    ],
)
def test_paste_over_its_limit_ends_at_once_with_what_to_do(
    research: Research, payload: dict[str, str], error_class: str, words: str
) -> None:
    research.start()

    job = research.wait(research.enqueue(**payload), "error")

    assert job["error_class"] == error_class
    assert words in job["error_msg"]
    assert "Next: paste the part that matters" in job["error_msg"]


@pytest.mark.parametrize(
    "payload", [{"text": " \n "}, {"text": "x", "user_tz": "Mars/Olympus"}, {"text": "x", "tema": 1}]
)
def test_payload_that_cannot_be_meant_is_refused(research: Research, payload: dict[str, Any]) -> None:
    research.start()

    job = research.wait(research.enqueue(**payload), "error")

    assert job["attempts"] == 1
    assert any(word in job["error_msg"] for word in ("text or html", "Mars/Olympus", "tema"))


def test_paste_that_takes_too_long_is_killed_and_the_next_one_is_cleaned(research: Research) -> None:
    worker = research.start(CLEAN_SECONDS="3")
    slow = research.enqueue(text="\n".join(f"{number} er {number * 7}" for number in range(50_000)), mode="clean_only")
    os.kill(wait_until(worker.children, 20)[0].pid, signal.SIGSTOP)  # so that it takes too long on any machine

    job = research.wait(slow, "error")
    after = research.wait(research.enqueue(text="Et avsnitt om havn og kai.", mode="clean_only"))

    assert job["error_class"] == "too_complex"
    assert after["result"]["clean_text"] == "Et avsnitt om havn og kai."


def test_command_cleans_a_file_and_prints_markdown(research: Research, jobs: Jobs, tmp_path: Path) -> None:
    research.start()
    page = tmp_path / "sak.html"
    page.write_text((CORPUS / "html-news-nb-strom" / "paste.html").read_text(encoding="utf-8"), encoding="utf-8")

    printed = jobs("clip", str(page), "--tema", "tema-3", "--url", "https://www.storheimblad.example/sak")
    whole = jobs("clip", str(page), "--mode", "clean_only", "--json").document

    assert printed.code == ExitCode.OK
    assert printed.out.startswith("# Halve bygda var uten strøm i 19 timer\n\n*Hanne-Lise Kvernberg")
    assert printed.err == "jobs: note: no_llm\n"
    assert whole["kind"] == "html"
    assert (
        research.database.value("select payload ->> 'tema_id' from job_queue order by created_at limit 1") == "tema-3"
    )


def test_command_reads_standard_input_in_older_codes(
    research: Research, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    research.start()
    for data in ("Båten går fra Østre Våg.".encode(code) for code in ("utf-8-sig", "utf-16", "cp1252")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

        assert jobs("clip", "--mode", "clean_only").out == "Båten går fra Østre Våg.\n"


def test_command_says_what_is_wrong(research: Research, jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "tom.txt").write_text(" \n")
    (tmp_path / "stor.txt").write_text("et ord " * 150_000)
    (tmp_path / "kort.txt").write_text("Et avsnitt om havn og kai.")

    assert jobs("clip", str(tmp_path / "tom.txt")).code == ExitCode.REFUSED
    assert "at most 1000000" in jobs("clip", str(tmp_path / "stor.txt")).err
    assert "check the path" in jobs("clip", str(tmp_path / "borte.txt")).err
    waiting = jobs("clip", str(tmp_path / "kort.txt"), "--no-wait")
    assert research.database.job(UUID(waiting.out.strip()))["status"] == "pending"

    research.start()
    full = jobs("clip", str(tmp_path / "kort.txt"), "--mode", "full")
    assert full.code == ExitCode.NOT_POSSIBLE
    assert "--mode auto" in full.err
