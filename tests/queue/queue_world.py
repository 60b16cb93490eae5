"""Who takes part in the walks of queue_machine.py: one database and a login for each."""

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.databases import Database
from tests.queue.queue_model import KEEP_DAYS, LEASE_SECONDS, LONGEST_RUN_SECONDS
from tests.sessions import worker_session

LOST, REFUSED = "JQ001", "JQ002"


class World:
    """One database and the logins of all who take part."""

    def __init__(self, database: Database) -> None:
        self.database = database
        for name in KEEP_DAYS:
            database.add_job_type(name, lease_seconds=LEASE_SECONDS, longest_run_seconds=LONGEST_RUN_SECONDS)
        database.rows("create table done (job_id uuid primary key)")
        database.rows("grant insert on done to worker_test")
        self.owner = database.connect(row_factory=dict_row)
        self.operator, self.plain = database.connect("operator"), database.connect("plain")
        self.workers = [
            (worker_session(database, job_type=kind, worker_id=f"w{number}"), kind, f"w{number}")
            for number, kind in enumerate(("test_job", "test_job", "other_job"))
        ]


def answer(call: Callable[[], Any]) -> Any:
    """What a call returned, or the SQLSTATE that it was refused with."""
    try:
        return call()
    except psycopg.Error as error:
        if error.sqlstate not in (LOST, REFUSED):
            raise
        return error.sqlstate
