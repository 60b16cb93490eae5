-- Triggers on job_queue: one job_event row per change of status, and the wake-up of idle workers. Statement-level
-- with transition tables (a row trigger costs a quarter of the speed), SECURITY DEFINER so that a role with nothing
-- but INSERT on job_queue can use it.

begin;
insert into schema_migrations (version, name) values (3, 'events');
set local role jobbko_owner;

create function event_actor() returns text
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    -- session_user is who logged in. Only the operator's programs may name the person behind them.
    select case when session_user in ('jobbko_operator', 'jobbko_admin')
                then coalesce(nullif(current_setting('jobbko.actor', true), ''), session_user::text)
                else session_user::text end
$$;

-- NOTIFY takes a lock of the whole server at commit, so it is sent only when a worker of the type sleeps. A missed
-- one costs a poll interval, never a job. The payload is a job type: any role may listen.
create function wake_idle_workers(p_job_types text[]) returns void
language sql
set search_path = pg_catalog, public, pg_temp
as $$
    select pg_notify('job_ready', ready.job_type) from unnest(p_job_types) as ready (job_type)
     where exists (select from worker where worker.job_type = ready.job_type and worker.idle)
$$;

create function record_enqueue() returns trigger
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
create function record_status_change() returns trigger
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

create trigger record_enqueue after insert on job_queue
    referencing new table as new_rows
    for each statement execute function record_enqueue();

create trigger record_status_change after update on job_queue
    referencing old table as old_rows new table as new_rows
    for each statement execute function record_status_change();

commit;
