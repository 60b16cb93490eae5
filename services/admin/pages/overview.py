"""The first page: what there is now, by type; and pausing a type, which starts from here."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin import charts
from services.admin.access.accounts import operator_only
from services.admin.database import Row
from services.admin.pages.form_values import LONGEST_REASON, text_of, whole_number
from services.admin.pages.job_line import seconds_left
from services.admin.rendering import redirect, render, speech
from services.admin.words import Speech

MOST_WAITING, MOST_ERRORS = 10_000, 1_000  # counted exactly up to here
HOURS = 24
PAUSES = (0, 15, 60, 240, 1440)  # minutes that the form offers; 0 = until someone resumes


@dataclass(frozen=True)
class Card:
    """A type with its pictures."""

    row: Row
    bar: Markup
    throughput: Markup
    durations: Markup
    completed: int
    mean_seconds: float | None

    @property
    def needs_workers(self) -> bool:
        """Jobs wait and nobody is there to take them."""
        return bool(self.row["workers"] == 0 and self.row["pending"] + self.row["retry"] > 0)


async def overview(request: Request) -> Response:
    """All job types at a glance."""
    saying = speech(request)
    seen = await request.app.state.shared.read(request, saying.language, lambda: _look(request, saying))
    budget = request.app.state.settings.day_budget_usd
    return render(request, "overview.html", **seen, budget=budget, most=MOST_WAITING, most_errors=MOST_ERRORS)


async def _look(request: Request, saying: Speech) -> dict[str, Any]:
    async with request.app.state.database.session() as session:
        types = await session.fetch_all("overview_types", most=MOST_WAITING, most_errors=MOST_ERRORS)
        hours = await session.fetch_all("overview_hours")
        running = [row | {"seconds_left": seconds_left(row)} for row in await session.fetch_all("overview_running")]
        spent = await session.fetch_one("spent_today")
    by_type = defaultdict(list)
    for hour in hours:
        by_type[hour["job_type"]].append(hour)
    cards = [_card(row, by_type[row["name"]], saying) for row in types]
    return {"cards": cards, "running": running, "spent": spent, "totals": _totals(types)}


def _totals(types: list[Row]) -> dict[str, Any]:
    """The headline: sums over the types, and the oldest job that is due."""
    due = [row["oldest_due"] for row in types if row["oldest_due"] is not None]
    return {
        "waiting": sum(row["pending"] + row["retry"] for row in types),
        "waiting_capped": any(row["is_capped"] for row in types),
        "running": sum(row["running"] for row in types),
        "errors": sum(row["errors"] for row in types),
        "errors_capped": any(row["errors_capped"] for row in types),
        "workers": sum(row["workers"] for row in types),
        "oldest_due": min(due, default=None),
    }


def _card(row: Row, hours: list[Row], saying: Speech) -> Card:
    first = saying.now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    grid: list[Row | None] = [None] * HOURS
    for hour in hours:
        place = _place(hour["hour"], first)
        if 0 <= place < HOURS:
            grid[place] = hour
    completed = [hour["completed"] if hour else 0 for hour in grid]
    failed = [hour["failed"] if hour else 0 for hour in grid]
    means = [hour["run_seconds"] / hour["completed"] if hour and hour["completed"] else None for hour in grid]
    total, seconds = sum(completed), sum(hour["run_seconds"] for hour in grid if hour)
    parts = [charts.Part(kind, row[kind], saying.t(f"status.{kind}")) for kind in ("running", "pending", "retry")] + [
        charts.Part("error", row["errors"], saying.t("status.error"))
    ]
    shown = ", ".join(f"{saying.number(part.value)} {part.label}" for part in parts)
    return Card(
        row=row,
        bar=charts.split_bar(parts, f"{row['name']}: {shown}"),
        throughput=charts.spark_bars(
            completed, failed, saying.t("overview.throughput_title", n=total, failed=sum(failed))
        ),
        durations=charts.spark_line(means, saying.t("overview.duration_title")),
        completed=total,
        mean_seconds=seconds / total if total else None,
    )


def _place(hour: datetime, first: datetime) -> int:
    return round((hour - first).total_seconds() // 3600)


@operator_only
async def ask_pause(request: Request) -> Response:
    """The question before a pause, with its time and reason."""
    return render(request, "pause.html", type=await _type(request), pauses=PAUSES)


async def pause(request: Request) -> Response:
    """Stops claims of a type; runs go on."""
    row = await _type(request)
    async with request.form() as form:
        minutes = whole_number(text_of(form, "minutes"), PAUSES)
        reason = text_of(form, "reason", LONGEST_REASON).strip()
    if minutes is None:
        raise HTTPException(400)
    async with request.app.state.database.acting_as(request.state.account.name) as session:
        await session.fetch_one("pause_type", job_type=row["name"], minutes=minutes or None, reason=reason or None)
    return redirect(request, "overview", notice="overview.paused_notice", values={"type": row["name"]})


async def resume(request: Request) -> Response:
    """Lets a type go on."""
    row = await _type(request)
    async with request.app.state.database.acting_as(request.state.account.name) as session:
        was_paused = await session.fetch_value("resume_job_type", name=row["name"])
    notice = "overview.resumed_notice" if was_paused else "overview.not_paused_notice"
    return redirect(request, "overview", notice=notice, values={"type": row["name"]})


async def _type(request: Request) -> Row:
    row: Row | None = await request.app.state.database.fetch_one("type_state", name=request.path_params["name"])
    if row is None:
        raise HTTPException(404, speech(request).t("overview.no_type"))
    return row


routes = [
    Route("/", overview, name="overview"),
    Route("/types/{name:path}/pause", ask_pause, name="ask_pause"),
    Route("/types/{name:path}/pause", pause, name="pause_type", methods=["POST"]),
    Route("/types/{name:path}/resume", resume, name="resume_type", methods=["POST"]),
]
