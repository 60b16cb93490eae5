-- Statements of `jobs deliveries`. They run as jobbko_operator; those that only look also as jobbko_reader.

-- name: sinks
select sink.name, sink.kind, sink.address, sink.job_types, sink.statuses::text[] as statuses, sink.includes,
       case when sink.disabled_at is not null then 'disabled'
            when not is_event_sink_open(sink.name) then 'no forwarder'
            when sink.waits_until > now() then 'waits' else 'delivering' end as state,
       case when sink.disabled_at is not null then sink.disabled_reason
            when sink.waits_until > now() then sink.wait_reason end as reason,
       state.lag_seconds, state.waiting, state.parked, sink.delivered_at, sink.waits_until, sink.created_at,
       now() as read_at
  from event_sink as sink, event_sink_state(sink.name) as state
 order by sink.name

-- name: deliveries
select delivery.event_id, delivery.sink, delivery.job_id, event.job_type, event.old_status::text as old_status,
       event.new_status::text as new_status, event.at, delivery.attempts, delivery.first_at, delivery.next_at,
       delivery.parked_at, delivery.last_error, now() as read_at
  from event_delivery as delivery
  join job_event as event on event.id = delivery.event_id
 where (%(sink)s::text is null or delivery.sink = %(sink)s)
   and (not %(parked)s or delivery.parked_at is not null)
 order by delivery.event_id desc, delivery.sink
 limit %(limit)s

-- name: replay
select replay_deliveries(%(sink)s::text, %(event_ids)s::bigint[]) as count

-- name: enable
select enable_event_sink(%(sink)s) as has_changed

-- name: forget
select forget_event_sink(%(sink)s)
