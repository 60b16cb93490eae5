"""Which variables of the caller's environment are this project's own, and the environment without them."""

import os

OWN_PREFIXES = (
    "DATABASE_", "DB_TIMEOUT", "HEALTH_", "INIT_FOLDER", "JOBBKO_", "LISTEN", "LOG_", "MEDIA_", "METRICS_",
    "MIGRATE_", "MODEL_", "OPENROUTER_", "OUTPUT_", "PG", "POLL_", "SECRETS_", "WHISPER_",
)  # fmt: skip


def is_own(name: str) -> bool:
    """Whether the variable would change what a worker, the command line or libpq does."""
    return name.startswith(OWN_PREFIXES)


def analysis_settings() -> dict[str, str]:
    """What the caller's environment says of the language model; nothing where it names neither a key nor a server."""
    given = {name: value for name, value in os.environ.items() if name.startswith("OPENROUTER_") and value}
    is_wanted = given.keys() & {"OPENROUTER_API_KEY", "OPENROUTER_API_KEY_FILE", "OPENROUTER_BASE_URL"}
    return given if is_wanted else {}


def inherited_environ() -> dict[str, str]:
    """The caller's environment, without what is set there for another installation of this system."""
    kept = {name: value for name, value in os.environ.items() if not is_own(name)}
    return kept | {"ORT_DISABLE_TELEMETRY": "1"}  # onnxruntime reports its use to its maker unless told otherwise
