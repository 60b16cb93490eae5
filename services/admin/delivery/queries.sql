-- What the forwarder says to the database, as jobbko_delivery. Safe beside another forwarder: one session has a sink,
-- and what is recorded names the cursor that it began at.

-- name: open_sink
select open_event_sink(%(name)s, %(kind)s, %(address)s, %(job_types)s::text[], %(statuses)s::job_status[],
                       %(includes)s::text[]) as is_ours

-- name: read_sink
select epoch, cursor_xid, cursor_id, disabled_reason, wait_seconds from read_event_sink(%(name)s)

-- name: next_events
select event_id, xid, job_id, job_type, old_status, new_status, attempts, max_attempts, error_class, error_msg, at,
       payload, result, is_new, is_wanted, is_held, tries, age_seconds
  from next_events(%(name)s, %(limit)s)

-- name: record_deliveries
select record_deliveries(%(name)s, %(from_xid)s, %(from_id)s, %(to_xid)s, %(to_id)s, %(results)s, %(has_recovered)s,
                         %(wait_seconds)s::double precision, %(wait_reason)s::text)

-- name: disable_sink
select disable_event_sink(%(name)s, %(reason)s)

-- name: sink_state
select lag_seconds, waiting, parked from event_sink_state(%(name)s)

-- name: prove_alive
select 1
