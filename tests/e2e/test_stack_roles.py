"""What the logins of the running stack may do: tried from the containers, each with the secret that it has.

That each may do what it has to is shown by the other tests of this folder, in which they do it.
"""

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from tests.deploy.stack import JOB_TYPES
from tests.e2e.running_stack import RunningStack
from tests.queue.role_rights import (
    COLUMN,
    FUNCTIONS,
    LIFTS,
    MAY,
    MAY_EXECUTE,
    OWN_FUNCTIONS,
    STATEMENTS,
    TABLES,
    calls_with_nulls,
    is_past_the_check,
)

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(600)]

Name = TypeVar("Name")
PROBE = (Path(__file__).parent / "inside.py").read_text()
# Service -> login, and the name that its rights have in role_rights.py.
OF_CONTAINERS = {name: (job_type.role, "worker_test") for name, job_type in JOB_TYPES.items()} | {
    "admin": ("jobbko_admin", "admin"),
    "delivery": ("jobbko_delivery", "delivery"),
}
# Logins without a container: other programs', people's, and that of the command line.
OF_OTHERS = {f"jobbko_{name}": name for name in ("operator", "producer", "plain", "metrics", "reader")}
RIGHTS = dict(OF_CONTAINERS.values()) | OF_OTHERS
DATABASES = ("postgres", "template1")
MISTYPED = ("42601", "42883", "42703", "42P01", "42804", "22P02")  # what is refused for that proves nothing
WRITE_STATISTICS = "update stats.day set downloads = 0 where false"
READ_TRANSCRIPT = "select read_transcript(gen_random_uuid())"
# Functions of workers that are asked about no run: enqueuing is tried above, the others look at what all may see.
OF_NOBODY = FUNCTIONS["enqueue"] | FUNCTIONS["transcribe"] | {"sweep_jobs"}
STATS_READERS = {"worker_stats", "jobbko_admin", "jobbko_operator", "jobbko_reader"}


def ask(stack: RunningStack, service: str, statements: list[str], **more: Any) -> dict[str, Any]:
    """What the probe tells from inside the service's container."""
    asked = {"logins": {OF_CONTAINERS[service][0]: None}, "databases": [], "addresses": [], "is_kept": False} | more
    container = stack.containers(service)[0]
    text = json.dumps(asked | {"statements": statements})
    return dict(json.loads(stack.run("docker", "exec", "-i", container, "python", "-c", PROBE, input=text).stdout))


def ask_each(stack: RunningStack, statements: list[str]) -> dict[str, dict[str, Any]]:
    """Of every login: those of containers from there, the others' from one of the command line."""
    told: dict[str, dict[str, Any]] = {}
    for service, (role, _) in OF_CONTAINERS.items():
        told[role] = ask(stack, service, statements, databases=DATABASES)[role]
    listed = "cd /secrets && grep -H . */password"
    found = stack.compose("run", "--rm", "--no-deps", "-T", "secrets", "sh", "-c", listed).splitlines()
    passwords = {line.partition("/")[0]: line.partition(":")[2] for line in found}
    asked = {
        "logins": {role: passwords[name] for role, name in OF_OTHERS.items()},
        "statements": statements, "databases": DATABASES, "addresses": [], "is_kept": False,
    }  # fmt: skip
    others = stack.compose("run", "--rm", "-T", "--entrypoint", "python", "jobs", "-c", PROBE, input=json.dumps(asked))
    return told | {role: answer for role, answer in json.loads(others).items() if role in OF_OTHERS}


@dataclass(frozen=True)
class Tries:
    """What is tried as each login, once for all tests, and what came of it."""

    tables: dict[tuple[int, str], str]  # kind of statement, table -> statement
    calls: dict[str, str]  # name of a function -> statement
    statistics: dict[str, str]  # table of the schema stats -> statement
    enqueues: dict[str, str]  # job type -> statement
    told: dict[str, dict[str, Any]]  # login -> what the probe told

    def answers(self, role: str, statements: Iterable[str]) -> list[tuple[str | None, str]]:
        """SQLSTATE and message of each."""
        found = {one[0]: one[1:] for one in self.told[role]["statements"]}
        return [(found[statement][0], found[statement][1]) for statement in statements]

    def past(self, role: str, named: dict[Name, str]) -> set[Name]:
        """Those that PostgreSQL let through."""
        answers = self.answers(role, named.values())
        return {name for name, answer in zip(named, answers, strict=True) if is_past_the_check(*answer)}


@pytest.fixture(scope="module")
def tries(stack: RunningStack) -> Tries:
    kinds = (*STATEMENTS, "truncate {table}")
    tables = {
        (kind, table): statement.format(table=table, column=COLUMN[table])
        for kind, statement in enumerate(kinds)
        for table in TABLES
    }
    calls = calls_with_nulls(json.loads(stack.sql(f"select json_agg(found) from ({OWN_FUNCTIONS}) as found")))
    found = stack.sql("select relname from pg_class where relnamespace = 'stats'::regnamespace and relkind = 'r'")
    statistics = {name: f"select * from stats.{name} limit 0" for name in found.split()}
    enqueues = {one.name: f"select enqueue_job('{one.name}', '{{}}')" for one in JOB_TYPES.values()}
    named: tuple[dict[Any, str], ...] = (tables, calls, statistics, enqueues)
    every = [statement for one in named for statement in one.values()]
    told = ask_each(stack, [*every, *LIFTS, WRITE_STATISTICS, READ_TRANSCRIPT])
    return Tries(tables, calls, statistics, enqueues, told)


def test_each_login_does_exactly_what_its_role_may(tries: Tries) -> None:
    """The same list as for the server of the tests: tables, functions, and what nobody may."""
    assert tries.told.keys() == RIGHTS.keys()
    for role, name in RIGHTS.items():
        allowed = {(kind, table) for kind, tables in enumerate(MAY[name]) for table in tables}
        assert tries.past(role, tries.tables) == allowed, role
        assert tries.past(role, tries.calls) == MAY_EXECUTE[name], role
        lifts = zip(LIFTS, tries.answers(role, LIFTS), strict=True)
        assert [lift for lift, (sqlstate, _) in lifts if sqlstate != "42501"] == [], role
        assert all("permission denied for database" in error for error in tries.told[role]["databases"]), role


def test_the_statistics_are_their_workers_and_the_readers_alone(tries: Tries) -> None:
    assert {role for role in RIGHTS if tries.past(role, tries.statistics)} == STATS_READERS
    assert {role for role in RIGHTS if tries.past(role, {"day": WRITE_STATISTICS})} == {"worker_stats"}


def test_a_worker_enqueues_its_types_and_what_follows_on_them(tries: Tries) -> None:
    """And the one that analyses transcripts may read them: no other."""
    for service, job_type in JOB_TYPES.items():
        answers = zip(tries.enqueues, tries.answers(job_type.role, tries.enqueues.values()), strict=True)
        may_enqueue = {name for name, (sqlstate, _) in answers if sqlstate != "42501"}
        ((may_read, _),) = tries.answers(job_type.role, [READ_TRANSCRIPT])

        assert may_enqueue == {job_type.name, *job_type.follow_ups}, service
        assert (may_read != "42501") == (service == "openrouter")


@dataclass(frozen=True)
class Run:
    """A run of somebody else's, with all that an attacker could have learned of it."""

    id: str
    token: str
    finished_id: str
    job_type: str

    @property
    def worker(self) -> str:
        return f"somebody at {self.job_type}"


def rows_of(run: Run, word: str) -> str:
    return f"""
        insert into job_queue (id, job_type, payload, status, started_at, worker_id, lease_token, lease_until)
        values ('{run.id}', '{run.job_type}', '{{"word": "{word}"}}', 'running', now(), '{run.worker}',
                '{run.token}', now() + interval '1 hour');
        insert into job_queue (id, job_type, payload, status, result, completed_at)
        values ('{run.finished_id}', '{run.job_type}', '{{}}', 'completed', '{{"word": "{word}"}}', now());
        insert into job_checkpoint (job_id, seq, lease_token, data)
        values ('{run.id}', 1, '{run.token}', '{{"word": "{word}"}}');
        insert into llm_call (id, job_id, job_type, lease_token, step, request_hash, state, model, reserved_usd,
                              response)
        values ('{run.id}', '{run.id}', '{run.job_type}', '{run.token}', 'kept', repeat('0', 64), 'sent', 'm', 0,
                '{word}');
        insert into worker (worker_id, job_type, role, version, host, pid, seen_at)
        select '{run.worker}', name, role, '1', 'somewhere', 1, now() + interval '1 hour'
          from job_type where name = '{run.job_type}'"""


@pytest.fixture(scope="module")
def runs(stack: RunningStack) -> Iterator[tuple[str, list[Run]]]:
    """Of each type one run, whose payload, checkpoint, model's answer and an older result hold a word to be kept."""
    word = f"kept-{secrets.token_hex(8)}"
    made = [Run(str(uuid4()), str(uuid4()), str(uuid4()), job_type.name) for job_type in JOB_TYPES.values()]
    stack.sql(";".join(rows_of(run, word) for run in made))
    yield word, made
    ids = ", ".join(f"'{one}'" for run in made for one in (run.id, run.finished_id))
    stack.sql(f"delete from llm_call where job_id in ({ids}); delete from job_queue where id in ({ids})")
    stack.sql("delete from worker where worker_id like 'somebody at %'")


def attacks(run: Run) -> list[str]:
    """Calls of every function that takes a run, a worker or a type, with another's."""
    named, named_in_lists = f"'{run.id}', '{run.token}'", f"array['{run.id}'::uuid], array['{run.token}'::uuid]"
    return [
        *(
            f"select * from {call}"
            for call in (
                f"confirm_run({named})",
                f"read_checkpoints({named})",
                f"write_checkpoint({named}, '{{}}', 2)",
                f"drop_checkpoints({named})",
                f"complete_job({named}, '{{}}')",
                f"complete_jobs({named_in_lists}, array['{{}}'::jsonb])",
                f"complete_runs({named_in_lists}, array['{{}}'::jsonb])",
                f"fail_job({named}, 'X', 'x', null, true, null)",
                f"postpone_job({named}, now() + interval '1 hour', 'x')",
                f"take_turn({named}, 30, true)",
                f"end_line({named})",
                f"release_job({named}, 'x')",
                f"release_jobs({named_in_lists}, 'x')",
                f"extend_leases({named_in_lists}, array[0.5]::real[], array['mine'])",
                f"run_outcome({named})",
                f"release_strays('{run.worker}', '{{}}', 0)",
                f"find_llm_calls({named}, 'kept', repeat('0', 64))",
                f"sum_llm_calls({named})",
                f"discard_llm_calls({named}, 'kept', array[repeat('0', 64)])",
                f"mark_llm_call_sent('{run.id}')",
                f"note_llm_generation('{run.id}', 'mine')",
                f"settle_llm_call('{run.id}', 'received', 0, 'provider')",
                f"reserve_llm_call({named}, 'mine', repeat('1', 64), 'm', 1, 1, 1)",
                f"read_transcript('{run.id}')",
                f"claim_jobs('{run.job_type}', '{run.worker}', 100)",
                f"register_worker('{run.worker}', '{run.job_type}', 'x', 'x', 1, null)",
                f"beat_worker('{run.worker}')",
                f"set_worker_idle('{run.worker}')",
                f"unregister_worker('{run.worker}')",
                f"pause_job_type('{run.job_type}', now() + interval '1 hour', 'x', 'worker', 'x')",
                f"resume_own_pause('{run.job_type}', array['x'])",
                f"cancel_job('{run.id}', 'x')",
                f"retry_job('{run.finished_id}')",
            )
        ),
        f"select payload, result from job_queue where id in ('{run.id}', '{run.finished_id}')",
        f"update job_queue set result = '{{}}' where id = '{run.finished_id}'",
        "update job_type set paused_at = null",
    ]


def test_every_function_of_a_worker_is_tried() -> None:
    tried = {call[1] for attack in attacks(Run("", "", "", "")) if (call := re.search(r"from (\w+)\(", attack))}

    assert MAY_EXECUTE["worker_test"] - tried == OF_NOBODY


@pytest.mark.parametrize("service", sorted(JOB_TYPES))
def test_a_worker_neither_sees_nor_changes_anothers_jobs(
    stack: RunningStack, runs: tuple[str, list[Run]], service: str
) -> None:
    """Though it knows their ids and tokens, and what it tries would be kept."""
    word, made = runs
    foreign = [run for run in made if run.job_type != JOB_TYPES[service].name]
    ids = ", ".join(f"'{one}'" for run in foreign for one in (run.id, run.finished_id))
    state = f"""
        select (select json_agg(to_jsonb(job_queue) order by id) from job_queue where id in ({ids})),
               (select json_agg(to_jsonb(kept) order by job_id) from job_checkpoint as kept where job_id in ({ids})),
               (select json_agg(to_jsonb(llm_call) order by job_id, id) from llm_call where job_id in ({ids})),
               (select json_agg(to_jsonb(job_type) order by name) from job_type),
               (select json_agg(to_jsonb(worker) order by worker_id) from worker where worker_id ~ '^somebody at')"""
    before = stack.sql(state)
    statements = [attack for run in foreign for attack in attacks(run)]
    told = ask(stack, service, statements, is_kept=True)[JOB_TYPES[service].role]["statements"]

    assert [one for one in told if word in json.dumps(one[1:])] == []
    assert [one for one in told if one[1] in MISTYPED] == []
    assert stack.sql(state) == before


def test_people_who_look_read_and_change_nothing(stack: RunningStack) -> None:
    """With the password that `make password` shows, and what `make psql` does with it."""
    assert len(stack.make("password", "ROLE=jobbko_reader")) == 32

    def psql(statement: str) -> tuple[int, str]:
        done = stack.run("make", "psql", "ROLE=jobbko_reader", f"SQL={statement}",
                         "COMPOSE=docker compose --env-file /dev/null", check=False)  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    assert psql("select count(*) from job_queue")[0] == 0
    for statement in (
        "update job_queue set priority = 1",
        "delete from job_queue",
        "select cancel_job(gen_random_uuid())",
    ):
        code, text = psql(statement)
        assert code != 0
        assert "permission denied" in text
