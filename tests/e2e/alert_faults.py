"""What each alert is about, made to happen in the running stack. Leaving a fault's context takes the cause away.

Nothing is pretended but in two places, which say so: money is not really spent, and the disk's limit is moved to where
a large file really crosses it.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from tests.e2e.alert_watch import AlertWatch
from tests.e2e.by_hand import cancel, insert, samples, session, started
from tests.e2e.delivery_faults import UNWORKED, gone_receiver, late_receiver
from tests.e2e.running_stack import RunningStack
from tests.waiting import wait_until

WORKERS = ("whisper", "openrouter", "research", "stats")
WHISPER = {"job_type": "whisper_transcribe"}
SINK = {"sink": "webhook"}
RUNNING = "select count(*) from job_queue where status = 'running' and job_type = 'whisper_transcribe'"
GIGABYTE = 1 << 30
# Opens and holds as many connections as it is told to, until its input ends.
CROWD = """
import sys, psycopg
password = open("/run/secrets/password").read().strip()
dsn = "host=db dbname=jobbko user=jobbko_operator"
held = [psycopg.connect(dsn, password=password) for _ in range(int(sys.argv[1]))]
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def unworked_type(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    insert(watch.stack, UNWORKED, "{}")
    try:
        yield
    finally:
        cancel(watch.stack, UNWORKED)


@contextmanager
def frozen_worker(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    (container,) = watch.stack.containers("research")
    watch.stack.run("docker", "pause", container)
    try:
        yield
    finally:
        watch.stack.run("docker", "unpause", container)


@contextmanager
def failing_jobs(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    for _ in range(8):
        insert(watch.stack, "whisper_transcribe", '{"path": 1}')
    yield


@contextmanager
def killed_workers(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """Three of four workers at once, each in the middle of a job; the fourth finds that out."""
    stack = watch.stack
    stack.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "--scale", "whisper=4", "whisper")
    after.callback(stack.start_missing_workers)
    stack.wait_for_workers(4)
    jobs = samples(stack, 4, "lost")
    wait_until(lambda: stack.sql(RUNNING) == "4", 60, every=0.1, what="four running jobs")
    stack.run("docker", "kill", "--signal", "KILL", *stack.containers("whisper")[:3])
    yield
    for job in jobs:
        stack.wait_for(job, "completed")


@contextmanager
def dead_workers(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """All of them, one in the middle of a job; then somebody adds a schedule."""
    stack = watch.stack
    (job,) = samples(stack, 1, "left")
    wait_until(lambda: stack.sql(RUNNING) == "1", 60, every=0.1, what="a running job")
    stack.run("docker", "kill", "--signal", "KILL", *(one for name in WORKERS for one in stack.containers(name)))
    stack.sql("insert into job_schedule (name, job_type, every) values ('new', 'stats_parse', '1 day')")
    after.callback(stack.sql, "delete from job_queue where unique_key = 'schedule:new'")
    after.callback(stack.sql, "delete from job_schedule where name = 'new'")
    try:
        yield
    finally:
        stack.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "--scale", "whisper=2", *WORKERS)
    stack.wait_for_workers(2)
    stack.wait_for(job, "completed")


@contextmanager
def hung_engines(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """Both workers are alive and say so, and neither gets on with its job."""
    stack = watch.stack
    jobs = samples(stack, 3, "hung")
    engines = wait_until(lambda: found if len(found := children(stack)) == 2 else [], 60, what="two engines")
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in engines:
            os.kill(pid, signal.SIGCONT)
    for job in jobs:
        stack.wait_for(job, "completed")


def children(stack: RunningStack) -> list[int]:
    """The processes that transcribe, as this machine numbers them."""
    listed = [stack.run("docker", "top", one, "-eo", "pid,args").stdout for one in stack.containers("whisper")]
    return [int(line.split()[0]) for lines in listed for line in lines.splitlines() if "child_server" in line]


@contextmanager
def paused_type(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    stack = watch.stack
    stack.compose("run", "--rm", "-T", "jobs", "pause", "research_clip", "--reason", "a test")
    try:
        job = insert(stack, "research_clip", '{"text": "Ferga går."}')
        yield
    finally:
        stack.compose("run", "--rm", "-T", "jobs", "resume", "research_clip")
    stack.wait_for(job, "completed")


@contextmanager
def overdue_schedule(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """Its runs are queued, and nobody works them."""
    stack = watch.stack
    stack.sql(f"insert into job_schedule (name, job_type, every) values ('late', '{UNWORKED}_too', '1 second')")
    try:
        yield
    finally:
        stack.sql("delete from job_schedule where name = 'late'")
        cancel(stack, f"{UNWORKED}_too")


@contextmanager
def spent_budget(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """A row of the ledger in place of a call: what is read is the row, whoever wrote it."""
    stack = watch.stack
    stack.sql(
        """insert into llm_call (job_id, job_type, lease_token, step, request_hash, state, model, reserved_usd,
                                 cost_usd, cost_source, settled_at)
           values (gen_random_uuid(), 'openrouter_analyze', gen_random_uuid(), 'test of alerts', repeat('0', 64),
                   'received', 'none', 4.9, 4.9, 'provider', now())"""
    )
    try:
        yield
    finally:
        stack.sql("delete from llm_call where step = 'test of alerts'")


@contextmanager
def model_away(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """A server of one's own at an address where nobody is."""
    stack = watch.stack
    usual = dict(stack.environ)

    def ask_elsewhere(**environ: str) -> None:
        stack.environ.clear()
        stack.environ |= usual | environ
        stack.compose("up", "--detach", "--no-deps", "--wait", "openrouter")

    after.callback(cancel, stack, "openrouter_analyze")
    ask_elsewhere(
        OPENROUTER_BASE_URL="http://127.0.0.1:1/v1", OPENROUTER_PROFILE="generic", OPENROUTER_MODEL="none"
    )  # fmt: skip
    try:
        for _ in range(6):
            insert(stack, "openrouter_analyze", '{"text": "Ferga går ikke i dag, sier rederiet."}')
        yield
    finally:
        ask_elsewhere()


@contextmanager
def held_row(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """Somebody has locked a job by hand and gone to lunch: it is due, and no worker can take it."""
    stack = watch.stack
    stack.add_sample("held.mp3")
    payload = '{"path": "held.mp3", "language": "en"}'
    job = insert(stack, "whisper_transcribe", payload, "now() + interval '10 seconds'")
    with session(stack, "begin", f"select from job_queue where id = '{job}' for update"):
        yield
    stack.wait_for(job, "completed")


@contextmanager
def dead_rows(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """Vacuum may not remove what an old transaction could still see; once that ends it comes by itself."""
    stack = watch.stack
    with session(stack, "begin isolation level repeatable read", "select count(*) from watched_file"):
        stack.sql(
            """insert into watched_file (path, size_bytes, modified_ns, job_id)
               select 'churn', n, n, gen_random_uuid() from generate_series(1, 150000) as n"""
        )
        stack.sql("delete from watched_file where path = 'churn'")
        yield


@contextmanager
def crowded_database(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    stack = watch.stack
    used = int(stack.sql("select count(*) from pg_stat_activity where backend_type = 'client backend'"))
    crowd = started(stack, "run", "--rm", "-T", "--entrypoint", "python", "jobs", "-c", CROWD, str(90 - used))
    assert crowd.stdout is not None
    try:
        assert "held" in crowd.stdout.readline()
        yield
    finally:
        crowd.communicate(timeout=30)


@contextmanager
def full_disk(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """The limit is moved to just below what is free here, and a file as large as a season of recordings crosses it."""
    (container,) = watch.stack.containers("whisper")[:1]
    (size,) = watch.stack.prometheus('jobqueue_disk_size_bytes{disk="volumes"}')
    watch.move_disk_limit(watch.free_share() - 2 * GIGABYTE / float(size["value"][1]))
    after.callback(watch.move_disk_limit, 0)
    watch.stack.run("docker", "exec", container, "fallocate", "--length", str(4 * GIGABYTE), "/media/season")
    try:
        yield
    finally:
        watch.stack.run("docker", "exec", container, "rm", "/media/season")


@contextmanager
def stopped_view(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    watch.stack.compose("stop", "admin")
    try:
        yield
    finally:
        watch.stack.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "admin")


@contextmanager
def stopped_database(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    """Where alerts are kept, too: this one is told from memory."""
    watch.stack.compose("stop", "db")
    try:
        yield
    finally:
        watch.stack.compose("up", "--detach", "--no-deps", "--no-recreate", "--wait", "db")
    watch.stack.wait_for_workers(2)


@dataclass(frozen=True)
class Fault:
    """`alerts` is what it makes fire: name, and the labels that it is about."""

    make: Callable[[AlertWatch, ExitStack], AbstractContextManager[None]]
    alerts: dict[str, dict[str, str]]


FAULTS = {
    fault.make.__name__: fault
    for fault in (
        Fault(unworked_type, {"NoWorker": {"job_type": UNWORKED}}),
        Fault(frozen_worker, {"ProcessSilent": {"job": "workers"}}),
        Fault(failing_jobs, {"ManyFailures": WHISPER}),
        Fault(killed_workers, {"LeasesLost": {}}),
        Fault(dead_workers, {"ExpiredLeasesStay": WHISPER, "ScheduleWithoutRun": {"schedule": "new"}}),
        Fault(hung_engines, {"JobsWaitTooLong": WHISPER, "NoProgress": WHISPER}),
        Fault(paused_type, {"JobTypePaused": {"job_type": "research_clip"}}),
        Fault(overdue_schedule, {"ScheduleOverdue": {"schedule": "late"}}),
        Fault(spent_budget, {"DayBudgetNearlySpent": {}}),
        Fault(model_away, {"ModelAway": {}}),
        Fault(held_row, {"DueJobsBesideIdleWorkers": WHISPER, "SnapshotHeld": {}}),
        Fault(dead_rows, {"DeadRowsPileUp": {"table": "watched_file"}}),
        Fault(crowded_database, {"ConnectionsNearlyUsedUp": {}}),
        Fault(late_receiver, {"EventsLate": SINK}),
        Fault(gone_receiver, {"EventsParked": SINK}),
        Fault(full_disk, {"DiskNearlyFull": {}}),
        Fault(stopped_view, {"StateUnknown": {}}),
        Fault(stopped_database, {"StateUnknown": {}}),
    )
}
