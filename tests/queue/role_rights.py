"""Which tables and functions each role may use: what test_roles.py holds the database against."""

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
)
PRIVATE = frozenset({"admin_account", "admin_session"})  # passwords and sessions: by functions alone
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
    "retention": "next_at",
}  # fmt: skip

FUNCTIONS = {
    "enqueue": {"enqueue_job", "enqueue_jobs"},
    "work": {
        "register_worker", "unregister_worker", "beat_worker", "set_worker_idle", "claim_jobs", "extend_leases",
        "confirm_run", "write_checkpoint", "read_checkpoints", "drop_checkpoints", "complete_job", "complete_jobs",
        "release_jobs", "fail_job", "postpone_job", "release_job", "release_strays", "run_outcome", "sweep_jobs",
        "pause_job_type", "resume_job_type", "resume_own_pause",
    },
    "transcribe": {"find_show", "new_watched_files", "enqueue_watched_file"},
    "ask": {
        "find_llm_calls", "reserve_llm_call", "mark_llm_call_sent", "note_llm_generation", "settle_llm_call",
        "discard_llm_calls", "sum_llm_calls", "read_transcript",
    },
    "operate": {
        "retry_job", "cancel_job", "pause_job_type", "resume_job_type", "sweep_jobs", "next_slot", "act_on_jobs",
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
        "explain_job", "is_alive", "is_paused", "holds_run", "lost_lease", "queue_gauges", "retention_rules",
        "retention_state",
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
