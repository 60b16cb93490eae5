"""New jobs by a form from the payload's schema: fields, errors at their place, picked files, once per form."""

import re
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from services.admin.pages.payload_form import fields_of
from services.admin.words import all_words
from services.openrouter.payload import AnalyzePayload
from services.research.payload import ClipPayload
from services.stats.payload import StatsPayload
from services.whisper.payload import WhisperPayload
from sidelinja_jobs.payload_schema import payload_schema
from tests.services.admin_jobs import form, said
from tests.services.admin_site import AdminSite, admin_site_with

SCHEMAS = {
    "whisper_transcribe": WhisperPayload,
    "openrouter_analyze": AnalyzePayload,
    "research_clip": ClipPayload,
    "stats_parse": StatsPayload,
}
HOSTILE = [
    "", "x", "0", "-1", "1e400", "9" * 400, "1.5", "null", "true", '"', "{", "[]", "{}", '[{"a": NaN}]', "[1, 2]",
    "../../etc/passwd", "/etc/passwd", "a\0b", "\ud7ff\ufffd", "‮abc", "<script>alert(1)</script>", "data:x,y",
    "A" * 3000, "9999-12-31T00:00", "2026-13-01", "'; drop table job_queue; --", "%00", "\r\nSet-Cookie: a=b",
    '{"a":' * 2000, "٣", "\u2028",
]  # fmt: skip


@pytest.fixture
def site(admin_site: AdminSite) -> AdminSite:
    """With the schemas that the four workers publish, and one that has a field of every kind."""
    for name, kind in SCHEMAS.items():
        schema = Jsonb(payload_schema(kind))
        admin_site.database.rows("update job_type set payload_schema = %s where name = %s", schema, name)
    every = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "on"],
        "properties": {
            "name": {"type": "string", "maxLength": 5, "description": "what it is called"},
            "count": {"type": "integer", "minimum": 1, "maximum": 2**63 - 1, "default": 3},
            "share": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
            "on": {"type": "boolean"},
            "kind": {"enum": ["a", "b"], "default": "a"},
            "names": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "rest": {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False},
            "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
    }
    admin_site.database.rows("update job_type set payload_schema = %s where name = 'test_job'", Jsonb(every))
    return admin_site


def newest(site: AdminSite) -> dict[str, Any]:
    return site.database.row("select * from job_queue order by created_at desc limit 1")


def test_every_kind_of_field_comes_into_the_payload_as_its_type(site: AdminSite) -> None:
    sent = form(**{"p.name": " Kari ", "p.count": 2**63 - 1, "p.share": "0,1000000000000000055", "p.on": "on",
                   "p.kind": "b", "p.names": "a\r\n\r\nb b", "p.rest": '{"x": 1}', "p.id": "0012",
                   "priority": "5", "max_attempts": "1", "unique_key": "k",
                   "scheduled_for": "2100-06-01T12:00"})  # fmt: skip

    answer = site.operator.post("/enqueue/test_job", data=sent)

    assert answer.status_code == 303, said(answer.text)
    job = newest(site)
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    text = site.database.value("select payload::text from job_queue")
    assert '"count": 9223372036854775807' in text
    assert '"share": 0.1000000000000000055' in text
    job["payload"].pop("count"), job["payload"].pop("share")
    assert job["payload"] == {
        "name": "Kari",
        "on": True,
        "kind": "b",
        "names": ["a", "b b"],
        "rest": {"x": 1},
        "id": "0012",
    }
    assert (job["priority"], job["max_attempts"], job["unique_key"]) == (5, 1, "k")
    assert job["scheduled_for"].isoformat() == "2100-06-01T10:00:00+00:00", "typed in the view's zone"


def test_fields_stand_as_in_the_workers_code(site: AdminSite) -> None:
    for name, kind in SCHEMAS.items():
        page = site.operator.get(f"/enqueue/{name}").text
        assert list(dict.fromkeys(re.findall(r'name="p\.(\w+)"', page))) == list(kind.__struct_encode_fields__), name


def test_what_is_said_of_a_field_is_said_in_both_languages(site: AdminSite) -> None:
    """In English as the worker's schema says it, so that a changed description asks for its translation."""
    said_of = {
        f"field.{name}.{item.name}": item.help
        for name, kind in SCHEMAS.items()
        for item in fields_of(payload_schema(kind)) or []
        if item.help
    }
    assert said_of == {key: word["en"] for key, word in all_words().items() if key.startswith("field.")}

    for language, words in (
        ("nb", "lydfilen, regnet fra MEDIA_ROOT"),
        ("en", "the audio file, relative to MEDIA_ROOT"),
    ):
        with admin_site_with(site.database, ADMIN_LANGUAGE=language) as other:
            assert words in other.operator.get("/enqueue/whisper_transcribe").text
    assert "what it is called" in site.operator.get("/enqueue/test_job").text, "a type that the view does not know"


def test_an_address_is_typed_on_one_line(site: AdminSite) -> None:
    assert re.search(r'<input id="p-source-5furl"', site.operator.get("/enqueue/research_clip").text)


def test_a_schema_whose_order_is_none_has_all_its_fields(site: AdminSite) -> None:
    for order in (["count", "gone", "name", "count"], "name", {"name": 1}, [1, None]):
        statement = "update job_type set payload_schema = payload_schema || %s where name = 'test_job'"
        site.database.rows(statement, Jsonb({"x-order": order}))
        page = site.operator.get("/enqueue/test_job").text
        assert len(set(re.findall(r'name="p\.(\w+)"', page))) == 8, order


def test_what_is_wrong_is_told_at_its_field_and_what_was_typed_stays(site: AdminSite) -> None:
    sent = form(**{"p.name": "too long", "p.count": "x", "p.names": "a\nb\nc", "p.rest": '{"y": 1}', "p.kind": "c",
                   "priority": "99999", "scheduled_for": "soon"})  # fmt: skip

    answer = site.operator.post("/enqueue/test_job", data=sent)

    assert answer.status_code == 422
    for name in ("p-name", "p-count", "p-names", "p-rest", "p-kind", "r-priority", "r-scheduled_for"):
        assert f'id="{name}-problem"' in answer.text, name
    assert 'value="too long"' in answer.text
    assert site.database.rows("select * from job_queue") == []


def test_a_form_that_is_sent_twice_makes_one_job(site: AdminSite) -> None:
    sent = form(**{"p.name": "a", "p.on": "on"})

    first, second = (site.operator.post("/enqueue/test_job", data=sent) for _ in range(2))

    assert first.headers["location"] == second.headers["location"]
    assert site.database.value("select count(*) from job_queue") == 1


def test_paths_are_picked_from_the_media_folder_and_stay_in_it(site: AdminSite, tmp_path: Path) -> None:
    root = site.settings.media_root
    (root / "serie").mkdir()
    (root / "serie" / "ep 1 <b>.mp3").write_bytes(b"x")
    (root / "note.txt").write_bytes(b"x")
    (tmp_path / "outside.mp3").write_bytes(b"x")
    (root / "link.mp3").symlink_to(tmp_path / "outside.mp3")

    page = site.operator.get("/enqueue/whisper_transcribe").text
    options = page.split("<datalist")[1].split("</datalist>")[0]
    assert "serie/ep 1 &lt;b&gt;.mp3" in options
    assert "note.txt" not in options
    assert "link.mp3" not in options
    for path in ("/etc/passwd", "../x.mp3", "link.mp3", "missing.mp3", "serie", "a/../../x"):
        answer = site.operator.post("/enqueue/whisper_transcribe", data=form(**{"p.path": path}))
        assert answer.status_code == 422, path
        assert 'id="p-path-problem"' in answer.text
    answer = site.operator.post("/enqueue/whisper_transcribe", data=form(**{"p.path": "serie/ep 1 <b>.mp3"}))
    assert answer.status_code == 303
    assert newest(site)["payload"] == {"path": "serie/ep 1 <b>.mp3"}


def test_a_type_without_a_schema_takes_its_payload_as_json(site: AdminSite) -> None:
    for text, status in (('{"n": 1e400}', 303), ("[1]", 422), ("", 422), ("{", 422)):
        answer = site.operator.post("/enqueue/other_job", data=form(**{"p.payload": text}))
        assert answer.status_code == status, text
    assert site.database.value("select (payload -> 'n')::text = (1e400::numeric)::text from job_queue")
    assert site.operator.get("/enqueue/no-such-type").status_code == 404


def test_no_field_of_any_form_makes_a_fault_of_ours(site: AdminSite) -> None:
    """Every field of every form, and fields that no form has, with what people and attackers type."""
    fields = {
        "/enqueue/whisper_transcribe": ["p.path", "p.tracks", "p.hotwords", "p.outputs", "p.episode_id", "p.force"],
        "/enqueue/openrouter_analyze": [
            "p.transcript_job_id",
            "p.segments",
            "p.duration",
            "p.schema_version",
            "p.hints",
        ],
        "/enqueue/stats_parse": ["p.reprocess", "p.source", "priority", "max_attempts", "scheduled_for", "unique_key"],
        "/enqueue/test_job": ["p.name", "p.count", "p.share", "p.kind", "p.id", "request_id"],
    }
    for path, names in fields.items():
        for value in HOSTILE:
            sent = form(**{name: value for name in names if name != "request_id"})
            answer = site.operator.post(path, data=sent)
            assert answer.status_code in (303, 422), (path, value[:40], answer.status_code)
        for value in HOSTILE[:8]:
            assert site.operator.post(path, data={"request_id": value}).status_code in (303, 400, 422), value


def test_the_form_works_in_a_browser(site: AdminSite, browser_page: Any) -> None:
    (site.settings.media_root / "a.mp3").write_bytes(b"x")
    page = browser_page
    page.goto("/enqueue")
    page.get_by_role("link", name="whisper_transcribe").click()
    page.get_by_label("path", exact=True).fill("b.mp3")
    page.get_by_role("button", name="Enqueue").click()
    page.get_by_text("there is no such file in the media folder").wait_for()
    page.get_by_label("path", exact=True).fill("a.mp3")
    page.get_by_label("analyze").check()
    page.get_by_role("button", name="Enqueue").dblclick()
    page.get_by_role("heading", name="whisper_transcribe").wait_for()

    assert site.database.rows("select payload from job_queue") == [{"payload": {"path": "a.mp3", "analyze": True}}]
