"""The admin view of the running stack in a real browser: a transcription watched from its form to its words."""

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.running_stack import RunningStack
from tests.services.admin_site import running_browser
from tests.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def page(two_workers: RunningStack) -> Iterator[Page]:
    """Logged in by the form, with the password that `make password` shows; nothing that the policy refuses."""
    refused: list[str] = []
    with running_browser() as browser:
        context = browser.new_context(base_url=f"http://127.0.0.1:{two_workers.admin_port}", locale="nb-NO")
        context.set_default_timeout(30_000)
        page: Page = context.new_page()
        page.on("pageerror", lambda error: refused.append(str(error)))
        page.on("console", lambda said: refused.append(said.text) if "Content Security" in said.text else None)
        page.goto("/")
        page.get_by_label("Navn").fill("admin")
        page.get_by_label("Passord").fill(two_workers.make("password"))
        page.get_by_role("button", name="Logg inn").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Nå")
        yield page
        assert refused == []


def test_a_recording_is_enqueued_watched_and_heard(page: Page, two_workers: RunningStack) -> None:
    """Picked from the media folder, seen to run without a reload, across a restart of the view; then played."""
    stack = two_workers
    stack.add_sample("seen.mp3")
    page.get_by_role("link", name="Ny jobb").click()
    page.get_by_role("link", name="whisper_transcribe").click()
    page.locator("#p-path").fill("seen.mp3")
    page.locator("#p-language").fill("en")
    page.locator("main form button[type=submit]").click()
    state = page.locator("#state")
    expect(state).to_contain_text(re.compile(r"Transkriberer|ferdig"), timeout=30_000)

    stack.compose("restart", "--no-deps", "admin")
    expect(state).to_contain_text("ferdig", timeout=120_000)

    page.locator("main").get_by_role("link", name="Åpne transkripsjonen").click()
    expect(page.locator("main")).to_contain_text("respectable")
    second = page.locator("li[data-start] a.seek").nth(1)
    second.focus()
    page.keyboard.press("Enter")
    wait_until(lambda: float(page.locator("audio").evaluate("audio => audio.currentTime")) > 1, 20, what="a seek")


def test_what_is_wrong_reaches_the_page_of_failed_jobs(page: Page, two_workers: RunningStack) -> None:
    job_id = two_workers.enqueue("nowhere.mp3")
    two_workers.wait_for(job_id, "error")

    page.get_by_role("link", name="Feil", exact=True).click()
    expect(page.locator("main")).to_contain_text("not_found")
    page.goto(f"/jobs/{job_id}")
    expect(page.locator("#error")).to_contain_text("no such file")


def test_a_token_from_the_command_line_opens_the_api(two_workers: RunningStack) -> None:
    token = two_workers.jobs("token", "add", "e2e", "--scope", "enqueue", "--scope", "read")["token"]

    def ask(path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{two_workers.admin_port}/api/v1{path}",
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.loads(answer.read())

    job = ask("/jobs", {"job_type": "research_clip", "payload": {"text": "Les også: Noe\n\nFerga går.\n"}})
    ended = ask(f"/jobs/{job['id']}/wait?timeout=60")

    assert ended["status"] == "completed"
    assert "Ferga går" in json.dumps(
        ended["result"] if "result" in ended else ask(f"/jobs/{job['id']}/result"), ensure_ascii=False
    )


def test_prometheus_reads_the_queues_state_from_the_view(two_workers: RunningStack) -> None:
    def workers() -> dict[str, str]:
        return {row["metric"]["job_type"]: row["value"][1] for row in two_workers.prometheus("jobqueue_workers")}

    wait_until(lambda: workers().get("whisper_transcribe") == "2", 60, every=1, what="the gauge of workers")
    assert {rule["metric"]["job_type"] for rule in two_workers.prometheus("jobqueue_paused == 1")} <= {
        "openrouter_analyze"
    }
