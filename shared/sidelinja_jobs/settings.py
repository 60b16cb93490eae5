"""Settings from the environment, read once; all problems are reported together.

A settings class is a frozen dataclass whose fields are made by `setting(...)`. Each setting can also be given as
NAME_FILE, the path of a file that holds the value, which is how secrets arrive in a container.
"""

import dataclasses
import math
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sidelinja_jobs.errors import SettingsError

REQUIRED = dataclasses.MISSING
S = TypeVar("S")


def setting(
    env: str,
    *,
    default: Any = REQUIRED,
    help: str = "",
    secret: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
    empty_file_is_unset: bool = False,
) -> Any:
    """A field read from the variable `env`. Numbers are checked against the inclusive bounds.

    `empty_file_is_unset`: for what an operator may give later; until then its file is there and empty.
    """
    metadata = {
        "env": env,
        "help": help,
        "secret": secret,
        "bounds": (minimum, maximum),
        "choices": choices,
        "empty_file_is_unset": empty_file_is_unset,
    }
    return dataclasses.field(default=default, metadata=metadata)


def load_settings(kind: type[S], environ: Mapping[str, str] | None = None) -> S:
    """Reads a settings class.

    Raises:
        SettingsError: naming every variable that is missing or wrong, its value (secrets hidden) and what is allowed.
    """
    environ = os.environ if environ is None else environ
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        env = field.metadata["env"]
        try:
            text = _read(env, environ, field.metadata["empty_file_is_unset"])
            if text is not None:
                values[field.name] = _convert(text, hints[field.name], field.metadata)
            elif field.default is REQUIRED:
                problems.append(f"{env} is not set; {field.metadata['help'] or 'it has no default'}")
        except ValueError as error:
            problems.append(f"{env}{error}")
    if problems:
        raise SettingsError("settings: " + "; ".join(problems))
    return kind(**values)


def _read(env: str, environ: Mapping[str, str], empty_file_is_unset: bool) -> str | None:
    path = environ.get(f"{env}_FILE")
    if path:
        if environ.get(env):
            raise ValueError(f" and {env}_FILE are both set; set one of them")
        try:
            text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"_FILE names {path}, which user id {os.getuid()} cannot read: {error}") from error
        if not text and empty_file_is_unset:
            return None
        if not text:
            raise ValueError(f"_FILE names {path}, which is empty")
        return text
    return environ.get(env) or None  # an empty variable is an unset one, as Compose passes it


def _convert(text: str, hint: Any, metadata: Mapping[str, Any]) -> Any:
    shown = "(hidden)" if metadata["secret"] else repr(text)
    if isinstance(hint, types.UnionType):
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if hint is bool:
        lowered = text.lower()
        if lowered not in {"1", "0", "true", "false", "yes", "no", "on", "off"}:
            raise ValueError(f" is {shown}, expected true or false")
        return lowered in {"1", "true", "yes", "on"}
    if hint in (str, Path):
        choices = metadata["choices"]
        if choices and text not in choices:
            raise ValueError(f" is {shown}, expected one of {', '.join(choices)}")
        return hint(text)
    try:
        value = msgspec.convert(text, hint, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f" is {shown}, expected {'a whole number' if hint is int else 'a number'}") from error
    minimum, maximum = metadata["bounds"]
    if not _is_finite(value) or (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        raise ValueError(f" is {shown}, expected {_bounds_text(minimum, maximum)}")
    return value


def _is_finite(value: float | Decimal) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else isinstance(value, int) or math.isfinite(value)


def _bounds_text(minimum: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f"{minimum} to {maximum}"
    if minimum is not None:
        return f"{minimum} or more"
    return "a finite number" if maximum is None else f"{maximum} or less"


@dataclass(frozen=True)
class DatabaseSettings:
    """How to reach the database."""

    url: str = setting(
        "DATABASE_URL",
        help="set it to postgresql://ROLE@HOST:5432/jobbko, with DATABASE_PASSWORD or _FILE",
        secret=True,
    )
    password: str | None = setting("DATABASE_PASSWORD", default=None, secret=True, help="overrides the URL's")
    timeout_seconds: float = setting(
        "DB_TIMEOUT_SECONDS", default=10.0, minimum=0.5, help="no answer for this long = connection lost"
    )

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler stands between that gives each transaction another session. Made for workers alone."""
        return False


@dataclass(frozen=True)
class WorkerSettings(DatabaseSettings):
    """What every worker reads, apart from the settings of its own service."""

    poll_seconds: float = setting("POLL_SECONDS", default=1.0, minimum=0.05, maximum=3600, help="between polls")
    listen: bool = setting("LISTEN", default=True, help="false: rely on polls alone, no wake-up by NOTIFY")
    pooler: bool = setting("POOLER", default=False, help="true: DATABASE_URL names a pooler in transaction mode")
    metrics_port: int = setting("METRICS_PORT", default=9100, minimum=0, maximum=65535, help="0 = no metrics")
    metrics_host: str = setting("METRICS_HOST", default="0.0.0.0", help="address of the metrics")  # noqa: S104
    health_file: Path = setting("HEALTH_FILE", default=Path("/tmp/healthy"), help="touched while well")  # noqa: S108
    log_format: str = setting("LOG_FORMAT", default="auto", choices=("auto", "json", "console"))
    log_level: str = setting("LOG_LEVEL", default="info", choices=("debug", "info", "warning", "error"))

    @property
    def is_pooled(self) -> bool:
        """As POOLER says."""
        return self.pooler
