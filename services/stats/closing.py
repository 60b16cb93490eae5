"""After the lines: the figures of days that changed, and the end of days that are over."""

from typing import Any

from services.stats.settings import StatsSettings
from services.stats.store import SQL
from sidelinja_jobs import Context


def derive_dirty_days(ctx: Context, settings: StatsSettings) -> None:
    """All figures of days that have new windows, one transaction a day."""
    with ctx.transaction() as conn:
        days = conn.execute(SQL["dirty_days"]).fetchall()
    for row in days:
        with ctx.transaction() as conn:
            conn.execute(SQL["derive_day"], row | limits_of(settings))
        ctx.progress(None, f"figures of {row['day']}")


def close_days(ctx: Context, settings: StatsSettings) -> None:
    """Day D ends at 03:00 of D+2: then its listeners are forgotten, and what comes later is late.

    Called when everything that is there was read, so that an old log that is read for the first time is not late.
    """
    with ctx.transaction() as conn:
        days = conn.execute(SQL["days_to_close"], {"time_zone": settings.time_zone}).fetchall()
        conn.execute(SQL["forget_bad_lines"])
    for row in days:
        with ctx.transaction() as conn:
            conn.execute(SQL["close_day"], row | limits_of(settings))


def limits_of(settings: StatsSettings) -> dict[str, Any]:
    """R31, as the functions of the database are called with it."""
    return {
        "most_episodes": settings.most_episodes,
        "most_downloads": settings.most_downloads,
        "exclude_heavy": settings.exclude_heavy,
    }
