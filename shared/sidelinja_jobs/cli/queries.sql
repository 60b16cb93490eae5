-- The statements of the command line. All of them only read; what changes jobs are functions of db/init.
-- Texts are cut here, so that one row with an error message of megabytes cannot slow a listing down.

-- name: find_ids
-- By a prefix of the id, as a range over the primary key. One more than one can use tells that it is ambiguous.
select id
  from job_queue
 where id between %(lower)s::uuid and %(upper)s::uuid
 order by id
 limit 4

-- name: list_jobs
-- Newest first. "before" is a place in the same order, so no row is seen twice while others arrive. A watch asks for
-- its ids.
select job.id, left(job.job_type, 300) as job_type, job.status::text as status, job.priority, job.attempts,
       job.max_attempts, job.created_at, job.started_at, job.completed_at, job.scheduled_for,
       left(job.worker_id, 300) as worker_id, job.lease_until, job.progress,
       left(job.progress_note, 300) as progress_note, job.cancel_requested_at,
       left(job.unique_key, 300) as unique_key, job.parent_id, job.postponements, job.error_class,
       left(job.error_msg, 500) as error_msg,
       is_paused(kind),
       now() as read_at
  from job_queue as job
  left join job_type as kind on kind.name = job.job_type
 where (%(statuses)s::job_status[] is null or job.status = any (%(statuses)s::job_status[]))
   and (%(ids)s::uuid[] is null or job.id = any (%(ids)s::uuid[]))
   and (%(job_type)s::text is null or job.job_type = %(job_type)s)
   and (%(since)s::timestamptz is null or job.created_at >= %(since)s)
   and (%(since_seconds)s::float8 is null or job.created_at >= now() - make_interval(secs => %(since_seconds)s))
   and (not %(failing)s::boolean
        or job.status in ('retry', 'error') and job.error_class is distinct from 'cancelled')
   and (%(before)s::uuid is null or (job.created_at, job.id) < (
            select place.created_at, place.id from job_queue as place where place.id = %(before)s::uuid))
 order by job.created_at desc, job.id desc
 limit %(limit)s

-- name: unfinished_ids
-- What a watch without ids follows: running first, then in the order in which they will be claimed.
select id
  from job_queue
 where status in ('pending', 'retry', 'running')
   and (%(job_type)s::text is null or job_type = %(job_type)s)
 order by (status = 'running') desc, priority desc, scheduled_for, id
 limit %(limit)s

-- name: failed_ids
-- Jobs in error that "retry --all-errors" means, oldest first. Cancelled ones only when they are asked for by class.
select id
  from job_queue
 where status = 'error'
   and (%(job_type)s::text is null or job_type = %(job_type)s)
   and case when %(error_class)s::text is null then error_class is distinct from 'cancelled'
            else error_class = %(error_class)s end
 order by completed_at, id
 limit %(limit)s

-- name: show_job
select job.id, job.job_type, job.status::text as status, job.priority, job.attempts, job.max_attempts,
       job.created_at, job.started_at, job.completed_at, job.scheduled_for, job.worker_id, job.lease_until,
       job.progress, job.progress_note, job.cancel_requested_at, job.unique_key, job.parent_id, job.postponements,
       job.error_class, job.error_msg, job.rerun_requested_at, false as is_paused,
       job.payload::text as payload, job.result::text as result,
       (select count(*) from job_checkpoint where job_id = job.id) as checkpoints,
       now() as read_at
  from job_queue as job
 where job.id = %(id)s::uuid

-- name: read_attempts
select attempt, worker_id, started_at, ended_at, outcome, charged, error_class, error_msg, traceback, checkpoint, progress
  from job_attempt
 where job_id = %(id)s::uuid
 order by id

-- name: read_events
select at, old_status::text as old_status, new_status::text as new_status, attempts, error_class, worker_id, actor
  from job_event
 where job_id = %(id)s::uuid
 order by id

-- name: explain
select reason, detail::text as detail
  from explain_job(%(id)s::uuid)

-- name: list_workers
select worker_id, job_type, version, host, pid, started_at, seen_at, idle, current_job_id, current_since,
       case when not is_alive(worker) then 'gone' when lost_lease(worker) then 'stuck'
            when holds_run(worker) then 'busy' else 'idle' end as state,
       now() as read_at
  from worker
 where (%(job_type)s::text is null or job_type = %(job_type)s)
 order by job_type, host, started_at, worker_id

-- name: list_types
-- Types that have a row, and types that have only jobs. Completed jobs are not counted: that would read them all.
select state.job_type as name, kind.name is not null as is_known, state.workers, state.due, state.scheduled as later,
       state.running, state.error - state.cancelled as errors, state.oldest_due_at as oldest_due, state.is_paused,
       kind.paused_at, kind.paused_until, kind.pause_origin, kind.pause_reason, now() as read_at
  from queue_gauges() as state
  left join job_type as kind on kind.name = state.job_type
 order by state.job_type

-- name: describe_type
select kind.name is not null as is_known, kind.payload_schema::text as payload_schema, kind.payload_limit_bytes,
       is_paused(kind),
       kind.paused_until,
       exists (select from worker where worker.job_type = wanted.name and is_alive(worker))
           as has_worker,
       array (select name from job_type order by name) as known_types,
       now() as read_at
  from (values (%(job_type)s::text)) as wanted (name)
  left join job_type as kind on kind.name = wanted.name

-- name: enqueue
select id, outcome
  from enqueue_job(
           p_job_type => %(job_type)s::text,
           p_payload => %(payload)s::jsonb,
           p_priority => %(priority)s::smallint,
           p_scheduled_for => coalesce(%(at)s::timestamptz, now() + make_interval(secs => %(in_seconds)s::float8)),
           p_max_attempts => %(max_attempts)s::smallint,
           p_unique_key => %(key)s::text)

-- name: retry
select retry_job(%(id)s::uuid) as outcome

-- name: cancel
select cancel_job(%(id)s::uuid, %(reason)s::text) as outcome

-- name: pause
select pause_job_type(
           %(job_type)s::text,
           coalesce(%(until)s::timestamptz, now() + make_interval(secs => %(for_seconds)s::float8)),
           %(reason)s::text) as outcome

-- name: resume
select resume_job_type(%(job_type)s::text) as outcome

-- name: retention_of_types
select job_type, keep_completed_days, keep_error_days, is_own, completed_over, error_over
  from retention_state()

-- name: retention_of_others
select keep_event_days, keep_call_days, keep_audit_days from retention

-- name: keep_jobs
-- What is not given stays; -1 = as the file says.
select set_job_retention(
           wanted.job_type,
           case when wanted.completed is null then own.keep_completed_days else nullif(wanted.completed, -1) end,
           case when wanted.errors is null then own.keep_error_days else nullif(wanted.errors, -1) end)::text as outcome
  from (values (%(job_type)s::text, %(completed)s::integer, %(errors)s::integer)) as wanted (job_type, completed, errors)
  left join job_retention as own on own.job_type = wanted.job_type

-- name: keep_others
select set_retention(%(events)s::integer, %(calls)s::integer, %(audit)s::integer)::text as outcome

-- name: begin_session
-- Times in UTC; and who stands behind the operator's login, for job_event.
select set_config('TimeZone', 'UTC', false), set_config('jobbko.actor', %(actor)s::text, false)
