"""Results of every type, forms with errors and questions: HTML valid, axe content, nothing wider than a phone."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.databases import ROOT
from tests.services.admin_crawl import LOOKS, invalid, look_at
from tests.services.admin_jobs import RESULTS, TRANSCRIPT, completed, failed
from tests.services.admin_site import AdminSite

LONG = "enlangtekstutenmellomrom" * 20


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_results_forms_and_questions_are_in_order(browser_page: Any, admin_site: AdminSite, tmp_path: Path) -> None:
    database, page = admin_site.database, browser_page
    shutil.copy(ROOT / "demo" / "sample.mp3", admin_site.settings.media_root / "sample.mp3")
    jobs = {name: completed(database, name, result) for name, result in RESULTS.items()}
    long = TRANSCRIPT | {"segments": [{"start": 0, "end": 1, "text": LONG, "speaker": LONG[:60]}], "tracks": [
        {"path": f"{LONG}.mp3", "speaker": LONG[:60]}, {"path": "b.mp3", "speaker": "Kari"}]}  # fmt: skip
    wide = completed(database, "whisper_transcribe", long, payload={"path": LONG})
    tree = completed(database, "test_job", {LONG: {"a": [1, LONG]}, "b": []})
    bad = failed(database, LONG, LONG[:100])
    kinds = {"type": "array", "items": {"enum": ["a", "b"]}}
    properties = {"name": {"type": "string"}, "on": {"type": "boolean"}, "kinds": kinds, "rest": {"type": "object"}}
    schema = {"type": "object", "required": ["name"], "properties": properties}
    database.rows("update job_type set payload_schema = %s where name = 'test_job'", Jsonb(schema))
    transcript = jobs["whisper_transcribe"]
    paths = [
        *(f"/jobs/{job}/result" for job in jobs.values()), f"/jobs/{jobs['stats_parse']}", f"/jobs/{tree}",
        f"/jobs/{transcript}/transcript?q=tidevann", f"/jobs/{transcript}/transcript/edit",
        f"/jobs/{wide}/transcript", f"/jobs/{wide}/transcript/edit", f"/jobs/{bad}",
        f"/jobs?id={str(bad)[:5]}&status=error",
        "/jobs?since=x", "/jobs/all?action=retry&status=error", "/enqueue/test_job",
    ]  # fmt: skip
    (tmp_path / "pages").mkdir()
    problems: list[str] = []
    for number, path in enumerate(paths):
        answer = page.goto(path)
        assert answer.status == 200, path
        (tmp_path / "pages" / f"{number:02}.html").write_text(f"{answer.text()}<!-- {path} -->\n")
        problems += look_at(page, path, LOOKS[:2])
    page.get_by_role("button", name="Enqueue").click()  # the name is missing
    page.get_by_text("Something has to be corrected").wait_for()
    (tmp_path / "pages" / "errors.html").write_text(
        f"<!doctype html>{page.content()[15:]}<!-- the form with errors -->\n"
    )
    problems += look_at(page, "the form with errors", LOOKS[:2])

    problems += invalid(tmp_path / "pages")
    assert problems == [], "\n".join(problems)
