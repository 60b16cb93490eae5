-- name: feed_failures
-- The newest failures, of each type that has any by its own part of the index. A program that ends a job by hand may
-- leave out when it did.
with recursive failed (name) as (
    (select job_type from job_queue where status = 'error' order by job_type limit 1)
    union all
    select (select job_type from job_queue where status = 'error' and job_type > failed.name order by job_type limit 1)
      from failed where failed.name is not null
), newest as (
    select found.*
      from (select name from failed where name is not null and name = coalesce(%(job_type)s::text, name) limit 100)
               as failed,
           lateral ((select id, job_type, attempts, max_attempts, error_class, left(error_msg, 2000) as error_msg,
                            completed_at as at
                       from job_queue
                      where job_type = failed.name and status = 'error' and error_class is distinct from 'cancelled'
                        and completed_at is not null
                      order by completed_at desc
                      limit %(limit)s)
                    union all
                    (select id, job_type, attempts, max_attempts, error_class, left(error_msg, 2000),
                            coalesce(started_at, created_at)
                       from job_queue
                      where job_type = failed.name and status = 'error' and error_class is distinct from 'cancelled'
                        and completed_at is null
                      limit %(limit)s)) as found
)
select * from newest order by at desc, id desc limit %(limit)s
