-- What is asked as jobbko_delivery; the functions stand in db/init/0024_alerts.sql.

-- name: record_alerts
select record_alerts(%(alerts)s::jsonb) as count

-- name: due_alerts
select fingerprint, name, severity, labels, summary, next_step, starts_at, ends_at, is_firing, tries
  from due_alerts(%(channel)s, %(repeat_seconds)s)

-- name: settle_alerts
select settle_alerts(%(channel)s, %(fingerprints)s, %(were_firing)s, %(error)s, %(wait_seconds)s)

-- name: alert_gauges
select firing, untold from alert_gauges()
