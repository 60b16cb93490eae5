"""What the language model has cost: by day, job type and model, beside the day's budget."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin import charts
from services.admin.rendering import render, speech

DAYS = 30


async def spend(request: Request) -> Response:
    """The last 30 days, counted as the budgets count them."""
    saying = speech(request)
    async with request.app.state.database.session() as session:
        rows = await session.fetch_all("spend_days", days=DAYS)
        models = await session.fetch_all("spend_models", days=DAYS)
    by_day: dict[object, float] = defaultdict(float)
    by_type: dict[str, dict[str, float]] = defaultdict(lambda: {"calls": 0, "charged": 0.0, "uncertain": 0.0})
    for row in rows:
        by_day[row["day"]] += row["charged"]
        for column in ("calls", "charged", "uncertain"):
            by_type[row["job_type"]][column] += row[column]
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    values = [(saying.day(day), by_day.get(day, 0.0)) for day in days]
    chart = charts.columns(
        values, saying.t("spend.chart", days=DAYS), highest_label=saying.money(max(value for _, value in values))
    )
    return render(
        request, "spend.html", rows=rows, by_type=sorted(by_type.items()), models=models, chart=chart, days=DAYS,
        today=by_day.get(today, 0.0), total=sum(by_day.values()), budget=request.app.state.settings.day_budget_usd,
    )  # fmt: skip


routes = [Route("/spend", spend, name="spend")]
