-- What all jobs of a type need may be away: a provider, a server. Jobs that would each wait on their own, longer each time,
-- would be too late by as much when it is back. They stand in line: at every turn one tries, whatever their number, at no
-- cost and uncounted, and the first that gets an answer ends the line, which makes all others due. The line is in a table,
-- so that workers share it and one that starts anew finds it.

begin;
insert into schema_migrations (version, name) values (29, 'waiting_in_line');
set local role jobbko_owner;

create table job_line (
    job_id      uuid        primary key,  -- without a foreign key, which each deletion of a job would pay for
    job_type    text        not null,
    lease_token uuid        not null,
    turn_at     timestamptz not null,
    is_over     boolean     not null default false
);
comment on table  job_line is 'Jobs that stand in line, since what all of their type need is away; those whose scheduled_for is their turn_at';
comment on column job_line.job_id is 'The job';
comment on column job_line.job_type is 'Its type: each has a line of its own';
comment on column job_line.lease_token is 'The run that took the turn';
comment on column job_line.turn_at is 'When the job tries again';
comment on column job_line.is_over is 'The line ended while that run still went on: its job is due when it is put back';
grant select on job_line to jobbko_operator, jobbko_reader;

-- The job's turn, p_seconds after the last one in line; sooner where nobody else would try so soon, since who was to try is
-- gone. Null where there is no line and p_opens does not ask for one. An hour is the longest wait, should a line be forgotten.
create function take_turn(p_job_id uuid, p_lease_token uuid, p_seconds double precision, p_opens boolean)
returns timestamptz
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job  job_queue := check_run(p_job_id, p_lease_token);
    v_gap  interval := make_interval(secs => least(greatest(p_seconds, 0), 3600));
    v_now  timestamptz := clock_timestamp();
    v_next timestamptz;
    v_last timestamptz;
begin
    if not (p_opens or exists (select from job_line where job_type = v_job.job_type and not is_over)) then
        return null;
    end if;
    select min(line.turn_at), max(line.turn_at) into v_next, v_last
      from job_line as line join job_queue as job on job.id = line.job_id and job.scheduled_for = line.turn_at
     where line.job_type = v_job.job_type and line.turn_at > v_now and job.status in ('pending', 'retry');
    insert into job_line (job_id, job_type, lease_token, turn_at)
    values (p_job_id, v_job.job_type, p_lease_token,
            case when v_next <= v_now + 2 * v_gap then least(v_last + v_gap, v_now + interval '1 hour')
                 else v_now + v_gap end)
    on conflict (job_id) do update set lease_token = p_lease_token, turn_at = excluded.turn_at, is_over = false
    returning turn_at into v_next;
    return v_next;
end
$$;
comment on function take_turn is 'When a job tries again whose type waits in line; null when there is no line. To be handed to postpone_job';

-- Called for each answer, so cheap where there is no line. It waits for nobody: rows that somebody else holds are left, for
-- those jobs are just being claimed, cancelled, put back or made due. The second statement sees who was put back until then;
-- whoever is put back later sees that the line is over.
create function end_line(p_job_id uuid, p_lease_token uuid) returns integer
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_type  text := (check_run(p_job_id, p_lease_token)).job_type;
    v_line  uuid[] := array(select job_id from job_line where job_type = v_type for update skip locked);
    v_count integer;
begin
    if v_line = '{}' then
        return 0;
    end if;
    with waiting as (
        select job.id
          from job_line as line join job_queue as job on job.id = line.job_id and job.scheduled_for = line.turn_at
         where line.job_id = any (v_line) and line.turn_at > clock_timestamp() and job.status in ('pending', 'retry')
           for update of job skip locked
    )
    update job_queue as job set scheduled_for = clock_timestamp() from waiting where job.id = waiting.id;
    get diagnostics v_count = row_count;
    update job_line as line
       set is_over = exists (select from job_queue as job
                              where job.id = line.job_id and job.lease_token = line.lease_token)
     where job_id = any (v_line);
    delete from job_line where job_id = any (v_line) and not is_over;
    if v_count > 0 then
        perform pg_notify('job_ready', v_type);
    end if;
    return v_count;
end
$$;
comment on function end_line is 'What a type waited for is back: all of its jobs that stand in line are due; returns how many';

-- "Come back later": costs no attempt, but at most 20 times and for at most 24 hours since the first time. Who waits for
-- its turn in line does so without these bounds: it is not this job alone that cannot be worked.
create or replace function postpone_job(p_job_id uuid, p_lease_token uuid, p_until timestamptz, p_reason text)
returns table (status job_status, attempts smallint, scheduled_for timestamptz)
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_job   job_queue := check_run(p_job_id, p_lease_token);
    v_count smallint := v_job.postponements;
    v_first timestamptz := (select min(ended_at) from job_attempt
                             where job_id = p_job_id and outcome = 'postponed' and error_class <> 'in_line'
                               and not forgiven);
    v_until timestamptz := least(greatest(p_until, clock_timestamp()), clock_timestamp() + interval '24 hours');
    v_turn  timestamptz;
begin
    update job_line set turn_at = case when is_over then clock_timestamp() else v_until end
     where job_id = p_job_id and lease_token = p_lease_token returning turn_at into v_turn;
    if found then
        v_job := end_run(v_job, 'postponed', false, v_turn, 'in_line', p_reason);
        update job_queue set postponements = v_count where id = p_job_id;
    elsif v_count >= 20 or clock_timestamp() > v_first + interval '24 hours' then
        v_job := end_run(v_job, 'failed', true, null, 'postponed_too_often',
            format('still not possible after %s postponements since %s: %s', v_count, v_first, p_reason));
    else
        v_job := end_run(v_job, 'postponed', false, v_until, 'postponed', p_reason);
    end if;
    return query select v_job.status, v_job.attempts, v_job.scheduled_for;
end
$$;

grant execute on function take_turn, end_line to jobbko_worker;

commit;
