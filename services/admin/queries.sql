-- Statements that belong to no single page.

-- name: set_actor
-- For the present transaction: who stands behind this login, in job_event and audit_entry.
select set_config('jobbko.actor', %(actor)s::text, true)

-- name: ping
select 1 as answer
