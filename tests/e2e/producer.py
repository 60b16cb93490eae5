"""A foreign program beside the stack, in a container of its own, that enqueues without pause by plain SQL.

Ids are its own: what was refused is told and sent again, since the database may have taken it. So each job that its log
calls asked is there exactly once, or was lost.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from tests.e2e.running_stack import RunningStack

PROGRAM = """
import itertools, json, pathlib, psycopg, sys, time, uuid
password = pathlib.Path("/run/secrets/plain/password").read_text().strip()
address = f"postgresql://jobbko_plain:{password}@db/jobbko?connect_timeout=2"
statement = "insert into job_queue (id, job_type, payload) values (%s, %s, %s) on conflict (id) do nothing"
orders = [(order["every"], order["job_type"], itertools.cycle(order["payloads"])) for order in json.loads(sys.argv[1])]
due, unsent, conn = [time.monotonic()] * len(orders), [], None
while True:
    for number, (every, job_type, payloads) in enumerate(orders):
        if time.monotonic() >= due[number]:
            due[number] += every
            unsent.append((uuid.uuid4(), job_type, json.dumps(next(payloads))))
    try:
        conn = conn or psycopg.connect(address, autocommit=True)
        while unsent:
            conn.execute(statement, unsent[0])
            print("asked", *unsent.pop(0)[:2], flush=True)
    except psycopg.OperationalError as error:
        conn = None
        print("refused", time.time(), str(error).splitlines()[0], flush=True)
    time.sleep(0.1)
"""


@dataclass(frozen=True)
class Order:
    """One job of a type every so many seconds, its payloads in turn."""

    job_type: str
    every: float
    payloads: Sequence[dict[str, Any]]


class Producer:
    """What the program has told so far."""

    def __init__(self, stack: RunningStack, container: str) -> None:
        self._stack, self._container = stack, container

    def asked(self) -> dict[str, str]:
        """Job type of each job that the database took, by its id."""
        return {line.split()[1]: line.split()[2] for line in self._lines("asked")}

    def refused(self) -> list[float]:
        """When the database did not take one, in seconds since 1970."""
        return [float(line.split()[1]) for line in self._lines("refused")]

    def stop(self) -> None:
        self._stack.run("docker", "stop", self._container)

    def _lines(self, first_word: str) -> list[str]:
        log = self._stack.run("docker", "logs", self._container).stdout.splitlines()
        return [line for line in log if line.startswith(first_word)]


@contextmanager
def producing(stack: RunningStack, orders: Sequence[Order]) -> Iterator[Producer]:
    """Enqueues as the role jobbko_plain until this ends."""
    told = json.dumps([asdict(order) for order in orders])
    # The service `migrate` has the network and all passwords; nothing else of it is used.
    program = ("run", "--detach", "--no-deps", "--entrypoint", "python", "migrate", "-c", PROGRAM, told)
    container = stack.compose(*program)
    try:
        yield Producer(stack, container)
    finally:
        stack.run("docker", "rm", "--force", container)
