-- What is deleted, and when. Jobs that ended go by the rules of their type: those of its job_type.toml, or what an
-- operator has set here, which migrate leaves alone. The sweep (0007) calls prune(), so any worker does it for all.
-- docs/retention.md says what stays and what goes.

begin;
insert into schema_migrations (version, name) values (20, 'retention');
set local role jobbko_owner;

create table job_retention (
    job_type            text    primary key references job_type (name) on delete cascade,
    keep_completed_days integer check (keep_completed_days between 0 and 36500),
    keep_error_days     integer check (keep_error_days between 0 and 36500)
);
comment on table  job_retention is
    'An operator''s own rules in place of those of job_type.toml; 0 = for ever, null = the file''s';
comment on column job_retention.job_type is 'The type';
comment on column job_retention.keep_completed_days is 'Completed jobs are kept this long';
comment on column job_retention.keep_error_days is 'Jobs in error, cancelled ones too, are kept this long';

create table retention (
    only_row        boolean     primary key default true check (only_row),
    keep_event_days integer     not null default 90  check (keep_event_days between 0 and 36500),
    -- The budget of a UTC day is the sum of its calls: today's and yesterday's stay whatever happens.
    keep_call_days  integer     not null default 400 check (keep_call_days = 0 or keep_call_days between 2 and 36500),
    keep_audit_days integer     not null default 730 check (keep_audit_days between 0 and 36500),
    next_at         timestamptz not null default '2000-01-01 00:00+00',
    next_calls_at   timestamptz not null default '2000-01-01 00:00+00'
);
insert into retention default values;
comment on table  retention is 'How long all that is kept which belongs to no type; 0 = for ever';
comment on column retention.only_row is 'There is one row';
comment on column retention.keep_event_days is 'Changes of status, unless a sink still waits for them';
comment on column retention.keep_call_days is 'Calls to a language model whose job is gone (llm_call)';
comment on column retention.keep_audit_days is 'What people did (audit_entry)';
comment on column retention.next_at is 'Not looked for anything to delete before';
comment on column retention.next_calls_at is 'The same for calls, which cost more to look through';

-- Errors are found through job_queue_error.
create index job_queue_completed on job_queue (job_type, completed_at) where status = 'completed';

create function retention_rules()
returns table (job_type text, keep_completed_days integer, keep_error_days integer, is_own boolean)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select kind.name, coalesce(own.keep_completed_days, kind.keep_completed_days),
           coalesce(own.keep_error_days, kind.keep_error_days), own.job_type is not null
      from job_type as kind left join job_retention as own on own.job_type = kind.name
     order by kind.name
$$;
comment on function retention_rules is 'Days that ended jobs are kept; 0 = for ever, as of a type without a row';

create function days_ago(p_days integer) returns timestamptz
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$ select clock_timestamp() - make_interval(days => p_days) where p_days > 0 $$;

-- Whoever ended a job without saying when is taken by its word on when it was enqueued. Locked rows are left for the
-- next time: nobody waits for this, and this waits for nobody. One part per status, as the indexes want a literal; the
-- order, and the time of enqueueing looked at last, keep a plan from reading all that ended.
create function prune_type(p_job_type text, p_completed_before timestamptz, p_error_before timestamptz, p_limit integer)
returns integer
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_ids uuid[];
begin
    select array_agg(id) into v_ids from (
        select id from (
            select id from job_queue
             where job_type = p_job_type and status = 'completed' and completed_at < p_completed_before
             order by completed_at limit p_limit for update skip locked) as completed
        union all
        select id from (
            select id, created_at from job_queue
             where job_type = p_job_type and status = 'completed' and completed_at is null
             order by completed_at limit p_limit for update skip locked) as completed_somewhen
         where created_at < p_completed_before
        union all
        select id from (
            select id from job_queue
             where job_type = p_job_type and status = 'error' and completed_at < p_error_before
             order by completed_at limit p_limit for update skip locked) as failed
        union all
        select id from (
            select id, created_at from job_queue
             where job_type = p_job_type and status = 'error' and completed_at is null
             order by completed_at limit p_limit for update skip locked) as failed_somewhen
         where created_at < p_error_before
        limit p_limit) as over;
    -- By the ids and nothing else: the rows are locked, so they are what they were.
    delete from job_queue where id = any (v_ids);
    return coalesce(cardinality(v_ids), 0);
end
$$;

-- Ended jobs whose time is over, at most p_limit, with their runs, checkpoints and corrections; in steps, none of which
-- begins after half a second, since large results take their time and a heartbeat waits behind this. In no fixed order
-- of the types: one with a long backlog keeps no other from its turn.
create function prune_jobs(p_limit integer default 1000, out pruned integer, out is_more boolean)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_end  timestamptz := clock_timestamp() + interval '0.5 seconds';
    v_rule record;
    v_most integer;
    v_step integer;
begin
    pruned := 0;
    is_more := false;
    for v_rule in
        select job_type, days_ago(keep_completed_days) as completed_before, days_ago(keep_error_days) as error_before
          from retention_rules() where keep_completed_days > 0 or keep_error_days > 0 order by random()
    loop
        loop
            is_more := pruned >= p_limit or clock_timestamp() > v_end;
            v_most := least(100, p_limit - pruned);
            exit when is_more;
            v_step := prune_type(v_rule.job_type, v_rule.completed_before, v_rule.error_before, v_most);
            pruned := pruned + v_step;
            exit when v_step < v_most;
        end loop;
        exit when is_more;
    end loop;
end
$$;
comment on function prune_jobs is
    'Deletes ended jobs by the rules of their types, at most so many; how many, and whether there may be more';

-- Changes of status. One that an enabled sink has not passed yet, or is sent again, stays. Only the oldest are looked
-- at, so a look costs the same whatever the table holds; those that stay do so until they are delivered or parked.
create function prune_events(p_before timestamptz, p_limit integer) returns integer
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    delete from job_event where id = any (array(
        select event.id from (select id, xid, at from job_event order by id limit p_limit) as event
         where event.at < p_before
           and not exists (select from event_sink as sink
                            where sink.disabled_at is null
                              and (event.xid, event.id) > (sink.cursor_xid, sink.cursor_id))
           and not exists (select from event_delivery as held join event_sink as sink on sink.name = held.sink
                            where held.event_id = event.id and held.parked_at is null and sink.disabled_at is null)));
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

create function prune_audit(p_before timestamptz, p_limit integer) returns integer
language sql
set search_path = pg_catalog, public, pg_temp
as $$
    with gone as (
        delete from audit_entry where id = any (array(select entry.id from (
            select id, at from audit_entry order by id limit p_limit) as entry where entry.at < p_before))
        returning id
    )
    select count(*)::integer from gone
$$;

-- Calls whose job is gone. The answers of jobs that are kept are kept, too: a retried job asks for them.
create function prune_calls(p_before timestamptz, p_limit integer) returns integer
language sql
set search_path = pg_catalog, public, pg_temp
as $$
    with gone as (
        delete from llm_call where id = any (array(
            select call.id from llm_call as call
             where call.day < (p_before at time zone 'UTC')::date and call.state not in ('reserved', 'sent')
               and not exists (select from job_queue as job where job.id = call.job_id)
             limit p_limit))
        returning id
    )
    select count(*)::integer from gone
$$;

-- One at a time over all workers, by the lock of the one row; who comes meanwhile has nothing to do. Looks once a
-- minute, and again at the next sweep while there is more than one look deletes.
create function prune(p_limit integer default 1000) returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
set lock_timeout = '1s'
as $$
declare
    v_rule   retention;
    v_jobs   record;
    v_events integer;
    v_audit  integer;
    v_calls  integer := 0;
begin
    select * into v_rule from retention where next_at <= clock_timestamp() for update skip locked;
    if not found then
        return 0;
    end if;
    select * into v_jobs from prune_jobs(p_limit);
    v_events := prune_events(days_ago(v_rule.keep_event_days), p_limit);
    v_audit := prune_audit(days_ago(v_rule.keep_audit_days), p_limit);
    if v_rule.next_calls_at <= clock_timestamp() then
        v_calls := prune_calls(days_ago(v_rule.keep_call_days), p_limit);
    end if;
    delete from admin_session where expires_at <= clock_timestamp();
    update retention
       set next_at = clock_timestamp() + case when v_jobs.is_more or p_limit <= greatest(v_events, v_audit, v_calls)
                                              then interval '0' else interval '1 minute' end,
           next_calls_at = case when v_calls < p_limit and next_calls_at <= clock_timestamp()
                                then clock_timestamp() + interval '1 hour' else next_calls_at end;
    return v_jobs.pruned + v_events + v_audit + v_calls;
end
$$;
comment on function prune is 'Deletes what is kept no longer, once a minute over all callers; returns how many rows';

-- ---------------------------------------------------------------- for the operator

-- In days; 0 = for ever, null = as the file says.
create function set_job_retention(p_job_type text, p_keep_completed_days integer, p_keep_error_days integer)
returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_days(p_keep_completed_days), check_days(p_keep_error_days);
    if not exists (select from job_type where name = p_job_type) then
        raise exception 'there is no job type "%"', p_job_type using errcode = 'JQ004', hint = 'see jobs retention';
    end if;
    delete from job_retention where job_type = p_job_type;
    insert into job_retention (job_type, keep_completed_days, keep_error_days)
    select p_job_type, p_keep_completed_days, p_keep_error_days
     where coalesce(p_keep_completed_days, p_keep_error_days) is not null;
    perform record_audit('retention.type', null, p_job_type, jsonb_build_object(
        'keep_completed_days', p_keep_completed_days, 'keep_error_days', p_keep_error_days));
end
$$;
comment on function set_job_retention is
    'How long ended jobs of a type are kept, in place of what its job_type.toml says';

-- Days; 0 = for ever, null = as before.
create function set_retention(
    p_keep_event_days integer default null, p_keep_call_days integer default null,
    p_keep_audit_days integer default null
) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_days(p_keep_event_days), check_days(p_keep_call_days), check_days(p_keep_audit_days);
    if p_keep_call_days = 1 then
        raise exception 'calls kept for 1 day, expected 0 or 2: budgets count two days' using errcode = 'JQ002';
    end if;
    update retention
       set keep_event_days = coalesce(p_keep_event_days, keep_event_days),
           keep_call_days = coalesce(p_keep_call_days, keep_call_days),
           keep_audit_days = coalesce(p_keep_audit_days, keep_audit_days);
    perform record_audit('retention', null, null, jsonb_build_object(
        'keep_event_days', p_keep_event_days, 'keep_call_days', p_keep_call_days,
        'keep_audit_days', p_keep_audit_days));
end
$$;
comment on function set_retention is 'How long events, calls and the audit trail are kept';

create function check_days(p_days integer) returns void
language plpgsql immutable
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if p_days not between 0 and 36500 then
        raise exception 'kept for % days, expected 0 (for ever) to 36500', p_days using errcode = 'JQ002';
    end if;
end
$$;

-- What the next looks would delete: a dry run. Counted to 10,000 each.
create function retention_state()
returns table (job_type text, keep_completed_days integer, keep_error_days integer, is_own boolean,
               completed_over bigint, error_over bigint)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select rule.job_type, rule.keep_completed_days, rule.keep_error_days, rule.is_own,
           (select count(*) from (select from job_queue as job
               where job.job_type = rule.job_type and job.status = 'completed'
                 and job.completed_at < days_ago(rule.keep_completed_days) limit 10000) as over),
           (select count(*) from (select from job_queue as job
               where job.job_type = rule.job_type and job.status = 'error'
                 and job.completed_at < days_ago(rule.keep_error_days) limit 10000) as over)
      from retention_rules() as rule
     order by rule.job_type
$$;
comment on function retention_state is 'Rules per type, and how many jobs they no longer keep, counted to 10,000';

grant select on job_retention, retention to jobbko_operator, jobbko_reader;
grant execute on function retention_rules, retention_state to jobbko_operator, jobbko_reader;
grant execute on function set_job_retention, set_retention to jobbko_operator;

commit;
