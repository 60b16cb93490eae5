-- What bench/admin_pages.py fills its tables with; no trigger helps, so that the fingerprints are computed here.

-- name: jobs
insert into job_queue (job_type, payload, status, priority, result, error_msg, error_class, error_fingerprint, attempts,
                       created_at, started_at, completed_at, scheduled_for, worker_id, progress)
select kind,
       jsonb_build_object('path', 'serie-' || n %% 300 || '/episode-' || n || '.mp3', 'language', 'no',
                          'hotwords', jsonb_build_array('Kari', 'Ola', md5(n::text))),
       status, (n %% 5)::smallint,
       case when status = 'completed' then jsonb_build_object('n', n, 'text', md5(n::text)) end,
       told.message, told.class, failure_fingerprint(status, told.class, told.message),
       case when failed then 3 else 0 end,
       at, at + interval '5 s',
       case when status in ('completed', 'error') then at + interval '95 s' end,
       case when status in ('pending', 'retry') then at + (n %% 3) * interval '1 h' else at end,
       'worker-' || n %% 4,
       case when status = 'running' then 0.4 end
  from (select staged.*, status in ('error', 'retry') as failed
          from (select n, now() - (%(total)s - n) * interval '2.6 s' as at,
                       (array['whisper_transcribe', 'openrouter_analyze', 'research_clip',
                              'stats_parse'])[n / 11 %% 4 + 1] as kind,
                       (case when n > %(total)s - 20 then 'running' when n > %(total)s * 0.98 then 'pending'
                             when n %% 997 = 0 then 'retry' when n %% 10 = 3 then 'error'
                             else 'completed' end)::job_status as status
                  from generate_series(%(first)s::integer, %(last)s::integer) as n) as staged) as made
  left join lateral (
       select 'cannot read ' || (array['header', 'frame', 'packet', 'index'])[n / 3 %% 4 + 1] || ' at ' || n
                  || ' of "' || n || '": ' || (array['no such file', 'timed out', 'refused'])[n / 7 %% 3 + 1] as message,
              (array['bad_input', 'timeout', 'provider_5xx'])[n / 7 %% 3 + 1] as class) as told on failed

-- name: events
insert into job_event (job_id, job_type, old_status, new_status, attempts, actor, at)
select id, job_type, step.old, step.new, 0, 'bench', created_at + step.after
  from job_queue,
       lateral (values (null::job_status, 'pending'::job_status, interval '0'), ('pending', 'running', interval '5 s'),
                       ('running', 'completed', interval '95 s')) as step (old, new, after)
 where step.new = 'pending' or (step.new = 'running' and status <> 'pending')
    or (step.new = 'completed' and status = 'completed' and priority < 3)

-- name: attempts
insert into job_attempt (job_id, attempt, worker_id, started_at, ended_at, outcome, charged, error_class, error_msg,
                         traceback)
select id, 1, worker_id, started_at, started_at + interval '90 s', 'failed', true, error_class, error_msg,
       repeat('x', 400)
  from job_queue where status in ('error', 'retry')

-- name: last_waiting
select id from job_queue where status = 'pending' order by priority, scheduled_for desc, id desc limit 1

-- name: spent
-- Planning and executing what the view's login asked since the last reset, but for what it does by itself every ten
-- seconds, whoever looks.
select coalesce(sum(total_exec_time + total_plan_time), 0) as ms, coalesce(sum(calls), 0) as calls
  from pg_stat_statements join pg_roles on pg_roles.oid = userid
 where rolname = 'jobbko_admin' and query not like '%count_job_hours%'
