-- What the tables hold, as numbers for Prometheus: read by the admin view once for all (services/admin/gauges.py), open to
-- any other exporter under jobbko_metrics. Counts come from partial indexes; completed jobs are never counted.

begin;
insert into schema_migrations (version, name) values (21, 'gauges');
-- What other sessions do is shown to members of this role alone. The owner never logs in; its functions below give on
-- numbers, no statements.
do $$
begin
    grant pg_read_all_stats to jobbko_owner;
exception when unique_violation or internal_error then
    null;   -- roles belong to the server: the migration of another database is doing the same just now
end
$$;
set local role jobbko_owner;

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

-- How long the run of a schedule has been due without ending; null = no run is queued, which the next sweep mends.
create function schedule_gauges() returns table (schedule text, overdue_seconds double precision)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select plan.name,
           (select greatest(extract(epoch from now() - run.scheduled_for), 0)::double precision from job_queue as run
             where run.job_type = plan.job_type and run.unique_key = 'schedule:' || plan.name
               and run.status in ('pending', 'retry', 'running'))
      from job_schedule as plan where plan.enabled order by plan.name
$$;
comment on function schedule_gauges is 'Per enabled schedule: seconds that its present run is overdue; null = no run is queued';

-- The oldest snapshot holds back the removal of dead rows in every table, and the readers of events.
create function database_gauges()
returns table (
    size_bytes bigint, connections bigint, max_connections bigint, oldest_snapshot_seconds double precision,
    idle_in_transaction_seconds double precision, schema_version integer
)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select pg_database_size(current_database()), count(*) filter (where backend_type = 'client backend'),
           current_setting('max_connections')::bigint,
           coalesce(max(extract(epoch from clock_timestamp() - xact_start))
                    filter (where pid <> pg_backend_pid() and (backend_xid is not null or backend_xmin is not null)
                                  and backend_type = 'client backend'), 0)::double precision,
           coalesce(max(extract(epoch from clock_timestamp() - state_change))
                    filter (where state like 'idle in transaction%'), 0)::double precision,
           (select max(version) from schema_migrations)
      from pg_stat_activity
$$;
comment on function database_gauges is 'Size, connections, the oldest open snapshot and idle transaction, in bytes and seconds';

create function table_gauges() returns table (table_name text, size_bytes bigint, live_rows bigint, dead_rows bigint)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select case when schemaname = 'public' then relname::text else schemaname || '.' || relname end,
           pg_total_relation_size(relid), n_live_tup, n_dead_tup
      from pg_stat_user_tables where schemaname in ('public', 'stats') order by 1
$$;
comment on function table_gauges is 'Per table: size with indexes, live and dead rows as the statistics have them';

create function spending_gauges() returns table (day_spent_usd numeric)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select coalesce(sum(charged_usd), 0) from llm_call where day = (now() at time zone 'UTC')::date
$$;
comment on function spending_gauges is 'What calls to language models took out of today''s budget (UTC), reservations included';

grant execute on function queue_gauges, schedule_gauges, database_gauges, table_gauges, spending_gauges
   to jobbko_metrics, jobbko_operator;
grant execute on function queue_gauges to jobbko_reader;  -- `jobs types`

commit;
