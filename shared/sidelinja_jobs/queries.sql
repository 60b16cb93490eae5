-- Calls of the queue's functions (db/init), in the order of a job's life. The functions hold the rules; they are safe
-- to run beside each other because each names the run's token or locks with skip locked.

-- name: enqueue_job
select id, outcome
  from enqueue_job(%(job_type)s, %(payload)s, %(priority)s, %(scheduled_for)s, %(max_attempts)s, %(unique_key)s,
                   %(parent_id)s)

-- name: enqueue_jobs
select id
  from enqueue_jobs(%(job_type)s,
                    array(select payload from jsonb_array_elements(%(payloads)s) with ordinality as given (payload, place)
                           order by place),
                    %(priority)s, %(scheduled_for)s, %(max_attempts)s, %(parent_id)s) as id

-- name: schema_version
select coalesce(max(version), 0) as version from schema_migrations

-- name: register_worker
select lease_seconds, longest_run_seconds, stall_seconds, batch_size, payload_limit_bytes
  from register_worker(%(worker_id)s, %(job_type)s, %(version)s, %(host)s, %(pid)s, %(payload_schema)s)

-- name: unregister_worker
select unregister_worker(%(worker_id)s)

-- name: beat_worker
select beat_worker(%(worker_id)s) as known

-- name: set_worker_idle
select set_worker_idle(%(worker_id)s)

-- name: listen_ready
listen job_ready

-- name: listen_cancel
listen job_cancel

-- name: claim_jobs
-- The payload as text: one that cannot be decoded must fail its own job, not the claim.
-- Columns in the order of models.Claim; what a claim returns has no order of its own.
select id, payload::text as payload_text, payload_bytes, priority, attempts, max_attempts, lease_token, created_at,
       scheduled_for, started_at, parent_id
  from claim_jobs(%(job_type)s, %(worker_id)s, %(limit)s)
 order by priority desc, scheduled_for, id

-- name: extend_leases
select job_id, cancel_requested_at
  from extend_leases(%(job_ids)s::uuid[], %(lease_tokens)s::uuid[], %(progress)s::real[], %(notes)s::text[])

-- name: confirm_run
select confirm_run(%(job_id)s, %(lease_token)s)

-- name: write_checkpoint
select write_checkpoint(%(job_id)s, %(lease_token)s, %(data)s, %(seq)s) as seq

-- name: read_checkpoints
select seq, data, written_at from read_checkpoints(%(job_id)s, %(lease_token)s)

-- name: drop_checkpoints
select drop_checkpoints(%(job_id)s, %(lease_token)s)

-- name: complete_job
select complete_job(%(job_id)s, %(lease_token)s, %(result)s)

-- name: complete_runs
select job_id
  from complete_runs(%(job_ids)s::uuid[], %(lease_tokens)s::uuid[],
                     array(select result from jsonb_array_elements(%(results)s) with ordinality as given (result, place)
                            order by place)) as job_id

-- name: fail_job
select status, attempts, scheduled_for
  from fail_job(%(job_id)s, %(lease_token)s, %(error_class)s, %(error_msg)s, %(traceback)s, %(permanent)s,
                %(retry_after_seconds)s)

-- name: postpone_job
select status, attempts, scheduled_for from postpone_job(%(job_id)s, %(lease_token)s, %(until)s, %(reason)s)

-- name: release_job
select status, attempts, scheduled_for from release_job(%(job_id)s, %(lease_token)s, %(reason)s)

-- name: release_jobs
select job_id, status from release_jobs(%(job_ids)s::uuid[], %(lease_tokens)s::uuid[], %(reason)s)

-- name: release_strays
select release_strays(%(worker_id)s, %(held)s::uuid[], %(older_than_seconds)s) as count

-- name: run_outcome
select run_outcome(%(job_id)s, %(lease_token)s) as outcome

-- name: pause_job_type
select pause_job_type(%(job_type)s, %(until)s, %(reason)s, %(origin)s, %(pause_class)s) as paused

-- name: resume_own_pause
select resume_own_pause(%(job_type)s, %(pause_classes)s::text[]) as resumed

-- name: sweep_jobs
select rescued, scheduled, resumed, workers_gone, pruned from sweep_jobs()
