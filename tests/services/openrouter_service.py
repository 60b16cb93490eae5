"""The real worker of openrouter_analyze against the stand-in of OpenRouter, with what a test looks at afterwards."""

import sys
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.databases import Database
from tests.openrouter_standin import ChatCall, StandIn
from tests.openrouter_standin.account import Billed
from tests.services.openrouter_analyst import analyst
from tests.waiting import wait_until
from tests.worker_processes import WorkerProcess, WorkerProcesses

JOB_TYPE = "openrouter_analyze"
SENTENCES = (
    "Velkommen til en ny episode om fergene i nord, og om hvorfor de så ofte er forsinket.",
    "Vi har snakket med folk som bor langs kysten, og de forteller at båten sjelden kommer når den skal.",
    "Det er grusomt å stå der på kaia og vente, uten å vite om det kommer noen i det hele tatt.",
    "Rederiet sier på sin side at været har vært uvanlig dårlig denne høsten, og at mannskapet er for lite.",
    "Fylket vil nå vurdere om det skal settes inn flere båter på den lengste strekningen før jul.",
    "Takk for at du hørte på, og husk at du kan sende oss spørsmål om fergene hele uka.",
)


@dataclass
class Seen:
    """What became of one job so far."""

    job: dict[str, Any]
    attempts: list[dict[str, Any]]  # rows of job_attempt, oldest first
    calls: list[dict[str, Any]]  # rows of llm_call, oldest first
    chats: list[ChatCall]
    billed: list[Billed]

    @property
    def wait_seconds(self) -> float:
        """From the end of the last run to the next."""
        seconds: float = (self.job["scheduled_for"] - self.attempts[-1]["ended_at"]).total_seconds()
        return seconds


class OpenrouterService:
    """A worker process, its database, and the stand-in that it asks."""

    program: tuple[str, ...] = ("services.openrouter",)

    def __init__(self, database: Database, processes: WorkerProcesses, standin: StandIn) -> None:
        self.database, self.processes, self.standin = database, processes, standin
        standin.answers(analyst)

    def start(self, *, ready: bool = True, **environ: str) -> WorkerProcess:
        settings = {
            "OPENROUTER_API_KEY": self.standin.key,
            "OPENROUTER_BASE_URL": self.standin.base_url,
            "OPENROUTER_PROFILE": "openrouter",
            "OPENROUTER_READ_SECONDS": "3",
            **environ,
        }
        command = [sys.executable, "-m", *self.program]
        worker = self.processes.start_command(self.database, command, "worker_openrouter", settings)
        if ready:
            self.processes.wait_until_registered(self.database, worker, 30)
        return worker

    def enqueue(self, word: str, *, priority: int = 0, **payload: Any) -> UUID:
        """A job about a transcript of six segments whose first has the word."""
        segments = [
            {"start": 30.0 * number, "end": 30.0 * number + 29.0, "text": text}
            for number, text in enumerate((f"{SENTENCES[0]} Saken er {word}.", *SENTENCES[1:]))
        ]
        whole = {"segments": segments, "language": "nb", **payload}
        return self.database.enqueue(JOB_TYPE, whole, priority=priority)

    def wait_until_settled(self, *job_ids: UUID, runs: int = 1, within: float = 150) -> dict[UUID, Seen]:
        """Until each has ended, or has had so many runs; what was seen of each at that moment."""
        statement = """
            select id from job_queue j where id = any(%s) and status <> 'running'
               and (status in ('completed', 'error')
                    or (select count(*) from job_attempt a where a.job_id = j.id) >= %s)
        """
        found: dict[UUID, Seen] = {}

        def look() -> bool:
            missing = [job_id for job_id in job_ids if job_id not in found]
            for row in self.database.rows(statement, missing, runs):
                found[row["id"]] = self.see(row["id"])
            return len(found) == len(job_ids)

        wait_until(look, within, what=f"{len(job_ids)} jobs to settle")
        return found

    def wait_until_paused(self, within: float = 20) -> dict[str, Any]:
        paused = "select * from job_type where name = %s and paused_at is not null"
        return wait_until(lambda: self.database.rows(paused, JOB_TYPE), within, what="the type to be paused")[0]

    def resume(self) -> None:
        self.database.rows("select resume_job_type(%s)", JOB_TYPE)

    def run_now(self, *job_ids: UUID) -> None:
        """As if their waits were over."""
        statement = "update job_queue set scheduled_for = now() where id = any(%s) and status in ('retry', 'pending')"
        self.database.rows(statement, list(job_ids))

    def see(self, job_id: UUID) -> Seen:
        return Seen(
            self.database.job(job_id),
            self.database.rows("select * from job_attempt where job_id = %s order by id", job_id),
            self.database.rows("select * from llm_call where job_id = %s order by reserved_at, id", job_id),
            self.standin.chats_about(str(job_id)),
            self.standin.billed_for(str(job_id)),
        )
