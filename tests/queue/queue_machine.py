"""Random walks over all that may happen to jobs, each step compared with the model and the laws of the tables."""

from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.queue.queue_laws import ROWS, SHIFT, broken_laws
from tests.queue.queue_meddling import PICKS, TYPES, Meddling
from tests.queue.queue_model import Job, Run
from tests.queue.queue_world import LOST, answer

KEYS = st.sampled_from([None, None, "k1", "k2"])
WORKERS = st.integers(0, 2)


class QueueMachine(Meddling):
    """Every rule does one thing to the database and the same to the model; the invariant then compares them."""

    # ---------------------------------------------------------------- helpers

    def pick_run(self, pick: int) -> Run:
        """Mostly one that is held; else one whose job runs anew, which its holder does not know, or any of the last."""
        runs = self.model.runs
        match pick % 8:
            case 0 | 1:
                chosen = [run for run in runs if run.is_superseded]
            case 2:
                chosen = runs[-12:]
            case _:
                chosen = [run for run in runs if run.is_held]
        chosen = chosen or runs[-12:]
        return chosen[pick // 8 % len(chosen)]

    def of_worker(self, run: Run) -> Any:
        return self.world.workers[2 if run.job.job_type == "other_job" else 0][0]

    def settle(self, run: Run, statement: str, *more: Any) -> bool:
        """Calls a function that ends a run; whether it was still held. Nothing else may decide."""
        conn = self.of_worker(run)
        held = run.is_held
        told = answer(lambda: conn.execute(statement, (run.job.id, run.token, *more)).fetchone())
        assert (told != LOST) == held, (told, run)
        return held

    def has_runs(self) -> bool:
        return bool(self.model.runs)

    # ---------------------------------------------------------------- enqueue

    @initialize(most=st.integers(1, 3))
    def begin(self, most: int) -> None:
        """Something runs and something waits: a walk may be one whose every step needs that, and makes none of it."""
        for worker, (key, (_, kind, _)) in enumerate(zip(("k1", "k2", "k1"), self.world.workers, strict=True)):
            self.enqueue(kind, key, most)
            self.insert(kind, 0, 3, 0)
            self.table_is_as_the_model_says()
            self.claim(worker, 1)
            self.table_is_as_the_model_says()
        self.take_without_lease("test_job")

    @rule(kind=TYPES, priority=st.integers(-1, 1), most=st.integers(1, 3), delay=st.sampled_from([0, 0, 3600]))
    def insert(self, kind: str, priority: int, most: int, delay: int) -> None:
        row = self.world.plain.execute(
            "insert into job_queue (job_type, payload, priority, max_attempts, scheduled_for)"
            " values (%s, '{}', %s, %s, now() + make_interval(secs => %s)) returning id",
            (kind, priority, most, delay),
        ).fetchone()
        self.model.jobs[row[0]] = Job(row[0], kind, priority, most, created=self.model.now)

    @rule(kind=TYPES, key=KEYS, most=st.integers(1, 3))
    def enqueue(self, kind: str, key: str | None, most: int) -> None:
        job_id, outcome = self.world.operator.execute(
            "select * from enqueue_job(%s, '{}', p_max_attempts => %s::smallint, p_unique_key => %s)", (kind, most, key)
        ).fetchone()
        holder = self.model.holder(kind, key)
        if holder is None:
            assert outcome == "created"
            self.model.jobs[job_id] = Job(job_id, kind, 0, most, key, created=self.model.now)
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
        lost = {run.job.id for run in runs.values() if not run.is_held and not self.model.is_completed(run)}
        ids, tokens = [key[0] for key in runs], [key[1] for key in runs]
        with conn.transaction():
            rows = conn.execute(
                "select * from complete_runs(%s::uuid[], %s::uuid[], %s::jsonb[])", (ids, tokens, ["{}"] * len(ids))
            ).fetchall()
            assert {value for row in rows for value in row.values()} == lost
            for job_id in held:
                conn.execute("insert into done values (%s)", (job_id,))
        for job_id in held:
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

    @rule(worker=WORKERS, seconds=st.sampled_from([7200, 30 * 3600]), times=st.integers(1, 3))
    def fall_silent(self, worker: int, seconds: int, times: int) -> None:
        """All who hold a run, for longer than its lease and the backoff: one claims some of it anew. Once or again."""
        for _ in range(times):
            self.time_passes(7200)
            self.sweep(worker)
            self.time_passes(seconds)
            self.table_is_as_the_model_says()
            self.claim(worker, 4)
            self.table_is_as_the_model_says()

    # ---------------------------------------------------------------- after each step

    @invariant()
    def table_is_as_the_model_says(self) -> None:
        rows = {row["id"]: row for row in self.world.owner.execute(ROWS).fetchall()}
        self._adopt_followers(rows)
        assert rows.keys() == self.model.jobs.keys(), "jobs were lost, or came from nowhere"
        for job_id, row in rows.items():
            job = self.model.jobs[job_id]
            job.due_at, job.is_due = row.pop("scheduled_for"), row.pop("is_due")
            expected = {
                "id": job.id, "job_type": job.job_type, "status": job.status, "attempts": job.attempts,
                "priority": job.priority, "max_attempts": job.max_attempts, "unique_key": job.key,
                "postponements": job.postponements, "checkpoints": job.checkpoint,
                "token": job.token if job.status == "running" else None,
            }  # fmt: skip
            assert row == expected, f"{row} is not {expected}"
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
                job_id,
                follower.job_type,
                follower.priority,
                follower.max_attempts,
                follower.key,
                created=self.model.now,
            )
        assert self.model.followers == [], "a job that had to follow is not there"
