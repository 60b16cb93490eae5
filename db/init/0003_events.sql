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
    select case when session_user = 'jobbko_operator'
                then coalesce(nullif(current_setting('jobbko.actor', true), ''), session_user::text)
                else session_user::text end
$$;

-- NOTIFY takes a lock of the whole server at commit, so it is sent only when a worker of the type sleeps. A missed
-- one costs a poll interval, never a job. The payload is a job type: any role may listen.
create function record_enqueue() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into job_event (job_id, job_type, new_status, attempts, error_class, worker_id, actor)
    select id, job_type, status, attempts, error_class, worker_id, event_actor() from new_rows;

    perform pg_notify('job_ready', ready.job_type)
       from (select distinct job_type from new_rows
              where status in ('pending', 'retry') and scheduled_for <= clock_timestamp()) as ready
      where length(ready.job_type) < 2000   -- a notification holds 8000 bytes
        and exists (select from worker where worker.job_type = ready.job_type and worker.idle);
    return null;
end
$$;

create function record_status_change() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    insert into job_event (job_id, job_type, old_status, new_status, attempts, error_class, worker_id, actor)
    select new_rows.id, new_rows.job_type, old_rows.status, new_rows.status, new_rows.attempts,
           new_rows.error_class, new_rows.worker_id, event_actor()
      from new_rows join old_rows on old_rows.id = new_rows.id
     where old_rows.status <> new_rows.status;

    perform pg_notify('job_ready', ready.job_type)
       from (select distinct new_rows.job_type
               from new_rows join old_rows on old_rows.id = new_rows.id
              where new_rows.status in ('pending', 'retry') and new_rows.scheduled_for <= clock_timestamp()
                and (old_rows.status <> new_rows.status or old_rows.scheduled_for > new_rows.scheduled_for)) as ready
      where length(ready.job_type) < 2000
        and exists (select from worker where worker.job_type = ready.job_type and worker.idle);
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
