-- The ends of a run, each under the fence: complete, fail, postpone, release. Rules of the specification: a failure
-- adds one to attempts; then retry after 30 s x 2^(attempts-1) while attempts < max_attempts, else error.

begin;
insert into schema_migrations (version, name) values (6, 'settle');
set local role jobbko_owner;

-- Seconds to wait after the given number of failures. The exponent is bounded so that 32767 failures don't overflow.
create function backoff_seconds(
    p_attempts integer, p_base_seconds integer default 30, p_cap_seconds integer default 3600, p_jitter real default 0
) returns double precision
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    select least(p_cap_seconds, p_base_seconds * 2 ^ least(greatest(p_attempts, 1) - 1, 20))
           * (1 + p_jitter * random())
$$;
comment on function backoff_seconds is 'Wait before the next retry: base x 2^(attempts-1), capped, plus jitter';

-- Ends a run that did not complete. p_next null = the job ends in error; a requested cancel ends it in any case.
-- The caller has locked the row.
create function end_run(
    p_job job_queue, p_outcome text, p_charged boolean, p_next timestamptz,
    p_error_class text, p_error_msg text, p_traceback text default null
) returns job_queue
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_cancelled boolean := p_job.cancel_requested_at is not null;
    v_attempts  smallint := least(p_job.attempts + (p_charged and not v_cancelled)::integer, 32767);
    v_failed    boolean := p_outcome in ('failed', 'lost') or p_next is null;
    v_job       job_queue;
begin
    insert into job_attempt (job_id, attempt, worker_id, lease_token, started_at, outcome, charged, error_class,
                             error_msg, traceback, checkpoint, progress)
    values (p_job.id, least(p_job.attempts + 1, 32767), p_job.worker_id, p_job.lease_token, p_job.started_at,
            case when v_cancelled then 'cancelled' else p_outcome end, p_charged and not v_cancelled, p_error_class,
            left(p_error_msg, 8000), left(p_traceback, 32000),
            (select coalesce(max(seq), 0) from job_checkpoint where job_id = p_job.id), p_job.progress);

    update job_queue
       set status = case when v_cancelled or p_next is null then 'error'
                         when v_attempts > 0 then 'retry' else 'pending' end::job_status,
           attempts = v_attempts,
           scheduled_for = case when v_cancelled then scheduled_for else coalesce(p_next, scheduled_for) end,
           completed_at = case when v_cancelled or p_next is null then clock_timestamp() end,
           error_class = case when v_cancelled then 'cancelled' when v_failed then p_error_class else error_class end,
           error_msg = case when v_cancelled then 'cancelled while running' || coalesce(': ' || cancel_reason, '')
                            when v_failed then left(p_error_msg, 8000) else error_msg end,
           postponements = postponements + (p_outcome = 'postponed' and not v_cancelled)::integer,
           lease_token = null, lease_until = null
     where id = p_job.id
    returning * into v_job;
    return v_job;
end
$$;

-- The result and the handler's own writes commit together or not at all: this is the last statement of that
-- transaction, and it raises when the run is lost.
create function complete_job(p_job_id uuid, p_lease_token uuid, p_result jsonb) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_run(p_job_id, p_lease_token);
    if octet_length(p_result::text) > 16777216 then
        raise exception 'result of % bytes is over the limit of 16777216 bytes', octet_length(p_result::text)
            using errcode = 'JQ002', hint = 'write the data to a file and return its path';
    end if;
    update job_queue
       set status = 'completed', result = p_result, completed_at = clock_timestamp(), progress = 1,
           error_class = null, error_msg = null, lease_until = null
     where id = p_job_id;
end
$$;
comment on function complete_job is 'Ends a run well and stores its result; JQ001 when the run is lost';

-- Completes many runs in one statement, each under its own fence: returns the jobs whose run was lost, and of those nothing
-- was written. Called again, it finds what it did. The status is compared as text to keep the planner from the index of
-- the running jobs, which it takes for nearly empty and would read anew for each of the batch.
create function complete_runs(p_job_ids uuid[], p_lease_tokens uuid[], p_results jsonb[]) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    update job_queue as job
       set status = 'completed', result = ended.result, completed_at = clock_timestamp(), progress = 1,
           error_class = null, error_msg = null, lease_until = null
      from unnest(p_job_ids, p_lease_tokens, p_results) as ended (job_id, lease_token, result)
     where job.id = ended.job_id and job.lease_token = ended.lease_token and job.status::text = 'running'
       and job.job_type = any (array(select name from job_type where role = session_user));
    get diagnostics v_count = row_count;
    if v_count < cardinality(p_job_ids) then
        return query
            select ended.job_id from unnest(p_job_ids, p_lease_tokens) as ended (job_id, lease_token)
             where not exists (select from job_queue as job
                                where job.id = ended.job_id and job.lease_token = ended.lease_token
                                  and job.status = 'completed');
    end if;
end
$$;
comment on function complete_runs is 'Ends many runs well, each under its fence; returns the jobs whose run was lost';
grant execute on function complete_runs to jobbko_worker;

-- For workers of images from before complete_runs, which are told the opposite. To be dropped a release later.
create function complete_jobs(p_job_ids uuid[], p_lease_tokens uuid[], p_results jsonb[]) returns setof uuid
language sql security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select unnest(p_job_ids) except select complete_runs(p_job_ids, p_lease_tokens, p_results)
$$;
comment on function complete_jobs is 'Ends many runs well, as complete_runs does; returns the jobs that were still held';
grant execute on function complete_jobs to jobbko_worker;

-- p_retry_after_seconds, at most 30 days, wins over the backoff. p_permanent ends the job at once.
create function fail_job(
    p_job_id uuid, p_lease_token uuid, p_error_class text, p_error_msg text, p_traceback text default null,
    p_permanent boolean default false, p_retry_after_seconds double precision default null
) returns table (status job_status, attempts smallint, scheduled_for timestamptz)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job   job_queue := check_run(p_job_id, p_lease_token);
    v_type  job_type := own_job_type(v_job.job_type);
    v_wait  double precision := case when p_retry_after_seconds <> 'NaN'
        then least(greatest(p_retry_after_seconds, 0), 30 * 86400)
        else backoff_seconds(v_job.attempts + 1, v_type.backoff_base_seconds, v_type.backoff_cap_seconds,
                             v_type.backoff_jitter) end;
begin
    v_job := end_run(v_job, 'failed', true,
        case when not coalesce(p_permanent, false) and v_job.attempts + 1 < v_job.max_attempts
             then clock_timestamp() + make_interval(secs => v_wait) end,
        p_error_class, p_error_msg, p_traceback);
    return query select v_job.status, v_job.attempts, v_job.scheduled_for;
end
$$;
comment on function fail_job is 'Ends a run badly: retry after its backoff, or error';

-- "Come back later": costs no attempt, but at most 20 times and for at most 24 hours since the first time.
create function postpone_job(p_job_id uuid, p_lease_token uuid, p_until timestamptz, p_reason text)
returns table (status job_status, attempts smallint, scheduled_for timestamptz)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job   job_queue := check_run(p_job_id, p_lease_token);
    v_first timestamptz := (select min(ended_at) from job_attempt
                             where job_id = p_job_id and outcome = 'postponed' and not forgiven);
begin
    if v_job.postponements >= 20 or clock_timestamp() > v_first + interval '24 hours' then
        v_job := end_run(v_job, 'failed', true, null, 'postponed_too_often',
            format('still not possible after %s postponements since %s: %s', v_job.postponements, v_first, p_reason));
    else
        v_job := end_run(v_job, 'postponed', false,
            least(greatest(p_until, clock_timestamp()), clock_timestamp() + interval '24 hours'), 'postponed', p_reason);
    end if;
    return query select v_job.status, v_job.attempts, v_job.scheduled_for;
end
$$;
comment on function postpone_job is 'Puts a job back until a time, at no cost, within bounds';

-- Back to waiting, unharmed and in its old place; or ended, when a cancel was requested.
create function release_job(p_job_id uuid, p_lease_token uuid, p_reason text)
returns table (status job_status, attempts smallint, scheduled_for timestamptz)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job job_queue := check_run(p_job_id, p_lease_token);
begin
    v_job := end_run(v_job, 'released', false, v_job.scheduled_for, 'released', p_reason);
    return query select v_job.status, v_job.attempts, v_job.scheduled_for;
end
$$;
comment on function release_job is 'Puts a job back at no cost, or ends it when its cancel was requested';

create function release_jobs(p_job_ids uuid[], p_lease_tokens uuid[], p_reason text)
returns table (job_id uuid, status job_status)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_job job_queue;
begin
    for v_job in
        select job.*
          from unnest(p_job_ids, p_lease_tokens) as held (job_id, lease_token)
          join job_queue as job on job.id = held.job_id and job.lease_token = held.lease_token
         where job.status = 'running' and job.job_type in (select name from job_type where role = session_user)
         order by job.id for update of job
    loop
        v_job := end_run(v_job, 'released', false, v_job.scheduled_for, 'released', p_reason);
        job_id := v_job.id;
        status := v_job.status;
        return next;
    end loop;
end
$$;
comment on function release_jobs is 'Puts many jobs back at no cost, each under its fence; returns those that were still held';
grant execute on function release_jobs to jobbko_worker;

-- The answer to a claim can be lost, and then nobody works what it took. A worker knows all that it holds, so it puts back
-- what else stands under its name. An answer that took longer than p_older_than_seconds is never taken any more.
create function release_strays(p_worker_id text, p_held uuid[], p_older_than_seconds double precision) returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job   job_queue;
    v_count integer := 0;
begin
    for v_job in
        select job.* from job_queue as job join job_type as own on own.name = job.job_type and own.role = session_user
         where job.status = 'running' and job.worker_id = p_worker_id
           and job.lease_token is not null and job.lease_token <> all (p_held)
           and job.started_at < clock_timestamp() - make_interval(secs => p_older_than_seconds)
         order by job.id for update of job skip locked
    loop
        perform end_run(v_job, 'released', false, v_job.scheduled_for, 'released',
            'its worker holds it no longer: the answer to its claim was lost, or the database was away too long');
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$$;
comment on function release_strays is 'Puts back what a worker claimed without knowing; returns how many jobs';

-- What became of a run, for a worker whose connection broke during the commit that settled it.
create function run_outcome(p_job_id uuid, p_lease_token uuid) returns text
language sql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
    select coalesce(
        (select job.status::text from job_queue as job join job_type as own on own.name = job.job_type
          where job.id = p_job_id and job.lease_token = p_lease_token and own.role = session_user
            and job.status in ('running', 'completed')),
        (select past.outcome from job_attempt as past join job_queue as job on job.id = past.job_id
           join job_type as own on own.name = job.job_type
          where past.job_id = p_job_id and past.lease_token = p_lease_token and own.role = session_user
          limit 1),
        'lost')
$$;
comment on function run_outcome is 'running, completed, the outcome in job_attempt, or lost';

commit;
