-- What an operator does about the delivery of events (0019): see and enable sinks, send parked events anew, begin a new
-- epoch after a restore.

begin;
insert into schema_migrations (version, name) values (22, 'event_operations');
set local role jobbko_owner;

create function enable_event_sink(p_sink text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_stood boolean;
begin
    select disabled_at is not null or waits_until > clock_timestamp() into v_stood from event_sink
     where name = p_sink for update;
    if not found then
        raise exception 'there is no sink "%"', p_sink using errcode = 'JQ004', hint = 'see jobs deliveries sinks';
    end if;
    update event_sink set disabled_at = null, disabled_reason = null, waits_until = null, wait_reason = null
     where name = p_sink;
    update event_delivery set next_at = clock_timestamp()
     where sink = p_sink and parked_at is null and next_at > clock_timestamp();
    -- Retention may have removed the event that others of its job waited for.
    perform release_deliveries(p_sink, array(
        select distinct job_id from event_delivery where sink = p_sink and parked_at is null and next_at is null));
    perform record_audit('sink.enable', null, p_sink);
    return v_stood;
end
$$;
comment on function enable_event_sink is 'Lets a sink go on that was disabled or waits; false when it did neither';

-- Its events begin anew with the next start of a forwarder of that name.
create function forget_event_sink(p_sink text) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    if is_event_sink_open(p_sink) then
        raise exception 'sink % is being delivered to', p_sink using errcode = 'JQ002',
            hint = 'take it out of the forwarder''s settings first';
    end if;
    delete from event_sink where name = p_sink;
    if not found then
        raise exception 'there is no sink "%"', p_sink using errcode = 'JQ004', hint = 'see jobs deliveries sinks';
    end if;
    perform record_audit('sink.forget', null, p_sink);
end
$$;
comment on function forget_event_sink is 'Removes a sink with its cursor and all that it still had to deliver';

create function replay_deliveries(p_sink text default null, p_event_ids bigint[] default null) returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    with replayed as (
        update event_delivery set parked_at = null, attempts = 0, first_at = null, next_at = null
         where parked_at is not null and (p_sink is null or sink = p_sink)
           and (p_event_ids is null or event_id = any (p_event_ids))
        returning sink, job_id
    )
    select count(*) into v_count from replayed;
    perform release_deliveries(sink, array_agg(distinct job_id)) from event_delivery
      where parked_at is null and next_at is null and (p_sink is null or sink = p_sink) group by sink;
    if v_count > 0 then
        perform record_audit('delivery.replay', null, p_sink,
            jsonb_build_object('events', v_count, 'event_ids', p_event_ids[:100]));
    end if;
    return v_count;
end
$$;
comment on function replay_deliveries is 'Sends parked events anew: of one sink or all, all of them or these; returns how many';

create function is_event_sink_open(p_sink text) returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from pg_locks
                    where locktype = 'advisory' and granted and objsubid = 2
                      and database = (select oid from pg_database where datname = current_database())
                      and classid::bigint = hashtext('jobbko event_sink')::bigint & 4294967295
                      and objid::bigint = hashtext(p_sink)::bigint & 4294967295)
$$;
comment on function is_event_sink_open is 'Whether a forwarder is at work on a sink';

-- For the restore of a backup. Ids that are given from now on may have been given before, and transactions are
-- numbered by another server: receivers begin to count anew, and all that is here comes before all that follows. From
-- the first event on that the backup does not know to be delivered, everything is sent again.
create function renew_event_epoch() returns uuid
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_epoch uuid := gen_random_uuid();
begin
    update event_epoch set epoch = v_epoch, since = clock_timestamp();
    update event_sink
       set cursor_id = coalesce((select min(event.id) - 1 from job_event as event
                                  where (event.xid, event.id) > (event_sink.cursor_xid, event_sink.cursor_id)),
                                (select max(event.id) from job_event as event), 0),
           cursor_xid = '0';
    delete from event_delivery using event_sink
     where event_sink.name = event_delivery.sink and event_delivery.event_id > event_sink.cursor_id;
    update job_event set xid = '0' where xid <> '0';
    perform record_audit('events.renew_epoch', null, v_epoch::text);
    return v_epoch;
end
$$;
comment on function renew_event_epoch is 'Begins a new epoch of events, as every restored database must before it delivers';

grant execute on function
    enable_event_sink, forget_event_sink, replay_deliveries, is_event_sink_open, renew_event_epoch
    to jobbko_operator;
grant execute on function is_event_sink_open to jobbko_reader;

commit;
