"""Shows: who may write and read them, which one an episode belongs to, and the commands around them."""

from typing import Any

import psycopg
import pytest

from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database
from tests.sessions import refused


def find(database: Database, name: str | None, path: str, role: str = "worker_whisper") -> Any:
    row = database.connect(role).execute("select name from find_show(%s, %s)", [name, path]).fetchone()
    return row and row[0]


def test_a_show_is_found_by_its_name_or_by_the_nearest_folder_above(database: Database, jobs: Jobs) -> None:
    jobs("shows", "set", "Alt", "--folder", "pod")
    jobs("shows", "set", "Musikk", "--folder", "./pod/musikk/")
    jobs("shows", "set", "Uten mappe")

    assert find(database, "Uten mappe", "pod/a.mp3") == "Uten mappe"
    assert find(database, None, "pod/a.mp3") == "Alt"
    assert find(database, None, "pod/musikk/2026/a.mp3") == "Musikk"
    assert find(database, None, "pod/musikken/a.mp3") == "Alt"
    assert find(database, None, "podden/a.mp3") is None
    assert find(database, "Ingen", "pod/a.mp3") is None
    assert find(database, None, "pod/a.mp3", role="worker_test") is None  # another worker has no use for them


def test_what_is_given_of_a_show_changes_and_the_rest_stays(database: Database, jobs: Jobs) -> None:
    jobs("shows", "set", "Lyd", "--hotword", "Kari", "--hotword", "Ola", "--language", "nn", "--folder", "lyd")

    changed = jobs("shows", "set", "Lyd", "--language", "", "--prompt", "Hei.", "--json").document
    listed = jobs("shows", "list", "--json").document

    assert listed == [changed]
    assert (changed["hotwords"], changed["language"], changed["prompt"]) == (["Kari", "Ola"], None, "Hei.")
    assert "Kari, Ola" in jobs("shows", "list").out
    assert jobs("shows", "remove", "Lyd").code == 0
    assert jobs("shows", "remove", "Lyd").code == ExitCode.NOT_FOUND
    assert "there is no show yet" in jobs("shows", "list").err


@pytest.mark.parametrize("folder", ["/lyd", "..", "../lyd", "."])
def test_a_folder_that_leads_elsewhere_is_refused(jobs: Jobs, folder: str) -> None:
    ended = jobs("shows", "set", "Lyd", "--folder", folder)

    assert ended.code == ExitCode.REFUSED, ended.err


def test_two_shows_cannot_have_one_folder(jobs: Jobs) -> None:
    jobs("shows", "set", "A", "--folder", "lyd")

    assert jobs("shows", "set", "B", "--folder", "lyd").code == ExitCode.REFUSED


def test_only_an_operator_writes_shows(database: Database, jobs: Jobs) -> None:
    assert jobs("shows", "set", "A", role="reader").code == ExitCode.NOT_ALLOWED
    with refused("42501"):
        database.connect("worker_whisper").execute("insert into show (name) values ('A')")
    with refused("42501"):
        database.connect("worker_whisper").execute("select * from show")


# ---------------------------------------------------------------- transcribe and retranscribe


def done(database: Database, path: str, status: str = "completed", **payload: Any) -> None:
    database.enqueue("whisper_transcribe", {"path": path, **payload}, status=status)


def enqueued(database: Database) -> list[tuple[Any, int]]:
    rows = database.rows(
        "select payload, priority from job_queue where status = 'pending' order by payload ->> 'path', id"
    )
    return [(row["payload"], row["priority"]) for row in rows]


def test_a_folder_is_transcribed_again_at_low_priority_once_and_only_when_confirmed(
    database: Database, jobs: Jobs
) -> None:
    database.rows("set timezone = 'UTC'")
    done(database, "lyd/a.mp3", language="nn", force=True)
    database.rows("update job_queue set completed_at = now() - interval '1 day'")
    done(database, "lyd/a.mp3", language="en", analyze=True, hotwords=["Kari"])
    database.rows("update job_queue set completed_at = now() where completed_at is null")
    done(database, "lyd/b.mp3", sha256="0" * 64)  # that of the file which lay there then
    done(database, "lydbok/c.mp3")
    done(database, "lyd/d.mp3", status="error")
    tracks = [{"path": "lyd/k.wav", "speaker": "Kari"}, {"path": "lyd/o.wav", "speaker": "Ola"}]
    digests = [{**track, "sha256": "0" * 64} for track in tracks]
    database.enqueue("whisper_transcribe", {"tracks": digests}, status="completed")

    dry = jobs("retranscribe", "./lyd/")
    assert dry.lines == ["lyd/a.mp3", "lyd/b.mp3", "lyd/k.wav"]
    assert "3 files would be transcribed again. Next: the same with --yes" in dry.err
    assert enqueued(database) == []

    assert jobs("retranscribe", "lyd", "--yes").lines == ["3 of 3 files enqueued"]
    again = [
        ({"path": "lyd/a.mp3", "language": "en", "hotwords": ["Kari"]}, -10),
        ({"path": "lyd/b.mp3"}, -10),
        ({"tracks": tracks}, -10),
    ]
    assert enqueued(database) == again
    assert jobs("retranscribe", "lyd", "--yes").lines == ["0 of 3 files enqueued, 3 waited already"]
    assert enqueued(database) == again


def test_a_show_is_transcribed_again_with_what_was_asked_for(database: Database, jobs: Jobs) -> None:
    jobs("shows", "set", "Lyd", "--folder", "lyd")
    done(database, "lyd/a.mp3", analyze=True)
    done(database, "andre/b.mp3", show="Lyd")
    done(database, "andre/c.mp3")

    ended = jobs("retranscribe", "--show", "Lyd", "--yes", "--analyze", "--force", "--priority", "3", "--json")

    assert ended.document == {"paths": ["andre/b.mp3", "lyd/a.mp3"], "enqueued": {"created": 2}}
    assert enqueued(database) == [
        ({"path": "andre/b.mp3", "show": "Lyd", "force": True}, 3),
        ({"path": "lyd/a.mp3", "analyze": True, "force": True}, 3),
    ]
    assert jobs("retranscribe", "--show", "Ingen").code == ExitCode.NOT_FOUND
    assert jobs("retranscribe").code == jobs("retranscribe", "lyd", "--show", "Lyd").code == ExitCode.REFUSED
    assert "nothing to do" in jobs("retranscribe", "tom").err
    assert len(jobs("retranscribe", ".").lines) == 3


def test_transcribe_is_a_short_enqueue(database: Database, jobs: Jobs) -> None:
    ended = jobs("transcribe", "lyd/a.mp3", "--language", "nn", "--hotword", "Kari", "--hotword", "Ola")

    job = database.row("select id, payload from job_queue")
    assert ended.out.strip() == str(job["id"])
    assert job["payload"] == {"path": "lyd/a.mp3", "language": "nn", "hotwords": ["Kari", "Ola"]}


def test_a_payload_that_is_no_object_disturbs_no_listing(database: Database, jobs: Jobs) -> None:
    for payload in ("text", 5, ["a"], {"path": None}, {"path": 7}):
        database.enqueue("whisper_transcribe", payload, status="completed")

    assert jobs("retranscribe", ".", "--yes").code == 0


def test_statements_are_what_postgresql_takes(database: Database) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        database.rows("insert into show (name, hotwords) values ('A', array[null::text])")
