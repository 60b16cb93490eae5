"""What a claim costs beside the weights that a queue gathers: time and pages, against a table without them.

Each weight has a database of its own on one server; rounds go through all of them in turn. Claims are committed and
their jobs completed, as in life: each weight sees the same ones, and what one claim leaves lies in the way of the next
by as much as it always does. The last line is JSON.
"""

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.embedded_postgres import EmbeddedPostgres
from tests.databases import Server

DUE = """insert into job_queue (job_type, payload, scheduled_for)
         select 'b', '{"i": 0}', now() - interval '1 hour' + n * interval '1 ms' from generate_series(1, %s) as n"""
FUTURE = """insert into job_queue (job_type, payload, priority, scheduled_for)
            select 'b', '{"i": 0}', %s, now() + interval '1 day' + n * interval '1 ms'
              from generate_series(1, %s) as n"""
OTHERS = """insert into job_queue (job_type, payload, scheduled_for)
            select 'a', '{"i": 0}', now() - interval '1 hour' + n * interval '1 ms'
              from generate_series(1, 500000) as n"""
ENDED = """insert into job_queue (job_type, payload, status, completed_at, scheduled_for)
           select 'b', '{"i": 0}', '%s', now(), now() - interval '1 hour' + n * interval '1 ms'
             from generate_series(1, %s) as n"""
CHURN = """update job_queue set status = 'running' where job_type = 'b' and status = 'pending';
           update job_queue set status = 'completed', completed_at = now()
            where job_type = 'b' and status = 'running'"""
COMPLETE = """update job_queue set status = 'completed', completed_at = now(), lease_until = null
               where job_type = 'b' and status = 'running'"""
ANALYZE = "vacuum analyze job_queue"
COUNTS = (1, 10, 100)
WARMING_ROUNDS = 6  # the plans are settled by then


@dataclass(frozen=True)
class Weight:
    """Statements that lay it on a table, before and after the rows that are due."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    holds_snapshot: bool = False


WEIGHTS = {
    "nothing": Weight(after=[ANALYZE]),
    "500,000 of another type": Weight([OTHERS], [ANALYZE]),
    "500,000 completed": Weight([ENDED % ("completed", 500_000)], [ANALYZE]),
    "100,000 in error": Weight([ENDED % ("error", 100_000)], [ANALYZE]),
    "200,000 future, the same priority": Weight([FUTURE % ("0", 200_000)], [ANALYZE]),
    "200,000 future, one higher priority": Weight([FUTURE % ("10", 200_000)], [ANALYZE]),
    "200,000 future, five higher priorities": Weight([FUTURE % ("1 + n % 5", 200_000)], [ANALYZE]),
    "200,000 future, 50 higher priorities": Weight([FUTURE % ("1 + n % 50", 200_000)], [ANALYZE]),
    "200,000 future, 1,000 higher priorities": Weight([FUTURE % ("1 + n % 1000", 200_000)], [ANALYZE]),
    "due rows at 100 priorities": Weight(after=["update job_queue set priority = id_hash(id) % 100", ANALYZE]),
    "statistics of an empty table": Weight(["analyze job_queue", ENDED % ("completed", 200_000), OTHERS]),
    "no statistics, no vacuum": Weight([ENDED % ("completed", 200_000), OTHERS]),
    "10,000 claimed and completed under a held snapshot": Weight([DUE % 10_000, ANALYZE, CHURN], holds_snapshot=True),
}
HASH = "create function id_hash(uuid) returns integer language sql as 'select abs(hashtext($1::text))'"
STOP_VACUUM = "alter table job_queue set (autovacuum_enabled = false)"


@contextmanager
def laden(server: Server, weight: Weight, due: int) -> Iterator[tuple[Any, Any]]:
    """A worker's and an owner's session in a database with that weight and so many due jobs."""
    database = server.create_database()
    database.add_job_type("b", "worker_bench")
    owner, worker = database.connect(), database.connect("worker_bench")
    for statement in (HASH, STOP_VACUUM, "set session_replication_role = replica"):
        owner.execute(statement)
    if weight.holds_snapshot:
        holder = database.connect(autocommit=False)
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from job_queue")
    for statement in [*weight.before, DUE % due, *weight.after]:
        owner.execute(statement)
    worker.execute("select register_worker('w', 'b', '1', 'host', 1)")
    yield worker, owner
    database.close()


def claim(conn: Any, count: int) -> tuple[float, int]:
    """Milliseconds and pages of a claim."""
    statement = f"explain (analyze, buffers, timing off, format json) select * from claim_jobs('b', 'w', {count:d})"
    plan = conn.execute(statement.encode()).fetchone()[0][0]
    return plan["Execution Time"], plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]


def measure(sessions: dict[str, Any], count: int, rounds: int) -> dict[str, tuple[float, float]]:
    seen: dict[str, list[tuple[float, int]]] = {name: [] for name in sessions}
    for number in range(rounds + WARMING_ROUNDS):
        for name, (worker, owner) in sessions.items():
            cost = claim(worker, count)
            owner.execute(COMPLETE)
            if number >= WARMING_ROUNDS:
                seen[name].append(cost)
    middle: Callable[[Any], float] = statistics.median
    return {name: (middle([ms for ms, _ in costs]), middle([p for _, p in costs])) for name, costs in seen.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {name: {} for name in WEIGHTS}
    due = sum(COUNTS) * (options.rounds + WARMING_ROUNDS) + 1_000
    with tempfile.TemporaryDirectory(prefix="jobbko-bench-") as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)  # root's server runs as another user
        settings = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
        postgres = stack.enter_context(EmbeddedPostgres(Path(folder) / "server", settings=settings))
        server = Server(postgres.dsn())
        server.prepare()
        sessions = {name: stack.enter_context(laden(server, weight, due)) for name, weight in WEIGHTS.items()}
        for count in COUNTS:
            costs = measure(sessions, count, options.rounds)
            base = costs["nothing"]
            for name, (ms, touched) in costs.items():
                ratio = round(ms / base[0], 2)
                results[name][str(count)] = {"ms": round(ms, 3), "pages": touched, "ratio": ratio}
    print("\n| weight | claim of 1: ms, pages, ratio | of 10 | of 100 |\n|---|---|---|---|")
    for name, by_count in results.items():
        cells = [f"{cost['ms']:.3f}, {cost['pages']:,.0f}, {cost['ratio']:.2f}" for cost in by_count.values()]
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"Load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(json.dumps({"rounds": options.rounds, "weights": results}))


if __name__ == "__main__":
    main()
