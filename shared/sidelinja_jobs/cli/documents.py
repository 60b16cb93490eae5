"""What `--json` prints: one document, numbers as the database sent them, times in UTC.

Payloads and results are put in as text, so 2^63-1 and 0.1 leave as they came. Printed as UTF-8 whatever the locale
says, since JSON is UTF-8.
"""

import dataclasses
import json
import re
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from sidelinja_jobs.cli.rows import AttemptRow, EventRow, JobRow, ReasonRow, WholeJobRow
from sidelinja_jobs.cli.text import UNSAFE
from sidelinja_jobs.redaction import redact_json

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
# Such characters stand only inside strings; an encoder escapes those below U+0020 by itself.
_OBEYED = re.compile(UNSAFE.replace("\x00-\x1f", ""))


def print_document(document: Any) -> None:
    """One JSON document, indented, on standard output."""
    _print(_indented(msgspec.json.encode(document)))


def print_line(document: Any) -> None:
    """One JSON document on one line."""
    _print(msgspec.json.encode(document))


def fields(row: Any) -> dict[str, Any]:
    """The columns of a row; the moment of reading belongs to the whole answer, not to each row."""
    columns = row if isinstance(row, dict) else {one.name: getattr(row, one.name) for one in dataclasses.fields(row)}
    return {name: value for name, value in columns.items() if name != "read_at"}


def job_fields(job: JobRow) -> dict[str, Any]:
    """A job with the number of its run."""
    return fields(job) | {"attempt": job.attempt}


def whole_job_fields(
    job: WholeJobRow,
    attempts: Iterable[AttemptRow],
    events: Iterable[EventRow],
    reasons: Iterable[ReasonRow],
    *,
    reveal: bool,
) -> dict[str, Any]:
    """Everything that is known of a job."""
    return job_fields(job) | {
        "payload": raw(job.payload, reveal=reveal),
        "result": None if job.result is None else raw(job.result, reveal=reveal),
        "runs": [fields(row) for row in attempts],
        "events": [fields(row) for row in events],
        "reasons": [reason_fields(row) for row in reasons],
    }


def reason_fields(row: ReasonRow) -> dict[str, Any]:
    return {"reason": row.reason, "detail": msgspec.Raw(row.detail.encode())}


def raw(json_text: str, *, reveal: bool) -> msgspec.Raw:
    """JSON text to be put into a document as it is, secrets masked."""
    return msgspec.Raw((json_text if reveal else redact_json(json_text)).encode())


def pretty(json_text: str) -> str:
    """JSON text with indentation, numbers untouched."""
    return _indented(json_text.encode()).decode()


def _indented(document: bytes) -> bytes:
    try:
        return msgspec.json.format(document, indent=2)
    except RecursionError:  # thousands of levels, which PostgreSQL takes: shown as it came
        return document


def _print(document: bytes) -> None:
    """On standard output; what a terminal would obey becomes the escape that JSON has for it."""
    text = _OBEYED.sub(lambda match: json.dumps(match.group())[1:-1], document.decode())
    click.echo(f"{text}\n".encode(), nl=False)
