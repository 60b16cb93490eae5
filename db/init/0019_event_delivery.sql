-- Delivery of job_event to other systems. The forwarder (services/admin/delivery) reads behind a cursor and records
-- what came of it; all that it may do is a function here. docs/delivery.md says what receivers can rely on.

begin;
insert into schema_migrations (version, name) values (19, 'event_delivery');
set local role jobbko_owner;

create table event_epoch (
    only_row boolean     primary key default true check (only_row),
    epoch    uuid        not null default gen_random_uuid(),
    since    timestamptz not null default clock_timestamp()
);
insert into event_epoch default values;
comment on table  event_epoch is 'Within an epoch event ids rise; a restored database begins a new one';
comment on column event_epoch.only_row is 'There is one row';
comment on column event_epoch.epoch is 'Part of the source of every event that leaves';
comment on column event_epoch.since is 'When it began';

create table event_sink (
    name            text         primary key check (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    kind            text         not null check (kind in ('webhook', 'spacetimedb')),
    address         text         not null,
    job_types       text[]       not null default '{}',
    statuses        job_status[] not null default '{}',
    includes        text[]       not null default '{}' check (includes <@ array['payload', 'result']),
    cursor_xid      xid8         not null,
    cursor_id       bigint       not null,
    waits_until     timestamptz,
    wait_reason     text,
    disabled_at     timestamptz,
    disabled_reason text,
    delivered_at    timestamptz,
    created_at      timestamptz  not null default clock_timestamp()
);
comment on table  event_sink is 'Where events are delivered to, and how far; written by the forwarder from its settings';
comment on column event_sink.name is 'Name';
comment on column event_sink.kind is 'webhook or spacetimedb';
comment on column event_sink.address is 'Scheme, host and port: neither path nor secret';
comment on column event_sink.job_types is 'Only events of these types; empty = all';
comment on column event_sink.statuses is 'Only changes to these; empty = all';
comment on column event_sink.includes is 'What is sent beyond the change itself: payload, result';
comment on column event_sink.cursor_xid is 'Everything up to this transaction and the id after it was delivered, or stands in event_delivery';
comment on column event_sink.cursor_id is 'Id of the last event of cursor_xid that was passed';
comment on column event_sink.waits_until is 'Nothing is sent before: the receiver asked for it, or seems to be down';
comment on column event_sink.wait_reason is 'Why';
comment on column event_sink.disabled_at is 'Since when nothing is sent until an operator enables it';
comment on column event_sink.disabled_reason is 'Why';
comment on column event_sink.delivered_at is 'Last delivery';
comment on column event_sink.created_at is 'Events before this are not delivered';

create table event_delivery (
    event_id   bigint      not null references job_event (id) on delete cascade,
    sink       text        not null references event_sink (name) on delete cascade,
    job_id     uuid        not null,
    attempts   integer     not null default 0,
    first_at   timestamptz,
    next_at    timestamptz,
    last_error text,
    parked_at  timestamptz,
    primary key (event_id, sink)
);
create index event_delivery_job on event_delivery (sink, job_id, event_id) where parked_at is null;
create index event_delivery_due on event_delivery (sink, next_at) where parked_at is null and next_at is not null;
comment on table  event_delivery is 'Events behind a sink''s cursor that are not delivered: to be tried again, waiting for one of their job, or parked';
comment on column event_delivery.event_id is 'The event';
comment on column event_delivery.sink is 'The sink';
comment on column event_delivery.job_id is 'Its job: one event of a job is tried at a time';
comment on column event_delivery.attempts is 'Tries so far';
comment on column event_delivery.first_at is 'First try';
comment on column event_delivery.next_at is 'Next try; null = an earlier event of the job comes first';
comment on column event_delivery.last_error is 'What came of the last try';
comment on column event_delivery.parked_at is 'Given up, until an operator has it sent anew';

-- One forwarder per sink: the lock ends with the session, so that another one takes over as soon as this one is gone.
-- A new sink begins with the transactions that run now. False: another session holds it.
create function open_event_sink(
    p_name text, p_kind text, p_address text, p_job_types text[], p_statuses job_status[], p_includes text[]
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if not pg_try_advisory_lock(hashtext('jobbko event_sink'), hashtext(p_name)) then
        return false;
    end if;
    if (select xid from job_event order by xid desc, id desc limit 1) >= pg_snapshot_xmax(pg_current_snapshot()) then
        raise exception 'the events of this database come from another server: it was restored' using
            errcode = 'JQ002', hint = 'run select renew_event_epoch() as jobbko_operator';
    end if;
    insert into event_sink as known (name, kind, address, job_types, statuses, includes, cursor_xid, cursor_id)
    values (p_name, p_kind, p_address, p_job_types, p_statuses, p_includes, pg_snapshot_xmin(pg_current_snapshot()), 0)
    on conflict (name) do update
       set kind = excluded.kind, address = excluded.address, job_types = excluded.job_types,
           statuses = excluded.statuses, includes = excluded.includes
     where (known.kind, known.address, known.job_types, known.statuses, known.includes)
           is distinct from (excluded.kind, excluded.address, excluded.job_types, excluded.statuses, excluded.includes);
    return true;
end
$$;
comment on function open_event_sink is 'Takes a sink for this session and stores its settings; false when another session has it';

create function read_event_sink(p_name text)
returns table (epoch uuid, cursor_xid xid8, cursor_id bigint, disabled_reason text, wait_seconds double precision)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select event_epoch.epoch, sink.cursor_xid, sink.cursor_id,
           case when sink.disabled_at is not null then coalesce(sink.disabled_reason, '') end,
           greatest(extract(epoch from sink.waits_until - clock_timestamp()), 0)::double precision
      from event_sink as sink, event_epoch
     where sink.name = p_name
$$;
comment on function read_event_sink is 'How far a sink is, and whether it may be sent to now';

-- Whether an earlier event of the job is still to be delivered. A change is recorded while the job's row is locked, so
-- an earlier event is always visible here, even where its transaction is younger, and so behind the cursor's end.
create function is_event_held(p_sink text, p_job_id uuid, p_event_id bigint, p_xid xid8, p_id bigint) returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from event_delivery as before
                    where before.sink = p_sink and before.job_id = p_job_id and before.event_id < p_event_id
                      and before.parked_at is null)
        or exists (select from job_event as before
                    where before.job_id = p_job_id and before.id < p_event_id and (before.xid, before.id) > (p_xid, p_id))
$$;

create function event_error(p_event job_event, p_job job_queue) returns text
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select case when p_event.new_status in ('retry', 'error') then left(coalesce(
        (select run.error_msg from job_attempt as run
          where run.job_id = p_event.job_id and run.error_class = p_event.error_class
            and run.error_class <> 'cancelled' and run.ended_at <= p_event.at
          order by run.id desc limit 1),
        case when p_job.status = p_event.new_status and p_job.attempts = p_event.attempts then p_job.error_msg end), 2000)
    end
$$;
comment on function event_error is 'Message of the failure that an event tells of, where it is still known';

-- What can be sent now: of each job at most its first event that is to be tried again, and what follows the cursor.
-- Below the oldest transaction that runs, no event can appear any more. In the order of the cursor, which within a job
-- is not that of the events.
create function next_events(p_sink text, p_limit integer)
returns table (
    event_id bigint, xid xid8, job_id uuid, job_type text, old_status job_status, new_status job_status,
    attempts smallint, max_attempts smallint, error_class text, error_msg text, at timestamptz, payload text,
    result text, is_new boolean, is_wanted boolean, is_held boolean, tries integer, age_seconds double precision
)
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_sink event_sink;
begin
    select * into strict v_sink from event_sink where name = p_sink;
    return query
    with due as (
        select again.* from event_delivery as again
         where again.sink = p_sink and again.parked_at is null and again.next_at <= clock_timestamp()
           and not is_event_held(p_sink, again.job_id, again.event_id, v_sink.cursor_xid, v_sink.cursor_id)
         order by again.next_at limit p_limit
    ), passed as materialized (
        select event.id, event.xid from job_event as event
         where (event.xid, event.id) > (v_sink.cursor_xid, v_sink.cursor_id)
           and event.xid < pg_snapshot_xmin(pg_current_snapshot())
         order by event.xid, event.id limit p_limit
    ), last as (
        select passed.xid, passed.id from passed order by passed.xid desc, passed.id desc limit 1
    ), chosen as (
        select due.event_id as id, false as is_new, due.attempts as tries,
               coalesce(extract(epoch from clock_timestamp() - due.first_at), 0)::double precision as age_seconds,
               null::xid8 as last_xid, null::bigint as last_id
          from due
        union all
        select passed.id, true, 0, 0, last.xid, last.id from passed, last
    )
    select event.id, event.xid, event.job_id, event.job_type, event.old_status, event.new_status,
           event.attempts, job.max_attempts, event.error_class, event_error(event, job), event.at,
           case when 'payload' = any (v_sink.includes) then job.payload::text end,
           case when 'result' = any (v_sink.includes) and event.new_status = 'completed' then job.result::text end,
           chosen.is_new,
           (v_sink.job_types = '{}' or event.job_type = any (v_sink.job_types))
               and (v_sink.statuses = '{}' or event.new_status = any (v_sink.statuses)),
           chosen.is_new and is_event_held(p_sink, event.job_id, event.id, chosen.last_xid, chosen.last_id),
           chosen.tries, chosen.age_seconds
      from chosen
      join job_event as event on event.id = chosen.id
      left join job_queue as job on job.id = event.job_id
     order by event.xid, event.id;
end
$$;
comment on function next_events is 'Events of a sink that are due again, and those after its cursor';

-- p_results: [{"event_id", "job_id", "is_new", "outcome", "wait_seconds", "error"}], where outcome is delivered, skipped,
-- failed (tried again after wait_seconds), parked, or waiting (not tried). The cursor moves from where it was read, or
-- nothing is recorded: another session has taken over, or this stands here already (JQ001). A retried event is only
-- updated, since one that another session has delivered must not come back.
create function record_deliveries(
    p_sink text, p_from_xid xid8, p_from_id bigint, p_to_xid xid8, p_to_id bigint, p_results jsonb,
    p_has_recovered boolean, p_wait_seconds double precision default null, p_wait_reason text default null
) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    update event_sink
       set cursor_xid = p_to_xid, cursor_id = p_to_id,
           waits_until = clock_timestamp() + make_interval(secs => p_wait_seconds), wait_reason = p_wait_reason,
           delivered_at = case when p_results @> '[{"outcome": "delivered"}]' then clock_timestamp() else delivered_at end
     where name = p_sink and (cursor_xid, cursor_id) = (p_from_xid, p_from_id);
    if not found then
        raise exception 'sink % is not at (%, %) any more', p_sink, p_from_xid, p_from_id using errcode = 'JQ001';
    end if;

    delete from event_delivery as done
     using jsonb_to_recordset(p_results) as given (event_id bigint, outcome text)
     where done.sink = p_sink and done.event_id = given.event_id and given.outcome in ('delivered', 'skipped');

    insert into event_delivery (event_id, sink, job_id)
    select event.id, p_sink, event.job_id
      from jsonb_to_recordset(p_results) as given (event_id bigint, is_new boolean, outcome text)
      join job_event as event on event.id = given.event_id   -- retention may have removed it meanwhile
     where given.is_new and given.outcome in ('failed', 'parked', 'waiting')
    on conflict do nothing;

    update event_delivery as tried
       set attempts = tried.attempts + 1, first_at = coalesce(tried.first_at, clock_timestamp()),
           last_error = left(given.error, 2000),
           next_at = case when given.outcome = 'failed' then clock_timestamp() + make_interval(secs => given.wait_seconds) end,
           parked_at = case when given.outcome = 'parked' then clock_timestamp() end
      from jsonb_to_recordset(p_results) as given (event_id bigint, outcome text, wait_seconds double precision, error text)
     where tried.sink = p_sink and tried.event_id = given.event_id and given.outcome in ('failed', 'parked');

    if p_has_recovered then
        update event_delivery set next_at = clock_timestamp()
         where sink = p_sink and parked_at is null and next_at > clock_timestamp();
    end if;
    perform release_deliveries(p_sink, array(
        select given.job_id from jsonb_to_recordset(p_results) as given (job_id uuid)));
end
$$;
comment on function record_deliveries is 'Records what came of events and moves the cursor past them, all or nothing';

-- The first event of each job that waits may be tried now.
create function release_deliveries(p_sink text, p_job_ids uuid[]) returns void
language sql
set search_path = pg_catalog, public, pg_temp
as $$
    update event_delivery as first set next_at = clock_timestamp()
     where first.sink = p_sink and first.job_id = any (p_job_ids) and first.parked_at is null and first.next_at is null
       and not exists (select from event_delivery as before
                        where before.sink = p_sink and before.job_id = first.job_id
                          and before.event_id < first.event_id and before.parked_at is null)
$$;

create function event_sink_state(p_sink text)
returns table (lag_seconds double precision, waiting bigint, parked bigint)
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select coalesce(greatest(extract(epoch from clock_timestamp() - least(
               (select event.at from job_event as event
                 where (event.xid, event.id) > (sink.cursor_xid, sink.cursor_id)
                 order by event.xid, event.id limit 1),
               (select event.at from job_event as event where event.id = rest.first_id))), 0), 0)::double precision,
           rest.waiting, rest.parked
      from event_sink as sink, lateral (
            select min(event_id) filter (where parked_at is null) as first_id,
                   count(*) filter (where parked_at is null) as waiting,
                   count(*) filter (where parked_at is not null) as parked
              from event_delivery where event_delivery.sink = sink.name) as rest
     where sink.name = p_sink
$$;
comment on function event_sink_state is 'Age of the oldest event that is not delivered (parked ones apart), and how many wait and are parked';

create function disable_event_sink(p_sink text, p_reason text) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    update event_sink set disabled_at = clock_timestamp(), disabled_reason = left(p_reason, 2000)
     where name = p_sink and disabled_at is null;
    if found then
        perform record_audit('sink.disable', null, p_sink, jsonb_build_object('reason', left(p_reason, 2000)));
    end if;
end
$$;
comment on function disable_event_sink is 'Stops a sink until an operator enables it; its events wait';

grant execute on function
    open_event_sink, read_event_sink, next_events, record_deliveries, event_sink_state, disable_event_sink
    to jobbko_delivery;
grant execute on function event_sink_state to jobbko_operator, jobbko_reader;
grant select on event_epoch, event_sink, event_delivery to jobbko_operator, jobbko_reader;

commit;
