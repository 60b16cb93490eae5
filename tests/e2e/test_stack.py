"""The stack in real containers, as its users meet it: add, enqueue, analyse, clip, scale, kill, stop."""

import os
import signal
from pathlib import Path

import pytest

from tests.deploy.stack import JOB_TYPES
from tests.e2e.running_stack import RunningStack
from tests.openrouter_standin import StandIn
from tests.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

GRACE_SECONDS = 30  # of whisper in compose.yaml


def test_mp3_becomes_a_transcript_beside_the_audio(stack: RunningStack) -> None:
    """Put into the media volume with `make add`, enqueued through the service `jobs`, done by a real model."""
    assert "Next: docker compose run --rm jobs enqueue whisper_transcribe path=folder/third.mp3" in stack.add_sample(
        "folder/third.mp3"
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
    stack.make("key", input="\n")  # what follows has no provider

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
    try:
        stack.compose("up", "--detach", "--no-deps", "--wait", "stats")
        job_id = stack.compose("run", "--rm", "-T", "jobs", "stats", "run").partition(":")[0]
        stack.wait_for(job_id, "completed")
        (day,) = stack.jobs("stats", "days")
    finally:
        del stack.environ["CADDY_LOG_DIR"]
        stack.compose("up", "--detach", "--no-deps", "stats")

    assert clip == "# Ferga går."
    assert (day["downloads"], day["listeners"]) == (14, 12)  # no lengths are known: whole files alone count


def test_two_jobs_run_at_once_on_two_workers(two_workers: RunningStack) -> None:
    jobs = [two_workers.enqueue_sample(name) for name in ("first.mp3", "second.mp3")]
    running = "select count(distinct worker_id) from job_queue where status = 'running'"
    wait_until(lambda: two_workers.sql(running) == "2", 30, every=0.1, what="both to run at once")
    for job in jobs:  # nobody needs their text
        two_workers.sql(f"select cancel_job('{job}', 'seen')")
        assert two_workers.wait_for(job, "error")["error_class"] == "cancelled"


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
    job_id = stack.enqueue_sample("killed.mp3")
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
    job_id = stack.enqueue_sample("stopped.mp3")
    holder = stack.wait_for_finished_unit(job_id)
    seconds = stack.timed("docker", "stop", holder)
    state = stack.inspect(holder)["State"]
    job = stack.wait_for(job_id, "completed")

    assert seconds < GRACE_SECONDS / 3
    assert state["ExitCode"] == 0
    assert job["attempts"] == 0
    assert job["result"]["text"] == transcript
    assert stack.sql(f"select outcome, charged from job_attempt where job_id = '{job_id}'") == "released|f"
