-- One job.

-- name: job
-- Of texts over the limit nothing is read but their stored size: the page says so and offers the download.
select job.id, left(job.job_type, 1000) as job_type, job.status::text as status, job.priority, job.attempts,
       job.max_attempts, job.created_at, job.started_at, job.completed_at, job.scheduled_for, job.worker_id,
       job.lease_until, job.progress, left(job.progress_note, 500) as progress_note, job.progress_at,
       job.cancel_requested_at, job.unique_key, job.parent_id, job.postponements,
       job.error_class, left(job.error_msg, 8000) as error_msg, job.error_fingerprint,
       job.rerun_requested_at,
       case when pg_column_size(job.payload) <= %(most_bytes)s then job.payload::text end as payload,
       pg_column_size(job.payload) as payload_bytes,
       case when pg_column_size(job.result) <= %(most_bytes)s then job.result::text end as result,
       pg_column_size(job.result) as result_bytes,
       origin.origin_id, kind.payload_schema is not null as has_schema, clock_timestamp() as read_at
  from job_queue as job
  left join job_origin as origin on origin.job_id = job.id
  left join job_type as kind on kind.name = job.job_type
 where job.id = %(id)s::uuid

-- name: job_text
-- A payload or a result, whole.
select case %(part)s when 'payload' then payload::text when 'result' then result::text end as text,
       left(job_type, 1000) as job_type
  from job_queue
 where id = %(id)s::uuid

-- name: job_attempts
select attempt, worker_id, started_at, ended_at, outcome, charged, error_class, left(error_msg, 2000) as error_msg,
       left(traceback, 32000) as traceback, progress
  from job_attempt
 where job_id = %(id)s::uuid
 order by id desc
 limit %(limit)s

-- name: job_reasons
select reason, detail
  from explain_job(%(id)s::uuid)

-- name: job_relatives
-- Jobs that it enqueued, and jobs that a person made from it.
(select 'child' as kind, id, left(job_type, 200) as job_type, status::text as status, created_at
   from job_queue
  where parent_id = %(id)s::uuid
  order by created_at desc
  limit %(limit)s)
union all
(select 'copy', job.id, left(job.job_type, 200), job.status::text, job.created_at
   from job_origin as origin
   join job_queue as job on job.id = origin.job_id
  where origin.origin_id = %(id)s::uuid
  order by job.created_at desc
  limit %(limit)s)

-- name: job_ids_like
select id
  from job_queue
 where id between %(lower)s::uuid and %(upper)s::uuid
 order by id
 limit 2

-- name: job_enqueue
-- The payload as the text that was checked: numbers arrive as they were written.
select id, outcome
  from enqueue_once(
           p_request_id => %(request_id)s::uuid,
           p_job_type => %(job_type)s::text,
           p_payload => %(payload)s::jsonb,
           p_priority => %(priority)s::smallint,
           p_scheduled_for => coalesce(%(scheduled_for)s::timestamptz, now()),
           p_max_attempts => %(max_attempts)s::smallint,
           p_unique_key => %(unique_key)s::text,
           p_parent_id => %(parent_id)s::uuid,
           p_origin_id => %(origin_id)s::uuid)

-- name: job_type_facts
select name, payload_schema::text as payload_schema, payload_limit_bytes, is_paused(job_type)
  from job_type
 where name = %(job_type)s::text

-- name: enqueueable_types
select name, payload_schema is not null as has_schema from job_type order by name

-- name: transcript_version
-- The newest correction, none where nobody has corrected.
select version, segments::text as segments, actor, saved_at
  from transcript_correction
 where job_id = %(id)s::uuid
 order by version desc
 limit 1

-- name: correct_transcript
select correct_transcript(%(id)s::uuid, %(version)s, %(segments)s::jsonb) as version

-- name: analyses_of_transcript
-- Of this transcript, newest first: what its job enqueued, and what corrections of it did.
select id, status::text as status, created_at
  from job_queue
 where parent_id = %(id)s::uuid and job_type = 'openrouter_analyze'
 order by created_at desc
 limit 10
