"""What somebody with the stack at hand does to it: rows, an open psql, secrets."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.databases import ROOT
from tests.e2e.running_stack import RunningStack


def insert(stack: RunningStack, job_type: str, payload: str, due: str = "now()") -> str:
    """Enqueues by plain SQL, as other programs do; returns the id."""
    values = f"values ('{job_type}', '{payload}', {due}) returning id"
    return stack.sql(f"insert into job_queue (job_type, payload, scheduled_for) {values}").split()[0]


def cancel(stack: RunningStack, job_type: str) -> None:
    waiting = f"job_type = '{job_type}' and status in ('pending', 'retry')"
    stack.sql(f"select cancel_job(id, 'end of a test') from job_queue where {waiting}")


def samples(stack: RunningStack, count: int, name: str) -> list[str]:
    """Jobs that take some seconds each, enqueued at one moment."""
    for number in range(count):
        stack.add_sample(f"{name}-{number}.mp3")
    return [
        insert(stack, "whisper_transcribe", f'{{"path": "{name}-{number}.mp3", "language": "en"}}')
        for number in range(count)
    ]


def started(stack: RunningStack, *arguments: str) -> "subprocess.Popen[str]":
    """`docker compose …`, to be talked with."""
    command = ("docker", "compose", "--env-file", "/dev/null", *arguments)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=stack.environ, stdin=pipe, stdout=pipe, text=True)


@contextmanager
def session(stack: RunningStack, *statements: str) -> Iterator[None]:
    """A psql in which somebody has typed this, and that is left open."""
    command = "PGPASSWORD=$(cat /run/secrets/superuser) exec psql -h 127.0.0.1 -U postgres -d jobbko -v ON_ERROR_STOP=1"
    psql = started(stack, "exec", "-T", "db", "sh", "-c", command)
    assert psql.stdin is not None
    assert psql.stdout is not None
    try:
        psql.stdin.write(";\n".join([*statements, "select 'typed'"]) + ";\n")
        psql.stdin.flush()
        assert any("typed" in line for line in iter(psql.stdout.readline, ""))
        yield
    finally:
        psql.communicate("rollback;\n", timeout=30)


def give(stack: RunningStack, **secrets: str) -> None:
    """What `make secret` does, without the restart of who reads it."""
    for name, secret in secrets.items():
        command = ("python", "-m", "services.admin.secrets", "give", name)
        stack.compose("run", "--rm", "--no-deps", "-T", "secrets", *command, input=f"{secret}\n")
