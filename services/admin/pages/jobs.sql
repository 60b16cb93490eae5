-- Lists of jobs. A place in a list is (created_at, id), newest first, so that no row is seen twice or missed while
-- others arrive. A search reads a window of the table at a time and says how far it has read: no filter, however rare
-- what it looks for, reads the whole table for one page. Parameters are folded into the plan: nothing here is prepared.

-- name: jobs_newest
-- Through job_queue_created, or with only_errors through job_queue_error_created.
select id, created_at
  from (select id, created_at, job_type, status, error_class, error_fingerprint, worker_id, parent_id
          from job_queue
         where (created_at, id) < (%(before_at)s, %(before_id)s)
           and created_at >= %(since)s and created_at < %(until)s
           and (not %(only_errors)s or status = 'error')
         order by created_at desc, id desc
         limit %(scan)s) as job
 where (%(types)s::text[] is null or job_type = any (%(types)s))
   and (%(statuses)s::job_status[] is null or status = any (%(statuses)s::job_status[]))
   and (%(error_class)s::text is null or error_class = %(error_class)s)
   and (%(fingerprint)s::text is null or error_fingerprint = %(fingerprint)s)
   and (%(worker)s::text is null or strpos(worker_id, %(worker)s) > 0)
   and (%(lower)s::uuid is null or id between %(lower)s and %(upper)s)
   and (%(parent_id)s::uuid is null or parent_id = %(parent_id)s)
 order by created_at desc, id desc
 limit %(limit)s

-- name: jobs_newest_reach
-- The last row that such a window has read, where it was full. The offset is the window's own size, never a page's.
select created_at, id
  from job_queue
 where (created_at, id) < (%(before_at)s, %(before_id)s)
   and created_at >= %(since)s and created_at < %(until)s
   and (not %(only_errors)s or status = 'error')
 order by created_at desc, id desc
offset %(scan)s - 1
 limit 1

-- name: jobs_with_text
-- The same, looking into payloads and messages. bytes_before ends a window that would read too much.
select id, created_at
  from (select job.*, sum(pg_column_size(payload)) over (order by created_at desc, id desc)
                      - pg_column_size(payload) as bytes_before
          from (select id, created_at, job_type, status, error_class, error_fingerprint, worker_id, parent_id,
                       error_msg, payload
                  from job_queue
                 where (created_at, id) < (%(before_at)s, %(before_id)s)
                   and created_at >= %(since)s and created_at < %(until)s
                   and (not %(only_errors)s or status = 'error')
                 order by created_at desc, id desc
                 limit %(scan)s) as job) as job
 where bytes_before < %(scan_bytes)s
   and (%(types)s::text[] is null or job_type = any (%(types)s))
   and (%(statuses)s::job_status[] is null or status = any (%(statuses)s::job_status[]))
   and (%(error_class)s::text is null or error_class = %(error_class)s)
   and (%(fingerprint)s::text is null or error_fingerprint = %(fingerprint)s)
   and (%(worker)s::text is null or strpos(worker_id, %(worker)s) > 0)
   and (%(lower)s::uuid is null or id between %(lower)s and %(upper)s)
   and (%(parent_id)s::uuid is null or parent_id = %(parent_id)s)
   and case when bytes_before < %(scan_bytes)s
            then error_msg ilike %(pattern)s or payload::text ilike %(pattern)s end
 order by created_at desc, id desc
 limit %(limit)s

-- name: jobs_with_text_reach
-- The last row that such a window has read, where older ones are left.
select last_at as created_at, last_id as id
  from (select row_number() over newest_first as number,
               lag(created_at) over newest_first as last_at, lag(id) over newest_first as last_id,
               sum(pg_column_size(payload)) over newest_first - pg_column_size(payload) as bytes_before
          from (select created_at, id, payload
                  from job_queue
                 where (created_at, id) < (%(before_at)s, %(before_id)s)
                   and created_at >= %(since)s and created_at < %(until)s
                   and (not %(only_errors)s or status = 'error')
                 order by created_at desc, id desc
                 limit %(scan)s + 1) as job
        window newest_first as (order by created_at desc, id desc)) as job
 where number > %(scan)s or bytes_before >= %(scan_bytes)s
 order by number
 limit 1

-- name: jobs_in_small_set
-- Sets that have an index of their own and were counted small: those that wait or run, one group of errors, the ids
-- that begin alike, the children of a job.
select id, created_at
  from (select id, created_at, job_type, status, error_class, error_fingerprint, worker_id, parent_id, error_msg,
               payload
          from job_queue
         where %(small)s = 'waiting' and status in ('pending', 'retry')
           and (%(types)s::text[] is null or job_type = any (%(types)s))
        union all
        select id, created_at, job_type, status, error_class, error_fingerprint, worker_id, parent_id, error_msg,
               payload
          from job_queue
         where %(small)s = 'waiting' and status = 'running'
        union all
        select id, created_at, job_type, status, error_class, error_fingerprint, worker_id, parent_id, error_msg,
               payload
          from job_queue
         where %(small)s = 'group' and error_fingerprint = %(fingerprint)s
        union all
        select id, created_at, job_type, status, error_class, error_fingerprint, worker_id, parent_id, error_msg,
               payload
          from job_queue
         where %(small)s = 'ids' and id between %(lower)s and %(upper)s
        union all
        select id, created_at, job_type, status, error_class, error_fingerprint, worker_id, parent_id, error_msg,
               payload
          from job_queue
         where %(small)s = 'children' and parent_id = %(parent_id)s) as job
 where (created_at, id) < (%(before_at)s, %(before_id)s)
   and created_at >= %(since)s and created_at < %(until)s
   and (%(types)s::text[] is null or job_type = any (%(types)s))
   and (%(statuses)s::job_status[] is null or status = any (%(statuses)s::job_status[]))
   and (%(error_class)s::text is null or error_class = %(error_class)s)
   and (%(fingerprint)s::text is null or error_fingerprint = %(fingerprint)s)
   and (%(worker)s::text is null or strpos(worker_id, %(worker)s) > 0)
   and (%(lower)s::uuid is null or id between %(lower)s and %(upper)s)
   and (%(parent_id)s::uuid is null or parent_id = %(parent_id)s)
   and (%(pattern)s::text is null or error_msg ilike %(pattern)s or payload::text ilike %(pattern)s)
 order by created_at desc, id desc
 limit %(limit)s

-- name: jobs_small_rows
-- How many rows such a set has, counted to one more than one would read.
select count(*) as rows
  from (select from job_queue
         where %(small)s = 'waiting' and status in ('pending', 'retry')
           and (%(types)s::text[] is null or job_type = any (%(types)s))
        union all
        select from job_queue where %(small)s = 'waiting' and status = 'running'
        union all
        select from job_queue where %(small)s = 'group' and error_fingerprint = %(fingerprint)s
        union all
        select from job_queue where %(small)s = 'ids' and id between %(lower)s and %(upper)s
        union all
        select from job_queue where %(small)s = 'children' and parent_id = %(parent_id)s
        limit %(most)s + 1) as job

-- name: jobs_rows
-- What a list shows of these jobs. Texts are cut here; of a large payload nothing is read.
select job.id, left(job.job_type, 200) as job_type, job.status::text as status, job.priority, job.attempts,
       job.max_attempts, job.created_at, job.started_at, job.completed_at, job.scheduled_for,
       left(job.worker_id, 200) as worker_id, job.progress, left(job.progress_note, 500) as progress_note,
       job.progress_at, job.cancel_requested_at, job.postponements, left(job.error_class, 200) as error_class,
       left(job.error_msg, 2000) as error_msg, left(job.unique_key, 200) as unique_key, job.parent_id,
       case when pg_column_size(job.payload) <= 8192 then left(job.payload::text, 2000) end as payload,
       pg_column_size(job.payload) as payload_bytes, clock_timestamp() as read_at
  from job_queue as job
 where job.id = any (%(ids)s::uuid[])
 order by job.created_at desc, job.id desc

-- name: count_errors
-- The four counts are exact, and each but the last is made of an index alone.
select count(*) from job_queue
 where status = 'error' and (%(types)s::text[] is null or job_type = any (%(types)s))

-- name: count_group
select count(*) from job_queue
 where error_fingerprint = %(fingerprint)s and (%(types)s::text[] is null or job_type = any (%(types)s))

-- name: count_class
-- A fingerprint is of one class, so that one job of each group tells it.
select coalesce(sum(grouped.jobs), 0)::bigint
  from (select error_fingerprint as fingerprint, count(*) as jobs
          from job_queue
         where error_fingerprint is not null and (%(types)s::text[] is null or job_type = any (%(types)s))
         group by error_fingerprint) as grouped,
       lateral (select error_class from job_queue where error_fingerprint = grouped.fingerprint limit 1) as example
 where example.error_class = %(error_class)s

-- name: count_unfinished
select (select count(*) from job_queue
         where status in ('pending', 'retry') and status = any (%(statuses)s::job_status[])
           and (%(types)s::text[] is null or job_type = any (%(types)s))
           and (%(error_class)s::text is null or error_class = %(error_class)s))
       + (select count(*) from job_queue
           where status = 'running' and status = any (%(statuses)s::job_status[])
             and (%(types)s::text[] is null or job_type = any (%(types)s))
             and (%(error_class)s::text is null or error_class = %(error_class)s))

-- name: jobs_now
-- The database's clock decides which jobs there are.
select clock_timestamp() as now

-- name: jobs_types
-- What the filter line offers.
select name from job_type order by name

-- name: jobs_act
select done, refused
  from act_on_jobs(%(action)s::text, %(ids)s::uuid[], %(statuses)s::job_status[], %(reason)s::text)

-- name: failed_groups
-- Counted from the index alone; first and last of each group are its ends there.
with typed as (
    select error_fingerprint as fingerprint, job_type, count(*) as jobs
      from job_queue
     where error_fingerprint is not null and (%(job_type)s::text is null or job_type = %(job_type)s)
     group by error_fingerprint, job_type
), grouped as (
    select fingerprint, sum(jobs)::bigint as jobs, (array_agg(job_type order by jobs desc))[1:20] as types,
           count(*) over () as groups, sum(sum(jobs)) over ()::bigint as all_jobs
      from typed
     group by fingerprint
), dated as (
    select grouped.*, newest.id as newest_id, newest.completed_at as last_at, newest.error_class, newest.error_msg
      from grouped
      left join lateral (
           select id, completed_at, error_class, error_msg
             from job_queue
            where error_fingerprint = grouped.fingerprint
              and (%(job_type)s::text is null or job_type = %(job_type)s)
            order by completed_at desc, id
            limit 1) as newest on true
     order by newest.completed_at desc, grouped.fingerprint
     limit %(limit)s
)
select dated.fingerprint, dated.jobs, dated.types, dated.groups, dated.all_jobs, dated.newest_id, dated.last_at,
       left(dated.error_class, 200) as error_class, left(dated.error_msg, 2000) as error_msg,
       (select completed_at
          from job_queue
         where error_fingerprint = dated.fingerprint and (%(job_type)s::text is null or job_type = %(job_type)s)
         order by completed_at
         limit 1) as first_at
  from dated
 order by dated.last_at desc, dated.fingerprint
