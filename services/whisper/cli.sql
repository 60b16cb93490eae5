-- Statements of the whisper service's commands. They run as jobbko_operator.

-- name: list_shows
select name, folder, language, hotwords, prompt, changed_at from show order by name

-- name: set_show
-- What is not given (null) stays as it is; an empty text takes it away.
insert into show as old (name, folder, language, hotwords, prompt)
values (%(name)s, nullif(%(folder)s::text, ''), nullif(%(language)s::text, ''), coalesce(%(hotwords)s::text[], '{}'),
        nullif(%(prompt)s::text, ''))
on conflict (name) do update
   set folder = case when %(folder)s::text is null then old.folder else excluded.folder end,
       language = case when %(language)s::text is null then old.language else excluded.language end,
       hotwords = case when %(hotwords)s::text[] is null then old.hotwords else excluded.hotwords end,
       prompt = case when %(prompt)s::text is null then old.prompt else excluded.prompt end,
       changed_at = clock_timestamp()
returning name, folder, language, hotwords, prompt, changed_at

-- name: remove_show
delete from show where name = %(name)s returning name

-- name: transcribed
-- The newest completed job of each file below a folder, or of a show. Reads all completed transcriptions once.
with done as (
    select distinct on (path) path, job.payload
      from job_queue as job, coalesce(job.payload ->> 'path', job.payload #>> '{tracks,0,path}') as path
     where job.job_type = 'whisper_transcribe' and job.status = 'completed' and path is not null
     order by path, job.completed_at desc
)
select done.path, done.payload
  from done
  left join show on show.name = %(show)s
 where case when %(show)s::text is null then %(folder)s = '.' or starts_with(done.path, %(folder)s || '/')
                                             or done.path = %(folder)s
            else done.payload ->> 'show' = %(show)s or starts_with(done.path, show.folder || '/') end
 order by done.path

-- name: enqueue_again
-- All or none.
select told.outcome, count(*) as jobs
  from unnest(%(payloads)s::jsonb[], %(paths)s::text[]) as again (payload, path),
       enqueue_job('whisper_transcribe', again.payload, %(priority)s, now(), 3::smallint,
                   'retranscribe:' || case when length(path) <= 400 then path else md5(path) end) as told
 group by told.outcome
