"""Which tables and functions each role may use: what test_roles.py holds a database against, and test_stack_roles.py
the one of the running stack, asked from its containers with their own secrets.
"""

from collections.abc import Iterable, Mapping
from typing import Any

TABLES = (
    "job_queue",
    "job_type",
    "job_attempt",
    "job_checkpoint",
    "job_schedule",
    "job_event",
    "worker",
    "schema_migrations",
    "show",
    "watched_file",
    "llm_call",
    "admin_account",
    "admin_session",
    "audit_entry",
    "job_hour",
    "event_epoch",
    "event_sink",
    "event_delivery",
    "job_retention",
    "retention",
    "job_origin",
    "transcript_correction",
    "api_token",
    "job_hour_position",
    "alert",
    "alert_notice",
    "job_line",
)
# Passwords, sessions, hashes of tokens, and how far the hours are counted: by functions alone.
PRIVATE = frozenset({"admin_account", "admin_session", "api_token", "job_hour_position"})
EVERY_TABLE = frozenset(TABLES) - PRIVATE
QUEUE = frozenset({"job_queue"})
OWN = frozenset({"job_schedule", "show"})  # what an operator writes by plain SQL
NONE: frozenset[str] = frozenset()
HISTORY = frozenset({"schema_migrations"})  # what the schema's version is, everyone may know

# Role -> the tables of which it may select, insert, update, delete rows (whole rows: `select *`).
MAY = {
    "operator": (EVERY_TABLE, OWN, OWN, OWN),
    "admin": (EVERY_TABLE, OWN, OWN, OWN),
    "delivery": (HISTORY, NONE, NONE, NONE),
    "producer": (HISTORY, QUEUE, NONE, NONE),  # five columns, see below
    "plain": (HISTORY | QUEUE, QUEUE, QUEUE, NONE),
    "metrics": (HISTORY, NONE, NONE, NONE),
    "reader": (EVERY_TABLE, NONE, NONE, NONE),
    "worker_test": (HISTORY, NONE, NONE, NONE),
}
STATEMENTS = (
    "select * from {table} limit 0",
    "insert into {table} default values",
    "update {table} set {column} = null where false",
    "delete from {table} where false",
)
COLUMN = {"job_queue": "payload", "job_type": "role", "job_schedule": "payload", "worker": "host"} | {
    "job_attempt": "outcome", "job_checkpoint": "data", "job_event": "actor", "schema_migrations": "name",
    "show": "prompt", "watched_file": "job_id", "llm_call": "state",
    "admin_account": "role", "admin_session": "account", "audit_entry": "action", "job_hour": "completed",
    "event_epoch": "epoch", "event_sink": "kind", "event_delivery": "attempts", "job_retention": "job_type",
    "retention": "next_at", "job_origin": "job_id", "transcript_correction": "job_id", "api_token": "name",
    "job_hour_position": "largest_id", "alert": "name", "alert_notice": "channel",
    "job_line": "turn_at",
}  # fmt: skip
OWN_TABLES = "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"

FUNCTIONS = {
    "enqueue": {"enqueue_job", "enqueue_jobs"},
    "work": {
        "register_worker", "unregister_worker", "beat_worker", "set_worker_idle", "claim_jobs", "extend_leases",
        "confirm_run", "write_checkpoint", "read_checkpoints", "drop_checkpoints", "complete_job", "complete_jobs",
        "complete_runs",
        "release_jobs", "fail_job", "postpone_job", "release_job", "release_strays", "run_outcome", "sweep_jobs",
        "pause_job_type", "resume_own_pause", "take_turn", "end_line",
    },
    "transcribe": {"find_show", "new_watched_files", "enqueue_watched_file"},
    "ask": {
        "find_llm_calls", "reserve_llm_call", "mark_llm_call_sent", "note_llm_generation", "settle_llm_call",
        "discard_llm_calls", "sum_llm_calls", "read_transcript",
    },
    "operate": {
        "retry_job", "cancel_job", "pause_job_type", "resume_job_type", "sweep_jobs", "act_on_jobs",
        "change_priority", "correct_transcript", "enqueue_once", "switch_schedule",
    },
    "tokens": {"add_api_token", "revoke_api_token"},
    "use tokens": {"use_api_token", "enqueue_as"},
    "measure": {
        "queue_gauges", "schedule_gauges", "database_gauges", "table_gauges", "spending_gauges", "alert_gauges",
    },
    "tell": {"record_alerts", "due_alerts", "settle_alerts", "alert_gauges"},
    "accounts": {"put_account", "drop_account", "list_accounts", "record_audit"},
    "sessions": {"find_account", "has_accounts", "open_session", "use_session", "close_session"},
    "count": {"count_job_hours"},
    "deliver": {
        "open_event_sink", "read_event_sink", "next_events", "record_deliveries", "event_sink_state",
        "disable_event_sink",
    },
    "sinks": {
        "enable_event_sink", "forget_event_sink", "replay_deliveries", "is_event_sink_open", "event_sink_state",
        "renew_event_epoch",
    },
    "look": {
        "explain_job", "is_alive", "is_paused", "holds_run", "lost_lease", "queue_gauges", "retention_state",
    },
    "keep": {"set_job_retention", "set_retention"},
}  # fmt: skip
OPERATOR = (
    FUNCTIONS["enqueue"]
    | FUNCTIONS["operate"]
    | FUNCTIONS["look"]
    | FUNCTIONS["accounts"]
    | FUNCTIONS["sinks"]
    | FUNCTIONS["keep"]
    | FUNCTIONS["tokens"]
    | FUNCTIONS["measure"]
)
MAY_EXECUTE = {
    "operator": OPERATOR,
    "admin": OPERATOR | FUNCTIONS["sessions"] | FUNCTIONS["count"] | FUNCTIONS["use tokens"],
    "delivery": FUNCTIONS["deliver"] | FUNCTIONS["tell"],
    "producer": FUNCTIONS["enqueue"],
    "plain": set(),
    "metrics": FUNCTIONS["measure"],
    "reader": FUNCTIONS["look"] | {"event_sink_state", "is_event_sink_open"},
    "worker_test": FUNCTIONS["enqueue"] | FUNCTIONS["work"] | FUNCTIONS["transcribe"] | FUNCTIONS["ask"],
}

# What nobody needs: to make objects, to lift oneself, to reach files, programs, other sessions.
LIFTS = (
    "create table mine (a int)",
    "create temporary table job_type (name text, role name)",
    "create function claim_jobs() returns int language sql as 'select 1'",
    "create schema mine",
    "create role worker_other",
    "set role jobbko_owner",
    "set session authorization jobbko_owner",
    "set session_replication_role = replica",
    "alter table job_queue disable trigger all",
    "drop trigger record_enqueue on job_queue",
    "alter role jobbko_owner password 'x'",
    "alter role current_user superuser",
    "copy job_queue to program 'cat'",
    "copy (select 1) to program 'cat'",
    "copy (select 1) to '/tmp/left'",
    "select pg_read_file('/etc/passwd')",
    "select pg_read_binary_file('/run/secrets/superuser')",
    "select pg_ls_dir('.')",
    "select pg_stat_file('/etc/passwd')",
    "select lo_import('/etc/passwd')",
    "select lo_create(0)",
    "select lo_creat(-1)",
    "select lo_from_bytea(0, 'left')",
    "select pg_reload_conf()",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'",
    "select rolpassword from pg_authid",
    "select stavalues1 from pg_statistic",
    "create extension pg_trgm",
    "create extension dblink",
)

OWN_FUNCTIONS = """
    select p.oid::regprocedure::text as signature, proname as name, proowner::regrole::text as owner, prosecdef,
           array_to_string(proconfig, '; ') as settings,
           prosqlbody is not null as is_bound, prorettype = 'trigger'::regtype as is_trigger,
           array(select argtype::regtype::text from unnest(proargtypes) as argtype) as arguments
      from pg_proc as p where pronamespace = 'public'::regnamespace order by 1
"""


def calls_with_nulls(functions: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Name of each of OWN_FUNCTIONS that can be called -> a statement that calls it."""
    return {
        function["name"]: f"select {function['name']}({', '.join(f'null::{one}' for one in function['arguments'])})"
        for function in functions
        if not function["is_trigger"]
    }


def is_past_the_check(sqlstate: str | None, message: str) -> bool:
    """Whether a statement that failed so was let through by PostgreSQL's check of rights.

    Our own functions answer with the same SQLSTATE once they are inside.
    """
    return sqlstate != "42501" or not message.startswith("permission denied for")
