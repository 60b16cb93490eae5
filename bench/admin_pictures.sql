-- A working day for bench/admin_pictures.py: jobs, workers, hours, spending and downloads, all invented.

delete from job_type where name in ('test_job', 'other_job', 'foreign_job');

insert into job_queue (job_type, payload, created_at, scheduled_for)
  select 'whisper_transcribe', jsonb_build_object('path', format('2026/ep%s.mp3', 40 + i)), now() - i * interval '3 min',
         now() - i * interval '3 min' from generate_series(1, 6) as i;

insert into job_queue (id, job_type, payload, created_at, scheduled_for, status, attempts, started_at, progress,
                       progress_note, progress_at, worker_id, lease_until)
  values ('7c40d1b2-93ce-4e05-8a61-0f2b5d7e9a13', 'whisper_transcribe',
          '{"path": "2026/ep40.mp3", "hotwords": ["Statnett", "Nordlink"], "analyze": true}', now() - interval '12 min',
          now() - interval '12 min', 'running', 1, now() - interval '4 min', 0.62, '31:10 of 50:12', now(), 'whisper-1:7:3fa21c',
          now() + interval '1 hour'),
         (gen_random_uuid(), 'openrouter_analyze', '{}', now(), now(), 'running', 0, now() - interval '21 s', null, 'chapters',
          now(), 'openrouter-1:7:90b1d2', now() + interval '1 hour');

insert into job_attempt (job_id, attempt, worker_id, started_at, ended_at, outcome, charged, error_class, error_msg, progress)
  values ('7c40d1b2-93ce-4e05-8a61-0f2b5d7e9a13', 1, 'whisper-2:7:18d0aa', now() - interval '11 min',
          now() - interval '5 min', 'lost', true, 'lost', 'no heartbeat for 60 s', 0.31);

-- As its events would have been written on the way; the insert above wrote but one.
delete from job_event where job_id = '7c40d1b2-93ce-4e05-8a61-0f2b5d7e9a13';
insert into job_event (job_id, job_type, old_status, new_status, attempts, error_class, worker_id, actor, at)
  select '7c40d1b2-93ce-4e05-8a61-0f2b5d7e9a13', 'whisper_transcribe', step.old::job_status, step.new::job_status,
         step.attempts, step.class, step.worker, step.actor, now() - step.ago
    from (values (null, 'pending', 0, null, null, 'kari', interval '12 min'),
                 ('pending', 'running', 0, null, 'whisper-2:7:18d0aa', 'worker_whisper', interval '11 min'),
                 ('running', 'retry', 1, 'lost', null, 'worker_stats', interval '5 min'),
                 ('retry', 'running', 1, null, 'whisper-1:7:3fa21c', 'worker_whisper', interval '4 min'))
         as step (old, new, attempts, class, worker, actor, ago);

insert into job_queue (id, job_type, payload, status, started_at, completed_at, worker_id, result)
  values ('2b9e6f04-5a7d-4c38-b1f0-64c8e2a7d951', 'whisper_transcribe', '{"path": "2026/ep39.mp3"}', 'completed',
          now() - interval '50 min', now() - interval '45 min', 'whisper-1:7:3fa21c',
          jsonb_build_object(
              'language', 'no', 'language_source', 'forced', 'duration', 27.8, 'text', '',
              'model', jsonb_build_object('name', 'large-v3-turbo', 'device', 'cuda'),
              'source', jsonb_build_object('path', '2026/ep39.mp3'),
              'segments', (select jsonb_agg(jsonb_build_object('id', n - 1, 'start', at, 'end', until, 'text', words,
                                                               'avg_logprob', sure) order by n)
                             from (values (1, 0.0, 4.1, 'Velkommen til Lyd og bilde, i dag om en ferge for lite.', -0.2),
                                          (2, 4.1, 9.6, 'Sambandet mellom Moss og Horten er det travleste i landet.', -0.2),
                                          (3, 9.6, 14.9, 'Likevel gikk det tre båter der det var avtalt fem.', -0.3),
                                          (4, 14.9, 20.2, 'Ordføreren i Horten kaller det en stengt riksvei.', -0.95),
                                          (5, 20.2, 27.8, 'Hva sier rederiet, og hva står det egentlig i anbudet?', -0.2))
                                  as line (n, at, until, words, sure)),
              'dropped', jsonb_build_array(jsonb_build_object('start', 27.8, 'end', 27.9, 'text', 'Teksting av NRK',
                                                              'reason', 'credit'))));

insert into worker (worker_id, job_type, role, version, host, pid)
  select worker_id, job_type, 'worker', '0.6', split_part(worker_id, ':', 1), 7
    from job_queue where status = 'running';

insert into worker (worker_id, job_type, role, version, host, pid, idle)
  values ('stats-1:7:11aa22', 'stats_parse', 'worker_stats', '0.6', 'stats-1', 7, true),
         ('whisper-2:7:77c0de', 'whisper_transcribe', 'worker_whisper', '0.6', 'whisper-2', 7, true);

insert into job_queue (job_type, payload, status, attempts, completed_at, error_class, error_msg)
  select 'research_clip', '{}', 'error', 3, now() - i * interval '50 min', 'timeout',
         'the model did not answer within 120 s' from generate_series(1, 2) as i;
insert into job_queue (job_type, payload, status, attempts, completed_at, error_class, error_msg)
  select 'whisper_transcribe', '{}', 'error', 1, now() - i * interval '3 hours', 'not_found',
         format('there is no such file below MEDIA_ROOT: 2026/ep%s.mp3', 50 + i) from generate_series(1, 5) as i;

insert into job_queue (job_type, payload, status, attempts, scheduled_for, error_class, error_msg)
  values ('research_clip', '{}', 'retry', 1, now() + interval '4 min', 'provider_5xx', '503 from the provider');

insert into job_hour (hour, job_type, completed, failed, run_seconds)
  select date_trunc('hour', now(), 'UTC') - i * interval '1 hour', kind.name,
         greatest(0, round(kind.most * (1 + sin(i / 3.5 + kind.seconds)) / 2)), (i % 9 = 4)::int,
         greatest(0, round(kind.most * (1 + sin(i / 3.5 + kind.seconds)) / 2))
             * kind.seconds * (1.2 + cos(i / 2.0) / 2)
    from generate_series(0, 23) as i,
         (values ('whisper_transcribe', 6, 240), ('openrouter_analyze', 6, 45), ('research_clip', 22, 4),
                 ('stats_parse', 4, 2)) as kind (name, most, seconds);

select pause_job_type('openrouter_analyze', now() + interval '2 hours', 'the budget of the day is spent', 'budget');

insert into llm_call (job_id, job_type, lease_token, step, request_hash, state, day, model, reserved_usd, cost_usd,
                        cost_source)
  select gen_random_uuid(), case when i % 3 = 0 then 'research_clip' else 'openrouter_analyze' end,
         gen_random_uuid(), 'whole', md5(i::text) || md5(i::text), 'received',
         (clock_timestamp() at time zone 'UTC')::date - i % 30, 'mistralai/mistral-large', 0.05,
         0.011 * (2 + sin(i % 30)), 'provider' from generate_series(0, 239) as i;

insert into stats.day (day, state) select current_date - i, 'closed' from generate_series(0, 29) as i;

insert into stats.listener_day values (current_date, 'Lyd og bilde', 400);

insert into stats.episode values ('Lyd og bilde', '2026/ep38.mp3', 'Havvind og hvem som betaler', now() - interval '20 days'),
  ('Lyd og bilde', '2026/ep39.mp3', 'En ferge for lite', now() - interval '13 days'),
  ('Lyd og bilde', '2026/ep40.mp3', 'Strømmen som forsvant', now() - interval '6 days');

insert into stats.download_day
  select current_date - i, 'Lyd og bilde', format('2026/ep%s.mp3', 38 + e), app.name, 'app', 'phone', 'NO', 'x',
         greatest(1, round(app.share * (18 + 70 * exp(-(greatest(0, 20 - 7 * e - i) ^ 2) / 9.0)))), 1000000
    from generate_series(0, 29) as i, generate_series(0, 2) as e,
         (values ('Apple Podcasts', 0.9), ('Spotify', 0.7), ('Overcast', 0.2), ('', 0.1)) as app (name, share)
   where i <= 20 - 7 * e;

insert into stats.download_hour
  select (current_date - i)::timestamptz + interval '8 hours', current_date - i, 'Lyd og bilde',
         format('2026/ep%s.mp3', 38 + e), greatest(1, round(34 + 130 * exp(-((20 - 7 * e - i) ^ 2) / 9.0)))
    from generate_series(0, 29) as i, generate_series(0, 2) as e where i <= 20 - 7 * e;

insert into stats.referrer_day select current_date - 1, 'Lyd og bilde', '2026/ep40.mp3', 'example.no', 41;
