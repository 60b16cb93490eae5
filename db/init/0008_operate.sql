-- What an operator or a handler may do to jobs and types (retry, cancel, pause, resume), and who may call what. What a
-- person does is written down by record_audit (0016), whichever program they do it with.

begin;
insert into schema_migrations (version, name) values (8, 'operate');
set local role jobbko_owner;

-- A job in error starts anew, with all its attempts; one that waits for a later time is due now. Checkpoints stay, so
-- the work goes on where it stopped.
create function retry_job(p_job_id uuid) returns text
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job job_queue;
begin
    select * into v_job from job_queue where id = p_job_id for update;
    if not found then
        raise exception 'there is no job %', p_job_id using errcode = 'JQ004';
    elsif v_job.status in ('pending', 'retry') then
        update job_queue set scheduled_for = least(scheduled_for, now()) where id = p_job_id;
        perform record_audit('job.retry', p_job_id, null, jsonb_build_object('outcome', 'pulled_forward'));
        return 'pulled_forward';
    elsif v_job.status <> 'error' then
        raise exception 'job % is %, expected error, retry or pending', p_job_id, v_job.status
            using errcode = 'JQ002', hint = 'enqueue it again to run a completed job once more';
    end if;
    update job_attempt set forgiven = true where job_id = p_job_id and not forgiven;
    update job_queue
       set status = 'pending', attempts = 0, postponements = 0, scheduled_for = now(), completed_at = null,
           error_class = null, error_msg = null, cancel_requested_at = null, cancel_reason = null, rerun_requested_at = null,
           rerun_payload = null, lease_token = null, worker_id = null, progress = null, progress_note = null
     where id = p_job_id;
    perform record_audit('job.retry', p_job_id, null, jsonb_build_object(
        'outcome', 'retried', 'error_class', v_job.error_class, 'attempts', v_job.attempts));
    return 'retried';
exception when unique_violation then
    raise exception 'job % cannot be retried: another job of type "%" with the unique key "%" waits or runs',
        p_job_id, v_job.job_type, v_job.unique_key using errcode = 'JQ002';
end
$$;
comment on function retry_job is 'Runs a failed job anew, or a waiting one now: retried, pulled_forward';

-- A waiting job ends at once; a running one is asked to stop, which its worker sees by notification or heartbeat.
create function cancel_job(p_job_id uuid, p_reason text default null) returns text
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job job_queue;
begin
    select * into v_job from job_queue where id = p_job_id for update;
    if not found then
        raise exception 'there is no job %', p_job_id using errcode = 'JQ004';
    elsif v_job.status in ('completed', 'error') then
        raise exception 'job % has ended already: %', p_job_id, v_job.status using errcode = 'JQ002';
    elsif v_job.status = 'running' then
        update job_queue
           set cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()),
               cancel_reason = coalesce(left(p_reason, 1000), cancel_reason)
         where id = p_job_id;
        perform pg_notify('job_cancel', left(v_job.worker_id, 1000)) where v_job.worker_id is not null;
        perform record_audit('job.cancel', p_job_id, null, jsonb_build_object(
            'outcome', 'requested', 'reason', left(p_reason, 1000)));
        return 'requested';
    end if;
    update job_queue
       set status = 'error', error_class = 'cancelled', completed_at = clock_timestamp(),
           error_msg = 'cancelled while waiting' || coalesce(': ' || left(p_reason, 1000), '')
     where id = p_job_id;
    perform record_audit('job.cancel', p_job_id, null, jsonb_build_object(
        'outcome', 'cancelled', 'reason', left(p_reason, 1000)));
    return 'cancelled';
end
$$;
comment on function cancel_job is 'Ends a waiting job (cancelled) or asks a running one to stop (requested)';

-- Stops claims of a type, until a time or until someone resumes. Runs go on. A worker's login pauses its own type
-- with origin worker or budget, and never overwrites an operator's pause.
create function pause_job_type(
    p_job_type text, p_until timestamptz default null, p_reason text default null, p_origin text default null,
    p_class text default null
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_worker boolean := called_by_worker();
    v_origin text := coalesce(p_origin, case when v_worker then 'worker' else 'operator' end);
begin
    if v_worker and (v_origin = 'operator' or p_until is null) then
        raise exception 'a worker pauses its type with origin worker or budget, and until a time' using errcode = 'JQ002';
    end if;
    if not (p_until >= '2000-01-01 00:00+00' and p_until < '2200-01-01 00:00+00') then
        raise exception 'a pause until % is out of range', p_until using errcode = 'JQ002';
    end if;
    update job_type
       set paused_at = clock_timestamp(), pause_origin = v_origin,
           -- A time that is over already would let a worker pause and claim in a spin.
           paused_until = case when v_worker then greatest(p_until, clock_timestamp() + interval '1 second')
                               else p_until end,
           pause_reason = left(p_reason, 1000), pause_class = left(p_class, 200)
     where name = p_job_type
       and (not v_worker or (role = session_user
            and (pause_origin is distinct from 'operator' or paused_until <= clock_timestamp())));
    if found then
        perform record_audit('job_type.pause', null, p_job_type, jsonb_build_object(
            'until', p_until, 'reason', left(p_reason, 1000)));
        return true;
    elsif not exists (select from job_type where name = p_job_type and (not v_worker or role = session_user)) then
        raise exception 'there is no job type "%" that % may pause', p_job_type, session_user using errcode = 'JQ004';
    end if;
    return false;
end
$$;
comment on function pause_job_type is 'Stops claims of a type; false when an operator''s pause stands in the way';

create function resume_job_type(p_job_type text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_worker boolean := called_by_worker();
begin
    update job_type
       set paused_at = null, paused_until = null, pause_origin = null, pause_reason = null, pause_class = null
     where name = p_job_type and paused_at is not null
       and (not v_worker or (role = session_user and pause_origin <> 'operator'));
    if found then
        perform pg_notify('job_ready', p_job_type);
        perform record_audit('job_type.resume', null, p_job_type);
        return true;
    elsif not exists (select from job_type where name = p_job_type) then
        raise exception 'there is no job type "%"', p_job_type using errcode = 'JQ004';
    end if;
    return false;
end
$$;
comment on function resume_job_type is 'Ends a pause; a worker''s login never ends an operator''s';

-- A worker takes back what it paused itself, once the cause is gone: not a budget's pause, not one for another cause.
create function resume_own_pause(p_job_type text, p_classes text[]) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform own_job_type(p_job_type);
    update job_type
       set paused_at = null, paused_until = null, pause_origin = null, pause_reason = null, pause_class = null
     where name = p_job_type and pause_origin = 'worker' and pause_class = any (p_classes);
    if found then
        perform pg_notify('job_ready', p_job_type);
    end if;
    return found;
end
$$;
comment on function resume_own_pause is 'Ends a pause that a worker of the type made for one of these causes; false when there is none';

-- Rights. Nothing is open to public (0001 took that back); functions not named here are internal.
grant execute on function
    register_worker, unregister_worker, beat_worker, set_worker_idle, claim_jobs, extend_leases, confirm_run,
    write_checkpoint, read_checkpoints, drop_checkpoints, complete_job, fail_job, postpone_job, release_job,
    release_strays, run_outcome, sweep_jobs, pause_job_type, resume_job_type, resume_own_pause, enqueue_job, enqueue_jobs
    to jobbko_worker;
grant execute on function
    enqueue_job, enqueue_jobs, retry_job, cancel_job, pause_job_type, resume_job_type, sweep_jobs, next_slot
    to jobbko_operator;
grant select on job_queue, job_type, job_attempt, job_checkpoint, job_schedule, job_event, worker
    to jobbko_operator, jobbko_reader;
grant insert, update, delete on job_schedule to jobbko_operator;
grant execute on function enqueue_job, enqueue_jobs to jobbko_producer;
grant insert (job_type, payload, priority, max_attempts, scheduled_for), select (id) on job_queue to jobbko_producer;
grant select, insert, update on job_queue to jobbko_plain;

commit;
