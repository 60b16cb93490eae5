"""Logs: structured, to stdout; JSON when stdout is no terminal.

One canonical line per run of a job ("job ended") carries job_type, job_id, attempt, outcome and seconds. Values are
fields, never parts of the sentence; payloads, transcripts, prompts and secrets are not logged.
"""

import io
import logging
import os
import sys
from typing import Any, TextIO, cast

import structlog

STDOUT = 1


def configure_logging(log_format: str = "auto", level: str = "info") -> None:
    """Sets up structlog for the process."""
    as_json = log_format == "json" or (log_format == "auto" and not sys.stdout.isatty())
    renderer: Any = structlog.processors.JSONRenderer(ensure_ascii=False)
    if not as_json:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info if as_json else _pass_on,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, _Stdout())),
        cache_logger_on_first_use=True,
    )


def get_logger(**fields: Any) -> structlog.typing.FilteringBoundLogger:
    """A logger with fields bound to it."""
    return cast(structlog.typing.FilteringBoundLogger, structlog.get_logger(**fields))


class _Stdout(io.TextIOBase):
    """Standard output that never raises: a full disk or a closed pipe must not fail a job, nor bad characters."""

    def write(self, text: str) -> int:
        data = text.encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[os.write(STDOUT, data) :]
        except OSError:
            return 0
        return len(text)

    def flush(self) -> None:
        pass


def _pass_on(_logger: Any, _name: str, event: Any) -> Any:
    return event
