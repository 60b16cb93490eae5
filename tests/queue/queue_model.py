"""The queue as a model in memory: what the rules say becomes of each job, with no regard to how the database does it.

Time is the sum of the jumps that a test made with `QueueMachine.time_passes`, in seconds.
"""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

DAY = 86_400.0
LEASE_SECONDS = 120
LONGEST_RUN_SECONDS = 3600
MOST_DEATHS = 3  # at one checkpoint
MOST_POSTPONEMENTS = 20
KEEP_DAYS = {"test_job": 1, "other_job": 0}  # 0 = for ever
WAITING = ("pending", "retry")
ACTIVE = (*WAITING, "running")


@dataclass
class Job:
    """What is expected of one row."""

    id: UUID
    job_type: str
    priority: int = 0
    max_attempts: int = 3
    key: str | None = None
    status: str = "pending"
    attempts: int = 0
    token: UUID | None = None  # of the present run; a run of a program without leases has none
    due_at: datetime | None = None  # as the database says
    is_due: bool = True
    is_cancel_requested: bool = False
    wants_rerun: bool = False
    postponements: int = 0
    first_postponed: float | None = None
    created: float = 0.0
    started: float = 0.0  # time of the claim, or of the last heartbeat
    ended: float | None = None
    checkpoint: int = 0
    checkpoint_tokens: set[UUID] = field(default_factory=set)
    deaths: dict[int, int] = field(default_factory=dict)  # not forgiven, by checkpoint


@dataclass(frozen=True)
class Run:
    """A claim, and who made it. It stays in the model when it is over: a late write is worth a try."""

    job: Job
    token: UUID

    @property
    def is_held(self) -> bool:
        return self.job.status == "running" and self.job.token == self.token

    @property
    def is_superseded(self) -> bool:
        """Another run of the job is under way."""
        return self.job.status == "running" and self.job.token not in (None, self.token)


@dataclass(frozen=True)
class Follower:
    """A job that the database has to make by itself."""

    job_type: str
    priority: int
    max_attempts: int
    key: str | None


class Model:
    """All jobs that there should be, the types' pauses, and what the database still has to make."""

    def __init__(self) -> None:
        self.jobs: dict[UUID, Job] = {}
        self.runs: list[Run] = []
        self.paused: dict[str, float | None] = {}  # until when; None = until someone resumes
        self.schedules: dict[str, bool] = {}  # whether it is enabled
        self.followers: list[Follower] = []
        self.completed: set[UUID] = set()  # by runs of workers, deleted ones, too
        self.now = 0.0

    # ---------------------------------------------------------------- look

    def holder(self, job_type: str, key: str | None) -> Job | None:
        """The one job that has the key."""
        found = [
            job for job in self.jobs.values()
            if key is not None and (job.job_type, job.key) == (job_type, key) and job.status in ACTIVE
        ]  # fmt: skip
        assert len(found) <= 1, found
        return found[0] if found else None

    def is_paused(self, job_type: str) -> bool:
        until = self.paused.get(job_type, -1.0)
        return until is None or until > self.now

    def claimable(self, job_type: str, limit: int) -> list[UUID]:
        """What a claim takes, in order."""
        if self.is_paused(job_type):
            return []
        waiting = [
            job for job in self.jobs.values() if job.job_type == job_type and job.status in WAITING and job.is_due
        ]
        waiting.sort(key=lambda job: (-job.priority, job.due_at, job.id))
        return [job.id for job in waiting[:limit]]

    # ---------------------------------------------------------------- runs

    def claim(self, job: Job, token: UUID | None) -> None:
        job.status, job.token, job.started = "running", token, self.now
        if token is not None:
            job.is_cancel_requested = False
            self.runs.append(Run(job, token))

    def complete(self, job: Job) -> None:
        if job.token is not None:
            assert job.id not in self.completed
            self.completed.add(job.id)
        self._end(job, "completed")

    def is_completed(self, run: Run) -> bool:
        """By this run, and not deleted since."""
        return run.job.status == "completed" and run.job.token == run.token and run.job.id in self.jobs

    def put_back(self, job: Job, *, charged: bool = False, final: bool = False, postponed: bool = False) -> None:
        """A run that did not complete. A requested cancel ends the job in any case, and costs nothing."""
        cancelled = job.is_cancel_requested
        if not cancelled:
            job.attempts += charged
            job.postponements += postponed
            if postponed and job.first_postponed is None:
                job.first_postponed = self.now
        if cancelled or final:
            self._end(job, "error")
        else:
            job.status, job.token = "retry" if job.attempts else "pending", None

    def fail(self, job: Job, *, permanent: bool) -> None:
        self.put_back(job, charged=True, final=permanent or job.attempts + 1 >= job.max_attempts)

    def postpone(self, job: Job) -> None:
        first = job.first_postponed
        if job.postponements >= MOST_POSTPONEMENTS or (first is not None and self.now - first >= DAY):
            self.put_back(job, charged=True, final=True)
        else:
            self.put_back(job, postponed=True)

    def is_dead(self, job: Job) -> bool:
        limit = LONGEST_RUN_SECONDS if job.token is None else LEASE_SECONDS
        return job.status == "running" and self.now - job.started >= limit

    def rescue(self, job: Job) -> None:
        """Free when the run wrote a checkpoint; the third death at one checkpoint is the last."""
        charged = job.token is None or job.token not in job.checkpoint_tokens
        deaths = 1 + job.deaths.get(job.checkpoint, 0)
        if not job.is_cancel_requested:
            job.deaths[job.checkpoint] = deaths
        final = (charged and job.attempts + 1 >= job.max_attempts) or deaths >= MOST_DEATHS
        self.put_back(job, charged=charged, final=final)

    # ---------------------------------------------------------------- people and the sweep

    def cancel(self, job: Job) -> str:
        if job.status == "running":
            job.is_cancel_requested = True
            return "requested"
        self._end(job, "error")
        return "cancelled"

    def retry(self, job: Job) -> None:
        job.status, job.attempts, job.postponements, job.ended = "pending", 0, 0, None
        job.first_postponed, job.is_cancel_requested, job.wants_rerun = None, False, False
        job.token, job.deaths = None, {}

    def sweep(self) -> None:
        for job in list(self.jobs.values()):
            if self.is_dead(job):
                self.rescue(job)
        for name, enabled in self.schedules.items():
            key = f"schedule:{name}"
            if enabled and self.holder("other_job", key) is None and not self._is_following(key):
                self.followers.append(Follower("other_job", 0, 3, key))
        self.paused = {kind: until for kind, until in self.paused.items() if until is None or until > self.now}

    def prune(self) -> None:
        for job in list(self.jobs.values()):
            days = KEEP_DAYS[job.job_type]
            if days and job.ended is not None and self.now - job.ended >= days * DAY:
                del self.jobs[job.id]

    def _is_following(self, key: str) -> bool:
        return any(follower.key == key for follower in self.followers)

    def _end(self, job: Job, status: str) -> None:
        job.status, job.ended = status, self.now
        if status == "completed":
            job.checkpoint, job.checkpoint_tokens = 0, set()
        if job.wants_rerun:
            self.followers.append(Follower(job.job_type, job.priority, job.max_attempts, job.key))
