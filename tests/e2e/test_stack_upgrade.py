"""The stack upgraded in place under load, as an operator does it, from the released state; then one release back.

Takes that state's tree from git's history and builds its images: with a warm cache all of it takes two minutes. What
is upgraded to is the last commit of this clone, not what was changed since.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.databases import ROOT
from tests.deploy.released import state
from tests.deploy.stack import JOB_TYPES
from tests.e2e.producer import Order, producing
from tests.e2e.running_stack import RunningStack
from tests.waiting import wait_until

pytestmark = [pytest.mark.containers, pytest.mark.long, pytest.mark.timeout(2400)]

PROJECT = "jobbko-upgrade"
OUTAGE_SECONDS = 30  # where the database's container is exchanged, too
CLIPS = Order("research_clip", 0.2, [{"mode": "clean_only", "text": f"Ferga går klokka {hour}."} for hour in range(24)])
UNFINISHED = "select count(*) from job_queue where job_type = 'research_clip' and status <> 'completed'"
# What an upgrade must not do to a job: complete it twice, charge an attempt, lose a run.
ODD = """
select 'twice', job_id::text from job_event where new_status = 'completed' group by job_id having count(*) > 1
union all select 'attempts', id::text from job_queue where attempts > 0
union all select outcome, job_id::text from job_attempt where charged or outcome <> 'released'
"""


class Checkout(RunningStack):
    """The stack of a clone of its own, which is moved from one commit to another while it runs."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.environ |= {"COMPOSE_PROJECT_NAME": PROJECT}

    def run(self, *command: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        return super().run("env", "-C", str(self.folder), *command, **{"timeout": 1500} | options)

    def move_to(self, commit: str, version: str) -> None:
        self.run("git", "checkout", "--quiet", commit)
        self.environ["JOBBKO_VERSION"] = version

    def completed_by(self, hosts: set[str]) -> int:
        """Jobs that these containers completed."""
        workers = "select split_part(worker_id, ':', 1) from job_queue where status = 'completed'"
        return sum(host in hosts for host in self.sql(workers).split())

    def hosts(self) -> set[str]:
        return {container[:12] for service in JOB_TYPES for container in self.containers(service)}

    def wait_for_more(self, hosts: set[str]) -> None:
        before = self.completed_by(hosts)
        wait_until(lambda: self.completed_by(hosts) >= before + 30, 120, every=1, what="30 more jobs")


def head() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, tmp_path / "jobbko"], check=True)
    checkout = Checkout(tmp_path / "jobbko")
    if checkout.run("git", "cat-file", "-e", f"{state()}^{{commit}}", check=False).returncode:
        pytest.skip(f"the history of this clone has no {state()}. Next: git fetch --unshallow")
    checkout.move_to(head(), "after")
    try:
        checkout.remove()  # what a killed run left
        yield checkout
        print(checkout.compose("logs", "--no-color", "--tail", "40"))  # pytest shows it when a test failed
    finally:
        checkout.remove()


def test_upgrade_under_load_and_back(checkout: Checkout) -> None:
    stack = checkout
    stack.move_to(state(), "before")
    stack.make("up", "SCALE=2")
    old_hosts, old_schema = stack.hosts(), stack.sql("select max(version) from schema_migrations")
    with producing(stack, [CLIPS]) as producer:
        episodes = [stack.enqueue_sample(f"{name}.mp3") for name in ("first", "second", "third")]
        stack.wait_for_finished_unit(episodes[0])
        stack.move_to(head(), "after")
        stack.compose("build", "--quiet")
        migrated = stack.run(
            "docker", "compose", "--env-file", "/dev/null", "run", "--rm", "-T", "--no-deps", "migrate"
        )
        new_schema = stack.sql("select max(version) from schema_migrations")
        stack.wait_for_more(old_hosts)  # beside the new schema
        stack.make("up", "SCALE=2")
        new_hosts = stack.hosts()
        stack.wait_for_more(new_hosts)
        producer.stop()
        asked, refused = producer.asked(), producer.refused()
    done = [stack.wait_for(job_id, "completed", 300) for job_id in episodes]
    outage = refused[-1] - refused[0] if refused else 0.0
    print(f"{len(asked)} clips asked, refused for {outage:.0f} s; {stack.completed_by(old_hosts)} jobs by old images")

    assert migrated.stdout.count("migration applied") == int(new_schema) - int(old_schema)
    assert not old_hosts & new_hosts
    assert {stack.inspect(host)["Config"]["Image"].rpartition(":")[2] for host in new_hosts} == {"after"}
    assert len({job["result"]["text"] for job in done}) == 1
    wait_until(lambda: stack.sql(UNFINISHED) == "0", 120, every=1, what="all clips to complete")
    assert asked.keys() <= set(stack.sql("select id from job_queue where status = 'completed'").split())
    assert outage < OUTAGE_SECONDS
    assert stack.sql(ODD) == ""
    goes_back(stack, is_newer=new_schema != old_schema)


def goes_back(stack: Checkout, *, is_newer: bool) -> None:
    """The old images and the old tree, with the database as it is now."""
    stack.move_to(state(), "before")
    stack.compose("up", "--detach", "--no-deps", "secrets")
    stack.compose("up", "--detach", "--wait")
    told = stack.compose("logs", "--no-color", "migrate")
    stack.wait_for(stack.enqueue_sample("back.mp3"), "completed")

    assert ("database is newer than these files" in told) == is_newer
    assert {stack.inspect(host)["Config"]["Image"].rpartition(":")[2] for host in stack.hosts()} == {"before"}
