"""Every page that the overview leads to, as an operator and as a viewer: HTML valid, axe content, the policy kept, no
link broken, nothing wider than a phone, light and dark.

A route is looked at twice at most, with different parameters. Pages of other parts are found by themselves.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import msgspec
import pytest
from psycopg.types.json import Jsonb

from sidelinja_jobs.payload_schema import payload_schema
from tests.databases import Database
from tests.services.admin_crawl import LOOKS, Crawl, invalid
from tests.services.admin_site import OPERATOR, VIEWER, AdminSite, logged_in_page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e 'quoted' \"twice\" & {{ 7*7 }}"
LONG = {name: uuid4() for name in ("long", "clip", "analysis")}  # jobs of which much is to be shown
STARTS = ["/", *(f"/jobs/{job_id}" for job_id in LONG.values()), f"/jobs/{LONG['clip']}/result"]
SEED = [
    """insert into job_queue (job_type, payload, status, started_at, progress, progress_note, worker_id, lease_until)
       values ('test_job', %(payload)s, 'running', now(), 0.4, %(hostile)s, 'w1', now() + interval '1 minute')""",
    """insert into worker (worker_id, job_type, role, version, host, pid)
       values ('w1', 'test_job', 'worker_test', %(hostile)s, %(hostile)s, 7)""",
    """insert into job_queue (job_type, payload, status, attempts, completed_at, error_class, error_msg)
       select 'test_job', %(payload)s, 'error', 3, now(), 'crash', %(hostile)s from generate_series(1, 3)""",
    """insert into job_queue (job_type, payload, status, attempts, scheduled_for, error_class, error_msg)
       values ('test_job', %(payload)s, 'retry', 1, now() + interval '1 hour', 'crash', %(hostile)s)""",
    "insert into job_queue (job_type, payload) values (%(hostile)s, %(payload)s), ('test_job', %(payload)s)",
    """insert into job_queue (job_type, payload, status, completed_at, result)
       values ('test_job', %(payload)s, 'completed', now(), %(payload)s)""",
    """insert into job_queue (id, job_type, payload, status, completed_at, error_class, error_msg)
       select %(long)s, 'test_job', jsonb_build_object('lines', array(select n from generate_series(1, 200) as n)),
              'error', now(), 'long', repeat(E'a line\n', 200)""",
    """insert into job_attempt (job_id, attempt, started_at, outcome, charged, error_msg, traceback)
       values (%(long)s, 1, now(), 'failed', true, repeat(E'a line\n', 200), repeat(E'a line\n', 200))""",
    """insert into job_queue (id, job_type, payload, status, completed_at, result) values
       (%(clip)s, 'research_clip', '{}', 'completed', now(),
        jsonb_build_object('schema_version', 1, 'markdown', repeat(E'A paragraph.\n\n', 200),
                           'clean_text', repeat(E'A paragraph.\n\n', 200),
                           'claims', '[{"text": "A", "quote": "A", "start": 0, "end": 1}]'::jsonb)),
       (%(analysis)s, 'openrouter_analyze', '{}', 'completed', now(),
        jsonb_build_object('schema_version', 1, 'title', 'A', 'shownotes_md', repeat(E'A paragraph.\n\n', 200)))""",
    "update job_type set payload_schema = %(schema)s",
    "insert into job_schedule (name, job_type, every) values (%(hostile)s, 'stats_parse', '1 day')",
    "select pause_job_type('other_job', now() + interval '1 day', %(hostile)s)",
    "select * from sweep_jobs()",
    """insert into llm_call (job_id, job_type, lease_token, step, request_hash, state, model, reserved_usd)
       values (gen_random_uuid(), 'test_job', gen_random_uuid(), 'x', repeat('a', 64), 'unknown', %(hostile)s, 0.5)""",
    "insert into stats.day (day, state) values (current_date, 'open')",
    """insert into stats.download_day values
           (current_date, %(hostile)s, %(hostile)s, %(hostile)s, 'app', %(hostile)s, 'NO', 'x', 7, 7)""",
    "insert into stats.listener_day values (current_date, %(hostile)s, 7)",
    "insert into stats.download_hour values (now(), current_date, %(hostile)s, %(hostile)s, 7)",
    "insert into stats.referrer_day values (current_date, %(hostile)s, %(hostile)s, %(hostile)s, 7)",
    "select record_audit('job.cancel', gen_random_uuid(), %(hostile)s, %(payload)s)",
]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_page_is_in_order_for_an_operator_and_for_a_viewer(
    browser: Any, admin_site: AdminSite, tmp_path: Path
) -> None:
    seed(admin_site.database)
    problems: list[str] = []
    seen: dict[str, Counter[str]] = {}
    for account in (OPERATOR, VIEWER):
        with logged_in_page(browser, admin_site, account) as page:
            crawl = Crawl(page, tmp_path / account)
            crawl.walk(STARTS, looks=LOOKS if account == OPERATOR else LOOKS[:1])
            seen[account] = crawl.seen
            problems += crawl.problems
    problems += invalid(tmp_path)

    assert problems == [], "\n".join(problems)
    assert set(seen[OPERATOR]) >= {"overview", "workers", "schedules", "statistics", "spend", "audit", "ask_pause"}
    assert set(seen[OPERATOR]) > set(seen[VIEWER])


class EveryField(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A payload with a field of each kind that a form has."""

    path: str
    text: str = ""
    kind: Literal["a", "b"] | None = None
    kinds: tuple[Literal["a", "b"], ...] = ("a",)
    names: tuple[str, ...] = ()
    count: int = 3
    share: float | None = None
    is_on: bool = False
    rest: dict[str, Any] = {}
    episode_id: str | int | None = None


def seed(database: Database) -> None:
    """Jobs of every status, and a hostile text wherever a text can come from outside."""
    values = {"hostile": HOSTILE, "schema": Jsonb(payload_schema(EveryField))}
    values |= LONG
    values["payload"] = Jsonb({"path": HOSTILE, HOSTILE: [1, None, {"deep": HOSTILE}]})
    for statement in SEED:
        named = re.findall(r"%\((\w+)\)s", statement)
        database.rows(re.sub(r"%\(\w+\)s", "%s", statement), *(values[name] for name in named))
