"""Random walks over all that may happen to jobs, each step compared with the model and the laws of the tables."""

from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.queue.queue_laws import RESET, ROWS, SHIFT, broken_laws
from tests.queue.queue_model import KEEP_DAYS, WAITING, Job, Model, Run
from tests.queue.queue_world import LOST, REFUSED, World, answer

TYPES = st.sampled_from(["test_job", "other_job"])
KEYS = st.sampled_from([None, None, "k1", "k2"])
WORKERS = st.integers(0, 2)
PICKS = st.integers(0, 63)


class QueueMachine(RuleBasedStateMachine):
    """Every rule does one thing to the database and the same to the model; the invariant then compares them."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world, self.model = world, Model()
        world.owner.execute(RESET)
        for name, days in KEEP_DAYS.items():
            world.owner.execute("select set_job_retention(%s, %s, %s)", (name, days, days))

    # ---------------------------------------------------------------- helpers

    def pick_job(self, pick: int) -> Job:
        jobs = list(self.model.jobs.values())
        return jobs[pick % len(jobs)]

    def pick_run(self, pick: int) -> Run:
        """Mostly one that is held; else any of the last ones, since a late write is worth a try."""
        held = [run for run in self.model.runs if run.is_held]
        chosen = held if held and pick % 4 else self.model.runs[-12:]
        return chosen[pick // 4 % len(chosen)]

    def of_worker(self, run: Run) -> Any:
        return self.world.workers[2 if run.job.job_type == "other_job" else 0][0]

    def settle(self, run: Run, statement: str, *more: Any) -> bool:
        """Calls a function that ends a run; whether it was still held. Nothing else may decide."""
        conn = self.of_worker(run)
        held = run.is_held
        told = answer(lambda: conn.execute(statement, (run.job.id, run.token, *more)).fetchone())
        assert (told != LOST) == held, (told, run)
        return held

    def has_jobs(self) -> bool:
        return bool(self.model.jobs)

    def has_runs(self) -> bool:
        return bool(self.model.runs)

    # ---------------------------------------------------------------- enqueue

    @rule(kind=TYPES, priority=st.integers(-1, 1), most=st.integers(1, 3), delay=st.sampled_from([0, 0, 3600]))
    def insert(self, kind: str, priority: int, most: int, delay: int) -> None:
        row = self.world.plain.execute(
            "insert into job_queue (job_type, payload, priority, max_attempts, scheduled_for)"
            " values (%s, '{}', %s, %s, now() + make_interval(secs => %s)) returning id",
            (kind, priority, most, delay),
        ).fetchone()
        self.model.jobs[row[0]] = Job(row[0], kind, priority, most)

    @rule(kind=TYPES, key=KEYS, most=st.integers(1, 3))
    def enqueue(self, kind: str, key: str | None, most: int) -> None:
        job_id, outcome = self.world.operator.execute(
            "select * from enqueue_job(%s, '{}', p_max_attempts => %s::smallint, p_unique_key => %s)", (kind, most, key)
        ).fetchone()
        holder = self.model.holder(kind, key)
        if holder is None:
            assert outcome == "created"
            self.model.jobs[job_id] = Job(job_id, kind, 0, most, key)
            return
        assert (job_id, outcome) == (holder.id, "rerun" if holder.status == "running" else "exists")
        holder.wants_rerun |= outcome == "rerun"

    # ---------------------------------------------------------------- runs

    @rule(worker=WORKERS, limit=st.integers(1, 4))
    def claim(self, worker: int, limit: int) -> None:
        conn, kind, name = self.world.workers[worker]
        if not self.model.claimable(kind, 1) and not self.model.is_paused(kind):
            self.insert(kind, 0, 3, 0)  # a walk may be one without any other way to enqueue
            self.table_is_as_the_model_says()
        rows = conn.execute("select * from claim_jobs(%s, %s, %s)", (kind, name, limit)).fetchall()
        rows.sort(key=lambda row: (-row["priority"], row["scheduled_for"], row["id"]))
        assert [row["id"] for row in rows] == self.model.claimable(kind, limit)
        for row in rows:
            job = self.model.jobs[row["id"]]
            assert row["attempts"] == job.attempts < job.max_attempts
            self.model.claim(job, row["lease_token"])

    @precondition(has_runs)
    @rule(pick=PICKS)
    def heartbeat(self, pick: int) -> None:
        run = self.pick_run(pick)
        rows = self.of_worker(run).execute(
            "select * from extend_leases(array[%s], array[%s], array[0.5]::real[], array['x'])", (run.job.id, run.token)
        ).fetchall()  # fmt: skip
        assert bool(rows) == run.is_held
        if rows:
            run.job.started = self.model.now
            assert (rows[0]["cancel_requested_at"] is not None) == run.job.is_cancel_requested

    @precondition(has_runs)
    @rule(pick=PICKS)
    def checkpoint(self, pick: int) -> None:
        run = self.pick_run(pick)
        if self.settle(run, "select write_checkpoint(%s, %s, '{}')"):
            run.job.checkpoint += 1
            run.job.checkpoint_tokens.add(run.token)

    @precondition(has_runs)
    @rule(pick=PICKS, worker=WORKERS, commits=st.booleans())
    def complete(self, pick: int, worker: int, commits: bool) -> None:
        """The handler's write and the completion are one; while they are under way, others sweep and claim."""
        run = self.pick_run(pick)
        conn = self.of_worker(run)
        with conn.transaction(force_rollback=not commits):
            conn.execute("savepoint before")
            held = self.settle(run, "select complete_job(%s, %s, '{}')")
            if not held:
                conn.execute("rollback to before")
            else:
                conn.execute("insert into done values (%s)", (run.job.id,))
                if self.world.workers[worker][0] is not conn:
                    self.claim(worker, 1)
        if held and commits:
            self.model.complete(run.job)

    @precondition(has_runs)
    @rule(picks=st.lists(PICKS, min_size=1, max_size=4), worker=WORKERS)
    def complete_many(self, picks: list[int], worker: int) -> None:
        conn, kind, _ = self.world.workers[worker]
        runs = {(run.job.id, run.token): run for run in map(self.pick_run, picks) if run.job.job_type == kind}
        held = {run.job.id for run in runs.values() if run.is_held}
        ids, tokens = [key[0] for key in runs], [key[1] for key in runs]
        with conn.transaction():
            rows = conn.execute(
                "select * from complete_jobs(%s::uuid[], %s::uuid[], %s::jsonb[])", (ids, tokens, ["{}"] * len(ids))
            ).fetchall()
            done = {value for row in rows for value in row.values()}
            assert done == held
            for job_id in done:
                conn.execute("insert into done values (%s)", (job_id,))
        for job_id in done:
            self.model.complete(self.model.jobs[job_id])

    @precondition(has_runs)
    @rule(pick=PICKS, permanent=st.booleans(), after=st.sampled_from([None, 0.0, 100.0]))
    def fail(self, pick: int, permanent: bool, after: float | None) -> None:
        run = self.pick_run(pick)
        if self.settle(run, "select fail_job(%s, %s, 'E', 'e', null, %s, %s)", permanent, after):
            self.model.fail(run.job, permanent=permanent)

    @precondition(has_runs)
    @rule(pick=PICKS)
    def postpone(self, pick: int) -> None:
        run = self.pick_run(pick)
        if self.settle(run, "select postpone_job(%s, %s, now(), 'later')"):
            self.model.postpone(run.job)

    @precondition(has_runs)
    @rule(pick=PICKS)
    def release(self, pick: int) -> None:
        run = self.pick_run(pick)
        if self.settle(run, "select release_job(%s, %s, 'stop')"):
            self.model.put_back(run.job)

    # ---------------------------------------------------------------- a program that keeps no lease

    @rule(kind=TYPES)
    def take_without_lease(self, kind: str) -> None:
        found = [self.model.jobs[job_id] for job_id in self.model.claimable(kind, 1)]
        for job in found:
            statement = "update job_queue set status = 'running', started_at = now() where id = %s"
            self.world.plain.execute(statement, (job.id,))
            self.model.claim(job, None)

    @precondition(has_jobs)
    @rule(pick=PICKS)
    def complete_without_lease(self, pick: int) -> None:
        running = [job for job in self.model.jobs.values() if job.status == "running" and job.token is None]
        if running:
            job = running[pick % len(running)]
            statement = "update job_queue set status = 'completed', result = '{}', completed_at = now() where id = %s"
            self.world.plain.execute(statement, (job.id,))
            self.model.complete(job)

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

    @rule(kind=TYPES, hours=st.sampled_from([None, 1]))
    def pause(self, kind: str, hours: int | None) -> None:
        statement = "select pause_job_type(%s, now() + make_interval(hours => %s), 'test')"
        self.world.operator.execute(statement, (kind, hours))
        self.model.paused[kind] = None if hours is None else self.model.now + hours * 3600

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

    # ---------------------------------------------------------------- time

    @rule(seconds=st.sampled_from([40, 7200, 30 * 3600]))
    def time_passes(self, seconds: int) -> None:
        """The clock cannot be moved; every time in the tables can."""
        for statement in SHIFT:
            self.world.owner.execute(statement, {"seconds": seconds})
        self.model.now += seconds

    @rule(worker=WORKERS)
    def sweep(self, worker: int) -> None:
        self.world.owner.execute("update retention set next_at = now()")
        self.world.workers[worker][0].execute("select * from sweep_jobs()")
        self.model.sweep()
        self.model.prune()

    # ---------------------------------------------------------------- after each step

    @invariant()
    def table_is_as_the_model_says(self) -> None:
        rows = {row["id"]: row for row in self.world.owner.execute(ROWS).fetchall()}
        self._adopt_followers(rows)
        assert rows.keys() == self.model.jobs.keys(), "jobs were lost, or came from nowhere"
        for job_id, row in rows.items():
            job = self.model.jobs[job_id]
            job.due_at, job.is_due = row.pop("scheduled_for"), row.pop("is_due")
            assert row == {
                "id": job.id, "job_type": job.job_type, "status": job.status, "attempts": job.attempts,
                "priority": job.priority, "max_attempts": job.max_attempts, "unique_key": job.key,
                "postponements": job.postponements, "checkpoints": job.checkpoint,
                "token": job.token if job.status == "running" else None,
            }  # fmt: skip
        assert broken_laws(self.world.owner) == []
        done = {row["job_id"] for row in self.world.owner.execute("select job_id from done").fetchall()}
        assert done == self.model.completed

    def _adopt_followers(self, rows: dict[UUID, Any]) -> None:
        """Jobs that the database made by itself: as many as it had to, and no others."""
        for job_id in rows.keys() - self.model.jobs.keys():
            row = rows[job_id]
            place = (row["job_type"], row["unique_key"])
            follower = next((one for one in self.model.followers if (one.job_type, one.key) == place), None)
            assert follower is not None, f"a job came from nowhere: {row}"
            self.model.followers.remove(follower)
            self.model.jobs[job_id] = Job(
                job_id, follower.job_type, follower.priority, follower.max_attempts, follower.key
            )
        assert self.model.followers == [], "a job that had to follow is not there"
