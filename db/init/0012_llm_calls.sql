-- The ledger of paid calls to a language model: what was reserved, sent, answered, and what it cost. Every write stands
-- before or after the call in a transaction of its own, so that a crash pays twice only where nothing can prevent it,
-- and the budgets hold whoever races for them.

begin;
insert into schema_migrations (version, name) values (12, 'llm_calls');
set local role jobbko_owner;

create table llm_call (
    id                    uuid        primary key default gen_random_uuid(),
    job_id                uuid        not null,
    job_type              text        not null,
    lease_token           uuid        not null,
    step                  text        not null check (length(step) between 1 and 200),
    request_hash          text        not null check (request_hash ~ '^[0-9a-f]{64}$'),
    -- reserved: holds its money, not sent          -> sent, failed
    -- sent:     may be billed from now on          -> received, failed, unknown
    -- received: its answer is stored               final
    -- failed:   no answer, and none will come      final
    -- unknown:  nobody knows what became of it     -> received, failed
    state                 text        not null default 'reserved'
                          check (state in ('reserved', 'sent', 'received', 'failed', 'unknown')),
    day                   date        not null default (clock_timestamp() at time zone 'UTC')::date,
    model                 text        not null check (length(model) between 1 and 300),
    reserved_usd          numeric     not null check (reserved_usd between 0 and 100000),
    cost_usd              numeric     check (cost_usd between 0 and 100000),
    cost_source           text        check (cost_source in ('provider', 'generation', 'estimate', 'local', 'cache',
                                                             'unbilled', 'unknown')),
    charged_usd           numeric     not null generated always as (coalesce(cost_usd, reserved_usd)) stored,
    is_possible_duplicate boolean     not null default false,
    generation_id         text,
    model_used            text,
    provider              text,
    http_status           integer,
    finish_reason         text,
    usage                 jsonb,
    response              text,
    error_class           text,
    error_msg             text,
    reserved_at           timestamptz not null default clock_timestamp(),
    sent_at               timestamptz,
    settled_at            timestamptz,
    discarded_at          timestamptz
);
comment on table  llm_call is 'Calls to a language model: before, during and after; what they cost';
comment on column llm_call.id is 'Identity of the call';
comment on column llm_call.job_id is 'The job that asked; it may have been deleted since';
comment on column llm_call.job_type is 'Its type';
comment on column llm_call.lease_token is 'The run that reserved it';
comment on column llm_call.step is 'Which part of the job''s work asked';
comment on column llm_call.request_hash is 'SHA-256 of the request, in hex: the same again is the same question';
comment on column llm_call.state is 'reserved, sent, received, failed or unknown; the comments in the file say what follows what';
comment on column llm_call.day is 'UTC day whose budget it was reserved from';
comment on column llm_call.model is 'Model that was asked for';
comment on column llm_call.reserved_usd is 'The most that it can cost';
comment on column llm_call.cost_usd is 'What it cost; null while nobody knows';
comment on column llm_call.cost_source is 'Where the cost is known from; unbilled = it cannot have cost anything';
comment on column llm_call.charged_usd is 'What counts in the budgets: the cost, or what was reserved while nobody knows';
comment on column llm_call.is_possible_duplicate is 'The same question was sent before and may have been paid for';
comment on column llm_call.generation_id is 'The provider''s id, known as soon as its headers arrive';
comment on column llm_call.model_used is 'Model that answered';
comment on column llm_call.provider is 'Who ran it';
comment on column llm_call.http_status is 'Status of the response';
comment on column llm_call.finish_reason is 'Why the answer ended, in the provider''s own word where it gives one';
comment on column llm_call.usage is 'Tokens and cost as the provider told them';
comment on column llm_call.response is 'The answer as it came, JSON text';
comment on column llm_call.error_class is 'Why there is no answer, or why it is unknown';
comment on column llm_call.error_msg is 'The same in words';
comment on column llm_call.reserved_at is 'When its money was reserved';
comment on column llm_call.sent_at is 'Just before it was sent';
comment on column llm_call.settled_at is 'When it became received, failed or unknown';
comment on column llm_call.discarded_at is 'Since when its answer is not used again: it was of no use, or came too late';

-- One question of a job is under way once at most, or has one answer.
create unique index llm_call_live on llm_call (job_id, step, request_hash)
    where state in ('reserved', 'sent', 'received') and discarded_at is null;
create index llm_call_job on llm_call (job_id, reserved_at);
create index llm_call_day on llm_call (day, job_type);
create index llm_call_in_flight on llm_call (job_id) where state in ('reserved', 'sent');

-- Calls whose run is gone: what was not sent gives its money back, what was sent may have been paid for. Of one job,
-- whose row the caller holds; without one, of all jobs, and then whatever another caller is at is left to it, so that
-- two of them never wait for each other.
create function end_calls_of_lost_runs(p_job_id uuid default null) returns void
language sql
set search_path = pg_catalog, public, pg_temp
as $$
    with lost as (
        select call.id from llm_call as call
         where call.state in ('reserved', 'sent') and p_job_id is null
           and not exists (select from job_queue as job
                            where job.id = call.job_id and job.status = 'running'
                              and job.lease_token = call.lease_token)
           for update skip locked
    )
    update llm_call as call
       set state = case when call.state = 'reserved' then 'failed' else 'unknown' end,
           cost_usd = case when call.state = 'reserved' then 0 end,
           cost_source = case when call.state = 'reserved' then 'unbilled' else 'unknown' end,
           error_class = 'run_lost', error_msg = 'its run ended before there was an answer',
           settled_at = clock_timestamp()
     where call.state in ('reserved', 'sent')
       and (call.id in (select lost.id from lost)
            or (call.job_id = p_job_id
                and not exists (select from job_queue as job
                                 where job.id = p_job_id and job.status = 'running'
                                   and job.lease_token = call.lease_token)))
$$;

-- What became of the same question before, in an earlier run of the job or in this one: an answer to use again, calls
-- that may have been paid for, answers that were of no use.
create function find_llm_calls(p_job_id uuid, p_lease_token uuid, p_step text, p_request_hash text)
returns setof llm_call
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform check_run(p_job_id, p_lease_token);
    perform end_calls_of_lost_runs(p_job_id);
    return query
    select call.* from llm_call as call
     where call.job_id = p_job_id and call.step = p_step and call.request_hash = p_request_hash
       and call.state in ('received', 'unknown', 'failed')
     order by call.reserved_at;
end
$$;
comment on function find_llm_calls is 'Earlier calls of one question of a job, oldest first';

-- Reserves the most that a call can cost, from the budgets of its job, of the UTC day and of the type's day, or says
-- which of them has too little left. The lock makes one caller wait for the other's commit, and each statement here
-- sees what was committed before it, so the sums are true. A budget that is null is none.
-- outcome: reserved; job, day, type_day (spent already); never (one call alone costs more than a whole day's budget);
-- in_flight (it will fit if calls under way cost less than they reserved).
-- day_ends: of the budget's day, by the clock that counts it. postponements: how often the job has come back later.
create function reserve_llm_call(
    p_job_id uuid, p_lease_token uuid, p_step text, p_request_hash text, p_model text, p_reserve_usd numeric,
    p_job_budget_usd numeric, p_day_budget_usd numeric, p_type_day_budget_usd numeric default null,
    p_possible_duplicate boolean default false
) returns table (call_id uuid, outcome text, spent_usd numeric, in_flight_usd numeric, budget_usd numeric,
                 day_ends timestamptz, postponements integer)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    v_job   job_queue := check_run(p_job_id, p_lease_token);
    v_day   date;
    v_spent record;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a budget is reserved in a transaction of isolation read committed, not %',
            current_setting('transaction_isolation') using errcode = 'JQ002';
    elsif p_reserve_usd is null or 'NaN' in (p_reserve_usd, p_job_budget_usd, p_day_budget_usd, p_type_day_budget_usd) then
        raise exception 'what a call may cost, and what there is for it, must be numbers' using errcode = 'JQ002';
    end if;
    perform pg_advisory_xact_lock(hashtext('llm_call budgets'));
    perform end_calls_of_lost_runs();
    v_day := (clock_timestamp() at time zone 'UTC')::date;
    day_ends := (v_day + 1)::timestamp at time zone 'UTC';
    postponements := v_job.postponements;
    select id into call_id from llm_call
     where job_id = p_job_id and step = p_step and request_hash = p_request_hash and lease_token = p_lease_token
       and state = 'reserved' and discarded_at is null;
    if found then  -- the answer to the first reservation was lost
        outcome := 'reserved';
        return next;
        return;
    end if;

    select coalesce(sum(charged_usd) filter (where job_id = p_job_id), 0) as job,
           coalesce(sum(charged_usd) filter (where today and not flying), 0) as day,
           coalesce(sum(charged_usd) filter (where today and flying), 0) as day_flying,
           coalesce(sum(charged_usd) filter (where today and not flying and job_type = v_job.job_type), 0) as type_day,
           coalesce(sum(charged_usd) filter (where today and flying and job_type = v_job.job_type), 0) as type_flying
      into v_spent
      from (select charged_usd, job_id, job_type, day = v_day as today, state in ('reserved', 'sent') as flying
              from llm_call where day = v_day or job_id = p_job_id) as counted;

    select judged.outcome, judged.spent, judged.flying, judged.budget into outcome, spent_usd, in_flight_usd, budget_usd
      from (values (1, case when v_spent.job + p_reserve_usd > p_job_budget_usd then 'job' end,
                    v_spent.job, 0, p_job_budget_usd),
                   (2, judge_day(p_reserve_usd, v_spent.day, v_spent.day_flying, p_day_budget_usd, 'day'),
                    v_spent.day, v_spent.day_flying, p_day_budget_usd),
                   (3, judge_day(p_reserve_usd, v_spent.type_day, v_spent.type_flying, p_type_day_budget_usd, 'type_day'),
                    v_spent.type_day, v_spent.type_flying, p_type_day_budget_usd)
           ) as judged (rank, outcome, spent, flying, budget)
     where judged.outcome is not null
     -- What will hold longest is said first.
     order by array_position(array['job', 'never', 'day', 'type_day', 'in_flight'], judged.outcome), judged.rank
     limit 1;
    if outcome is null then
        insert into llm_call (job_id, job_type, lease_token, step, request_hash, day, model, reserved_usd,
                              is_possible_duplicate)
        values (p_job_id, v_job.job_type, p_lease_token, p_step, p_request_hash, v_day, p_model, p_reserve_usd,
                coalesce(p_possible_duplicate, false))
        returning id into call_id;
        outcome := 'reserved';
        spent_usd := v_spent.day;
        in_flight_usd := v_spent.day_flying + p_reserve_usd;
        budget_usd := p_day_budget_usd;
    end if;
    return next;
end
$$;
comment on function reserve_llm_call is 'Takes what a call may cost out of the budgets, or says which one has too little';

-- Null when the budget has room.
create function judge_day(
    p_reserve_usd numeric, p_spent_usd numeric, p_in_flight_usd numeric, p_budget_usd numeric, p_name text
) returns text
language sql immutable
set search_path = pg_catalog, public, pg_temp
as $$
    select case when p_reserve_usd > p_budget_usd then 'never'
                when p_spent_usd + p_reserve_usd > p_budget_usd then p_name
                when p_spent_usd + p_in_flight_usd + p_reserve_usd > p_budget_usd then 'in_flight' end
$$;

grant execute on function find_llm_calls, reserve_llm_call to jobbko_worker;
grant select on llm_call to jobbko_operator, jobbko_reader;

commit;
