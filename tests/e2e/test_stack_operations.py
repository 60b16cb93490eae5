"""The stack in real containers, as its operator meets it: restarted, moved, without its secrets."""

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.running_stack import PROJECT, SAMPLE, RunningStack
from tests.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

WAITING_JOB = "insert into job_queue (job_type, payload) values ('nobodys', '{}')"


def test_database_notices_rotten_pages_and_sorts_the_same_for_ever(stack: RunningStack) -> None:
    assert stack.sql("show data_checksums") == "on"
    provider = "select datlocprovider, datlocale from pg_database where datname = current_database()"
    assert stack.sql(provider) == "b|C.UTF-8"


def test_database_holds_its_own_secret_and_no_more(stack: RunningStack) -> None:
    assert stack.compose("exec", "-T", "db", "ls", "/run/secrets") == "superuser"
    (container,) = stack.containers("db")
    assert stack.inspect(container)["HostConfig"]["PortBindings"] == {}


def test_password_opens_the_database_for_its_role(stack: RunningStack) -> None:
    """`make password` shows it, `make psql` uses it; a new one holds at once."""
    before = stack.make("password", "ROLE=jobbko_operator")
    stack.make("new-password", "ROLE=jobbko_operator")

    assert stack.make("password", "ROLE=jobbko_operator") not in ("", before)
    for role in ("jobbko_operator", "worker_whisper", "postgres"):
        assert role in stack.make("psql", f"ROLE={role}", "SQL=select session_user")
    assert stack.jobs("types")


def test_media_folder_that_cannot_be_read_is_told_at_the_start(stack: RunningStack, closed_folder: str) -> None:
    """The last line of the log names the path and the user, and the exit code says: configuration."""
    worker = f"{PROJECT}-refused"
    try:
        refused = stack.run(
            "docker", "compose", "--env-file", "/dev/null", "run", "--name", worker, "--no-deps", "-T", "whisper",
            check=False, timeout=30, env={**stack.environ, "MEDIA_DIR": closed_folder},
        )  # fmt: skip
    finally:
        stack.run("docker", "rm", "--force", worker)

    assert refused.returncode == 78
    assert "/media" in refused.stdout
    assert "10001" in refused.stdout


@pytest.fixture
def closed_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A host folder that only its owner may enter."""
    folder = tmp_path_factory.mktemp("media")
    folder.chmod(0o700)
    return str(folder)


def test_up_again_changes_nothing(two_workers: RunningStack) -> None:
    stack = two_workers
    before = [stack.containers(name) for name in ("db", "prometheus", "whisper")]
    stack.up(workers=2)

    assert [stack.containers(name) for name in ("db", "prometheus", "whisper")] == before
    for one_shot in ("secrets", "migrate", "model"):
        (container,) = stack.containers(one_shot, every=True)
        assert stack.inspect(container)["State"]["ExitCode"] == 0


def test_host_folder_is_worked_in_as_its_owner(stack: RunningStack, tmp_path: Path, transcript: str) -> None:
    """MEDIA_DIR with MEDIA_UID and MEDIA_GID: the transcript appears beside the file, owned by the same user."""
    shutil.copy(SAMPLE, tmp_path / "mine.mp3")
    owner = os.getuid() or 1000
    if os.getuid() == 0:
        for path in (tmp_path, tmp_path / "mine.mp3"):
            os.chown(path, owner, owner)
    tmp_path.chmod(0o700)
    stack.environ |= {"MEDIA_DIR": str(tmp_path), "MEDIA_UID": str(owner), "MEDIA_GID": str(owner)}
    try:
        stack.compose("up", "--detach", "--no-deps", "--wait", "--scale", "whisper=1", "whisper")
        job = stack.wait_for(stack.enqueue("mine.mp3"), "completed")
    finally:
        for name in ("MEDIA_DIR", "MEDIA_UID", "MEDIA_GID"):
            del stack.environ[name]
        stack.compose("up", "--detach", "--no-deps", "--wait", "--scale", "whisper=1", "whisper")  # on the volume again

    assert job["result"]["text"] == transcript
    assert (tmp_path / "mine.en.vtt").stat().st_uid == owner


def test_audio_that_comes_into_the_watched_folder_becomes_a_job(two_workers: RunningStack) -> None:
    """WATCH_FOLDER makes the container; without it there is none, and none is left."""
    stack = two_workers
    settings = {"WATCH_FOLDER": "inbox", "WATCH_SETTLE_SECONDS": "1", "WATCH_EVERY_SECONDS": "1"}
    assert stack.containers("watch", every=True) == []
    stack.environ |= settings
    try:
        stack.compose("up", "--detach", "--no-deps", "--wait", "watch")
        stack.add_sample("inbox/ny episode.mp3")
        find = "select id from job_queue where payload->>'path' = 'inbox/ny episode.mp3'"
        job_id = wait_until(lambda: stack.sql(find), 30, every=0.5, what="the job of the new file")
    finally:
        for name in settings:
            del stack.environ[name]
        stack.compose("up", "--detach", "--no-deps", "watch")

    assert stack.wait_for(job_id, "completed")["result"]["outputs"]["vtt"] == "inbox/ny episode.no.vtt"
    assert stack.containers("watch", every=True) == []


def test_down_keeps_the_data_and_lost_secrets_are_told_and_healed(stack: RunningStack) -> None:
    """The volume of the secrets is gone, the database's is not: one command lets everything in again."""
    stack.sql(WAITING_JOB)
    stack.compose("down", "--timeout", "10")
    stack.run("docker", "volume", "rm", f"{PROJECT}_secrets")
    stack.compose("up", "--detach", "migrate", check=False)
    (migrate,) = stack.containers("migrate", every=True)
    wait_until(lambda: stack.inspect(migrate)["State"]["Status"] == "exited", 60, what="migrate to end")
    told = stack.run("docker", "logs", migrate).stderr

    assert stack.inspect(migrate)["State"]["ExitCode"] == 69
    assert "No data is lost. Next: `make reset-password`" in told
    stack.make("reset-password")
    stack.up(workers=1)
    assert stack.jobs("list", "--type", "nobodys")
