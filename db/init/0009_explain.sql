-- Why is this job not running? Read-only, for people: the command line's `why` and the admin view show what it says.

begin;
insert into schema_migrations (version, name) values (9, 'explain');
set local role jobbko_owner;

-- A worker shows itself every 15 seconds, busy or not; two missed beats and some slack are a death. The sweep leaves
-- its row for a minute.
create function is_alive(p_worker worker) returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select p_worker.seen_at > clock_timestamp() - interval '35 seconds'
$$;
comment on function is_alive(worker) is 'Whether a worker process has shown itself within the last 35 seconds';

create function is_paused(p_type job_type) returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select p_type.paused_at is not null and coalesce(p_type.paused_until > clock_timestamp(), true)
$$;
comment on function is_paused(job_type) is 'Whether nothing of a type is claimed just now; false for no row';

create function holds_run(p_worker worker) returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from job_queue as run
                    where run.job_type = p_worker.job_type and run.status = 'running'
                      and run.worker_id = p_worker.worker_id)
$$;
comment on function holds_run(worker) is 'Whether a worker process runs a job';

-- One that let the lease of its run go has died lately, or hangs.
create function lost_lease(p_worker worker) returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from job_queue as run
                    where run.job_type = p_worker.job_type and run.status = 'running'
                      and run.worker_id = p_worker.worker_id and run.lease_until <= clock_timestamp())
$$;
comment on function lost_lease(worker) is 'Whether a worker process has let the lease of its run go';

create function workers_at_work(p_job_type text) returns setof worker
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select worker.* from worker where job_type = p_job_type and is_alive(worker) and not lost_lease(worker)
$$;

create function explain_ended(p_job job_queue) returns table (reason text, detail jsonb)
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select case when p_job.status = 'completed' then 'completed'
                when p_job.error_class = 'cancelled' then 'cancelled' else 'failed' end,
           jsonb_strip_nulls(jsonb_build_object(
               'at', p_job.completed_at, 'worker_id', p_job.worker_id,
               'attempts', p_job.attempts, 'max_attempts', p_job.max_attempts,
               'error_class', p_job.error_class, 'error_msg', left(p_job.error_msg, 500),
               'by', (select event.actor from job_event as event
                       where event.job_id = p_job.id and event.new_status = p_job.status
                       order by event.id desc limit 1)))
$$;

create function explain_running(p_job job_queue) returns table (reason text, detail jsonb)
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select 'running', jsonb_strip_nulls(jsonb_build_object(
               'worker_id', p_job.worker_id, 'since', p_job.started_at,
               'attempt', p_job.attempts + 1, 'max_attempts', p_job.max_attempts,
               'progress', p_job.progress, 'progress_note', left(p_job.progress_note, 500)))
    union all
    select 'cancel_requested', jsonb_build_object('at', p_job.cancel_requested_at)
     where p_job.cancel_requested_at is not null
    union all
    select 'lease_expired', jsonb_build_object(
               'lease_until', p_job.lease_until, 'worker_id', p_job.worker_id,
               'worker_seen_at', (select seen_at from worker where worker.worker_id = p_job.worker_id),
               'worker_alive', exists (select from worker where worker.worker_id = p_job.worker_id
                                                            and seen_at > p_job.lease_until))
     where p_job.lease_until <= clock_timestamp()
    union all
    select 'worker_gone', jsonb_build_object('lease_until', p_job.lease_until, 'worker_id', p_job.worker_id)
     where p_job.lease_until > clock_timestamp()
       and not exists (select from worker where worker.worker_id = p_job.worker_id and is_alive(worker))
    union all
    select 'no_lease', jsonb_build_object('longest_run_seconds', coalesce(
               (select longest_run_seconds from job_type where name = p_job.job_type), 21600))
     where p_job.lease_until is null
$$;

-- What stands before a waiting job in time: at most one of the three.
create function explain_schedule(p_job job_queue) returns table (reason text, detail jsonb)
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    with last_run as (
        select outcome, error_msg from job_attempt
         where job_id = p_job.id and not forgiven order by id desc limit 1
    )
    select case when (select outcome from last_run) = 'postponed' then 'postponed'
                when p_job.status = 'retry' then 'waiting_after_error' else 'scheduled' end,
           jsonb_strip_nulls(case
               when (select outcome from last_run) = 'postponed' then jsonb_build_object(
                   'until', p_job.scheduled_for, 'postponements', p_job.postponements,
                   'why', left((select error_msg from last_run), 500))
               when p_job.status = 'retry' then jsonb_build_object(
                   'until', p_job.scheduled_for, 'attempts', p_job.attempts, 'max_attempts', p_job.max_attempts,
                   'error_class', p_job.error_class, 'error_msg', left(p_job.error_msg, 500))
               else jsonb_build_object('until', p_job.scheduled_for) end)
     where p_job.scheduled_for > clock_timestamp()
$$;

-- Due jobs that a claim takes before this one. Counted to 10,000 and no further.
create function count_jobs_ahead(p_job job_queue) returns bigint
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select count(*) from (
        select from job_queue as other
         where other.job_type = p_job.job_type and other.status in ('pending', 'retry')
           and other.scheduled_for <= now() and other.priority >= p_job.priority
           and (other.priority > p_job.priority
                or (other.scheduled_for, other.id) < (p_job.scheduled_for, p_job.id))
         limit 10000) as ahead
$$;

create function explain_waiting(p_job job_queue) returns table (reason text, detail jsonb)
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_type  job_type;
    v_known boolean;
    v_alive bigint := (select count(*) from workers_at_work(p_job.job_type));
    v_busy  bigint := (select count(*) from workers_at_work(p_job.job_type) as own where holds_run(own));
    v_ahead bigint := 0;
    v_found boolean := false;
begin
    select * into v_type from job_type where name = p_job.job_type;
    v_known := found;
    return query select reason, detail from explain_schedule(p_job);
    v_found := found;
    if is_paused(v_type) then
        v_found := true;
        return query select 'type_paused', jsonb_strip_nulls(jsonb_build_object(
            'since', v_type.paused_at, 'until', v_type.paused_until, 'origin', v_type.pause_origin,
            'why', v_type.pause_reason));
    end if;
    if v_alive = 0 then
        v_found := true;
        return query select case when v_known then 'no_worker' else 'unknown_type' end,
            jsonb_strip_nulls(jsonb_build_object('job_type', p_job.job_type, 'role', v_type.role));
    elsif v_busy = v_alive then
        v_found := true;
        return query select 'workers_busy', jsonb_build_object('workers', v_alive);
    end if;
    if p_job.scheduled_for <= clock_timestamp() then
        v_ahead := count_jobs_ahead(p_job);
        if v_ahead > 0 then
            return query select 'jobs_ahead', jsonb_build_object('count', v_ahead, 'or_more', v_ahead >= 10000);
        elsif not v_found then
            return query select 'ready', jsonb_build_object('since', p_job.scheduled_for);
        end if;
    end if;
end
$$;

create function explain_job(p_job_id uuid) returns table (reason text, detail jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
set timezone = 'UTC'
as $$
#variable_conflict use_column
declare
    v_job job_queue;
begin
    select * into v_job from job_queue where id = p_job_id;
    if not found then
        raise exception 'there is no job %', p_job_id using errcode = 'JQ004';
    elsif v_job.status in ('pending', 'retry') then
        return query select reason, detail from explain_waiting(v_job);
    elsif v_job.status = 'running' then
        return query select reason, detail from explain_running(v_job);
    else
        return query select reason, detail from explain_ended(v_job);
    end if;
end
$$;
comment on function explain_job is
'Why a job is not running: every reason that holds, the most decisive first. Reasons (a closed list) and their detail:
 completed            it has ended well: at, worker_id
 cancelled            it was cancelled: at, by, error_msg
 failed               it has ended in error: at, attempts, max_attempts, error_class, error_msg
 running              a worker holds it: worker_id, since, attempt, max_attempts, progress, progress_note
 cancel_requested     it runs and was asked to stop: at
 lease_expired        its worker sent no heartbeat in time, the next sweep rescues it: lease_until, worker_id,
                      worker_seen_at, worker_alive (it has shown itself since)
 worker_gone          its worker is not alive, it is rescued when the lease ends: lease_until, worker_id
 no_lease             a program that keeps no lease runs it, swept after the longest run: longest_run_seconds
 scheduled            its time has not come: until
 postponed            the worker said "come back later": until, postponements, why
 waiting_after_error  it failed and waits before the next attempt: until, attempts, max_attempts, error_class, error_msg
 type_paused          nothing of its type is claimed: since, until, origin, why
 unknown_type         its type has no row in job_type and no worker: job_type
 no_worker            no worker of its type is alive: job_type, role
 workers_busy         every live worker of its type runs a job: workers
 jobs_ahead           due jobs of its type that come first: count, or_more
 ready                nothing stands in its way, it starts at the workers'' next look: since';

grant execute on function explain_job, is_alive, is_paused, holds_run, lost_lease to jobbko_operator, jobbko_reader;

commit;
