"""Messages and notes as people see them: without secrets, half ones included.

Workers, the database and this service's queries cut texts before anybody looks for secrets in them, and half a secret
is not recognized. So a text that was cut loses what is left of its last word first. CUTS are the lengths at which they
are cut: a query that takes another one shows half a secret.
"""

import string

from sidelinja_jobs.redaction import redact_json, redact_text

CUTS = frozenset({
    500,  # a note, by the worker (sidelinja_jobs.queue.extend) and by queries; texts in explain_job
    1000,  # the reason of a pause, by pause_job_type
    2000,  # a message or a payload in a list, by queries; event_error
    8000, 32000,  # a message and a traceback, by sidelinja_jobs.queue and end_run (db/init)
})  # fmt: skip
_ENDS = string.whitespace + '"'  # behind which no secret goes on


def redacted(text: str | None) -> str:
    """A message, note or traceback without secrets; nothing where there is none."""
    return redact_text(_whole_words(text or ""))


def redacted_json(json_text: str) -> str:
    """The same of JSON text in a list, which may be cut."""
    return redact_json(_whole_words(json_text))


def first_line(text: str | None, limit: int = 200) -> str:
    """The first line that says something, without secrets, cut at so many characters."""
    line = next((line.strip() for line in redacted(text).splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _whole_words(text: str) -> str:
    return text[: max(map(text.rfind, _ENDS)) + 1] + "…" if len(text) in CUTS else text
