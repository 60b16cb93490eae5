"""What must hold in the tables at any time, whatever has happened, as one statement that names what breaks it."""

from typing import Any

# The whole table, as the model can predict it.
ROWS = """
select id, job_type, status::text, attempts, priority, max_attempts, unique_key, postponements, scheduled_for,
       scheduled_for <= clock_timestamp() as is_due,
       (select count(*) from job_checkpoint where job_id = id) as checkpoints,
       case when status = 'running' then lease_token end as token
  from job_queue
"""

RESET = """
delete from job_queue; delete from job_event; delete from job_schedule; delete from audit_entry; delete from done;
update job_type set paused_at = null, paused_until = null, pause_origin = null, pause_reason = null
 where paused_at is not null;
"""

# A jump in time. Triggers stay on: nothing here is a change of status.
SHIFT = (
    """update job_queue
          set scheduled_for = scheduled_for - make_interval(secs => %(seconds)s),
              created_at = created_at - make_interval(secs => %(seconds)s),
              started_at = started_at - make_interval(secs => %(seconds)s),
              completed_at = completed_at - make_interval(secs => %(seconds)s),
              lease_until = lease_until - make_interval(secs => %(seconds)s)""",
    "update job_attempt set ended_at = ended_at - make_interval(secs => %(seconds)s)",
    "update job_event set at = at - make_interval(secs => %(seconds)s)",
    "update job_type set paused_until = paused_until - make_interval(secs => %(seconds)s)",
)

LAWS = """
with paths as (
    select job_id, old_status, new_status, lag(new_status) over path as before, lead(id) over path is null as is_last
      from job_event window path as (partition by job_id order by id)
), steps as (
    select job_id, count(*) filter (where new_status = 'running') as begun,
           count(*) filter (where new_status = 'completed') as completed,
           count(*) filter (where old_status = 'running' and new_status <> 'completed') as put_back,
           count(*) filter (where old_status = 'running' and new_status in ('pending', 'retry')
                              and actor = 'jobbko_plain') as by_hand
      from job_event group by job_id
), past as (
    select job_id, count(*) as runs, count(*) filter (where charged and not forgiven) as charged
      from job_attempt group by job_id
), broken (law, job_id) as (
    select 'the events of a job form one path', job_id from paths where old_status is distinct from before
    union all
    select 'the path leads to the present status', job.id
      from job_queue as job join paths on paths.job_id = job.id and paths.is_last where paths.new_status <> job.status
    union all
    select 'every job has events', id from job_queue as job
     where not exists (select from job_event where job_id = job.id)
    union all
    select 'no job completes twice', job_id from steps where completed > 1
    union all
    select 'every run that was put back stands in the history', job.id
      from job_queue as job left join steps on steps.job_id = job.id left join past on past.job_id = job.id
     where coalesce(past.runs, 0) <> steps.put_back - steps.by_hand
    union all
    select 'every run that began ended or runs', job.id
      from job_queue as job join steps on steps.job_id = job.id
     where begun <> put_back + completed + (job.status = 'running')::integer
    union all
    select 'attempts are the runs that were charged', job.id
      from job_queue as job left join past on past.job_id = job.id where job.attempts <> coalesce(past.charged, 0)
    union all
    select 'attempts never exceed the most there may be, and at the most the job has ended', id from job_queue
     where attempts > max_attempts or (attempts = max_attempts and status <> 'error')
    union all
    select 'one that waits after a failure is in retry, another is pending', id from job_queue
     where status = case when attempts > 0 then 'pending' else 'retry' end::job_status
    union all
    select 'ended jobs, and no others, say when, but where another program did not', id from job_queue as job
     where (status in ('completed', 'error')) <> (completed_at is not null)
       and not exists (select from job_event
                        where job_id = job.id and new_status = 'completed' and actor = 'jobbko_plain')
    union all
    select 'completed jobs, and no others, have a result', id from job_queue
     where (status = 'completed') <> (result is not null)
    union all
    select 'no lease without a run, but where somebody put it back by hand', job.id
      from job_queue as job join steps on steps.job_id = job.id
     where status <> 'running' and lease_until is not null and by_hand = 0
    union all
    select 'a lease and its token come together', id from job_queue
     where status = 'running' and (lease_token is null) <> (lease_until is null)
    union all
    select 'no checkpoint of a completed job', job.id
      from job_queue as job join job_checkpoint on job_id = job.id where job.status = 'completed'
    union all
    select 'at most one run of a schedule waits or runs', (array_agg(id))[1] from job_queue
     where unique_key like 'schedule:%' and status in ('pending', 'retry', 'running')
     group by job_type, unique_key having count(*) > 1
)
select law, job_id::text from broken
"""


def broken_laws(conn: Any) -> list[dict[str, str]]:
    """Laws that do not hold, each with a job that breaks it."""
    rows: list[dict[str, str]] = conn.execute(LAWS).fetchall()
    return rows
