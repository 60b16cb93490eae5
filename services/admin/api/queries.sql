-- Statements of the API. Payloads and results leave as the text that the database has, so that numbers stay as they
-- are. What changes something is a function of db/init, called in a transaction that knows the token's name.

-- name: api_use_token
-- A token by its SHA-256; notes, at most every ten minutes, that it was used.
select name, scopes from use_api_token(%(fingerprint)s::bytea)

-- name: api_describe_types
select wanted.name, kind.name is not null as is_known, kind.payload_schema::text as payload_schema,
       coalesce(kind.payload_limit_bytes, 1048576) as payload_limit_bytes,
       exists (select from worker where worker.job_type = wanted.name and is_alive(worker)) as has_worker,
       array (select name from job_type order by name) as known_types
  from unnest(%(names)s::text[]) as wanted (name)
  left join job_type as kind on kind.name = wanted.name

-- name: api_enqueue
select id, outcome
  from enqueue_as(%(actor)s, %(types)s::text[], %(payloads)s::jsonb[], %(priorities)s::smallint[],
                  %(times)s::timestamptz[], %(attempts)s::smallint[], %(keys)s::text[], %(parents)s::uuid[])

-- name: api_show_job
select job.id, job.job_type, job.status::text as status, job.priority, job.attempts, job.max_attempts,
       job.created_at, job.started_at, job.completed_at, job.scheduled_for, job.worker_id, job.progress,
       job.progress_note, job.cancel_requested_at, job.unique_key, job.parent_id, job.postponements,
       job.error_class, job.error_msg, job.payload::text as payload, job.result::text as result
  from job_queue as job
 where job.id = %(id)s::uuid

-- name: api_job_runs
select attempt, worker_id, started_at, ended_at, outcome, charged, error_class, error_msg, progress
  from job_attempt
 where job_id = %(id)s::uuid
 order by id desc
 limit 100

-- name: api_job_reasons
select reason, detail::text as detail
  from explain_job(%(id)s::uuid)

-- name: api_job_result
select status::text as status, error_class, error_msg, result::text as result
  from job_queue
 where id = %(id)s::uuid

-- name: api_ended
-- What of the jobs that are waited for has ended; those that are gone have, too.
select wanted.id
  from unnest(%(ids)s::uuid[]) as wanted (id)
  left join job_queue as job on job.id = wanted.id
 where job.id is null or job.status in ('completed', 'error')

-- name: api_pause
select pause_job_type(%(name)s::text, %(until)s::timestamptz, %(reason)s::text) as outcome

-- name: api_events
-- Below the oldest transaction that still runs, so that none can commit an event behind the cursor. A page looks at
-- so many events and keeps those of the types: `seen` says how far it got.
with horizon as (
    select left(epoch::text, 8) as epoch, pg_snapshot_xmin(pg_current_snapshot()) as xid from event_epoch
), seen as (
    select event.*
      from job_event as event, horizon
     where (event.xid, event.id) > (%(xid)s::text::xid8, %(id)s::bigint) and event.xid < horizon.xid
     order by event.xid, event.id
     limit %(looked_at)s
), kept as (
    select * from seen
     where cardinality(%(types)s::text[]) = 0 or job_type = any (%(types)s::text[])
     order by xid, id
     limit %(limit)s
)
select horizon.epoch, horizon.xid::text as horizon, (select count(*) from seen) as seen,
       (select seen.xid::text || '-' || seen.id from seen order by seen.xid desc, seen.id desc limit 1) as seen_to,
       kept.id, kept.xid::text || '-' || kept.id as cursor, kept.job_id, kept.job_type,
       kept.old_status::text as old_status, kept.new_status::text as new_status, kept.attempts, kept.error_class,
       kept.worker_id, kept.actor, kept.at
  from horizon
  left join kept on true
 order by kept.xid, kept.id

-- name: api_horizon
select left(epoch::text, 8) as epoch, pg_snapshot_xmin(pg_current_snapshot())::text as xid from event_epoch

-- name: api_newest_event
-- Of those that a cursor may pass: changes whenever there is something to read.
select event.xid::text || '-' || event.id as cursor
  from job_event as event
 where event.xid < pg_snapshot_xmin(pg_current_snapshot())
 order by event.xid desc, event.id desc
 limit 1

-- name: api_job_types
-- Completed jobs are not counted: that would read them all.
select state.job_type as name, kind.payload_schema::text as payload_schema, kind.payload_limit_bytes, state.is_paused,
       kind.paused_at, kind.paused_until, kind.pause_origin, kind.pause_reason,
       state.workers, state.due, state.scheduled as later, state.running, state.error - state.cancelled as errors,
       state.oldest_due_at as oldest_due
  from queue_gauges() as state
  left join job_type as kind on kind.name = state.job_type
 order by state.job_type

-- name: api_workers
select worker_id, job_type, version, host, pid, started_at, seen_at, current_job_id, current_since,
       case when not is_alive(worker) then 'gone' when lost_lease(worker) then 'stuck'
            when holds_run(worker) then 'busy' else 'idle' end as state
  from worker
 order by job_type, host, started_at, worker_id
 limit 1000

-- name: api_list_rows
select job.id, job.job_type, job.status::text as status, job.priority, job.attempts, job.max_attempts,
       job.created_at, job.started_at, job.completed_at, job.scheduled_for, left(job.worker_id, 300) as worker_id,
       job.progress, left(job.progress_note, 500) as progress_note, job.cancel_requested_at,
       left(job.unique_key, 500) as unique_key, job.parent_id, job.postponements, job.error_class,
       left(job.error_msg, 2000) as error_msg
  from job_queue as job
 where job.id = any (%(ids)s::uuid[])
 order by job.created_at desc, job.id desc
