"""Analyse a transcript again: its newest version, with what the analysis before it was told."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.database import Session
from services.admin.pages.form_values import id_of
from services.admin.pages.job_actions import enqueue
from services.admin.pages.transcript_versions import Version, read_version
from services.admin.rendering import redirect
from services.admin.views.transcript import as_rows
from sidelinja_jobs.errors import RefusedError

ANALYSIS = "openrouter_analyze"
# What a new analysis takes over from the one before it.
_KEPT = ("hints", "wants", "output_language", "outputs", "max_cost_usd", "episode_id", "tema_id")


async def analyze(request: Request) -> Response:
    """A new analysis of the newest version, with what the one before it was told."""
    text = await read_version(request, reveal=True)
    async with request.form() as form:
        request_id = id_of(form)
    database = request.app.state.database
    async with database.session() as session:
        payload = await _analysis_payload(session, text)
    try:
        made = await enqueue(
            request, ANALYSIS, json.dumps(payload, ensure_ascii=False), request_id, parent_id=text.job["id"]
        )
    except RefusedError as error:
        return redirect(
            request, "transcript", id=text.job["id"], notice="jobs.refused", values={"why": str(error)[:300]}
        )
    return redirect(request, "job", id=made["id"], notice=f"jobs.made_{made['outcome']}")


async def _analysis_payload(session: Session, text: Version) -> dict[str, Any]:
    analyses = await session.fetch_all("analyses_of_transcript", id=text.job["id"])
    before: dict[str, Any] = {}
    if analyses:
        whole = await session.fetch_one("job_text", id=analyses[0]["id"], part="payload")
        before = json.loads(whole["text"]) if whole else {}
    payload = {name: before[name] for name in _KEPT if isinstance(before, dict) and name in before}
    for name in ("episode_id", "tema_id"):
        if (given := getattr(text.transcript, name)) is not None:
            payload.setdefault(name, given)
    if text.version == 0:
        return payload | {"transcript_job_id": str(text.job["id"])}
    payload["segments"] = as_rows(text.segments)
    if (language := text.transcript.language) and language.isalnum() and len(language) <= 8:
        payload["language"] = language
    if text.transcript.duration and text.transcript.duration > 0:
        payload["duration"] = text.transcript.duration
    completed = next((row for row in analyses if row["status"] == "completed"), None)
    return payload | ({"corrects_job_id": str(completed["id"])} if completed else {})


routes = [Route("/jobs/{id:uuid}/analyze", analyze, name="transcript_analyze", methods=["POST"])]
