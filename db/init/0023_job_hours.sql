-- What ended in each hour, for charts: counted once from job_event by the admin view, off the queue's path. No job pays
-- for it, and no page reads a million jobs.

begin;
insert into schema_migrations (version, name) values (23, 'job_hours');
set local role jobbko_owner;

create table job_hour (
    hour        timestamptz      not null,
    job_type    text             not null,
    completed   bigint           not null default 0,
    failed      bigint           not null default 0,
    retried     bigint           not null default 0,
    run_seconds double precision not null default 0,
    primary key (hour, job_type)
);
comment on table  job_hour is 'What became of the jobs of each type in each hour; older events may have been deleted since';
comment on column job_hour.hour is 'Its beginning';
comment on column job_hour.job_type is 'The type';
comment on column job_hour.completed is 'Jobs that completed';
comment on column job_hour.failed is 'Jobs that ended in error, cancelled ones left out';
comment on column job_hour.retried is 'Failures that were followed by another attempt';
comment on column job_hour.run_seconds is 'How long the last runs of the completed ones took, together';

create table job_hour_position (
    is_only    boolean primary key default true check (is_only),
    cursor_xid xid8    not null,
    cursor_id  bigint  not null,
    largest_id bigint  not null
);
insert into job_hour_position (cursor_xid, cursor_id, largest_id) values ('0', 0, 0);
comment on table  job_hour_position is 'Up to which event job_hour was counted: one row';
comment on column job_hour_position.is_only is 'Keeps a second row out';
comment on column job_hour_position.cursor_xid is 'Transaction of the last event that was counted';
comment on column job_hour_position.cursor_id is 'Its id';
comment on column job_hour_position.largest_id is 'Largest id that was counted: where to go on in a restored database, whose transactions count anew';

-- Counts the events after the position, at most p_limit of them, below the oldest transaction so that none is passed.
-- Returns how many; null when another session is at it. Locking the position makes each event count once.
create function count_job_hours(p_limit integer default 20000) returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_at    job_hour_position;
    v_count integer;
begin
    select * into v_at from job_hour_position for update skip locked;
    if not found then
        return null;
    elsif v_at.cursor_xid >= pg_snapshot_xmax(pg_current_snapshot()) then
        v_at.cursor_xid := '0';
        v_at.cursor_id := v_at.largest_id;
    end if;
    with passed as materialized (
        select event.id, event.xid, event.job_id, event.job_type, event.old_status, event.new_status,
               event.error_class, event.at
          from job_event as event
         where (event.xid, event.id) > (v_at.cursor_xid, v_at.cursor_id)
           and event.xid < pg_snapshot_xmin(pg_current_snapshot())
         order by event.xid, event.id limit p_limit
    ), counted as (
        insert into job_hour as known (hour, job_type, completed, failed, retried, run_seconds)
        select date_trunc('hour', passed.at, 'UTC') as hour, passed.job_type,
               count(*) filter (where passed.new_status = 'completed'),
               count(*) filter (where passed.new_status = 'error' and passed.error_class is distinct from 'cancelled'),
               count(*) filter (where passed.new_status = 'retry' and passed.old_status = 'running'),
               coalesce(sum(greatest(extract(epoch from job.completed_at - job.started_at), 0))
                            filter (where passed.new_status = 'completed'), 0)
          from passed
          left join job_queue as job on passed.new_status = 'completed' and job.id = passed.job_id
         where passed.new_status in ('completed', 'error', 'retry')
         group by hour, passed.job_type
        on conflict (hour, job_type) do update
           set completed = known.completed + excluded.completed, failed = known.failed + excluded.failed,
               retried = known.retried + excluded.retried, run_seconds = known.run_seconds + excluded.run_seconds
    ), moved as (
        update job_hour_position
           set cursor_xid = last.xid, cursor_id = last.id,
               largest_id = greatest(largest_id, (select max(id) from passed))
          from (select passed.xid, passed.id from passed order by passed.xid desc, passed.id desc limit 1) as last
    )
    select count(*) into v_count from passed;
    return v_count;
end
$$;
comment on function count_job_hours is 'Counts further events into job_hour; how many, or null when another session does';

-- How many wait after a failure is asked for on its own; only failures pay for it.
create index job_queue_retry on job_queue (job_type) where status = 'retry';

grant select on job_hour to jobbko_operator, jobbko_reader;
grant execute on function count_job_hours to jobbko_admin;

commit;
