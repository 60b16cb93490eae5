-- What the admin view's job pages need: errors grouped by what they say, jobs made from jobs, many jobs acted on at
-- once, and transcripts corrected by hand.

begin;
insert into schema_migrations (version, name) values (17, 'admin_reads');
set local role jobbko_owner;

-- The same fault says the same but for names, addresses, files, ids and numbers: the first line of the message without
-- them. Computed only when a job ends in error, null on all other rows, so inserts and heartbeats pay nothing; of
-- built-in functions alone, so that whoever may write the table needs no further right.
alter table job_queue add column error_fingerprint text generated always as (
    case when status = 'error' and error_class is distinct from 'cancelled' then
        left(md5(coalesce(error_class, '') || E'\n' || coalesce(
            regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
                split_part(ltrim(left(error_msg, 500), E' \t\r\n'), E'\n', 1),
                '(?<![[:alnum:]])''[^'']*''|"[^"]*"|«[^»]*»|`[^`]*`|[“„][^”“]*[”“]', '…', 'g'),
                '[a-z][a-z0-9+.-]*://\S+', 'URL', 'gi'),
                '[^\s,;:()=]*[/\\][^\s,;:()]+|[^\s,;:()=/]+\.[a-z][a-z0-9]{1,4}(?![[:alnum:]])', 'PATH', 'gi'),
                '\m[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\M|\m0x[0-9a-f]+\M|\m(?=[a-f]*[0-9])[0-9a-f]{8,}\M',
                'ID', 'gi'),
                '[0-9]+([.,:][0-9]+)*', 'N', 'g'),
                '\s+', ' ', 'g'), '')), 16) end) stored;
comment on column job_queue.error_fingerprint is
    'Of class and wording of the message, while the job is in error and was not cancelled: the same kind of failure';
-- Groups are counted from the first alone. Both hold rows in error only, which are few and written seldom.
create index job_queue_error_group on job_queue (error_fingerprint, completed_at desc, id) include (job_type)
    where error_fingerprint is not null;
create index job_queue_error_created on job_queue (created_at desc, id desc) where status = 'error';

create table job_origin (
    job_id     uuid        primary key references job_queue (id) on delete cascade,
    origin_id  uuid,
    request_id uuid        not null unique,
    made_at    timestamptz not null default clock_timestamp()
);
create index job_origin_origin on job_origin (origin_id) where origin_id is not null;
comment on table  job_origin is 'Jobs that a person enqueued in the admin view, anew or from an older job';
comment on column job_origin.job_id is 'The new job';
comment on column job_origin.origin_id is 'The job whose payload it took, changed or not; it may have been deleted since';
comment on column job_origin.request_id is 'Of the form that was sent: a second click makes no second job';
comment on column job_origin.made_at is 'When';

-- Once per request, however often it is sent. outcome: as enqueue_job, or repeated.
create function enqueue_once(
    p_request_id uuid, p_job_type text, p_payload jsonb, p_priority smallint default 0,
    p_scheduled_for timestamptz default now(), p_max_attempts smallint default 3, p_unique_key text default null,
    p_parent_id uuid default null, p_origin_id uuid default null
) returns table (id uuid, outcome text)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
begin
    perform pg_advisory_xact_lock(hashtext('enqueue_once'), hashtext(p_request_id::text));
    select job_id, 'repeated' into id, outcome from job_origin where request_id = p_request_id;
    if not found then
        select made.id, made.outcome into id, outcome
          from enqueue_job(p_job_type, p_payload, p_priority, p_scheduled_for, p_max_attempts, p_unique_key,
                           p_parent_id) as made;
        if outcome = 'created' then
            insert into job_origin (job_id, origin_id, request_id) values (id, p_origin_id, p_request_id);
            perform record_audit('job.enqueue', id, p_job_type,
                jsonb_strip_nulls(jsonb_build_object('origin_id', p_origin_id, 'parent_id', p_parent_id)));
        end if;
    end if;
    return next;
end
$$;
comment on function enqueue_once is 'Enqueues one job for a form that was sent; the same form again returns the same job';

-- Of a job that waits: one that runs or has ended has no use for it. Returns the priority before.
create function change_priority(p_job_id uuid, p_priority smallint) returns smallint
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job job_queue;
begin
    select * into v_job from job_queue where id = p_job_id for update;
    if not found then
        raise exception 'there is no job %', p_job_id using errcode = 'JQ004';
    elsif v_job.status not in ('pending', 'retry') then
        raise exception 'job % is %, expected pending or retry', p_job_id, v_job.status
            using errcode = 'JQ002', hint = 'the priority matters only while a job waits';
    elsif p_priority is distinct from v_job.priority then
        update job_queue set priority = p_priority where id = p_job_id and status in ('pending', 'retry');
        perform record_audit('job.priority', p_job_id, v_job.job_type,
            jsonb_build_object('before', v_job.priority, 'after', p_priority));
    end if;
    return v_job.priority;
end
$$;
comment on function change_priority is 'Changes the priority of a waiting job; returns the one before';

-- Many jobs at once, each by the rule for one. What has left these statuses meanwhile is let be, and counted.
create function act_on_jobs(p_action text, p_ids uuid[], p_statuses job_status[], p_reason text default null)
returns table (done integer, refused integer)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_id uuid;
begin
    done := 0;
    refused := 0;
    -- Locked in one order everywhere, or two of them could wait for each other.
    for v_id in select distinct job from unnest(p_ids) as job order by job loop
        perform from job_queue where id = v_id and status = any (p_statuses) for update;
        if not found then
            refused := refused + 1;
            continue;
        end if;
        begin
            case p_action
                when 'retry' then perform retry_job(v_id);
                when 'cancel' then perform cancel_job(v_id, p_reason);
            end case;
            done := done + 1;
        exception when sqlstate 'JQ002' or sqlstate 'JQ004' then
            refused := refused + 1;
        end;
    end loop;
    return next;
end
$$;
comment on function act_on_jobs is 'Retries or cancels jobs: how many it did, and how many were in no state for it';

-- Off: the run that waits is cancelled, one that works goes on. On: the next run is queued at once.
create function switch_schedule(p_name text, p_enabled boolean) returns boolean
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_plan job_schedule;
begin
    update job_schedule set enabled = p_enabled where name = p_name and enabled <> p_enabled returning * into v_plan;
    if not found then
        if not exists (select from job_schedule where name = p_name) then
            raise exception 'there is no schedule "%"', p_name using errcode = 'JQ004';
        end if;
        return false;
    end if;
    perform record_audit(case when p_enabled then 'schedule.on' else 'schedule.off' end, null, p_name);
    if p_enabled then
        perform sweep_schedules();
    else
        perform cancel_job(run.id, 'the schedule was switched off')
           from (select id from job_queue
                  where job_type = v_plan.job_type and unique_key = 'schedule:' || p_name
                    and status in ('pending', 'retry')
                    for update) as run;
    end if;
    return true;
end
$$;
comment on function switch_schedule is 'Switches a schedule on or off, its waiting run with it; false when it was so already';

create table transcript_correction (
    job_id   uuid        not null references job_queue (id) on delete cascade,
    version  integer     not null check (version > 0),
    segments jsonb       not null check (jsonb_typeof(segments) = 'array' and octet_length(segments::text) <= 6291456),
    actor    text        not null,
    saved_at timestamptz not null default clock_timestamp(),
    primary key (job_id, version)
);
comment on table  transcript_correction is 'Transcripts corrected by hand, every version; the job''s own result stays as it is';
comment on column transcript_correction.job_id is 'The job that transcribed';
comment on column transcript_correction.version is 'From 1; the highest one counts';
comment on column transcript_correction.segments is 'The segments as corrected: id, start, end, text and speaker';
comment on column transcript_correction.actor is 'Who saved it';
comment on column transcript_correction.saved_at is 'When';

-- p_version is the one that the person had before their eyes, 0 for the job's own result.
create function correct_transcript(p_job_id uuid, p_version integer, p_segments jsonb) returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job  job_queue;
    v_last transcript_correction;
begin
    select * into v_job from job_queue where id = p_job_id for key share;
    if not found then
        raise exception 'there is no job %', p_job_id using errcode = 'JQ004';
    elsif v_job.status <> 'completed' or jsonb_typeof(v_job.result -> 'segments') is distinct from 'array' then
        raise exception 'job % has no transcript to correct', p_job_id using errcode = 'JQ002';
    end if;
    perform pg_advisory_xact_lock(hashtext('transcript_correction'), hashtext(p_job_id::text));
    select * into v_last from transcript_correction where job_id = p_job_id order by version desc limit 1;
    if coalesce(v_last.version, 0) <> p_version then
        if v_last.segments = p_segments and v_last.actor = event_actor() then
            return v_last.version;  -- the same, sent twice
        end if;
        raise exception '% has saved version % of this transcript meanwhile', v_last.actor, v_last.version
            using errcode = 'JQ002', hint = 'copy your changes, load the page again and put them in';
    end if;
    insert into transcript_correction (job_id, version, segments, actor)
    values (p_job_id, p_version + 1, p_segments, event_actor());
    perform record_audit('transcript.correct', p_job_id, v_job.job_type, jsonb_build_object('version', p_version + 1));
    return p_version + 1;
end
$$;
comment on function correct_transcript is 'Stores a corrected transcript as its next version; returns the number';

grant select on job_origin, transcript_correction to jobbko_operator, jobbko_reader;
grant execute on function enqueue_once, change_priority, act_on_jobs, switch_schedule, correct_transcript
    to jobbko_operator;

commit;
