-- What an enqueue can be spared. The server reads the stored expressions of a table anew for each statement that writes
-- it, and that of error_fingerprint was longer than all others together: an eighth of a single enqueue. Random ids lie
-- all over the indexes of a table that has grown, and drawing them was a tenth to a fifth of a bulk enqueue.

begin;
insert into schema_migrations (version, name) values (27, 'cheaper_enqueue');
set local role jobbko_owner;

-- With a body that is read when it is made, and no search_path of its own: the planner puts it into its callers.
create or replace function event_actor() returns text
language sql stable
return case when session_user in ('jobbko_operator', 'jobbko_admin')
            then coalesce(nullif(current_setting('jobbko.actor', true), ''), session_user::text)
            else session_user::text end;

-- The same fault says the same but for names, addresses, files, ids and numbers: class and first line without them.
create function failure_fingerprint(p_status job_status, p_error_class text, p_error_msg text) returns text
language sql immutable
set search_path = pg_catalog, public, pg_temp
as $$
    select case when p_status = 'error' and p_error_class is distinct from 'cancelled' then
        left(md5(coalesce(p_error_class, '') || E'\n' || coalesce(
            regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
                split_part(ltrim(left(p_error_msg, 500), E' \t\r\n'), E'\n', 1),
                '(?<![[:alnum:]])''[^'']*''|"[^"]*"|«[^»]*»|`[^`]*`|[“„][^”“]*[”“]', '…', 'g'),
                '[a-z][a-z0-9+.-]*://\S+', 'URL', 'gi'),
                '[^\s,;:()=]*[/\\][^\s,;:()]+|[^\s,;:()=/]+\.[a-z][a-z0-9]{1,4}(?![[:alnum:]])', 'PATH', 'gi'),
                '\m[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\M|\m0x[0-9a-f]+\M|\m(?=[a-f]*[0-9])[0-9a-f]{8,}\M',
                'ID', 'gi'),
                '[0-9]+([.,:][0-9]+)*', 'N', 'g'),
                '\s+', ' ', 'g'), '')), 16) end
$$;
comment on function failure_fingerprint is 'Of class and wording of the message; null when the job did not fail';

alter table job_queue alter column error_fingerprint drop expression;

-- For both triggers, whoever wrote the status. It fires the second one again, which then finds nothing left to write.
create function record_fingerprints(p_job_ids uuid[]) returns void
language sql
set search_path = pg_catalog, public, pg_temp
as $$
    update job_queue set error_fingerprint = failure_fingerprint(status, error_class, error_msg)
     where id = any (p_job_ids)
       and error_fingerprint is distinct from failure_fingerprint(status, error_class, error_msg)
$$;

create or replace function record_enqueue() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_actor  text := event_actor();
    v_idle   boolean;
    v_failed boolean;
begin
    insert into job_event (job_id, job_type, new_status, attempts, error_class, worker_id, actor)
    select id, job_type, status, attempts, error_class, worker_id, v_actor from new_rows;
    -- One statement for both: each costs as much to begin as the look itself.
    select exists (select from worker where idle), exists (select from new_rows where status = 'error')
      into v_idle, v_failed;
    if v_idle then
        perform wake_idle_workers(array(select distinct job_type from new_rows
                                         where status in ('pending', 'retry') and scheduled_for <= clock_timestamp()));
    end if;
    if v_failed then
        perform record_fingerprints(array(select id from new_rows where status = 'error'));
    end if;
    return null;
end
$$;

-- Looks at the new rows alone tell whether the rare parts have anything to do. Without nested loops: the plan is made for
-- the first call's rows, and one that was made for a single row is quadratic for a bulk update.
create or replace function record_status_change() returns trigger
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

    if exists (select from new_rows where status = 'error' or error_fingerprint is not null) then
        perform record_fingerprints(array(select id from new_rows
                                           where status = 'error' or error_fingerprint is not null));
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

drop function check_enqueue;
-- True; raises when the caller may not enqueue this, or the database should not hold it. p_bytes: of the (largest)
-- payload as text, null when there is none. A value, since an assignment calls it in a third of the time of "perform".
create function check_enqueue(
    p_job_type text, p_bytes integer, p_scheduled_for timestamptz, p_max_attempts smallint, p_unique_key text
) returns boolean
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
    -- A worker's login enqueues its own type and the follow-ups that job_type names, nothing else. Whether a login is in
    -- the workers' group is known without a look into a table.
    if pg_has_role(session_user, 'jobbko_worker', 'member') and called_by_worker()
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
    return true;
end
$$;

-- outcome: created; exists = a job with this key waits already, its id is returned and nothing is changed; rerun = a
-- job with this key runs, its id is returned and one more job, with this payload, follows it.
create or replace function enqueue_job(
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
declare
    v_checked boolean := check_enqueue(p_job_type, octet_length(p_payload::text), p_scheduled_for, p_max_attempts,
                                       p_unique_key);
begin
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
-- Many jobs of one type in one statement, without keys. Ids come back in the order of the payloads. They are neighbours:
-- the first eight digits count up from a random number, the others are random and the same for all of a call. So jobs
-- that are due at the same moment are claimed in that order, and lie in it in the table and side by side in its indexes.
create or replace function enqueue_jobs(
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
    v_seed  text := gen_random_uuid();
    v_first bigint := ('x' || left(v_seed, 8))::bit(32)::bigint % (4294967296 - cardinality(p_payloads));
    v_ids   uuid[];
begin
    if cardinality(p_payloads) = 0 then
        return;
    end if;
    perform check_enqueue(p_job_type,
                          case when array_position(p_payloads, null) is null
                               then (select max(octet_length(payload::text)) from unnest(p_payloads) as payload) end,
                          p_scheduled_for, p_max_attempts, null);
    select array_agg((lpad(to_hex(v_first + place), 8, '0') || substr(v_seed, 9))::uuid order by place) into v_ids
      from generate_subscripts(p_payloads, 1) as place;
    insert into job_queue (id, job_type, payload, priority, scheduled_for, max_attempts, parent_id)
    select fresh.id, p_job_type, fresh.payload, coalesce(p_priority, 0::smallint), coalesce(p_scheduled_for, now()),
           coalesce(p_max_attempts, 3::smallint), p_parent_id
      from unnest(v_ids, p_payloads) as fresh (id, payload);
    return query select unnest(v_ids);
end
$$;

commit;
