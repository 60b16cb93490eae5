-- What a look at all of it found: a limit that held for one of two ways to complete, rights that nobody used, texts cut
-- within a word, days that were not counted anew.

begin;
insert into schema_migrations (version, name) values (28, 'corrections');
set local role jobbko_owner;

-- With a body that is read when it is made: the planner puts it into its callers.
create function is_too_large(p_result jsonb) returns boolean
language sql immutable
return octet_length(p_result::text) > 16777216;
comment on function is_too_large(jsonb) is 'Whether a result is one that the database should not hold: over 16 MB as text';

-- The result and the handler's own writes commit together or not at all: this is the last statement of that
-- transaction, and it raises when the run is lost.
create or replace function complete_job(p_job_id uuid, p_lease_token uuid, p_result jsonb) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_run(p_job_id, p_lease_token);
    if is_too_large(p_result) then
        raise exception 'result of % bytes is over the limit of 16777216 bytes', octet_length(p_result::text)
            using errcode = 'JQ002', hint = 'write the data to a file and return its path';
    end if;
    update job_queue
       set status = 'completed', result = p_result, completed_at = clock_timestamp(), progress = 1,
           error_class = null, error_msg = null, lease_until = null
     where id = p_job_id;
end
$$;

-- Completes many runs in one statement, each under its own fence: returns the jobs whose run was lost, and of those nothing
-- was written. Called again, it finds what it did. The status is compared as text to keep the planner from the index of
-- the running jobs, which it takes for nearly empty and would read anew for each of the batch.
-- A result over the limit is refused with all the others, since none of them can be told by what is returned: the worker
-- then completes each alone. Looked at are those of more than 1,000 bytes: fewer hold 80 numbers at most, of 131,072 digits
-- and 16,383 more behind the point, so their text is shorter than the limit, and writing out each of many small ones costs.
create or replace function complete_runs(p_job_ids uuid[], p_lease_tokens uuid[], p_results jsonb[]) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    if exists (select from unnest(p_results) as result
                where pg_column_size(result) > 1000 and is_too_large(result)) then
        raise exception 'one of % results is over the limit', cardinality(p_results)
            using errcode = 'JQ002', hint = 'complete each job alone, which tells the one';
    end if;
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

-- A worker's login could end a budget's pause of its type with it: resume_own_pause is what workers call.
revoke execute on function resume_job_type from jobbko_worker;
create or replace function resume_job_type(p_job_type text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    update job_type
       set paused_at = null, paused_until = null, pause_origin = null, pause_reason = null, pause_class = null
     where name = p_job_type and paused_at is not null;
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
comment on function resume_job_type is 'Ends a pause, whoever made it';

-- Parts of sweep_jobs, stats.next_run and retention_state, which may be called.
revoke execute on function next_slot from jobbko_operator;
revoke execute on function retention_rules from jobbko_operator, jobbko_reader;

-- Half a secret is recognized by nobody who shows the text: of what is cut, the last word is left out.
create function cut_words(p_text text, p_most integer) returns text
language sql immutable
set search_path = pg_catalog, public, pg_temp
as $$
    select case when length(p_text) <= p_most then p_text
                else regexp_replace(left(p_text, p_most), '[^\s"]*$', '…') end
$$;

-- Records the death of a run. It costs an attempt unless the run wrote a checkpoint; three deaths at one checkpoint
-- end the job, whatever max_attempts says, so that a job that kills its process cannot do so for ever.
create or replace function rescue_job(p_job job_queue) returns job_queue
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_type       job_type := (select job_type from job_type where name = p_job.job_type);
    v_leased     boolean := p_job.lease_until is not null;
    v_checkpoint integer := (select coalesce(max(seq), 0) from job_checkpoint where job_id = p_job.id);
    v_charged    boolean := not exists (select from job_checkpoint
                                         where job_id = p_job.id and lease_token = p_job.lease_token);
    v_deaths     integer := 1 + (select count(*) from job_attempt
                                  where job_id = p_job.id and outcome = 'lost' and not forgiven
                                    and checkpoint = v_checkpoint);
    v_attempts   integer := p_job.attempts + v_charged::integer;
    v_final      boolean := (v_charged and v_attempts >= p_job.max_attempts) or v_deaths >= 3;
    v_wait       double precision := backoff_seconds(v_attempts, coalesce(v_type.backoff_base_seconds, 30),
                    coalesce(v_type.backoff_cap_seconds, 3600), coalesce(v_type.backoff_jitter, 0));
begin
    return end_run(p_job, 'lost', v_charged,
        case when not v_final then clock_timestamp() + make_interval(secs => v_wait) end,
        case when v_leased then 'crash' else 'timeout' end,
        case when v_leased
             then format('worker %s vanished: no heartbeat since the lease ran out at %s (attempt %s of %s, claimed %s, %s, %s, death %s here)',
                         coalesce(p_job.worker_id, 'unknown'), p_job.lease_until, p_job.attempts + 1,
                         p_job.max_attempts, p_job.started_at,
                         coalesce('last progress ' || round((p_job.progress * 100)::numeric) || ' %'
                                  || coalesce(' "' || cut_words(p_job.progress_note, 200) || '"', ''), 'no progress reported'),
                         case when v_checkpoint > 0 then 'checkpoint ' || v_checkpoint else 'no checkpoint' end, v_deaths)
             else format('running without a lease for longer than the longest run of its type, %s s',
                         coalesce(v_type.longest_run_seconds, 21600)) end);
end
$$;

-- A transcript for the worker that analyses it, and for no other.
create or replace function read_transcript(p_job_id uuid) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job job_queue := (select job from job_queue as job where id = p_job_id);
begin
    if not exists (select from job_type where name = 'openrouter_analyze' and role = session_user) then
        raise exception 'role % does not analyse transcripts', session_user using errcode = '42501';
    elsif v_job.id is null then
        raise exception 'there is no job %', p_job_id using errcode = 'JQ004';
    elsif v_job.job_type <> 'whisper_transcribe' then
        raise exception 'job % is of type "%", expected whisper_transcribe', p_job_id, left(v_job.job_type, 100)
            using errcode = 'JQ002';
    elsif v_job.status = 'error' then
        raise exception 'the transcription % ended in error: %',
            p_job_id, coalesce(cut_words(v_job.error_msg, 500), 'nobody knows why')
            using errcode = 'JQ002', hint = 'retry it first';
    elsif v_job.status <> 'completed' then
        raise exception 'the transcription % is not completed yet, it is %', p_job_id, v_job.status
            using errcode = 'JQ005', hint = 'come back when it is';
    end if;
    return v_job.result;
end
$$;

-- What is learned of a file changes which of its windows count, on days that still have any.
create or replace function stats.mark_days_of_media() returns trigger
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    update stats.day set is_dirty = true
     where state = 'open' and not is_dirty
       and exists (select from stats.listener_window as w
                    where w.day = day.day
                      and (w.show, w.episode, w.total_size) in ((new.show, new.episode, new.total_size),
                                                                (old.show, old.episode, old.total_size)));
    return null;
end
$$;

commit;
