"""What must be true of every job after the stack's soak, asked of its database in SQL."""

import json
from contextlib import suppress
from typing import Any

from tests.e2e.running_stack import RunningStack
from tests.queue.queue_laws import LAWS
from tests.waiting import wait_until

SCHEDULES = "schedules without exactly one run to come"
SWEEP_SECONDS = 30  # in which a sweep queues the run after one that has just ended, on a busy machine
# Each statement finds jobs for which the account does not balance.
ACCOUNTS = {
    "not ended": """
        select id from job_queue where status in ('pending', 'retry', 'running') and job_type <> 'stats_parse'
    """,
    "completed twice": """
        select job_id from job_event where new_status = 'completed' group by job_id having count(*) > 1
    """,
    "in error, though nothing was wrong with it": """
        select id from job_queue where status = 'error'
           and (error_class, job_type) not in (('bad_payload', 'research_clip'), ('cancelled', 'nobodys'))
    """,
    "wrong, and yet completed": """
        select id from job_queue where payload ? 'nonsense' and error_class is distinct from 'bad_payload'
    """,
    "transcripts without exactly one analysis": """
        select job.id from job_queue as job left join job_queue as child on child.parent_id = job.id
         where job.job_type = 'whisper_transcribe' and job.status = 'completed'
         group by job.id having count(child.id) <> 1
    """,
    SCHEDULES: """
        select name from job_schedule left join job_queue
            on unique_key = 'schedule:' || name and status in ('pending', 'retry', 'running')
         group by name having count(id) <> 1
    """,
    "laws of the queue": f"select law || ' ' || job_id from ({LAWS}) as broken_",
}
FIGURES = """
select json_build_object(
    'jobs', (select count(*) from job_queue),
    'completed', (select json_object_agg(job_type, count) from (
        select job_type, count(*) as count from job_queue where status = 'completed' group by 1) as by_type),
    'runs', (select count(*) from job_event where new_status = 'running'),
    'runs_by_end', (select json_object_agg(outcome, count) from (
        select outcome, count(*) as count from job_attempt group by 1) as by_outcome),
    'lines_counted', (select coalesce(sum(lines + bad), 0) from stats.file),
    'calls_in_ledger', (select count(*) from llm_call),
    'database_mb', pg_database_size(current_database()) >> 20)
"""


def figures(stack: RunningStack) -> dict[str, Any]:
    """What the soak did, in numbers."""
    return dict(json.loads(stack.sql(FIGURES)))


def balance(stack: RunningStack, asked: dict[str, str], billed: int, lines: int) -> dict[str, Any]:
    """Accounts that do not balance, with some jobs of each: `billed` calls, `lines` of the log, jobs `asked` for."""
    found: dict[str, Any] = {}
    with suppress(TimeoutError):
        wait_until(lambda: stack.sql(ACCOUNTS[SCHEDULES]) == "", SWEEP_SECONDS, every=1, what="the runs to come")
    for name, statement in ACCOUNTS.items():
        if rows := stack.sql(statement).split("\n")[:5]:
            found |= {name: rows} if rows != [""] else {}
    there = set(stack.sql("select id from job_queue").split())
    if lost := asked.keys() - there:
        found["asked for, and nowhere now"] = sorted(lost)[:5]
    counts = figures(stack)
    if counts["lines_counted"] != lines:
        found["lines of the log"] = f"{lines} written, {counts['lines_counted']} counted"
    if billed > counts["calls_in_ledger"]:
        found["paid calls"] = f"{billed} billed, {counts['calls_in_ledger']} in the ledger"
    return found
