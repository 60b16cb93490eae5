"""What must be true of every job after a soak, counted from its events, its row, its side effect and its deletion."""

from typing import Any, NamedTuple

from psycopg.rows import dict_row

from bench.soak_handlers import PARTS
from tests.databases import Database
from tests.queue.queue_laws import broken_laws

TABLES = """
create table soak_done (job_id uuid primary key, pid integer not null);
create table soak_part (job_id uuid not null, part integer not null, primary key (job_id, part));
create table soak_gone (job_id uuid primary key, status job_status not null, parent_id uuid);
create table soak_asked (job_id uuid primary key);
create table soak_due (job_id uuid not null, at timestamptz not null, due_at timestamptz not null);
grant insert on soak_done, soak_part to worker_test;
create function soak_note_gone() returns trigger language plpgsql security definer as $$
begin
    insert into soak_gone values (old.id, old.status, old.parent_id);
    return null;
end $$;
create trigger soak_note_gone after delete on job_queue for each row execute function soak_note_gone();
create function soak_note_due() returns trigger language plpgsql security definer as $$
begin
    insert into soak_due values (new.id, clock_timestamp(), new.scheduled_for);
    return null;
end $$;
create trigger soak_note_due after update of status on job_queue for each row
    when (old.status = 'running' and new.status in ('pending', 'retry')) execute function soak_note_due();
create index soak_due_job on soak_due (job_id);
"""

# Each statement finds jobs for which the account does not balance.
ACCOUNTS = {
    "enqueued, and nowhere now": """
        select job_id from soak_asked except (select id from job_queue union all select job_id from soak_gone)
    """,
    "born, and nowhere now": """
        select job_id from job_event except (select id from job_queue union all select job_id from soak_gone)
    """,
    "not ended": """
        select id from job_queue
         where status in ('pending', 'retry', 'running') and coalesce(unique_key, '') not like 'schedule:%'
    """,
    "completed twice": """
        select job_id from job_event where new_status = 'completed' group by job_id having count(*) > 1
    """,
    "completed without its row": """
        select job_id from job_event where new_status = 'completed' except select job_id from soak_done
    """,
    "its row without completion": """
        select job_id from soak_done except select job_id from job_event where new_status = 'completed'
    """,
    "deleted while it had not ended": """
        select job_id from soak_gone where status not in ('completed', 'error')
    """,
    "slow jobs that completed without all of their parts": f"""
        select event.job_id from job_event as event left join soak_part as part on part.job_id = event.job_id
         where event.job_type = 'soak_slow' and event.new_status = 'completed'
         group by event.job_id having count(part.part) <> {PARTS}
    """,
    "completed without exactly one follower": """
        select event.job_id from job_event as event
          left join (select id, parent_id from job_queue union all select job_id, parent_id from soak_gone) as child
            on child.parent_id = event.job_id
         where event.job_type = 'soak_follow' and event.new_status = 'completed'
         group by event.job_id having count(child.id) <> 1
    """,
    "followers of what did not complete": """
        select id from (select id, parent_id from job_queue union all select job_id, parent_id from soak_gone) as child
         where parent_id is not null and parent_id not in (select job_id from job_event where new_status = 'completed')
    """,
    "schedules without exactly one run to come": """
        select name from job_schedule left join job_queue
            on unique_key = 'schedule:' || name and status in ('pending', 'retry', 'running')
         group by name having count(id) <> 1
    """,
}
FIGURES = """
select (select count(*) from job_event where old_status is null) as jobs,
       (select count(*) from job_event where new_status = 'completed') as completed,
       (select count(distinct job_id) from job_event where new_status = 'error') as ended_in_error,
       (select count(*) from soak_gone) as pruned,
       (select count(*) from job_event where old_status = 'running' and new_status in ('retry', 'pending', 'error')
           and error_class = 'crash') as lost_leases,
       (select count(*) from job_event where new_status = 'running') as runs
"""
BACK = """
select back.at as swept_at, back.due_at,
       (select min(at) from job_event where job_id = %(id)s and new_status = 'running'
           and at > to_timestamp(%(died)s)) as claimed_at,
       (select min(job_type) from job_event where job_id = %(id)s) as job_type
  from soak_due as back
 where back.job_id = %(id)s and back.at > to_timestamp(%(died)s)
 order by back.at limit 1
"""


def balance(database: Database) -> dict[str, list[str]]:
    """Accounts that do not balance, each with some of its jobs, after one last sweep."""
    database.rows("select sweep_jobs()")
    found = {}
    for name, statement in ACCOUNTS.items():
        rows = database.rows(statement)
        if rows:
            found[f"{name} ({len(rows)})"] = [str(next(iter(row.values()))) for row in rows[:5]]
    for broken in broken_laws(database.connect(row_factory=dict_row)):
        found.setdefault(f"broken: {broken['law']}", []).append(broken["job_id"])
    return found


def figures(database: Database) -> dict[str, Any]:
    """What the soak did, in numbers."""
    return database.row(FIGURES)


class Recovery(NamedTuple):
    """What became of one job of a worker that died, in seconds since."""

    job_type: str
    swept: float  # it waits again
    due: float  # it may run again: swept, and its backoff over
    claimed: float | None  # it runs again; None when it was cancelled in the line
    is_disturbed: bool  # the database was away at some time between

    @property
    def in_line(self) -> float | None:
        """For how long it then waited for a worker that was free."""
        return None if self.claimed is None else self.claimed - self.due


def recoveries(
    database: Database, deaths: list[tuple[float, list[Any]]], outages: list[tuple[float, float]]
) -> list[Recovery]:
    """Those of all jobs that waited again. Some do not: it was the last death that they may die, or they were cancelled
    while they ran."""
    found = []
    conn = database.connect(row_factory=dict_row)
    for died, victims in deaths:
        for job_id in victims:
            row = conn.execute(BACK, {"id": job_id, "died": died}).fetchone()
            if row is not None:
                swept, due = row["swept_at"].timestamp(), row["due_at"].timestamp()
                claimed = None if row["claimed_at"] is None else row["claimed_at"].timestamp()
                is_disturbed = any(start < (claimed or due) and end > died for start, end in outages)
                found.append(
                    Recovery(row["job_type"], swept - died, due - died, claimed and claimed - died, is_disturbed)
                )
    return found


def share(values: list[float], part: float) -> float:
    """The value that so many are not above; 0 of none."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0
