"""What goes wrong during a soak: processes die, stop and come back, connections break, the server goes, people act."""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from demo.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from tests.databases import Database
from tests.tcp_proxy import Proxy
from tests.worker_processes import WorkerProcess, WorkerProcesses

HANDLERS = Path(__file__).with_name("soak_handlers.py")
CREW = ("quick", "quick", "slow", "slow", "failing", "failing", "follow", "follow", "unique")
VICTIMS = "select id from job_queue where status = 'running' and worker_id like %s"
BUSY = "select distinct split_part(worker_id, ':', 2) as pid from job_queue where status = 'running'"
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
 where application_name like 'jobbko %' and random() < 0.5
"""
AGE = """
update job_queue set completed_at = completed_at - interval '2 days'
 where id in (select id from job_queue where status in ('completed', 'error') order by completed_at limit 300
                 for update skip locked)
"""
RETRY = """
select * from act_on_jobs('retry', array(select id from job_queue where status = 'error' limit 10), '{error}')
"""
CANCEL = """
select * from act_on_jobs('cancel', array(
    select id from job_queue where status in ('pending', 'running') and coalesce(unique_key, '') not like 'schedule:%'
     order by random() limit 3), '{pending,running}', 'soak')
"""


class Crew:
    """The worker processes, each replaced as soon as it has ended. Half of them go through a proxy."""

    def __init__(self, database: Database, proxy: Proxy, folder: Path) -> None:
        self._database, self._proxy = database, proxy
        self._processes = WorkerProcesses(folder)
        self.places: list[WorkerProcess | None] = [None] * len(CREW)
        self.started: list[WorkerProcess] = []
        self.frozen: set[int] = set()

    def fill(self) -> None:
        """Starts a worker in each place where none lives."""
        for number, name in enumerate(CREW):
            worker = self.places[number]
            if worker is not None and worker.is_alive():
                continue
            with contextlib.suppress(psycopg.Error):  # the server is away: next time
                self.places[number] = self._start(number, name)

    def _start(self, number: int, name: str) -> WorkerProcess:
        dsn = self._database.dsn("worker_test")
        environ = {"LOG_LEVEL": "warning", "DATABASE_URL": self._proxy.dsn(dsn) if number % 2 else dsn}
        worker = self._processes.start(
            self._database,
            HANDLERS,
            function=name,
            job_type=f"soak_{name}",
            environ=environ,
            drain_seconds=1,
            ready=False,
        )
        self.started.append(worker)
        return worker

    def one(self, pids: set[int] | None = None) -> WorkerProcess | None:
        """One at random that may go: another of its kind lives and has registered, or recovery would measure how long
        a process takes to start. Only of these, where they are given."""
        registered = {row["pid"] for row in self._database.rows("select pid from worker")} - self.frozen
        living: dict[str, list[WorkerProcess]] = {}
        for name, worker in zip(CREW, self.places, strict=True):
            if worker is not None and worker.is_alive() and worker.pid in registered:
                living.setdefault(name, []).append(worker)
        spare = [worker for kind in living.values() if len(kind) > 1 for worker in kind]
        if pids is not None:
            spare = [worker for worker in spare if worker.pid in pids]
        return random.choice(spare) if spare else None  # noqa: S311

    def end(self) -> list[int]:
        """Asks all to stop; returns their exit codes."""
        living = [worker for worker in self.places if worker is not None and worker.is_alive()]
        for worker in living:
            worker.terminate()
        return [worker.wait(30) for worker in living]

    def end_hard(self) -> None:
        for worker in self.started:
            worker.end()

    def lost_in_logs(self) -> int:
        """Endings that the fence refused, as the workers told them."""
        return sum(worker.log_text().count('"outcome": "lost_lease"') for worker in self.started)


class Chaos:
    """Does one thing after the other at random, and remembers what."""

    def __init__(self, database: Database, postgres: EmbeddedPostgres, proxy: Proxy, crew: Crew, lease: float) -> None:
        self._database, self._postgres, self._proxy, self._crew, self._lease = database, postgres, proxy, crew, lease
        self.counts: Counter[str] = Counter()
        self.deaths: list[tuple[float, list[Any]]] = []
        self.outages: list[tuple[float, float]] = []
        self._thaw_at: dict[int, tuple[float, WorkerProcess]] = {}
        self._timers: list[threading.Thread] = []
        self._actions: list[tuple[Callable[[], None], int]] = [
            (self.kill, 40), (self.freeze, 16), (self.terminate, 10), (self.cut, 8), (self.silence, 2),
            (self.operate, 16), (self.retain, 20), (self.hold_snapshot, 3), (self.restart_server, 1),
            (self.kill_server, 1),
        ]  # fmt: skip

    def step(self, action: Callable[[], None] | None = None) -> None:
        """One thing, this one or any. A server that is just away makes it fail, which is no fault."""
        self._thaw(time.monotonic())
        if action is None:
            action = random.choices([a for a, _ in self._actions], [w for _, w in self._actions])[0]  # noqa: S311
        with contextlib.suppress(psycopg.Error):
            action()
            self.counts[action.__name__] += 1

    def end(self) -> None:
        self._thaw(float("inf"))
        self._proxy.thaw()
        for timer in self._timers:
            timer.join(30)

    def kill(self) -> None:
        """One that runs something, where there is one: an idle one leaves nothing behind."""
        busy = {int(row["pid"]) for row in self._database.rows(BUSY)}
        if (worker := self._crew.one(busy) or self._crew.one()) is not None:
            died = time.time()
            worker.kill()
            rows = self._database.rows(VICTIMS, f"%:{worker.pid}:%")
            self.deaths.append((died, [row["id"] for row in rows]))

    def freeze(self) -> None:
        """For less than the lease or for more: a dead man comes back and wants to write."""
        if len(self._thaw_at) < 2 and (worker := self._crew.one()) is not None:
            worker.freeze()
            self._crew.frozen.add(worker.pid)
            seconds = random.uniform(0.2, 2.5) * self._lease  # noqa: S311
            self._thaw_at[worker.pid] = (time.monotonic() + seconds, worker)

    def terminate(self) -> None:
        if (worker := self._crew.one()) is not None:
            worker.terminate()

    def cut(self) -> None:
        self._database.rows(CUT)

    def silence(self) -> None:
        """Connections stay open, and nothing passes."""
        self._outage(self._proxy.freeze, lambda: time.sleep(random.uniform(1, 4)), self._proxy.thaw)  # noqa: S311

    def operate(self) -> None:
        self._database.rows(RETRY)
        self._database.rows(CANCEL)
        if random.random() < 0.3:  # noqa: S311
            self._database.rows("select pause_job_type('soak_unique', now() + interval '1 second', 'soak')")

    def retain(self) -> None:
        """Time flies for jobs that ended, and every look at them finds some to delete."""
        self._database.rows(AGE)
        self._database.rows("update retention set next_at = now()")

    def hold_snapshot(self) -> None:
        """Of a reader who forgot to commit: dead rows cannot be removed meanwhile."""

        def hold() -> None:
            with contextlib.suppress(psycopg.Error), psycopg.connect(self._database.dsn()) as conn:
                conn.execute("set transaction isolation level repeatable read")
                conn.execute("select count(*) from job_queue")
                time.sleep(10)

        self._later(hold)

    def restart_server(self) -> None:
        self._outage(self._postgres.stop, lambda: time.sleep(random.uniform(0, 3)), self._postgres.start)  # noqa: S311

    def kill_server(self) -> None:
        self._outage(self._postgres.kill, self._start_again)

    def _start_again(self) -> None:
        """The kernel may take a moment to end the last process of a killed server, which a new one waits for."""
        for _ in range(10):
            with contextlib.suppress(EmbeddedPostgresError):
                self._postgres.start()
                return
            time.sleep(0.5)
        self._postgres.start()

    def _outage(self, *parts: Callable[[], object]) -> None:
        begun = time.time()
        for part in parts:
            part()
        # Workers take a moment to find their way back.
        self.outages.append((begun, time.time() + 2))

    def _thaw(self, now: float) -> None:
        for pid, (at, worker) in list(self._thaw_at.items()):
            if now >= at:
                del self._thaw_at[pid]
                self._crew.frozen.discard(pid)
                if worker.is_alive():
                    worker.thaw()

    def _later(self, work: Callable[[], None]) -> None:
        timer = threading.Thread(target=work, daemon=True)
        self._timers.append(timer)
        timer.start()
