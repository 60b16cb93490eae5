"""Who did what: the audit trail, newest first."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.messages import redacted
from services.admin.pages.form_values import whole_number
from services.admin.rendering import render
from sidelinja_jobs.redaction import redact_value

PAGE = 100
IDS = range(2**63)


async def audit(request: Request) -> Response:
    """One page of it; `before` goes on, `actor` and `action` narrow."""
    asked = request.query_params
    before = whole_number(asked.get("before", ""), IDS)
    actor, action = (asked.get(name, "").replace("\0", "").strip()[:200] for name in ("actor", "action"))
    rows = await request.app.state.database.fetch_all(
        "audit_list", before=before, actor=actor or None, action=action or None, limit=PAGE + 1
    )
    entries = [(row, _detail(row["detail"])) for row in rows[:PAGE]]
    return render(
        request, "audit.html", entries=entries, actor=actor, action=action, is_first=before is None,
        older=rows[PAGE - 1]["id"] if len(rows) > PAGE else None,
    )  # fmt: skip


def _detail(detail: Any) -> list[tuple[str, str]]:
    """The parts of a detail as short texts, without secrets."""
    if not isinstance(detail, dict):
        return []
    shown = redact_value({name: redacted(part) if isinstance(part, str) else part for name, part in detail.items()})
    return [(name, str(part)[:300]) for name, part in shown.items()]


routes = [Route("/audit", audit, name="audit")]
