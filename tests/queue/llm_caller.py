"""A run of a job that writes the ledger of paid calls, on a worker's own connection."""

import hashlib
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from sidelinja_jobs import queue
from sidelinja_jobs.models import Claim
from tests.databases import Database
from tests.sessions import claim_one, expire, worker_session

RESERVE = """select * from reserve_llm_call(%(job_id)s, %(token)s, %(step)s, %(hash)s, 'a/model', %(usd)s, %(job)s,
                                            %(day)s, %(type_day)s, %(duplicate)s)"""
SETTLE = "select settle_llm_call(%s, %s, %s, %s, %s, %s)"


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Caller:
    """A run of a job, on a worker's own connection."""

    def __init__(self, conn: Any, claim: Claim) -> None:
        self.conn, self.claim = conn, claim

    def reserve(self, usd: object = "0.5", *, question: str = "q", **budgets: Any) -> dict[str, Any]:
        values = {"job": 100, "day": 100, "type_day": None, "duplicate": False, "step": "whole"} | budgets
        values |= {"job_id": self.claim.id, "token": self.claim.lease_token, "usd": usd, "hash": hash_of(question)}
        row: dict[str, Any] = self.conn.execute(RESERVE, values).fetchone()
        return row

    def send(self, usd: object = "0.5", **more: Any) -> UUID:
        call_id: UUID = self.reserve(usd, **more)["call_id"]
        self.conn.execute("select mark_llm_call_sent(%s)", (call_id,))
        return call_id

    def settle(self, call_id: UUID, state: str, cost: object, source: str, **details: Any) -> None:
        self.conn.execute(SETTLE, (call_id, state, cost, source, Jsonb(details), details.get("response")))

    def find(self, question: str = "q") -> list[dict[str, Any]]:
        """Answers of use, and lost calls."""
        parameters = (self.claim.id, self.claim.lease_token, "whole", hash_of(question))
        rows: list[dict[str, Any]] = self.conn.execute(
            "select * from find_llm_calls(%s, %s, %s, %s)", parameters
        ).fetchall()
        return [row for row in rows if row["state"] != "failed" and row["discarded_at"] is None]


def new_caller(database: Database, worker_id: str = "w1") -> Caller:
    conn = worker_session(database, worker_id=worker_id)
    database.enqueue()
    return Caller(conn, claim_one(conn, worker_id=worker_id))


def next_run(database: Database, caller: Caller) -> Caller:
    """The job's next run, after its present one died."""
    expire(database, caller.claim.id)
    queue.sweep(caller.conn)
    database.rows("update job_queue set scheduled_for = now() where id = %s", caller.claim.id)
    return Caller(caller.conn, claim_one(caller.conn))


def call_of(database: Database, call_id: UUID) -> dict[str, Any]:
    return database.row("select * from llm_call where id = %s", call_id)
