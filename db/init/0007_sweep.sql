-- The sweep: what any worker does for all types every few seconds. Runs whose lease expired, schedules, pauses whose
-- time is over, workers that vanished, and what retention (0020) keeps no longer. Every part may run beside itself: rows
-- are locked in order and skipped when locked, the schedule's runs are held apart by the unique key.

begin;
insert into schema_migrations (version, name) values (7, 'sweep');
set local role jobbko_owner;

-- First point of a grid after a time. Wall-clock arithmetic in the grid's zone: a daily run stays at its hour when
-- the clocks change. A time that does not exist moves on by the hour that is left out; one that comes twice counts the
-- second time.
create function next_slot(p_every interval, p_anchor timestamp, p_time_zone text, p_after timestamptz)
returns timestamptz
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select min(slot) from (
        select (date_bin(p_every, p_after at time zone p_time_zone, p_anchor) + n * p_every) at time zone p_time_zone
          from generate_series(-ceil(7200 / extract(epoch from p_every))::integer,
                               2 + ceil(7200 / extract(epoch from p_every))::integer) as n) as grid (slot)
     where slot > p_after
$$;
comment on function next_slot is 'First point of a schedule''s grid after a time';

-- Records the death of a run. It costs an attempt unless the run wrote a checkpoint; three deaths at one checkpoint
-- end the job, whatever max_attempts says, so that a job that kills its process cannot do so for ever.
create function rescue_job(p_job job_queue) returns job_queue
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_type       job_type := (select job_type from job_type where name = p_job.job_type);
    v_leased     boolean := p_job.lease_until is not null;
    v_checkpoint integer := (select coalesce(max(seq), 0) from job_checkpoint where job_id = p_job.id);
    v_charged    boolean := not exists (select from job_checkpoint
                                         where job_id = p_job.id and lease_token = p_job.lease_token);
    v_deaths     integer := 1 + (select count(*) from job_attempt
                                  where job_id = p_job.id and outcome = 'lost' and not forgiven
                                    and checkpoint = v_checkpoint);
    v_attempts   integer := p_job.attempts + v_charged::integer;
    v_final      boolean := (v_charged and v_attempts >= p_job.max_attempts) or v_deaths >= 3;
    v_wait       double precision := backoff_seconds(v_attempts, coalesce(v_type.backoff_base_seconds, 30),
                    coalesce(v_type.backoff_cap_seconds, 3600), coalesce(v_type.backoff_jitter, 0));
begin
    return end_run(p_job, 'lost', v_charged,
        case when not v_final then clock_timestamp() + make_interval(secs => v_wait) end,
        case when v_leased then 'crash' else 'timeout' end,
        case when v_leased
             then format('worker %s vanished: no heartbeat since the lease ran out at %s (attempt %s of %s, claimed %s, %s, %s, death %s here)',
                         coalesce(p_job.worker_id, 'unknown'), p_job.lease_until, p_job.attempts + 1,
                         p_job.max_attempts, p_job.started_at,
                         coalesce('last progress ' || round((p_job.progress * 100)::numeric) || ' %'
                                  || coalesce(' "' || left(p_job.progress_note, 200) || '"', ''), 'no progress reported'),
                         case when v_checkpoint > 0 then 'checkpoint ' || v_checkpoint else 'no checkpoint' end, v_deaths)
             else format('running without a lease for longer than the longest run of its type, %s s',
                         coalesce(v_type.longest_run_seconds, 21600)) end);
end
$$;

-- Lost runs, oldest id first, at most 100 a call. A run without a lease belongs to a program that follows the
-- specification alone; it began when the status became 'running', whatever started_at says.
create function sweep_runs() returns integer
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job   job_queue;
    v_count integer := 0;
begin
    for v_job in
        select job.* from job_queue as job
         where job.status = 'running'
           and case when job.lease_until is not null then job.lease_until < clock_timestamp()
                    else coalesce((select max(event.at) from job_event as event
                                    where event.job_id = job.id and event.new_status = 'running'),
                                  job.started_at, job.created_at)
                         + make_interval(secs => coalesce((select longest_run_seconds from job_type
                                                            where name = job.job_type), 21600)) < clock_timestamp() end
         order by job.id limit 100
           for update of job skip locked
    loop
        perform rescue_job(v_job);
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;

-- Exactly one run of each schedule waits or runs: queued for the next point of its grid as soon as there is none.
create function sweep_schedules() returns integer
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    insert into job_queue (job_type, payload, priority, max_attempts, scheduled_for, unique_key)
    select plan.job_type, plan.payload, plan.priority, plan.max_attempts,
           next_slot(plan.every, plan.anchor, plan.time_zone, clock_timestamp()), 'schedule:' || plan.name
      from job_schedule as plan
     where plan.enabled
       and not exists (select from job_queue as run
                        where run.job_type = plan.job_type and run.unique_key = 'schedule:' || plan.name
                          and run.status in ('pending', 'retry', 'running'))
    on conflict (job_type, unique_key)
        where unique_key is not null and status in ('pending', 'retry', 'running') do nothing;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

create function sweep_jobs()
returns table (rescued integer, scheduled integer, resumed integer, workers_gone integer, pruned integer)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    rescued := sweep_runs();
    scheduled := sweep_schedules();

    update job_type
       set paused_at = null, paused_until = null, pause_origin = null, pause_reason = null, pause_class = null
     where name in (select name from job_type where paused_until <= clock_timestamp() order by name
                       for update skip locked);
    get diagnostics resumed = row_count;

    delete from worker
     where worker_id in (select worker_id from worker where seen_at < clock_timestamp() - interval '1 minute'
                          order by worker_id for update skip locked);
    get diagnostics workers_gone = row_count;

    begin
        pruned := prune();
    exception when others then
        raise warning 'retention: %', sqlerrm;  -- another time; the sweep's own work stands
        pruned := 0;
    end;
    return next;
end
$$;
comment on function sweep_jobs is
    'Rescues lost runs, queues schedules, ends pauses, forgets vanished workers, deletes what is kept no longer; for all types';

commit;
