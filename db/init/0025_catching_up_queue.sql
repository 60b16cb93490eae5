-- What was changed in 0003 to 0006 before the first release, for databases that had run these files as they were.
-- On a new database it changes nothing: tests/deploy/test_upgrade.py compares the two.

begin;
insert into schema_migrations (version, name) values (25, 'catching_up_queue');
set local role jobbko_owner;

-- Its work is done by record_status_change now.
drop trigger if exists forget_old_lease on job_queue;
drop function if exists forget_old_lease();

create or replace function record_enqueue() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_actor text := event_actor();
begin
    insert into job_event (job_id, job_type, new_status, attempts, error_class, worker_id, actor)
    select id, job_type, status, attempts, error_class, worker_id, v_actor from new_rows;
    if exists (select from worker where idle) then
        perform wake_idle_workers(array(select distinct job_type from new_rows
                                         where status in ('pending', 'retry') and scheduled_for <= clock_timestamp()));
    end if;
    return null;
end
$$;

-- Looks at the new rows alone tell whether the rare parts have anything to do. Without nested loops: the plan is made for
-- the first call's rows, and one that was made for a single row is quadratic for a bulk update.
create or replace function record_status_change() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
set enable_nestloop = off
as $$
declare
    v_actor text := event_actor();
    v_ready text[];
begin
    insert into job_event (job_id, job_type, old_status, new_status, attempts, error_class, worker_id, actor)
    select new_rows.id, new_rows.job_type, old_rows.status, new_rows.status, new_rows.attempts,
           new_rows.error_class, new_rows.worker_id, v_actor
      from new_rows join old_rows on old_rows.id = new_rows.id
     where old_rows.status <> new_rows.status;

    -- Whoever completed it: a program that follows the specification alone knows nothing of checkpoints.
    if exists (select from new_rows where status = 'completed') then
        delete from job_checkpoint where job_id = any (array(select id from new_rows where status = 'completed'));
    end if;

    -- A program that keeps no lease takes a job that was put back by hand while it ran: the token of the run before must
    -- not fit any more, or that run could still complete, nor its lease, or the sweep takes this one for dead.
    if exists (select from old_rows where status <> 'running' and lease_token is not null) then
        update job_queue set lease_token = null, lease_until = null
         where id = any (array(select new_rows.id from new_rows join old_rows on old_rows.id = new_rows.id
                                where old_rows.status <> 'running' and new_rows.status = 'running'
                                  and new_rows.lease_token = old_rows.lease_token));
    end if;

    -- The unique key was enqueued again while the job ran: one more job follows it, whoever ended it and how.
    if exists (select from new_rows where rerun_requested_at is not null and status in ('completed', 'error')) then
        insert into job_queue (job_type, payload, priority, max_attempts, unique_key, parent_id)
        select new_rows.job_type, coalesce(new_rows.rerun_payload, new_rows.payload), new_rows.priority,
               new_rows.max_attempts, new_rows.unique_key, new_rows.parent_id
          from new_rows join old_rows on old_rows.id = new_rows.id
         where new_rows.status in ('completed', 'error') and old_rows.status not in ('completed', 'error')
           and new_rows.rerun_requested_at is not null
        on conflict (job_type, unique_key)
            where unique_key is not null and status in ('pending', 'retry', 'running') do nothing;
    end if;

    if exists (select from new_rows where status in ('pending', 'retry') and scheduled_for <= clock_timestamp()) then
        select array_agg(distinct new_rows.job_type) into v_ready
          from new_rows join old_rows on old_rows.id = new_rows.id
         where new_rows.status in ('pending', 'retry') and new_rows.scheduled_for <= clock_timestamp()
           and (old_rows.status <> new_rows.status or old_rows.scheduled_for > new_rows.scheduled_for);
        perform wake_idle_workers(v_ready);
    end if;
    return null;
end
$$;

-- Many jobs of one type in one statement, without keys. Ids come back in the order of the payloads. They ascend, so that
-- jobs that are due at the same moment are claimed in that order, and lie in it in the table and all its indexes.
create or replace function enqueue_jobs(
    p_job_type      text,
    p_payloads      jsonb[],
    p_priority      smallint    default 0,
    p_scheduled_for timestamptz default now(),
    p_max_attempts  smallint    default 3,
    p_parent_id     uuid        default null
) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_ids uuid[];
begin
    if cardinality(p_payloads) = 0 then
        return;
    end if;
    perform check_enqueue(p_job_type,
                          case when array_position(p_payloads, null) is null
                               then (select max(octet_length(payload::text)) from unnest(p_payloads) as payload) end,
                          p_scheduled_for, p_max_attempts, null);
    select array_agg(fresh.id order by fresh.id) into v_ids
      from (select gen_random_uuid() as id from generate_subscripts(p_payloads, 1)) as fresh;
    insert into job_queue (id, job_type, payload, priority, scheduled_for, max_attempts, parent_id)
    select fresh.id, p_job_type, fresh.payload, coalesce(p_priority, 0::smallint), coalesce(p_scheduled_for, now()),
           coalesce(p_max_attempts, 3::smallint), p_parent_id
      from unnest(v_ids, p_payloads) as fresh (id, payload);
    return query select unnest(v_ids);
end
$$;

-- Claims up to p_limit due jobs of one type, most important first, then longest due. One transaction of its own.
-- "present" skips from each priority that is waiting to the next lower one, so the cost does not depend on how many
-- future jobs of higher priorities there are; the entries of jobs that are gone are passed once, not twice. Both status
-- lists are literals, or the partial index could not be used. One statement locks the rows, the next finds them by their
-- ids: as one, a generic plan joins the whole table, since it takes "limit" for a tenth of all rows. For that reason, too,
-- the planner would think each call over anew, which takes longer than the claim and looks into the index for its ends.
-- A payload over the type's limit comes back as null: whoever wrote it went past enqueue_job, and the worker records
-- the failure.
-- Asynchronous commit is safe here: a claim lost in a crash of the server is a job that still waits, and its random
-- token is never handed out again. The jobs of one claim share it: a run is named by its job and the token together.
create or replace function claim_jobs(p_job_type text, p_worker_id text, p_limit integer default 1)
returns table (
    id uuid, payload jsonb, payload_bytes integer, priority smallint, attempts smallint, max_attempts smallint,
    lease_token uuid, created_at timestamptz, scheduled_for timestamptz, started_at timestamptz, parent_id uuid
)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_type  job_type := own_job_type(p_job_type);
    v_token uuid := gen_random_uuid();
    v_limit integer := least(coalesce(p_limit, 1), 1000);
    v_ids   uuid[];
begin
    if v_type.paused_at is not null and (v_type.paused_until is null or v_type.paused_until > now()) then
        return;
    end if;
    v_ids := array(
        with recursive present (priority, first_due) as (
            (select waiting.priority, waiting.scheduled_for from job_queue as waiting
              where waiting.job_type = p_job_type and waiting.status in ('pending', 'retry')
              order by waiting.priority desc, waiting.scheduled_for limit 1)
            union all
            select lower.priority, lower.scheduled_for
              from present cross join lateral (
                select waiting.priority, waiting.scheduled_for from job_queue as waiting
                 where waiting.job_type = p_job_type and waiting.status in ('pending', 'retry')
                   and waiting.priority < present.priority
                 order by waiting.priority desc, waiting.scheduled_for limit 1) as lower
        )
        select due.id from present cross join lateral (
            select waiting.id from job_queue as waiting
             where waiting.job_type = p_job_type and waiting.priority = present.priority
               and waiting.status in ('pending', 'retry')
               and waiting.scheduled_for between present.first_due and now()
             order by waiting.scheduled_for, waiting.id
             limit v_limit for update skip locked) as due
         where present.first_due <= now()
         limit v_limit);
    if v_ids = '{}' then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);
    return query
        update job_queue as job
           set status = 'running', started_at = clock_timestamp(), worker_id = p_worker_id, lease_token = v_token,
               lease_until = clock_timestamp() + make_interval(secs => v_type.lease_seconds),
               progress = null, progress_note = null, cancel_requested_at = null, cancel_reason = null
         where job.id = any (v_ids)
        returning job.id,
                  case when octet_length(job.payload::text) <= v_type.payload_limit_bytes then job.payload end,
                  octet_length(job.payload::text), job.priority, job.attempts, job.max_attempts, job.lease_token,
                  job.created_at, job.scheduled_for, job.started_at, job.parent_id;
    update worker set idle = false, current_since = clock_timestamp(), current_job_id = v_ids[1]
     where worker_id = p_worker_id and role = session_user;
end
$$;

-- The result and the handler's own writes commit together or not at all: this is the last statement of that
-- transaction, and it raises when the run is lost.
create or replace function complete_job(p_job_id uuid, p_lease_token uuid, p_result jsonb) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_run(p_job_id, p_lease_token);
    if octet_length(p_result::text) > 16777216 then
        raise exception 'result of % bytes is over the limit of 16777216 bytes', octet_length(p_result::text)
            using errcode = 'JQ002', hint = 'write the data to a file and return its path';
    end if;
    update job_queue
       set status = 'completed', result = p_result, completed_at = clock_timestamp(), progress = 1,
           error_class = null, error_msg = null, lease_until = null
     where id = p_job_id;
end
$$;

-- Completes many runs in one statement, each under its own fence: returns the jobs whose run was lost, and of those nothing
-- was written. Called again, it finds what it did. The status is compared as text to keep the planner from the index of
-- the running jobs, which it takes for nearly empty and would read anew for each of the batch.
create or replace function complete_runs(p_job_ids uuid[], p_lease_tokens uuid[], p_results jsonb[]) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    update job_queue as job
       set status = 'completed', result = ended.result, completed_at = clock_timestamp(), progress = 1,
           error_class = null, error_msg = null, lease_until = null
      from unnest(p_job_ids, p_lease_tokens, p_results) as ended (job_id, lease_token, result)
     where job.id = ended.job_id and job.lease_token = ended.lease_token and job.status::text = 'running'
       and job.job_type = any (array(select name from job_type where role = session_user));
    get diagnostics v_count = row_count;
    if v_count < cardinality(p_job_ids) then
        return query
            select ended.job_id from unnest(p_job_ids, p_lease_tokens) as ended (job_id, lease_token)
             where not exists (select from job_queue as job
                                where job.id = ended.job_id and job.lease_token = ended.lease_token
                                  and job.status = 'completed');
    end if;
end
$$;
comment on function complete_runs is 'Ends many runs well, each under its fence; returns the jobs whose run was lost';
grant execute on function complete_runs to jobbko_worker;

-- For workers of images from before complete_runs, which are told the opposite. To be dropped a release later.
create or replace function complete_jobs(p_job_ids uuid[], p_lease_tokens uuid[], p_results jsonb[]) returns setof uuid
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select unnest(p_job_ids) except select complete_runs(p_job_ids, p_lease_tokens, p_results)
$$;
comment on function complete_jobs is 'Ends many runs well, as complete_runs does; returns the jobs that were still held';

commit;
