"""What leaves: the document, its sentences, its signature, the arguments of the reducer."""

import base64
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from services.admin.delivery.events import LANGUAGES, LONGEST_EXTRA, _texts, cloud_event, data
from services.admin.delivery.signature import signing_key
from services.admin.delivery.spacetimedb import SpacetimeDB
from services.admin.delivery.webhook import Webhook
from services.admin.words import all_words
from sidelinja_jobs.job_type import JobType
from tests.databases import ROOT
from tests.unit.delivery_events import EPOCH, JOB, event

OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 64).decode()


def test_the_document_is_a_cloud_event_with_thin_data() -> None:
    document = json.loads(cloud_event(event(), "/jobbko", EPOCH))

    assert document == {
        "specversion": "1.0",
        "id": "42",
        "source": f"/jobbko/{EPOCH}",
        "type": "no.sidelinja.job.running",
        "subject": str(JOB),
        "time": "2026-11-29T21:45:01.250000Z",
        "datacontenttype": "application/json",
        "data": {
            "event_id": 42, "job_id": str(JOB), "job_type": "whisper_transcribe", "old_status": "retry",
            "new_status": "running", "attempt": 2, "max_attempts": 3, "error_class": None, "error": None,
            "text": {"nb": "Transkriberer … 2/3 forsøk", "en": "Transcribing … attempt 2/3"},
        },
    }  # fmt: skip


def test_the_required_attributes_are_what_cloudevents_demands() -> None:
    """Names of lower-case letters and digits; required ones are non-empty strings, time is RFC 3339."""
    document = json.loads(cloud_event(event(job_type="x", at=datetime(2026, 1, 1, tzinfo=UTC)), "/jobbko", EPOCH))

    assert all(re.fullmatch("[a-z0-9]+", name) for name in document)
    assert all(isinstance(document[name], str) and document[name] for name in ("id", "source", "specversion", "type"))
    assert document["time"] == "2026-01-01T00:00:00Z"


def test_the_specifications_own_library_takes_the_signature_with_the_old_and_the_new_secret() -> None:
    outgoing = Webhook("https://example.net/", [NEW, OLD], "/jobbko").request(event(), EPOCH)

    for secret in (OLD, NEW):
        Verifier(secret).verify(outgoing.body, outgoing.headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(NEW).verify(outgoing.body + b" ", outgoing.headers)
    with pytest.raises(WebhookVerificationError):
        Verifier("whsec_" + base64.b64encode(b"x" * 32).decode()).verify(outgoing.body, outgoing.headers)
    assert "." not in outgoing.headers["webhook-id"]


def test_the_id_of_a_message_stays_the_same_at_every_try() -> None:
    sink = Webhook("https://example.net/", [NEW], "/jobbko")
    first, again = sink.request(event(), EPOCH), sink.request(event(tries=3), EPOCH)

    assert first.headers["webhook-id"] == again.headers["webhook-id"]
    assert first.body == again.body


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_!!!!", "whsec_" + "A" * 100]
)
def test_a_secret_that_is_none_is_refused_without_being_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match="expected whsec_ and base64 of 24 to 64 bytes") as caught:
        signing_key(secret)

    assert not secret or secret not in str(caught.value).replace("expected whsec_", "")


@pytest.mark.parametrize(
    ("changes", "nb", "en"),
    [
        ({"new_status": "pending", "attempts": 0}, "Transkribering: i kø", "Transcription: queued"),
        ({"new_status": "completed"}, "Transkribering: ferdig", "Transcription: done"),
        ({"new_status": "retry"}, "Transkribering: prøver igjen, 1/3 forsøk brukt",
         "Transcription: will try again, 1/3 attempts used"),
        ({"new_status": "error", "attempts": 3}, "Transkribering: feilet, 3/3 forsøk brukt",
         "Transcription: failed, 3/3 attempts used"),
        ({"new_status": "error", "error_class": "cancelled"}, "Transkribering: avbrutt", "Transcription: cancelled"),
        ({"job_type": "brew_{coffee}"}, "Kjører brew_{coffee} … 2/3 forsøk", "Running brew_{coffee} … attempt 2/3"),
        ({"max_attempts": None}, "Transkriberer … 2/? forsøk", "Transcribing … attempt 2/?"),
    ],
)  # fmt: skip
def test_an_event_says_in_two_languages_what_happens(changes: dict[str, Any], nb: str, en: str) -> None:
    assert data(event(**changes))["text"] == {"nb": nb, "en": en}


def test_every_job_type_of_this_system_has_its_words() -> None:
    for job_type in JobType.load_all(ROOT / "services"):
        text = data(event(job_type=job_type.name))["text"]
        assert job_type.name not in text["nb"] + text["en"]


def test_of_a_failure_only_the_first_line_leaves_and_no_secret_in_it() -> None:
    message = "no answer from https://kari:hemmelig@example.net/ with password=abc123456\nTraceback: more\x00"

    facts = data(event(new_status="retry", error_class="OSError", error_msg=message))

    assert facts["error"].startswith("no answer from https://kari:")
    assert "hemmelig" not in facts["error"]
    assert "Traceback" not in facts["error"]
    assert len(data(event(new_status="retry", error_msg="x" * 9000))["error"]) == 500


def test_payload_and_result_are_redacted_and_left_out_where_they_are_long() -> None:
    told = event(payload='{"path": "a.mp3", "api_key": "sk-123"}', result='"' + "x" * LONGEST_EXTRA + '"')

    facts = json.loads(cloud_event(told, "/jobbko", EPOCH))["data"]
    assert facts["payload"]["path"] == "a.mp3"
    assert "sk-123" not in json.dumps(facts)
    assert "result" not in facts
    assert facts["result_bytes"] == LONGEST_EXTRA + 2


@pytest.mark.parametrize("payload", ["1e400", "[" * 5000 + "]" * 5000, '{"n": 123456789012345678901234567890.5}'])
def test_a_payload_that_python_cannot_hold_leaves_as_it_is(payload: str) -> None:
    assert payload.encode() in cloud_event(event(payload=payload), "/jobbko", EPOCH)


def test_characters_that_no_receiver_could_read_do_not_stop_an_event() -> None:
    json.loads(cloud_event(event(job_type="a\x01b", error_msg="\x02", new_status="error"), "/jobbko", EPOCH))


def test_the_reducer_is_called_with_these_very_bytes() -> None:
    """The golden file is what the example module takes: a change of one is a change of the other."""
    sink = SpacetimeDB("https://stdb.example/", "jobbko", "job_event", "token-4711")
    failed = event(new_status="error", error_class="OSError", error_msg="disk full", attempts=3, old_status=None)
    lines = [sink.request(one, EPOCH).body.decode() for one in (event(), failed)]
    outgoing = sink.request(event(), EPOCH)

    golden = Path(__file__).with_name("spacetimedb_calls.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines == golden
    assert outgoing.url == "https://stdb.example/v1/database/jobbko/call/job_event"
    assert outgoing.headers == {"Content-Type": "application/json", "Authorization": "Bearer token-4711"}
    assert "4711" not in repr(outgoing) + repr(sink)


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_and_events_call_the_work_of_a_type_by_the_same_words(language: str) -> None:
    told = {name: doing for name, (_, doing) in _texts()[language]["types"].items()}

    assert told == {name: all_words()[f"running.{name}"][language] for name in told}
