-- Statements of the worker of openrouter_analyze, beside those of the queue and of the ledger.

-- name: read_transcript
select read_transcript(%(job_id)s) as result
