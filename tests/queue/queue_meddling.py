"""The steps of queue_machine.py that no worker takes: those of people, and of programs that keep no lease."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.queue.queue_laws import RESET
from tests.queue.queue_model import KEEP_DAYS, WAITING, Job, Model
from tests.queue.queue_world import REFUSED, World, answer

TYPES = st.sampled_from(["test_job", "other_job"])
PICKS = st.integers(0, 127)


class Meddling(RuleBasedStateMachine):
    """Begins with an empty queue and its model."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.model = world, Model()
        world.owner.execute(RESET)
        for name, days in KEEP_DAYS.items():
            world.owner.execute("select set_job_retention(%s, %s, %s)", (name, days, days))

    def pick_job(self, pick: int) -> Job:
        jobs = list(self.model.jobs.values())
        return jobs[pick % len(jobs)]

    def has_jobs(self) -> bool:
        return bool(self.model.jobs)

    # ---------------------------------------------------------------- a program that keeps no lease

    @rule(kind=TYPES)
    def take_without_lease(self, kind: str) -> None:
        found = [self.model.jobs[job_id] for job_id in self.model.claimable(kind, 1)]
        for job in found:
            statement = "update job_queue set status = 'running', started_at = now() where id = %s"
            self.world.plain.execute(statement, (job.id,))
            self.model.claim(job, None)

    @precondition(has_jobs)
    @rule(pick=PICKS, says_when=st.booleans())
    def complete_without_lease(self, pick: int, says_when: bool) -> None:
        running = [job for job in self.model.jobs.values() if job.status == "running" and job.token is None]
        if running:
            job = running[pick % len(running)]
            self.world.plain.execute(
                "update job_queue set status = 'completed', result = '{}', completed_at = case when %s then now() end"
                " where id = %s",
                (says_when, job.id),
            )
            self.model.complete(job)
            job.ended = job.ended if says_when else job.created  # as old as it is, for who deletes it some day

    @precondition(has_jobs)
    @rule(pick=PICKS, asks_before=st.booleans())
    def put_back_by_hand(self, pick: int, asks_before: bool) -> None:
        """Somebody's own UPDATE, of which neither the run nor its history knows; maybe after asking the run to end."""
        running = [job for job in self.model.jobs.values() if job.status == "running"]
        if running:
            job = running[pick % len(running)]
            if asks_before:
                self.world.operator.execute("select cancel_job(%s)", (job.id,))
                self.model.cancel(job)
            status = "retry" if job.attempts else "pending"
            self.world.plain.execute("update job_queue set status = %s where id = %s", (status, job.id))
            job.status, job.token = status, None

    # ---------------------------------------------------------------- people

    @precondition(has_jobs)
    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        job = self.pick_job(pick)
        told = answer(lambda: self.world.operator.execute("select cancel_job(%s)", (job.id,)).fetchone()[0])
        assert told == (REFUSED if job.status in ("completed", "error") else self.model.cancel(job))

    @precondition(has_jobs)
    @rule(pick=PICKS)
    def retry(self, pick: int) -> None:
        job = self.pick_job(pick)
        told = answer(lambda: self.world.operator.execute("select retry_job(%s)", (job.id,)).fetchone()[0])
        if job.status in WAITING:
            assert told == "pulled_forward"
        elif job.status == "error" and self.model.holder(job.job_type, job.key) is None:
            assert told == "retried"
            self.model.retry(job)
        else:
            assert told == REFUSED

    @precondition(has_jobs)
    @rule(pick=PICKS, priority=st.integers(-1, 1))
    def change_priority(self, pick: int, priority: int) -> None:
        job = self.pick_job(pick)
        statement = "select change_priority(%s, %s::smallint)"
        told = answer(lambda: self.world.operator.execute(statement, (job.id, priority)).fetchone())
        assert (told == REFUSED) == (job.status not in WAITING)
        if job.status in WAITING:
            job.priority = priority

    @rule(kind=TYPES, hours=st.sampled_from([1, 1, None]))
    def pause(self, kind: str, hours: int | None) -> None:
        statement = "select pause_job_type(%s, now() + make_interval(hours => %s), 'test')"
        self.world.operator.execute(statement, (kind, hours))
        self.model.paused[kind] = None if hours is None else self.model.now + hours * 3600

    @precondition(lambda self: self.model.paused)
    @rule(kind=TYPES)
    def resume(self, kind: str) -> None:
        self.world.operator.execute("select resume_job_type(%s)", (kind,))
        self.model.paused.pop(kind, None)

    @rule(name=st.sampled_from(["s1", "s2"]), enabled=st.booleans())
    def schedule(self, name: str, enabled: bool) -> None:
        self.world.operator.execute(
            "insert into job_schedule (name, job_type, every, anchor, enabled)"
            " values (%s, 'other_job', '30 days', (now() + interval '3 days') at time zone 'UTC', %s)"
            " on conflict (name) do update set enabled = excluded.enabled",
            (name, enabled),
        )
        self.model.schedules[name] = enabled
