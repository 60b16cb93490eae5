-- What becomes of a call to a language model, and the transcripts that its worker reads. Only the sending needs a run
-- that is held: an answer that was paid for is kept whatever has become of its run.

begin;
insert into schema_migrations (version, name) values (13, 'llm_answers');
set local role jobbko_owner;

-- The call if it belongs to a type of the caller, locked; raises otherwise.
create function own_llm_call(p_call_id uuid) returns llm_call
language plpgsql
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_call llm_call;
begin
    select call.* into v_call
      from llm_call as call join job_type as own on own.name = call.job_type and own.role = session_user
     where call.id = p_call_id
       for update of call;
    if not found then
        raise exception 'there is no call % that % may write', p_call_id, session_user using errcode = 'JQ004';
    end if;
    return v_call;
end
$$;

-- Committed before the first byte leaves. A run that is lost sends nothing.
create function mark_llm_call_sent(p_call_id uuid) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_known llm_call := (select call from llm_call as call where id = p_call_id);
    v_call  llm_call;
begin
    if v_known.id is not null then
        perform check_run(v_known.job_id, v_known.lease_token);  -- the job first, as everywhere
    end if;
    v_call := own_llm_call(p_call_id);
    if v_call.state not in ('reserved', 'sent') then
        raise exception 'call % is %, expected reserved', p_call_id, v_call.state using errcode = 'JQ002';
    end if;
    update llm_call set state = 'sent', sent_at = coalesce(sent_at, clock_timestamp()) where id = p_call_id;
end
$$;
comment on function mark_llm_call_sent is 'From now on the call may be billed; JQ001 when the run is lost';

create function note_llm_generation(p_call_id uuid, p_generation_id text) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform own_llm_call(p_call_id);
    update llm_call set generation_id = left(p_generation_id, 300) where id = p_call_id;
end
$$;
comment on function note_llm_generation is 'The provider''s id of a call, before its answer';

-- What became of a call. It needs no run: an answer that was paid for is kept although its run was lost meanwhile. If
-- the next run has asked again by then, the late answer is kept for the books alone.
-- p_details: generation_id, model_used, provider, http_status, finish_reason, usage, error_class, error_msg.
create function settle_llm_call(
    p_call_id uuid, p_state text, p_cost_usd numeric, p_cost_source text, p_details jsonb default '{}',
    p_response text default null
) returns void
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_call llm_call := own_llm_call(p_call_id);
    v_late boolean := exists (select from llm_call as other
                               where other.job_id = v_call.job_id and other.step = v_call.step
                                 and other.request_hash = v_call.request_hash and other.id <> v_call.id
                                 and other.state in ('reserved', 'sent', 'received') and other.discarded_at is null);
begin
    if not coalesce(case p_state when 'received' then v_call.state in ('sent', 'unknown', 'received')
                                 when 'failed' then v_call.state in ('reserved', 'sent', 'unknown', 'failed')
                                 when 'unknown' then v_call.state in ('sent', 'unknown') end, false) then
        raise exception 'call % is % and cannot become %', p_call_id, v_call.state, p_state using errcode = 'JQ002';
    end if;
    update llm_call
       set state = p_state, cost_usd = p_cost_usd, cost_source = p_cost_source, settled_at = clock_timestamp(),
           generation_id = coalesce(left(p_details->>'generation_id', 300), generation_id),
           model_used = coalesce(left(p_details->>'model_used', 300), model_used),
           provider = coalesce(left(p_details->>'provider', 300), provider),
           http_status = coalesce((p_details->>'http_status')::integer, http_status),
           finish_reason = coalesce(left(p_details->>'finish_reason', 100), finish_reason),
           usage = coalesce(nullif(p_details->'usage', 'null'), usage), response = coalesce(p_response, response),
           -- Why it is unknown stays, when only its cost is learned; it is forgotten when the answer comes after all.
           error_class = coalesce(left(p_details->>'error_class', 200),
                                  case when p_state = 'unknown' then error_class end),
           error_msg = coalesce(left(p_details->>'error_msg', 8000), case when p_state = 'unknown' then error_msg end),
           discarded_at = case when v_late then coalesce(discarded_at, clock_timestamp()) else discarded_at end
     where id = p_call_id;
end
$$;
comment on function settle_llm_call is 'Ends a call: received, failed or unknown, and what it cost';

-- The answers to one question were of no use: the next run of the job asks again, and pays again.
create function discard_llm_calls(p_job_id uuid, p_lease_token uuid, p_step text, p_request_hashes text[])
returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_count integer;
begin
    perform check_run(p_job_id, p_lease_token);
    update llm_call set discarded_at = clock_timestamp()
     where job_id = p_job_id and step = p_step and request_hash = any (p_request_hashes)
       and state in ('received', 'unknown') and discarded_at is null;
    get diagnostics v_count = row_count;
    return v_count;
end
$$;
comment on function discard_llm_calls is 'Answers that shall not be used again; returns how many';

-- What all calls of a job have cost so far, and what those may have cost of which nobody knows.
create function sum_llm_calls(p_job_id uuid, p_lease_token uuid)
returns table (cost_usd numeric, unknown_calls integer, unknown_usd numeric)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_run(p_job_id, p_lease_token);
    return query
    select coalesce(sum(call.cost_usd), 0), (count(*) filter (where call.cost_usd is null))::integer,
           coalesce(sum(call.reserved_usd) filter (where call.cost_usd is null), 0)
      from llm_call as call where call.job_id = p_job_id;
end
$$;
comment on function sum_llm_calls is 'Known cost of a job''s calls, and what the others may have cost at most';

-- A transcript for the worker that analyses it, and for no other.
create function read_transcript(p_job_id uuid) returns jsonb
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
            p_job_id, coalesce(left(v_job.error_msg, 500), 'nobody knows why')
            using errcode = 'JQ002', hint = 'retry it first';
    elsif v_job.status <> 'completed' then
        raise exception 'the transcription % is not completed yet, it is %', p_job_id, v_job.status
            using errcode = 'JQ005', hint = 'come back when it is';
    end if;
    return v_job.result;
end
$$;
comment on function read_transcript is 'Result of a completed transcription; JQ004 not there, JQ002 no transcript, JQ005 not yet';

grant execute on function
    mark_llm_call_sent, note_llm_generation, settle_llm_call, discard_llm_calls, sum_llm_calls, read_transcript
    to jobbko_worker;

commit;
