"""Takes alerts from Prometheus, by the interface that it has for an Alertmanager (POST /api/v2/alerts).

It is served beside the metrics, inside the stack's own network. What arrives is text for people and nothing else:
bounded, without control characters, never a command.
"""

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication

import msgspec

from sidelinja_jobs.json_text import clean_text

PATH = "/api/v2/alerts"
LONGEST_BODY = 1024 * 1024  # bytes
LONGEST_TEXT = 2000
UNHEARD = timedelta(minutes=5)  # an alert without an end, as other senders write it, is over when nothing more is heard


class Posted(msgspec.Struct, rename="camel"):
    """An alert as Prometheus sends it, again every minute while it fires; endsAt lies ahead until it has ended."""

    labels: dict[str, str]
    annotations: dict[str, str] = {}
    starts_at: datetime | None = None
    ends_at: datetime | None = None


def rows(body: bytes, now: datetime) -> list[dict[str, Any]]:
    """The alerts of a request as `record_alerts` takes them.

    Raises:
        msgspec.DecodeError: it is no such list.
    """
    return [_row(alert, now) for alert in msgspec.json.decode(body, type=list[Posted])]


def _row(alert: Posted, now: datetime) -> dict[str, Any]:
    labels = {_text(name): _text(value) for name, value in sorted(alert.labels.items())}
    ends_at = alert.ends_at if alert.ends_at is not None and alert.ends_at.year > 1 else now + UNHEARD
    return {
        "fingerprint": hashlib.sha256(msgspec.json.encode(labels)).hexdigest(),
        "name": labels.get("alertname", "alert"),
        "severity": labels.get("severity", "warning"),
        "labels": {name: value for name, value in labels.items() if name not in ("alertname", "severity")},
        "summary": _text(alert.annotations.get("summary", "")) or labels.get("alertname", "alert"),
        "next_step": _text(alert.annotations.get("next_step", "")),
        "starts_at": (alert.starts_at or now).isoformat(),
        "ends_at": ends_at.isoformat(),
    }


def _text(text: str) -> str:
    return " ".join(clean_text(text).split())[:LONGEST_TEXT]


def receiving(record: Callable[[list[dict[str, Any]]], None], otherwise: WSGIApplication) -> WSGIApplication:
    """A WSGI application: alerts go to `record`, whose exception is answered with 503; all else to `otherwise`."""

    def answer(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != PATH:
            return otherwise(environ, start_response)
        status, text = _taken(environ, record)
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [text.encode()]

    return answer


def _taken(environ: dict[str, Any], record: Callable[[list[dict[str, Any]]], None]) -> tuple[str, str]:
    if environ.get("REQUEST_METHOD") != "POST":
        return "405 Method Not Allowed", "alerts are posted\n"
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        length = 0
    if not 0 < length <= LONGEST_BODY:
        return "413 Content Too Large", f"expected a JSON list of at most {LONGEST_BODY} bytes\n"
    try:
        found = rows(environ["wsgi.input"].read(length), datetime.now(UTC))
    except msgspec.DecodeError as error:
        return "400 Bad Request", f"no list of alerts: {error}\n"
    try:
        record(found)
    except Exception:  # whatever it was, the sender tries again; `record` has logged it
        return "503 Service Unavailable", "the alerts could not be kept: try again\n"
    return "200 OK", ""
