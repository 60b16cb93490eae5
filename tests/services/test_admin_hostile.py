"""Hostile content in every place that a job has, through every page: shown as text, nothing runs, nothing breaks."""

import copy
import json
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.databases import Database
from tests.services.admin_jobs import RESULTS, completed
from tests.services.admin_site import AdminSite

MARKUP = (
    "<script>alert('xss')</script><img src=x onerror=alert(1)><svg onload=alert(2)><b>bold</b>"
    "[click](javascript:alert(3)) ![i](https://evil.example/i.png) {{ 7 * 7 }} {% raw %}"
    '</textarea></pre></script></title>" onmouseover="alert(4) \' &amp; \u202etxt.exe\u2066 \u0007'
)
MARKDOWN = "\n\n".join(
    [
        "<script>alert(1)</script>",
        "[a](javascript:alert(1)) [b](  JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](/logout)",
        "![remote](https://evil.example/track.png)",
        "<img src=x onerror=alert(1)>",
        '[e](https://ok.example "t\\" onx=1")',
        "```<script>\nalert(1)\n```",
        "|a|b|\n|:-|-:|\n|1|2|",
        "# <svg onload=alert(1)>",
        '<https://auto.example/"onclick=x>',
    ]
)
PAGES = (
    "/jobs/{id}",
    "/jobs/{id}/result",
    "/jobs/{id}/edit",
    "/jobs/{id}/cancel",
    "/jobs/{id}/transcript",
    "/jobs/{id}/transcript/edit",
)


def poisoned(value: Any) -> Any:
    """The value with every text in it replaced; what a view needs to tell its kind stays."""
    if isinstance(value, str):
        return MARKUP
    if isinstance(value, dict):
        return {name: poisoned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return value


@pytest.fixture
def jobs(database: Database) -> list[UUID]:
    """A job of each type with a poisoned result, and one in every other status."""
    made = []
    for job_type, result in RESULTS.items():
        bad = poisoned(copy.deepcopy(result))
        if job_type == "openrouter_analyze":
            bad["transcript"]["job_id"] = str(made[0])
        if job_type == "research_clip":
            bad["markdown"] = MARKDOWN + MARKUP
            bad["clean_text"] = MARKUP
        made.append(completed(database, job_type, bad, payload={"path": MARKUP, MARKUP[:80]: [MARKUP]}))
    made.append(completed(database, MARKUP[:190], {MARKUP: {"a": [MARKUP]}}, payload={"x": MARKUP}))
    for status in ("pending", "running", "retry", "error"):
        ended = "2026-11-29 10:00+00" if status == "error" else None
        made.append(
            database.enqueue(
                "test_job", {"x": MARKUP}, status=status, error_class=MARKUP, error_msg=f"{MARKUP}\nsecond {MARKUP}",
                worker_id=MARKUP, progress_note=MARKUP, unique_key=f"{MARKUP}{status}", completed_at=ended,
                started_at="2026-11-29 09:00+00", progress=0.5,
            )
        )  # fmt: skip
    attempt = (
        "insert into job_attempt (job_id, attempt, worker_id, outcome, charged, error_class, error_msg, traceback)"
    )
    database.rows(f"{attempt} values (%s, 1, %s, 'failed', true, %s, %s, %s)", made[-1], *[MARKUP] * 4)
    database.rows("update job_event set actor = %s, worker_id = %s, error_class = %s", *[MARKUP] * 3)
    return made


def paths_of(jobs: list[UUID]) -> list[str]:
    every = [page.format(id=job) for job in jobs for page in PAGES[:4]]
    lists = ["/jobs", "/jobs?q=alert", "/errors", "/jobs?status=error", "/jobs/all?action=retry&status=error&q=alert"]
    return [*lists, *(page.format(id=jobs[0]) for page in PAGES[4:]), *every]


def test_hostile_content_is_shown_as_text(browser_page: Any, jobs: list[UUID]) -> None:
    page = browser_page
    asked: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    seen = 0
    for path in paths_of(jobs):
        answer = page.goto(path, wait_until="domcontentloaded")
        assert answer.status in (200, 404), path
        if answer.status == 404:
            assert path.endswith("/result"), path
            continue
        seen += 1
        found = page.evaluate(
            """() => {
                for (const details of document.querySelectorAll('details')) details.open = true;
                const main = document.querySelector('main');
                return {
                    foreign: main.querySelectorAll('script, img, svg, iframe, object, embed, base, meta, style').length,
                    handlers: [...main.querySelectorAll('*')].filter(
                        (element) => [...element.attributes].some((it) => /^on|style/.test(it.name))).length,
                    links: [...main.querySelectorAll('[href], form')].map(
                        (element) => element.getAttribute('href') || element.getAttribute('action')),
                };
            }"""
        )
        assert (found["foreign"], found["handlers"]) == (0, 0), path
        own = ("/", "#", "https://ok.example", "https://auto.example")
        assert [link for link in found["links"] if not link.startswith(own)] == [], path
        if path.startswith(f"/jobs/{jobs[0]}/transcript"):
            assert "<script>alert('xss')</script>" in page.content().replace("&lt;", "<").replace("&gt;", ">")
    assert seen > 20
    assert dialogs == []
    assert [url for url in asked if "evil.example" in url] == []


def test_what_is_hostile_stands_on_the_page_as_it_was_written(admin_site: AdminSite, jobs: list[UUID]) -> None:
    shown = "&lt;script&gt;alert(&#39;xss&#39;)&lt;/script&gt;"
    for path in ("/jobs", "/errors", f"/jobs/{jobs[-1]}", f"/jobs/{jobs[0]}/transcript", f"/jobs/{jobs[1]}/result"):
        page = admin_site.operator.get(path).text
        assert shown in page, path
        assert "<script>alert" not in page
        assert "49" not in page.split("{{ 7 * 7")[0][-5:]


def test_markdown_of_a_clip_can_link_to_the_web_and_to_nothing_else(admin_site: AdminSite, jobs: list[UUID]) -> None:
    page = admin_site.operator.get(f"/jobs/{jobs[2]}/result").text
    body = page.split('<div class="rendered"')[1].split("</div>")[0]

    assert 'href="https://ok.example" rel="noopener nofollow ugc"' in body
    for gone in ('javascript:alert(1)"', 'href="data:', 'href="/logout"', "<img", "<script", '" onclick', "style="):
        assert gone not in body, gone


def test_a_payload_of_five_megabytes_costs_a_page_little(admin_site: AdminSite, database: Database) -> None:
    large = {"html": "<p>æ</p>" * 500_000, "rows": list(range(100_000)), "big": 2**63 - 1}
    job = completed(database, "research_clip", {"any": "x" * 5_000_000}, payload=large)
    database.rows("update job_queue set payload = payload || jsonb_build_object('noise', %s::text)", noise(database))

    row = admin_site.operator.get("/jobs").text.split(f'<tr id="j{job}"')[1].split("</tr>")[0]
    page = admin_site.operator.get(f"/jobs/{job}")
    download = admin_site.operator.get(f"/jobs/{job}/download/payload")

    assert len(row.encode()) < 2500
    assert len(page.content) < 200_000
    assert json.loads(download.content)["big"] == 2**63 - 1
    assert len(download.content) > 5_000_000


def noise(database: Database) -> str:
    """Half a megabyte that cannot be compressed below the limit of what a page reads."""
    return str(database.value("select string_agg(md5(random()::text), '') from generate_series(1, 30000)"))


def test_shapes_that_no_worker_makes_are_shown_as_a_tree(admin_site: AdminSite, database: Database) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    strange = [
        None, 5, "text", [], {}, [1, "a"], deep, {"segments": "none"}, {"segments": [{"start": "x"}]},
        {"segments": [{"start": -1e308, "end": 1e308, "text": ""}]}, {"clean_text": 5}, {"v": "1"},
        {"schema_version": 1, "transcript": {"job_id": "../../evil"}},
        {"schema_version": 1, "chapters": [{"start_s": 1e300, "title": ""}]},
        {"clean_text": "abc", "markdown": "", "claims": [{"text": "x", "start": -5, "end": 10**9}]},
        {"v": 1, "lines": 1, "counted_requests": 1, "days": {"x": {"y": [deep]}}},
    ]  # fmt: skip
    for job_type in RESULTS:
        for result in strange:
            job = database.enqueue(job_type, status="completed", result=Jsonb(result))
            assert admin_site.operator.get(f"/jobs/{job}").status_code == 200, (job_type, str(result)[:100])
            if job_type in ("whisper_transcribe", "research_clip"):  # theirs stand on pages of their own
                assert admin_site.operator.get(f"/jobs/{job}/result").status_code == 200, str(result)[:100]
                assert admin_site.operator.get(f"/jobs/{job}/transcript").status_code in (200, 404)


def test_no_filter_and_no_field_makes_a_fault_of_ours(admin_site: AdminSite, jobs: list[UUID]) -> None:
    values = ["", "x", "\0", MARKUP, "9" * 300, "-1", "2026-02-30", "9999-12-31T23:59", "٣"]
    names = [
        "type",
        "status",
        "class",
        "group",
        "worker",
        "q",
        "id",
        "since",
        "until",
        "before",
        "page",
        "part",
        "track",
    ]
    for path in ("/jobs", "/jobs/export.csv", "/errors", f"/jobs/{jobs[0]}/transcript", "/jobs/all?action=retry"):
        for value in values:
            answer = admin_site.operator.get(path, params=dict.fromkeys(names, value))
            assert answer.status_code in (200, 400), (path, value)
            for name in ("before", "id"):
                assert admin_site.operator.get(path, params={name: value}).status_code in (200, 303, 400), (path, name)
    posts = {
        "/jobs/ticked": ["job", "action", "reason", "confirmed", "back"],
        "/jobs/all?action=cancel": ["as_of", "reason"],
        f"/jobs/{jobs[-1]}/priority": ["priority", "seen"],
        f"/jobs/{jobs[-1]}/cancel": ["reason", "seen"],
        f"/jobs/{jobs[-1]}/edit": ["payload", "request_id"],
        f"/jobs/{jobs[-1]}/again": ["request_id"],
        f"/jobs/{jobs[0]}/analyze": ["request_id"],
        f"/jobs/{jobs[0]}/transcript/edit": ["version", "t0", "s0", "t99999"],
    }
    for path, fields in posts.items():
        for value in values:
            answer = admin_site.operator.post(path, data=dict.fromkeys(fields, value))
            assert answer.status_code in (200, 303, 400, 409, 413, 422), (path, value, answer.status_code)
            answer = admin_site.operator.post(path, files={name: ("a", value.encode()) for name in fields})
            assert answer.status_code in (200, 303, 400, 409, 413, 422), (path, value, answer.status_code)
