-- What the live view asks twice a second while a page is open. Each is a look at an index.

-- name: live_events
-- All events that the snapshot `after` did not see, and the snapshot that this very statement has. More than `most` are
-- too many to tell. A snapshot of another server's time (a restored database) sees everything or nothing: `is_foreign`.
select pg_current_snapshot()::text as cursor,
       pg_snapshot_xmin(%(after)s::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) as is_foreign,
       coalesce((
           select jsonb_agg(jsonb_build_object(
                      'id', job_id, 'type', left(job_type, 300), 'from', old_status, 'to', new_status,
                      'attempts', attempts) order by fresh.id)
             from (select * from (
                       (select * from job_event as later
                         where later.xid >= pg_snapshot_xmax(%(after)s::pg_snapshot)
                         order by later.xid, later.id limit %(most)s + 1)
                        union all
                       (select * from job_event as slow  -- of transactions that were under way at that time
                         where slow.xid = any (array(select pg_snapshot_xip(%(after)s::pg_snapshot)))
                         order by slow.xid, slow.id limit %(most)s + 1)
                   ) as both_kinds limit %(most)s + 1) as fresh
       ), '[]') as events

-- name: live_snapshot
select pg_current_snapshot()::text as cursor

-- name: live_running
-- Progress is no event. A handful of rows, by the partial index on running jobs.
select id, job_type, status::text as status, progress, left(progress_note, 500) as note, attempts, max_attempts,
       cancel_requested_at, started_at, clock_timestamp() as read_at
  from job_queue
 where status = 'running'
 order by id
 limit 1000
