-- Enqueue: the convenience over a bare INSERT. It adds the unique key, clear refusals and the check of who may
-- enqueue what. Runs inside the caller's own transaction.
--
-- SQLSTATEs of all functions here: JQ001 the run is lost (fence), JQ002 refused, JQ004 no such job or type,
-- 42501 not allowed.

begin;
insert into schema_migrations (version, name) values (4, 'enqueue');
set local role jobbko_owner;

-- Whether a worker's login is asking: the functions then confine it to its own job types.
create function called_by_worker() returns boolean
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    select exists (select from job_type where role = session_user)
$$;

-- Raises when the caller may not enqueue this, or the database should not hold it. p_bytes: of the (largest) payload as
-- text, null when there is none.
create function check_enqueue(
    p_job_type text, p_bytes integer, p_scheduled_for timestamptz, p_max_attempts smallint, p_unique_key text
) returns void
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_limit integer := coalesce((select payload_limit_bytes from job_type where name = p_job_type), 1048576);
begin
    if p_bytes is null or coalesce(p_job_type, '') = '' then
        raise exception 'a job needs a job_type and a payload' using errcode = 'JQ002';
    end if;
    if length(p_job_type) > 200 or length(p_unique_key) > 500 then
        raise exception 'job_type has % characters and unique_key %, expected at most 200 and 500',
            length(p_job_type), length(p_unique_key) using errcode = 'JQ002';
    end if;
    -- A worker's login enqueues its own type and the follow-ups that job_type names, nothing else.
    if called_by_worker()
       and not exists (select from job_type
                        where role = session_user and (name = p_job_type or p_job_type = any (follow_ups))) then
        raise exception 'role % may not enqueue jobs of type "%"', session_user, p_job_type
            using errcode = '42501', hint = 'add the type to follow_ups in the job_type.toml of the role''s own type';
    end if;
    if p_bytes > v_limit then
        raise exception 'payload of % bytes is over the limit of % bytes for "%"', p_bytes, v_limit, p_job_type
            using errcode = 'JQ002', hint = 'store the data in a file and put its path into the payload';
    end if;
    if p_scheduled_for is not null
       and not (p_scheduled_for >= '2000-01-01 00:00+00' and p_scheduled_for < '2200-01-01 00:00+00') then
        raise exception 'scheduled_for % lies outside the years 2000 to 2199', p_scheduled_for using errcode = 'JQ002';
    end if;
    if p_max_attempts < 1 then
        raise exception 'max_attempts is %, expected 1 or more', p_max_attempts using errcode = 'JQ002';
    end if;
end
$$;

-- outcome: created; exists = a job with this key waits already, its id is returned and nothing is changed; rerun = a
-- job with this key runs, its id is returned and one more job, with this payload, follows it.
create function enqueue_job(
    p_job_type      text,
    p_payload       jsonb,
    p_priority      smallint    default 0,
    p_scheduled_for timestamptz default now(),
    p_max_attempts  smallint    default 3,
    p_unique_key    text        default null,
    p_parent_id     uuid        default null
) returns table (id uuid, outcome text)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
begin
    perform check_enqueue(p_job_type, octet_length(p_payload::text), p_scheduled_for, p_max_attempts, p_unique_key);
    loop
        insert into job_queue (job_type, payload, priority, scheduled_for, max_attempts, unique_key, parent_id)
        values (p_job_type, p_payload, coalesce(p_priority, 0::smallint), coalesce(p_scheduled_for, now()),
                coalesce(p_max_attempts, 3::smallint), p_unique_key, p_parent_id)
        on conflict (job_type, unique_key)
            where unique_key is not null and status in ('pending', 'retry', 'running') do nothing
        returning job_queue.id into id;
        if found then
            outcome := 'created';
            return next;
            return;
        end if;

        select job_queue.id,
               case when status = 'running' then 'rerun' else 'exists' end
          into id, outcome
          from job_queue
         where job_type = p_job_type and unique_key = p_unique_key and status in ('pending', 'retry', 'running')
           for update;
        if found then
            if outcome = 'rerun' then
                update job_queue set rerun_requested_at = clock_timestamp(), rerun_payload = p_payload
                 where job_queue.id = enqueue_job.id;
            end if;
            return next;
            return;
        end if;
        -- It ended between the two statements: insert again.
    end loop;
end
$$;
comment on function enqueue_job is 'Enqueues one job; returns its id, or that of the job that holds the unique key';

-- Many jobs of one type in one statement, without keys. Ids come back in the order of the payloads. They ascend, so that
-- jobs that are due at the same moment are claimed in that order, and lie in it in the table and all its indexes.
create function enqueue_jobs(
    p_job_type      text,
    p_payloads      jsonb[],
    p_priority      smallint    default 0,
    p_scheduled_for timestamptz default now(),
    p_max_attempts  smallint    default 3,
    p_parent_id     uuid        default null
) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_ids uuid[];
begin
    if cardinality(p_payloads) = 0 then
        return;
    end if;
    perform check_enqueue(p_job_type,
                          case when array_position(p_payloads, null) is null
                               then (select max(octet_length(payload::text)) from unnest(p_payloads) as payload) end,
                          p_scheduled_for, p_max_attempts, null);
    select array_agg(fresh.id order by fresh.id) into v_ids
      from (select gen_random_uuid() as id from generate_subscripts(p_payloads, 1)) as fresh;
    insert into job_queue (id, job_type, payload, priority, scheduled_for, max_attempts, parent_id)
    select fresh.id, p_job_type, fresh.payload, coalesce(p_priority, 0::smallint), coalesce(p_scheduled_for, now()),
           coalesce(p_max_attempts, 3::smallint), p_parent_id
      from unnest(v_ids, p_payloads) as fresh (id, payload);
    return query select unnest(v_ids);
end
$$;
comment on function enqueue_jobs is 'Enqueues many jobs of one type; returns their ids in order';

commit;
