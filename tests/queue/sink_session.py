"""A forwarder without a process: the functions of event delivery, called through its own login."""

import json
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from tests.databases import Database
from tests.waiting import wait_until


class Sink:
    """A forwarder's session on a sink called test."""

    def __init__(self, database: Database, **settings: Any) -> None:
        self._database = database
        self.conn = database.connect("delivery", row_factory=dict_row)
        self.is_open = self.open(**settings)

    def open(self, job_types: list[str] | None = None, statuses: list[str] | None = None,
             includes: list[str] | None = None) -> bool:  # fmt: skip
        row = self.conn.execute(
            "select open_event_sink('test', 'webhook', 'https://example.net', %s::text[], %s::job_status[], %s::text[])"
            " as opened",
            (job_types or [], statuses or [], includes or []),
        ).fetchone()
        return bool(row["opened"])

    def leave(self) -> None:
        """Ends the session; returns when the server knows."""
        self.conn.close()
        wait_until(lambda: not self._database.value("select is_event_sink_open('test')"), what="the session to end")

    @property
    def cursor(self) -> tuple[str, int]:
        row = self.conn.execute("select * from read_event_sink('test')").fetchone()
        return row["cursor_xid"], row["cursor_id"]

    def next(self, limit: int = 100) -> list[dict[str, Any]]:
        return self.conn.execute("select * from next_events('test', %s)", (limit,)).fetchall()  # type: ignore[no-any-return]

    def record(self, events: list[dict[str, Any]], outcome: str = "delivered", **more: Any) -> None:
        """Records one outcome for all of them and moves the cursor past the new ones."""
        start = self.cursor
        new = [(event["xid"], event["event_id"]) for event in events if event["is_new"]]
        results = [
            {"event_id": event["event_id"], "job_id": str(event["job_id"]), "is_new": event["is_new"],
             "outcome": outcome, "wait_seconds": 0, "error": "why"} | more
            for event in events
        ]  # fmt: skip
        self.conn.execute(
            "select record_deliveries('test', %s, %s, %s, %s, %s, false)",
            (*start, *(new[-1] if new else start), json.dumps(results)),
        )

    def deliver_all(self) -> list[tuple[UUID, str]]:
        """Delivers until nothing is left; returns what was sent, in order."""
        sent: list[tuple[UUID, str]] = []
        while events := self.next():
            free = [event for event in events if not event["is_held"]]
            held = [event for event in events if event["is_held"]]
            start, new = self.cursor, [(event["xid"], event["event_id"]) for event in events if event["is_new"]]
            results = [
                {"event_id": event["event_id"], "job_id": str(event["job_id"]), "is_new": event["is_new"],
                 "outcome": "waiting" if event in held else "delivered"}
                for event in events
            ]  # fmt: skip
            self.conn.execute(
                "select record_deliveries('test', %s, %s, %s, %s, %s, false)",
                (*start, *(new[-1] if new else start), json.dumps(results)),
            )
            sent += [(event["job_id"], event["new_status"]) for event in sorted(free, key=lambda e: e["event_id"])]
        return sent
