-- Statements that belong to no single page.

-- name: set_actor
-- For the present transaction: who stands behind this login, in job_event and audit_entry.
select set_config('jobbko.actor', %(actor)s::text, true)

-- name: ping
select 1 as answer

-- What is done to a job or a type by pages and API: functions of the database, which look at the state themselves.

-- name: retry_job
select retry_job(%(id)s::uuid) as outcome

-- name: cancel_job
select cancel_job(%(id)s::uuid, %(reason)s::text) as outcome

-- name: change_priority
select change_priority(%(id)s::uuid, %(priority)s::smallint) as before

-- name: resume_job_type
select resume_job_type(%(name)s::text) as was_paused

-- name: job_events
-- The newest changes of one job.
select id, at, old_status::text as old_status, new_status::text as new_status, attempts, error_class, worker_id, actor
  from job_event
 where job_id = %(id)s::uuid
 order by id desc
 limit %(limit)s
