-- What a worker calls before and during a run: register, claim, heartbeat, checkpoints. Each function asks whether
-- session_user is the role of the job type, inside the statement that acts.

begin;
insert into schema_migrations (version, name) values (5, 'claim');
set local role jobbko_owner;

-- The row of the type if the caller may work it; raises otherwise.
create function own_job_type(p_job_type text) returns job_type
language plpgsql stable
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_type job_type;
begin
    select * into v_type from job_type where name = p_job_type and role = session_user;
    if not found then
        raise exception 'role % may not work jobs of type "%"', session_user, p_job_type
            using errcode = '42501', hint = 'name the role in the job_type.toml of the type and run migrate';
    end if;
    return v_type;
end
$$;

create function register_worker(
    p_worker_id text, p_job_type text, p_version text, p_host text, p_pid integer, p_payload_schema jsonb default null
) returns job_type
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_type job_type := own_job_type(p_job_type);
begin
    insert into worker (worker_id, job_type, role, version, host, pid)
    values (p_worker_id, p_job_type, session_user, p_version, p_host, p_pid)
    on conflict (worker_id) do update set seen_at = clock_timestamp(), idle = false
     where worker.role = session_user;
    if p_payload_schema is not null and p_payload_schema is distinct from v_type.payload_schema then
        update job_type set payload_schema = p_payload_schema where name = p_job_type;
        v_type.payload_schema := p_payload_schema;
    end if;
    return v_type;
end
$$;
comment on function register_worker is 'A worker process says that it lives and what payload it takes; returns the rules of its type';

create function unregister_worker(p_worker_id text) returns void
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
    delete from worker where worker_id = p_worker_id and role = session_user
$$;

-- False when the row is gone (swept during an outage): the worker registers again.
create function beat_worker(p_worker_id text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform set_config('synchronous_commit', 'off', true);
    update worker set seen_at = clock_timestamp() where worker_id = p_worker_id and role = session_user;
    return found;
end
$$;

-- Called before the worker sleeps; it must claim once more afterwards, since an enqueue that did not see this row
-- sent no notification.
create function set_worker_idle(p_worker_id text) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform set_config('synchronous_commit', 'off', true);
    update worker set idle = true, current_job_id = null, current_since = null
     where worker_id = p_worker_id and role = session_user and not idle;
end
$$;

-- Claims up to p_limit due jobs of one type, most important first, then longest due. One transaction of its own.
-- "present" skips from each priority that is waiting to the next lower one, so the cost does not depend on how many
-- future jobs of higher priorities there are; the entries of jobs that are gone are passed once, not twice. Both status
-- lists are literals, or the partial index could not be used. One statement locks the rows, the next finds them by their
-- ids: as one, a generic plan joins the whole table, since it takes "limit" for a tenth of all rows. For that reason, too,
-- the planner would think each call over anew, which takes longer than the claim and looks into the index for its ends.
-- A payload over the type's limit comes back as null: whoever wrote it went past enqueue_job, and the worker records
-- the failure.
-- Asynchronous commit is safe here: a claim lost in a crash of the server is a job that still waits, and its random
-- token is never handed out again. The jobs of one claim share it: a run is named by its job and the token together.
create function claim_jobs(p_job_type text, p_worker_id text, p_limit integer default 1)
returns table (
    id uuid, payload jsonb, payload_bytes integer, priority smallint, attempts smallint, max_attempts smallint,
    lease_token uuid, created_at timestamptz, scheduled_for timestamptz, started_at timestamptz, parent_id uuid
)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    v_type  job_type := own_job_type(p_job_type);
    v_token uuid := gen_random_uuid();
    v_limit integer := least(coalesce(p_limit, 1), 1000);
    v_ids   uuid[];
begin
    if v_type.paused_at is not null and (v_type.paused_until is null or v_type.paused_until > now()) then
        return;
    end if;
    v_ids := array(
        with recursive present (priority, first_due) as (
            (select waiting.priority, waiting.scheduled_for from job_queue as waiting
              where waiting.job_type = p_job_type and waiting.status in ('pending', 'retry')
              order by waiting.priority desc, waiting.scheduled_for limit 1)
            union all
            select lower.priority, lower.scheduled_for
              from present cross join lateral (
                select waiting.priority, waiting.scheduled_for from job_queue as waiting
                 where waiting.job_type = p_job_type and waiting.status in ('pending', 'retry')
                   and waiting.priority < present.priority
                 order by waiting.priority desc, waiting.scheduled_for limit 1) as lower
        )
        select due.id from present cross join lateral (
            select waiting.id from job_queue as waiting
             where waiting.job_type = p_job_type and waiting.priority = present.priority
               and waiting.status in ('pending', 'retry')
               and waiting.scheduled_for between present.first_due and now()
             order by waiting.scheduled_for, waiting.id
             limit v_limit for update skip locked) as due
         where present.first_due <= now()
         limit v_limit);
    if v_ids = '{}' then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);
    return query
        update job_queue as job
           set status = 'running', started_at = clock_timestamp(), worker_id = p_worker_id, lease_token = v_token,
               lease_until = clock_timestamp() + make_interval(secs => v_type.lease_seconds),
               progress = null, progress_note = null, cancel_requested_at = null, cancel_reason = null
         where job.id = any (v_ids)
        returning job.id,
                  case when octet_length(job.payload::text) <= v_type.payload_limit_bytes then job.payload end,
                  octet_length(job.payload::text), job.priority, job.attempts, job.max_attempts, job.lease_token,
                  job.created_at, job.scheduled_for, job.started_at, job.parent_id;
    update worker set idle = false, current_since = clock_timestamp(), current_job_id = v_ids[1]
     where worker_id = p_worker_id and role = session_user;
end
$$;
comment on function claim_jobs is 'Claims due jobs for a worker: status running, fresh lease and token';

-- Heartbeat of all runs that a process holds. A run that does not come back is lost: its handler must stop.
create function extend_leases(p_job_ids uuid[], p_lease_tokens uuid[], p_progress real[], p_notes text[])
returns table (job_id uuid, cancel_requested_at timestamptz)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
begin
    perform set_config('synchronous_commit', 'off', true);
    return query
    with held as materialized (   -- rows are locked in the order of their ids by all who lock many
        select job.id, given.progress, given.note, own.lease_seconds
          from unnest(p_job_ids, p_lease_tokens, p_progress, p_notes) as given (job_id, lease_token, progress, note)
          join job_queue as job on job.id = given.job_id and job.lease_token = given.lease_token
          join job_type as own on own.name = job.job_type and own.role = session_user
         where job.status = 'running'
         order by job.id for update of job
    )
    update job_queue as job
       set lease_until = clock_timestamp() + make_interval(secs => held.lease_seconds),
           progress = coalesce(case when held.progress <> 'NaN' then least(greatest(held.progress, 0), 1) end,
                               job.progress),
           progress_note = coalesce(held.note, job.progress_note),
           progress_at = case when coalesce(held.progress, job.progress) is distinct from job.progress
                                or coalesce(held.note, job.progress_note) is distinct from job.progress_note
                              then clock_timestamp() else job.progress_at end
      from held where job.id = held.id
    returning job.id, job.cancel_requested_at;
end
$$;
comment on function extend_leases is 'Heartbeat: renews leases and stores progress; returns the runs that are still held';

-- The fence as a statement of its own, for the end of a handler's transaction. Locks the row until the commit.
create function check_run(p_job_id uuid, p_lease_token uuid) returns job_queue
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job job_queue;
begin
    select job.* into v_job
      from job_queue as job join job_type as own on own.name = job.job_type and own.role = session_user
     where job.id = p_job_id and job.lease_token = p_lease_token and job.status = 'running'
       for update of job;
    if not found then
        raise exception 'run of job % is lost: it is no longer held with this token', p_job_id
            using errcode = 'JQ001', hint = 'roll back; another run may have begun';
    end if;
    return v_job;
end
$$;

create function confirm_run(p_job_id uuid, p_lease_token uuid) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_run(p_job_id, p_lease_token);
end
$$;
comment on function confirm_run is 'Raises JQ001 when the run is lost; last statement of a handler''s own transaction';

-- p_seq is the number that the caller expects it to get. Named again after a broken connection, it is not written twice.
create function write_checkpoint(p_job_id uuid, p_lease_token uuid, p_data jsonb, p_seq integer default null)
returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_last job_checkpoint;
begin
    perform check_run(p_job_id, p_lease_token);
    select * into v_last from job_checkpoint where job_id = p_job_id order by seq desc limit 1;
    if p_seq = v_last.seq and v_last.lease_token = p_lease_token then
        return p_seq;
    end if;
    insert into job_checkpoint (job_id, seq, lease_token, data)
    values (p_job_id, coalesce(v_last.seq, 0) + 1, p_lease_token, p_data);
    return coalesce(v_last.seq, 0) + 1;
end
$$;
comment on function write_checkpoint is 'Appends a finished part of the work, under the fence; returns its number';

create function read_checkpoints(p_job_id uuid, p_lease_token uuid)
returns table (seq integer, data jsonb, written_at timestamptz)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
begin
    perform check_run(p_job_id, p_lease_token);
    return query select job_checkpoint.seq, job_checkpoint.data, job_checkpoint.written_at
                   from job_checkpoint where job_id = p_job_id order by seq;
end
$$;

-- The parts are no longer of use to the present run (its input has changed): it starts again from nothing.
create function drop_checkpoints(p_job_id uuid, p_lease_token uuid) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_run(p_job_id, p_lease_token);
    delete from job_checkpoint where job_id = p_job_id;
end
$$;

commit;
