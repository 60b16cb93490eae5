"""The stack in real containers, as an operator meets it: up, add, enqueue, scale, kill, stop, down and up again.

One stack serves all tests here; each leaves two idle workers or makes them itself. Its images are built from the tree,
its data is thrown away before and after.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import ROOT
from tests.deploy.stack import JOB_TYPES
from tests.e2e.running_stack import PROJECT, RunningStack, alone_on_this_machine
from tests.openrouter_standin import StandIn
from tests.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

SAMPLE = ROOT / "demo" / "sample.mp3"
WAITING_JOB = "insert into job_queue (job_type, payload) values ('nobodys', '{}')"
GRACE_SECONDS = 30  # of whisper in compose.yaml


@pytest.fixture(scope="module")
def stack() -> Iterator[RunningStack]:
    stack = RunningStack()
    with alone_on_this_machine():
        stack.remove()  # what a killed run left
        try:
            stack.compose("build", "--quiet")
            stack.up(workers=2)
            stack.use_short_lease()
            yield stack
            print(stack.compose("logs", "--no-color", "--tail", "60"))  # pytest shows it when a test failed
        finally:
            stack.remove()


@pytest.fixture(scope="module")
def transcript(stack: RunningStack) -> str:
    """The text of the sample from an uninterrupted run."""
    return str(stack.wait_for(enqueue(stack, "reference.mp3"), "completed")["result"]["text"])


@pytest.fixture
def two_workers(stack: RunningStack) -> RunningStack:
    stack.start_missing_workers()
    return stack


def add(stack: RunningStack, name: str) -> str:
    return stack.make("add", f"FILE={SAMPLE}", f"AS={name}")


def enqueue(stack: RunningStack, name: str) -> str:
    """The sample under a name of its own, since a file that has its transcript is not transcribed again."""
    add(stack, name)
    return stack.enqueue(name)


def test_mp3_becomes_a_transcript_beside_the_audio(stack: RunningStack) -> None:
    """Put into the media volume with `make add`, enqueued through the service `jobs`, done by a real model."""
    assert "Next: docker compose run --rm jobs enqueue whisper_transcribe path=folder/third.mp3" in add(
        stack, "folder/third.mp3"
    )
    job = stack.wait_for(stack.enqueue("folder/third.mp3"), "completed")
    listed = stack.compose("run", "--rm", "-T", "--entrypoint", "cat", "add", "/media/folder/third.en.vtt")

    assert "respectable" in job["result"]["text"]
    assert job["result"]["outputs"]["vtt"] == "folder/third.en.vtt"
    assert listed.startswith("WEBVTT")
    assert "respectable" in listed
    assert job["attempts"] == 0


def test_transcript_is_analyzed_as_soon_as_there_is_a_key(stack: RunningStack, transcript: str) -> None:
    """The provider's stand-in answers on this machine, which that worker alone reaches, by the network `egress`."""
    with StandIn(host=stack.host_address("egress")) as standin:
        stack.environ |= {"OPENROUTER_BASE_URL": standin.base_url, "OPENROUTER_PROFILE": "openrouter"}
        stack.compose("up", "--detach", "--no-deps", "--wait", "openrouter")
        paused = wait_until(lambda: stack.sql("select pause_reason from job_type where paused_at is not null"), 30)
        job_id = stack.enqueue("reference.mp3", "analyze=true")
        stack.wait_for(job_id, "completed")
        analysis = stack.sql(f"select id, status, attempts from job_queue where parent_id = '{job_id}'").split("|")

        told = stack.make("key", input=f"{standin.key}\n")
        job = stack.wait_for(analysis[0], "completed")
        logs = stack.compose("logs", "--no-color", "openrouter")

    assert "OPENROUTER_API_KEY" in paused
    assert analysis[1:] == ["pending", "0"]
    assert "stored for worker_openrouter, worker_research" in told
    assert job["result"]["provenance"]["model_used"] == "google/gemini-2.5-flash"
    assert standin.billed_count == 1
    assert standin.key not in logs + told


def test_paste_becomes_markdown_and_a_log_statistics(stack: RunningStack, samples: Path) -> None:
    clip = stack.compose(
        "run", "--rm", "-T", "jobs", "clip", input="Les også: Noe annet\n\nFerga går.\nDel på Facebook\n"
    )
    stack.environ["CADDY_LOG_DIR"] = str(samples / "caddy" / "2.11.7")
    stack.compose("up", "--detach", "--no-deps", "--wait", "stats")
    job_id = stack.compose("run", "--rm", "-T", "jobs", "stats", "run").partition(":")[0]
    stack.wait_for(job_id, "completed")
    (day,) = stack.jobs("stats", "days")

    assert clip == "# Ferga går."
    assert (day["downloads"], day["listeners"]) == (14, 12)  # no lengths are known: whole files alone count


def test_two_jobs_run_at_once_on_two_workers(two_workers: RunningStack) -> None:
    for name in ("first.mp3", "second.mp3"):
        add(two_workers, name)
    jobs = [two_workers.enqueue(name) for name in ("first.mp3", "second.mp3")]
    running = "select count(distinct worker_id) from job_queue where status = 'running'"
    wait_until(lambda: two_workers.sql(running) == "2", 30, every=0.1, what="both to run at once")
    workers = {two_workers.wait_for(job, "completed")["worker_id"] for job in jobs}

    assert len(workers) == 2


def test_prometheus_sees_each_worker_with_its_own_metrics(two_workers: RunningStack) -> None:
    """Found by the name that all workers share, however many there are."""
    hosts = {container[:12] for service in JOB_TYPES for container in two_workers.containers(service)}
    assert len(hosts) == len(JOB_TYPES) + 1

    def seen() -> bool:
        live = set(two_workers.sql("select worker_id from worker where idle").split())
        infos = two_workers.prometheus('jobqueue_worker_info * on (instance) group_left () (up{job="workers"} == 1)')
        return {info["metric"]["worker_id"] for info in infos} == {
            worker for worker in live if worker.partition(":")[0] in hosts
        }

    wait_until(seen, 60, every=1, what="every worker, up, in Prometheus")
    instances = {up["metric"]["instance"] for up in two_workers.prometheus('up{job="workers"} == 1')}
    assert len(instances) == len(hosts)


def test_killed_worker_loses_nothing(two_workers: RunningStack, transcript: str) -> None:
    """The other one goes on from the last checkpoint, to the same text; the death stands in the row's history."""
    stack = two_workers
    job_id = enqueue(stack, "killed.mp3")
    holder = stack.wait_for_finished_unit(job_id)
    stack.run("docker", "kill", "--signal", "KILL", holder)
    job = stack.wait_for(job_id, "completed")

    assert not job["worker_id"].startswith(holder)
    assert job["result"]["text"] == transcript
    assert job["result"]["timing"]["resumed_units"] >= 1
    assert stack.sql(f"select outcome from job_attempt where job_id = '{job_id}'") == "lost"


def test_worker_that_dies_by_itself_comes_back(two_workers: RunningStack) -> None:
    """The process is killed, not the container: as when memory runs out."""
    container = two_workers.containers("whisper")[0]
    os.kill(two_workers.inspect(container)["State"]["Pid"], signal.SIGKILL)
    wait_until(lambda: two_workers.inspect(container)["RestartCount"] == 1, 30, what="the container to restart")

    two_workers.wait_for_workers(2)
    wait_until(lambda: two_workers.inspect(container)["State"]["Health"]["Status"] == "healthy", 60, what="health")


def test_stopped_worker_gives_its_job_back_within_the_grace(two_workers: RunningStack, transcript: str) -> None:
    """SIGTERM: released at once, no attempt charged, and the other one finishes."""
    stack = two_workers
    job_id = enqueue(stack, "stopped.mp3")
    holder = stack.wait_for_finished_unit(job_id)
    seconds = stack.timed("docker", "stop", holder)
    state = stack.inspect(holder)["State"]
    job = stack.wait_for(job_id, "completed")

    assert seconds < GRACE_SECONDS / 3
    assert state["ExitCode"] == 0
    assert job["attempts"] == 0
    assert job["result"]["text"] == transcript
    assert stack.sql(f"select outcome, charged from job_attempt where job_id = '{job_id}'") == "released|f"


def test_worker_is_confined(two_workers: RunningStack) -> None:
    """Looked at from inside: no root, no capability, nothing to write to, no way out, one secret."""
    container = two_workers.containers("whisper")[0]

    def inside(script: str) -> str:
        return two_workers.run("docker", "exec", container, "sh", "-c", script, check=False).stdout.strip()

    assert inside("id -u; id -g") == "10001\n10001"
    assert inside("grep CapEff /proc/1/status | cut -f2") == "0" * 16
    assert inside("grep NoNewPrivs /proc/1/status | cut -f2") == "1"
    assert inside("for f in / /app /opt /usr /models /run/secrets; do touch $f/x 2>/dev/null && echo $f; done") == ""
    assert inside("ls /run/secrets") == "password"
    assert inside("awk '$2 == \"00000000\"' /proc/net/route") == "", "no default route"
    assert two_workers.inspect(container)["HostConfig"]["Memory"] == 3 << 30


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

    assert stack.make("password") not in ("", before)
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


def test_up_again_changes_nothing_and_down_keeps_the_data(two_workers: RunningStack) -> None:
    """`up` on a running stack, then `down` and `up`: same containers, then same rows."""
    stack = two_workers
    before = [stack.containers(name) for name in ("db", "prometheus", "whisper")]
    stack.up(workers=2)
    after = [stack.containers(name) for name in ("db", "prometheus", "whisper")]
    stack.sql(WAITING_JOB)
    stack.compose("down", "--timeout", "10")
    stack.up(workers=1)

    assert after == before
    assert stack.jobs("list", "--type", "nobodys")
    assert len(stack.containers("whisper")) == 1
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
        stack.up(workers=1)
        job = stack.wait_for(stack.enqueue("mine.mp3"), "completed")
    finally:
        for name in ("MEDIA_DIR", "MEDIA_UID", "MEDIA_GID"):
            del stack.environ[name]

    assert job["result"]["text"] == transcript
    assert (tmp_path / "mine.en.vtt").stat().st_uid == owner


def test_lost_secrets_are_told_and_healed(stack: RunningStack) -> None:
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
