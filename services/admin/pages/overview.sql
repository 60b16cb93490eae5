-- Statements of the first page. None of them reads completed jobs, and none counts further than a person reads: what
-- is more is shown as "10 000+".

-- name: overview_types
-- Types that have a row, a worker, or any job that is not completed: the latter found by leaping from type to type in
-- the partial indexes. The oldest job that is due is the first of some priority, so those alone are looked at.
with recursive leap (name) as (
    (select job_type from job_queue where status in ('pending', 'retry') order by job_type limit 1)
    union all
    select (select job_type from job_queue
             where status in ('pending', 'retry') and job_type > leap.name order by job_type limit 1)
      from leap where leap.name is not null
), failed_leap (name) as (
    (select job_type from job_queue where status = 'error' order by job_type limit 1)
    union all
    select (select job_type from job_queue
             where status = 'error' and job_type > failed_leap.name order by job_type limit 1)
      from failed_leap where failed_leap.name is not null
), seen as (
    (select name from job_type)
    union (select name from leap where name is not null limit 100)
    union (select name from failed_leap where name is not null limit 100)
    union (select job_type from job_queue where status = 'running')
    union (select job_type from worker)
)
select seen.name, kind.name is not null as is_known,
       is_paused(kind),
       kind.paused_at, kind.paused_until, kind.pause_origin, left(kind.pause_reason, 1000) as pause_reason,
       greatest(waiting.jobs - again.jobs, 0) as pending, again.jobs as retry, waiting.jobs > %(most)s as is_capped,
       running.running, failed.errors, failed.seen > %(most_errors)s as errors_capped,
       newest.id as newest_id, newest.completed_at as newest_at, newest.error_class as newest_class,
       left(newest.error_msg, 2000) as newest_error,
       due.oldest_due, staff.workers, staff.busy
  from seen
  left join job_type as kind on kind.name = seen.name
 cross join lateral (
       select count(*) as jobs  -- in the order of the index, or the planner would rather read the table
         from (select from job_queue where job_type = seen.name and status in ('pending', 'retry')
                order by priority desc, scheduled_for limit %(most)s + 1) as first) as waiting
 cross join lateral (
       select count(*) as jobs
         from (select from job_queue where job_type = seen.name and status = 'retry'
                order by job_type limit %(most)s) as first) as again
 cross join lateral (
       select count(*) as running from job_queue where job_type = seen.name and status = 'running') as running
 cross join lateral (
       select count(*) as seen, count(*) filter (where is_failure) as errors,
              (array_agg(id order by completed_at desc) filter (where is_failure))[1] as newest_id
         from (select id, completed_at, error_class is distinct from 'cancelled' as is_failure
                 from job_queue where job_type = seen.name and status = 'error'
                order by completed_at desc limit %(most_errors)s + 1) as window_of_errors) as failed
  left join job_queue as newest on newest.id = failed.newest_id
 cross join lateral (
       with recursive place (priority, at) as (
           (select priority, scheduled_for from job_queue
             where job_type = seen.name and status in ('pending', 'retry')
             order by priority desc, scheduled_for limit 1)
           union all
           select lower.priority, lower.scheduled_for
             from place cross join lateral (
                  select priority, scheduled_for from job_queue
                   where job_type = seen.name and status in ('pending', 'retry') and priority < place.priority
                   order by priority desc, scheduled_for limit 1) as lower
       )
       select min(at) filter (where at <= now()) as oldest_due from (select at from place limit 100) as first) as due
 cross join lateral (
       select count(*) as workers, count(*) filter (where holds_run(worker)) as busy
         from worker where worker.job_type = seen.name and is_alive(worker)) as staff
 order by seen.name

-- name: overview_hours
-- The last 24 hours, this one included.
select hour, job_type, completed, failed, run_seconds
  from job_hour
 where hour > date_trunc('hour', now(), 'UTC') - interval '24 hours'

-- name: overview_running
select id, left(job_type, 300) as job_type, status::text as status, progress,
       left(progress_note, 500) as progress_note, attempts, max_attempts, started_at, cancel_requested_at,
       left(worker_id, 200) as worker_id, now() as read_at
  from job_queue
 where status = 'running'
 order by started_at desc nulls last, id
 limit 50

-- name: spent_today
-- Money is counted by days of UTC, as the budgets are.
select coalesce(sum(charged_usd), 0)::float8 as charged, count(*) as calls
  from llm_call
 where day = (clock_timestamp() at time zone 'UTC')::date

-- name: pause_type
select pause_job_type(%(job_type)s::text, now() + make_interval(mins => %(minutes)s::integer), %(reason)s::text)
           as outcome

-- name: type_state
select name, is_paused(job_type),
       (select count(*) from job_queue where job_queue.job_type = job_type.name and status = 'running') as running
  from job_type
 where name = %(name)s::text

-- name: count_job_hours
select count_job_hours(%(most)s) as counted
