-- Statements of the first page. None of them reads completed jobs one by one.

-- name: overview_types
select name from job_type order by name
