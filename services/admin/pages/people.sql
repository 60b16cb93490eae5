-- Statements of the pages on workers, schedules, spending and what people did.

-- name: workers_list
-- Everyone who has registered and was not swept away since, with the run that they hold.
select left(worker.worker_id, 300) as worker_id, left(worker.job_type, 300) as job_type, worker.version,
       left(worker.host, 300) as host, worker.pid, worker.started_at, worker.seen_at,
       case when not is_alive(worker) then 'gone' when lost_lease(worker) then 'stuck'
            when run.id is not null then 'busy' else 'idle' end as state,
       run.id, run.attempts, run.max_attempts, run.progress, left(run.progress_note, 500) as progress_note,
       run.cancel_requested_at, run.started_at as run_started_at, run.status::text as status,
       clock_timestamp() as read_at
  from worker
  left join lateral (
       select * from job_queue
        where job_queue.job_type = worker.job_type and status = 'running' and job_queue.worker_id = worker.worker_id
        order by started_at desc limit 1) as run on true
 order by worker.job_type, worker.host, worker.started_at, worker.worker_id
 limit 500

-- name: schedules_list
-- The present run of each; and how the one before it ended: a sweep queues the present one within seconds of that, so
-- its last event is among those just before the present one's first.
select plan.name, left(plan.job_type, 300) as job_type, extract(epoch from plan.every)::float8 as every_seconds,
       plan.time_zone, plan.enabled, run.id as run_id, run.status::text as run_status, run.scheduled_for,
       run.started_at, last.id as last_id, last.status::text as last_status, last.error_class as last_class,
       last.completed_at as last_at, extract(epoch from last.completed_at - last.started_at)::float8 as last_seconds
  from job_schedule as plan
  left join job_queue as run
         on run.job_type = plan.job_type and run.unique_key = 'schedule:' || plan.name
        and run.status in ('pending', 'retry', 'running')
  left join lateral (
       select ended.id, ended.status, ended.error_class, ended.completed_at, ended.started_at
         from (select event.job_id, event.job_type, event.new_status, event.id
                 from job_event as event
                where event.id < coalesce((select min(own.id) from job_event as own where own.job_id = run.id),
                                          9223372036854775807)
                order by event.id desc limit 2000) as past
        cross join lateral (  -- one by one, since few of them are of this type
              select * from job_queue where job_queue.id = past.job_id limit 1) as ended
        where past.job_type = plan.job_type and past.new_status in ('completed', 'error')
          and ended.unique_key = 'schedule:' || plan.name
        order by past.id desc limit 1) as last on true
 order by plan.name
 limit 200

-- name: schedule_run
select run.id, run.status::text as status
  from job_schedule as plan
  join job_queue as run
    on run.job_type = plan.job_type and run.unique_key = 'schedule:' || plan.name
   and run.status in ('pending', 'retry', 'running')
 where plan.name = %(name)s::text

-- name: switch_schedule
select switch_schedule(%(name)s::text, %(enabled)s) as is_changed

-- name: spend_days
-- Days of UTC, as the budgets are counted. A call that is under way, or of which nobody knows, counts what it reserved.
select day, job_type, count(*) as calls, sum(charged_usd)::float8 as charged,
       count(*) filter (where is_possible_duplicate) as possibly_twice,
       coalesce(sum(charged_usd) filter (where cost_usd is null), 0)::float8 as uncertain
  from llm_call
 where day > (clock_timestamp() at time zone 'UTC')::date - %(days)s::integer
 group by day, job_type
 order by day desc, job_type

-- name: spend_models
select left(coalesce(model_used, model), 200) as model, count(*) as calls, sum(charged_usd)::float8 as charged,
       count(*) filter (where state in ('failed', 'unknown')) as unanswered
  from llm_call
 where day > (clock_timestamp() at time zone 'UTC')::date - %(days)s::integer
 group by 1
 order by charged desc, model
 limit 50

-- name: audit_list
-- Newest first; `before` is a place in the same order.
select id, at, left(actor, 200) as actor, action, job_id, subject, detail
  from audit_entry
 where (%(before)s::bigint is null or id < %(before)s)
   and (%(action)s::text is null or action = %(action)s)
   and (%(actor)s::text is null or actor = %(actor)s)
 order by id desc
 limit %(limit)s
