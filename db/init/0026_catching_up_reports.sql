-- What was changed in 0009 to 0021 before the first release, for databases that had run these files as they were.
-- On a new database it changes nothing: tests/deploy/test_upgrade.py compares the two.

begin;
insert into schema_migrations (version, name) values (26, 'catching_up_reports');
set local role jobbko_owner;

create or replace function is_paused(p_type job_type) returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select p_type.paused_at is not null and coalesce(p_type.paused_until > clock_timestamp(), true)
$$;
comment on function is_paused(job_type) is 'Whether nothing of a type is claimed just now; false for no row';
grant execute on function is_paused to jobbko_operator, jobbko_reader;

create or replace function explain_waiting(p_job job_queue) returns table (reason text, detail jsonb)
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

-- p_left_out: addresses whose downloads and requests do not count.
create or replace function stats.replace_figures(p_day date, p_left_out bytea[]) returns void
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
begin
    delete from stats.download_day where day = p_day;
    delete from stats.download_hour where day = p_day;
    delete from stats.referrer_day where day = p_day;
    delete from stats.listener_day where day = p_day;
    delete from stats.excluded_day where day = p_day and reason = 'volume';

    with counted as materialized (  -- once for all: it sorts the day
        select * from stats.counted_listener
         where day = p_day and (address is null or address <> all (p_left_out))
    ), downloads as (
        insert into stats.download_day
               (day, show, episode, app, app_type, device, country, list_version, downloads, bytes)
        select day, show, episode, app, app_type, device, country, list_version, count(*), sum(bytes)
          from counted
         group by day, show, episode, app, app_type, device, country, list_version
    ), hours as (
        insert into stats.download_hour (hour, day, show, episode, downloads)
        select date_trunc('hour', first_start, 'UTC') as hour, day, show, episode, count(*)
          from counted
         group by hour, day, show, episode
    ), referrers as (
        insert into stats.referrer_day (day, show, episode, host, downloads)
        select day, show, episode, referrer, count(*)
          from counted
         where referrer <> ''
         group by day, show, episode, referrer
    )
    insert into stats.listener_day (day, show, listeners)  -- R28
    select day, show, count(distinct listener)
      from counted
     group by day, show;

    insert into stats.excluded_day (day, generation, reason, requests)
    select p_day, min(generation), 'volume', sum(requests)
      from stats.listener_window
      join stats.day using (day, generation)
     where day = p_day and not is_allowed and substring(listener from 1 for 8) = any (p_left_out)
    having count(*) > 0;
end
$$;

-- Off: the run that waits is cancelled, one that works goes on. On: the next run is queued at once.
create or replace function switch_schedule(p_name text, p_enabled boolean) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_plan job_schedule;
begin
    update job_schedule set enabled = p_enabled where name = p_name and enabled <> p_enabled returning * into v_plan;
    if not found then
        if not exists (select from job_schedule where name = p_name) then
            raise exception 'there is no schedule "%"', p_name using errcode = 'JQ004';
        end if;
        return false;
    end if;
    perform record_audit(case when p_enabled then 'schedule.on' else 'schedule.off' end, null, p_name);
    if p_enabled then
        perform sweep_schedules();
    else
        perform cancel_job(run.id, 'the schedule was switched off')
           from (select id from job_queue
                  where job_type = v_plan.job_type and unique_key = 'schedule:' || p_name
                    and status in ('pending', 'retry')
                    for update) as run;
    end if;
    return true;
end
$$;
comment on function switch_schedule is 'Switches a schedule on or off, its waiting run with it; false when it was so already';
grant execute on function switch_schedule to jobbko_operator;

-- All or none, with the name of who asks, in one statement: a transaction of four would wait for the network four times.
-- Keys are taken in one order, so that two batches cannot wait for each other.
create or replace function enqueue_as(
    p_actor text, p_job_types text[], p_payloads jsonb[], p_priorities smallint[], p_scheduled_for timestamptz[],
    p_max_attempts smallint[], p_unique_keys text[], p_parent_ids uuid[]
) returns table (id uuid, outcome text)
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform set_config('jobbko.actor', p_actor, true);
    return query
    select made.id, made.outcome
      from (select * from unnest(p_job_types, p_payloads, p_priorities, p_scheduled_for, p_max_attempts, p_unique_keys,
                                 p_parent_ids)
              with ordinality as job (type, payload, priority, scheduled_for, max_attempts, key, parent, position)
             order by type, key, position) as job,
           lateral enqueue_job(job.type, job.payload, job.priority, job.scheduled_for, job.max_attempts, job.key,
                               job.parent) as made
     order by job.position;
end
$$;
comment on function enqueue_as is 'Enqueues jobs in the name of a token; ids and outcomes, as of enqueue_job, in the order given';
grant execute on function enqueue_as to jobbko_admin;

drop function queue_gauges;
-- due: may be claimed now; scheduled: waits for a later time, a retry's too; error: ended in error, cancelled: those
-- of them that were cancelled; oldest_due_at: since when the first of the due ones has been due, null when none is.
-- A type is named when it has a row in job_type or any job that is not completed.
create function queue_gauges()
returns table (
    job_type text, due bigint, scheduled bigint, running bigint, error bigint, cancelled bigint,
    oldest_due_at timestamptz, oldest_due_seconds double precision, oldest_running_seconds double precision,
    expired_leases bigint, is_paused boolean, workers bigint, idle_workers bigint
)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    with waiting as (
        select job_queue.job_type, count(*) filter (where scheduled_for <= now()) as due,
               count(*) filter (where scheduled_for > now()) as scheduled,
               min(scheduled_for) filter (where scheduled_for <= now()) as oldest_due_at
          from job_queue where status in ('pending', 'retry') group by job_queue.job_type
    ), running as (
        select job_queue.job_type, count(*) as running,
               extract(epoch from now() - min(started_at))::double precision as oldest_running_seconds,
               count(*) filter (where lease_until <= now()) as expired_leases
          from job_queue where status = 'running' group by job_queue.job_type
    ), failed as (
        select job_queue.job_type, count(*) as error, count(*) filter (where error_class = 'cancelled') as cancelled
          from job_queue where status = 'error' group by job_queue.job_type
    ), alive as (
        select worker.job_type, count(*) as workers, count(*) filter (where idle) as idle_workers
          from worker where is_alive(worker) group by worker.job_type
    ), named as (
        select name as job_type, is_paused(kind) as is_paused from job_type as kind
    )
    select job_type, coalesce(due, 0), coalesce(scheduled, 0), coalesce(running, 0), coalesce(error, 0),
           coalesce(cancelled, 0), oldest_due_at,
           coalesce(extract(epoch from now() - oldest_due_at), 0)::double precision,
           greatest(coalesce(oldest_running_seconds, 0), 0),
           coalesce(expired_leases, 0), coalesce(is_paused, false), coalesce(workers, 0), coalesce(idle_workers, 0)
      from named full join waiting using (job_type) full join running using (job_type)
                 full join failed using (job_type) full join alive using (job_type)
     order by job_type
$$;
comment on function queue_gauges is 'Per job type: jobs by state, ages in seconds, expired leases, pause, workers';
grant execute on function queue_gauges to jobbko_metrics, jobbko_operator, jobbko_reader;

commit;
