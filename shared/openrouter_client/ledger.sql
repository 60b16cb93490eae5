-- The ledger of paid calls (db/init/0012_llm_calls.sql). Each statement is a transaction of its own on the side connection,
-- and each may be repeated when its answer was lost.

-- name: find_calls
select id, state, generation_id, response, http_status, cost_usd, cost_source, is_possible_duplicate, error_class,
       error_msg, discarded_at is not null as is_discarded
  from find_llm_calls(%(job_id)s, %(lease_token)s, %(step)s, %(request_hash)s)

-- name: reserve_call
select call_id, outcome, spent_usd, in_flight_usd, budget_usd, day_ends, postponements
  from reserve_llm_call(%(job_id)s, %(lease_token)s, %(step)s, %(request_hash)s, %(model)s, %(reserve_usd)s,
                        %(job_budget_usd)s, %(day_budget_usd)s, %(type_day_budget_usd)s, %(possible_duplicate)s)

-- name: sum_calls
select cost_usd, unknown_calls, unknown_usd from sum_llm_calls(%(job_id)s, %(lease_token)s)

-- name: mark_sent
select mark_llm_call_sent(%(call_id)s)

-- name: note_generation
select note_llm_generation(%(call_id)s, %(generation_id)s)

-- name: settle_call
select settle_llm_call(%(call_id)s, %(state)s, %(cost_usd)s, %(cost_source)s, %(details)s, %(response)s)

-- name: discard_calls
select discard_llm_calls(%(job_id)s, %(lease_token)s, %(step)s, %(request_hashes)s::text[]) as count

-- name: take_turn
select take_turn(%(job_id)s, %(lease_token)s, %(seconds)s, %(opens)s) as turn

-- name: end_line
select end_line(%(job_id)s, %(lease_token)s) as count
