"""Downloads of the podcast: per day and episode, by app, country, device and referring site."""

from datetime import UTC, datetime, timedelta

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin import charts
from services.admin.database import Row
from services.admin.pages.form_values import whole_number
from services.admin.rendering import render, speech
from services.admin.words import Speech

SPANS = (7, 30, 90, 365)
LISTS = ("apps", "countries", "devices", "referrers")


async def statistics(request: Request) -> Response:
    """What the views of the statistics say of a span of days."""
    saying, settings = speech(request), request.app.state.settings
    days = whole_number(request.query_params.get("days", ""), SPANS) or 30
    today = datetime.now(UTC).astimezone(settings.zone).date()
    async with request.app.state.database.session() as session:
        shows = [row["show"] for row in await session.fetch_all("shows_list")]
        show = request.query_params.get("show")
        chosen = {"show": show if show in shows else None}
        asked = chosen | {"today": today, "days": days}
        per_day = await session.fetch_all("downloads_days", **asked)
        episodes = await session.fetch_all("episodes_list", **chosen)
        lists = [(name, await session.fetch_all(f"{name}_list", **asked)) for name in LISTS]
    found = {row["day"]: row["downloads"] for row in per_day}
    grid = [(day := today - timedelta(days=back), found.get(day, 0)) for back in reversed(range(days))]
    return render(
        request, "statistics.html", shows=shows, show=chosen["show"], days=days, spans=SPANS, per_day=per_day,
        total=sum(found.values()), episodes=episodes,
        chart=charts.columns(
            [(saying.day(day), value) for day, value in grid], saying.t("statistics.chart", days=days),
            highest_label=saying.number(max(value for _, value in grid)),
        ),
        lists=[(name, rows, _bars(name, rows, saying)) for name, rows in lists],
    )  # fmt: skip


def _bars(name: str, rows: list[Row], saying: Speech) -> Markup:
    values = [
        (row["name"] or saying.t("statistics.unknown"), row["downloads"], saying.number(row["downloads"]))
        for row in rows
    ]
    return charts.bars(values, saying.t(f"statistics.{name}"))


routes = [Route("/statistics", statistics, name="statistics")]
