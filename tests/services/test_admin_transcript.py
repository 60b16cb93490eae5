"""Transcripts: the player in a real browser, corrections, files, analysis of the corrected text, audio by parts."""

import shutil
from typing import Any
from uuid import UUID

import msgspec
import pytest

from services.openrouter.payload import AnalyzePayload
from tests.databases import ROOT, Database
from tests.services.admin_jobs import ANALYSIS, TRANSCRIPT, completed, form, said
from tests.services.admin_site import AdminSite
from tests.waiting import wait_until

SAMPLE = ROOT / "demo" / "sample.mp3"


@pytest.fixture
def transcript(admin_site: AdminSite) -> UUID:
    """A transcribed job whose audio lies in the media folder."""
    shutil.copy(SAMPLE, admin_site.settings.media_root / "sample.mp3")
    return completed(admin_site.database, "whisper_transcribe", TRANSCRIPT, payload={"path": "sample.mp3"})


def test_a_click_and_the_enter_key_seek_and_the_line_that_plays_is_marked(browser_page: Any, transcript: UUID) -> None:
    page = browser_page
    page.goto(f"/jobs/{transcript}/transcript")
    audio = page.locator("#audio")

    page.locator("#l1 a.seek").click()
    wait_until(lambda: audio.evaluate("audio => audio.currentTime") >= 2.5, what="the audio at the second line")
    page.locator("#l1[aria-current=true]").wait_for()
    wait_until(lambda: audio.evaluate("a => a.currentTime > 2.6 && !a.paused"), what="the audio to play on")

    page.locator("#l2 a.seek").focus()
    page.keyboard.press("Enter")
    wait_until(lambda: audio.evaluate("audio => audio.currentTime") >= 6, what="the audio at the third line")
    page.locator("#l2[aria-current=true]").wait_for()
    assert page.locator("[aria-current=true]").count() == 1
    audio.evaluate("audio => audio.pause()")
    assert page.url.endswith("/transcript"), "a click stays on the page"

    page.locator("#l1 p").click()
    wait_until(lambda: 2.5 <= audio.evaluate("audio => audio.currentTime") < 6, what="the audio at the line's words")
    audio.evaluate("audio => audio.pause()")
    page.locator("#l0 bdi").dblclick(position={"x": 8, "y": 8})
    assert page.evaluate("getSelection().toString().trim()"), "words can be selected still"

    page.goto(f"/jobs/{transcript}/transcript#t=6.5")
    page.reload()
    page.locator("#l2[aria-current=true]").wait_for()


def test_a_correction_is_kept_beside_the_result_and_analysed(
    browser_page: Any, admin_site: AdminSite, transcript: UUID
) -> None:
    database, page = admin_site.database, browser_page
    told = {"transcript_job_id": str(transcript), "hints": {"hosts": ["Kari"]}}
    analysis = completed(database, "openrouter_analyze", ANALYSIS, payload=told)
    database.rows("update job_queue set parent_id = %s where id = %s", transcript, analysis)
    before = database.job(transcript)["result"]

    page.goto(f"/jobs/{transcript}/transcript")
    page.get_by_role("link", name="Correct the text").click()
    page.locator("#t1").fill("Vi snakker om <b>tidevannet</b>.")
    page.locator("#t2").fill("")
    page.get_by_role("button", name="Save").click()
    assert "Saved as version 1." in page.locator(".notice[role=status]").inner_text()
    assert "Vi snakker om <b>tidevannet</b>." in page.locator("#l1").inner_text()
    page.get_by_role("button", name="Analyse again").click()
    page.get_by_text("New job enqueued.").wait_for()

    assert database.job(transcript)["result"] == before
    (new,) = database.rows("select * from job_queue where job_type = 'openrouter_analyze' and status = 'pending'")
    assert new["parent_id"] == transcript
    assert new["payload"] == {
        "hints": {"hosts": ["Kari"]},
        "segments": [
            {"start": 0, "end": 2.5, "text": "God dag."},
            {"start": 2.5, "end": 6, "text": "Vi snakker om <b>tidevannet</b>."},
        ],
        "language": "no",
        "duration": 9,
        "corrects_job_id": str(analysis),
    }
    kept = database.row("select version, actor from transcript_correction")
    assert kept == {"version": 1, "actor": "kari"}


def test_what_is_analysed_again_is_a_payload_that_the_worker_takes(admin_site: AdminSite, transcript: UUID) -> None:
    for changes in ({}, {"t0": "Hei."}):
        if changes:
            admin_site.operator.post(f"/jobs/{transcript}/transcript/edit", data={"version": "0"} | changes)
        admin_site.operator.post(f"/jobs/{transcript}/analyze", data=form())
    rows = admin_site.database.rows(
        "select payload::text as payload from job_queue where parent_id = %s order by created_at", transcript
    )

    first, second = (msgspec.json.decode(row["payload"], type=AnalyzePayload) for row in rows)
    assert first.transcript_job_id == transcript
    assert second.segments is not None
    assert second.segments[0].text == "Hei."


def test_the_second_of_two_editors_is_told_and_keeps_what_was_typed(admin_site: AdminSite, transcript: UUID) -> None:
    path = f"/jobs/{transcript}/transcript/edit"
    admin_site.operator.post(path, data={"version": "0", "t0": "Hei."})

    answer = admin_site.operator.post(path, data={"version": "0", "t0": "Hallo, dere."})

    assert answer.status_code == 409
    assert "kari has saved version 1" in said(answer.text)
    assert "Hallo, dere." in answer.text


def test_files_hold_the_corrected_text_or_the_original(admin_site: AdminSite, transcript: UUID) -> None:
    admin_site.operator.post(f"/jobs/{transcript}/transcript/edit", data={"version": "0", "t0": "Hei & hallo."})
    files = {
        kind: admin_site.operator.get(f"/jobs/{transcript}/transcript.{kind}") for kind in ("vtt", "srt", "txt", "json")
    }

    assert files["vtt"].text.startswith("WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nHei &amp; hallo.\n")
    assert files["srt"].text.startswith("1\n00:00:00,000 --> 00:00:02,500\nHei & hallo.\n")
    assert files["txt"].text == "Hei & hallo.\nVi snakker om tidevann.\nTakk for nå.\n"
    document = files["json"].json()
    assert (document["corrected"]["version"], document["corrected"]["by"]) == (1, "kari")
    assert document["segments"][0]["text"] == "Hei & hallo."
    assert all("attachment" in answer.headers["content-disposition"] for answer in files.values())
    original = admin_site.operator.get(f"/jobs/{transcript}/transcript.txt?original").text
    assert original == "God dag.\nVi snakker om tidevann.\nTakk for nå.\n"


def test_doubts_and_what_was_left_out_are_told(admin_site: AdminSite, transcript: UUID) -> None:
    words = said(admin_site.viewer.get(f"/jobs/{transcript}/transcript").text)

    for told in ("one unsure", "One line left out", "Teksting av NRK credit", "people speak for long"):
        assert told in words, told
    assert words.count("tidevann. unsure") == 1


def test_a_search_in_the_text_marks_what_it_found(admin_site: AdminSite, transcript: UUID) -> None:
    page = admin_site.viewer.get(f"/jobs/{transcript}/transcript?q=TIDEVANN").text

    assert "Vi snakker om <mark>tidevann</mark>." in page
    assert "One line found." in said(page)
    assert 'id="l1"' in page
    assert 'id="l0"' not in page


def test_audio_comes_whole_and_by_parts_and_to_nobody_without_a_name(admin_site: AdminSite, transcript: UUID) -> None:
    path, whole = f"/jobs/{transcript}/audio/0", SAMPLE.read_bytes()
    get = admin_site.viewer.get
    answers = {asked: get(path, headers={"Range": asked}) for asked in ("bytes=10-19", "bytes=-5", "bytes=100-", "x")}

    assert (get(path).status_code, get(path).content) == (200, whole)
    assert get(path).headers["content-type"] == "audio/mpeg"
    assert [(a.status_code, a.content) for a in answers.values()] == [
        (206, whole[10:20]), (206, whole[-5:]), (206, whole[100:]), (200, whole)
    ]  # fmt: skip
    assert answers["bytes=10-19"].headers["content-range"] == f"bytes 10-19/{len(whole)}"
    for beyond in (f"bytes={len(whole)}-", "bytes=9-1", "bytes=-0", "bytes=-"):
        assert get(path, headers={"Range": beyond}).status_code == 416, beyond
    assert admin_site.viewer.head(path).headers["content-length"] == str(len(whole))
    assert admin_site.nobody.get(path).status_code == 303
    assert get(f"/jobs/{transcript}/audio/1").status_code == 404


def test_no_path_of_a_result_leads_out_of_the_media_folder(admin_site: AdminSite, database: Database) -> None:
    root = admin_site.settings.media_root
    secret = root.parent / "secret.mp3"
    secret.write_bytes(b"secret")
    (root / "link.mp3").symlink_to(secret)
    (root / "folder").symlink_to(root.parent)
    (root / "inner.mp3").mkdir()
    for path in (
        str(secret),
        "../secret.mp3",
        "folder/secret.mp3",
        "link.mp3",
        "inner.mp3",
        "a\0b",
        ".",
        "",
        "x" * 5000,
    ):
        job = completed(database, "whisper_transcribe", TRANSCRIPT | {"source": {"path": path.replace("\0", "")}})
        answer = admin_site.operator.get(f"/jobs/{job}/audio/0")
        assert (answer.status_code, b"secret" in answer.content) == (404, False), path
        assert admin_site.operator.get(f"/jobs/{job}/transcript").status_code == 200


def test_a_file_that_is_no_audio_is_never_served_as_a_page(admin_site: AdminSite, database: Database) -> None:
    (admin_site.settings.media_root / "page.html").write_text("<script>alert(1)</script>")
    job = completed(database, "whisper_transcribe", TRANSCRIPT | {"source": {"path": "page.html"}})

    answer = admin_site.operator.get(f"/jobs/{job}/audio/0")

    assert answer.headers["content-type"] == "application/octet-stream"
