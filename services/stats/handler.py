"""One run: read what is new in every log, derive the figures, close days that are over, say what came of it."""

import time
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import msgspec

from services.stats.addresses import AddressBook, Lookup
from services.stats.agents import AgentBook
from services.stats.closing import close_days, derive_dirty_days
from services.stats.counting import Counting, Facts
from services.stats.facts import measure_new_files, read_facts
from services.stats.log_files import LogTroubleError
from services.stats.metrics import count_lines
from services.stats.parsing import OutOfTimeError, Parser
from services.stats.payload import Reprocess, StatsPayload
from services.stats.report import METHOD, RESULT_VERSION, Report
from services.stats.reprocessing import Reprocessing
from services.stats.settings import StatsSettings, load_agents, read_networks
from services.stats.sources import Source
from services.stats.store import SQL, Connection, Store
from sidelinja_jobs import Context, Job, PermanentError, enqueue
from sidelinja_jobs.volumes import VolumeWatch

JOB_TYPE = "stats_parse"
MORE_KEY = "stats_parse: more"
_SHOWN_TROUBLES = 5


class StatsWorker:
    """Holds what is read once: lists of agents and networks."""

    def __init__(self, settings: StatsSettings, country_of: Lookup | None = None, warning: str | None = None) -> None:
        """Raises SettingsError when a list cannot be read. `warning` stands in each result."""
        self._settings, self._country_of, self._warning = settings, country_of, warning
        classify, self._list_version = load_agents(settings.agents_folder)
        self._agents = AgentBook(classify)
        self._deny, self._allow = read_networks(settings.deny_file), read_networks(settings.allow_file)
        self._volume_watch = VolumeWatch(most_wait_seconds=60.0 * settings.every_minutes)  # other logs go on meanwhile

    def handle(self, job: Job[StatsPayload], ctx: Context) -> dict[str, Any]:
        """The handler of stats_parse.

        Raises:
            ComeBackLaterError: a log's folder that was read before is away.
        """
        asked, started = job.payload.reprocess, time.monotonic()
        sources = self._sources(ctx, job.payload.source, switched_off=asked is not None)
        with self._volume_watch.waiting_for(*(source.volume for source in sources if source.was_read)):
            if asked is not None:
                return self._reprocess(ctx, sources, asked, started)
            return self._count(job, ctx, sources, started)

    def _count(self, job: Job[StatsPayload], ctx: Context, sources: list[Source], started: float) -> dict[str, Any]:
        """What is new in the sources' logs."""
        deadline = started + self._settings.run_seconds
        checkpoints = ctx.checkpoints()
        report = Report.restored(checkpoints[-1].data) if checkpoints else Report()
        if self._warning:
            report.warn(self._warning)
        before = report.sums
        report, troubles, more = self._read_sources(ctx, sources, report, deadline)
        count_lines(before, report.sums)
        measure_new_files(ctx, sources, deadline)
        if more:
            ctx.on_complete(partial(_enqueue_more, msgspec.to_builtins(job.payload)))
        elif not troubles and not report.is_waiting:
            close_days(ctx, self._settings)
        derive_dirty_days(ctx, self._settings)  # afterwards: a day that is closed has been derived
        if troubles:
            raise _failure(troubles, report) from troubles[0]
        return self._result(ctx, report, more, time.monotonic() - started)

    def _reprocess(self, ctx: Context, sources: list[Source], asked: Reprocess, started: float) -> dict[str, Any]:
        """Days again, of all sources, also of those that are switched off."""
        report = Report(warnings={"reprocessed"})
        facts = {source.name: read_facts(ctx, source, report) for source in sources}

        def make_counting(source: Source) -> Counting:
            return self._counting(source, facts[source.name], frozenset())

        work = Reprocessing(ctx, sources, self._settings, self._list_version, make_counting)
        report.days = set(work.run(asked))
        report.excluded = dict(work.total.by_reason())
        result = self._result(ctx, report, False, time.monotonic() - started)
        counted = sum(day["counted_requests"] for day in result["days"].values())
        return result | {"counted_requests": counted, "lines": counted + sum(report.excluded.values())}

    def _sources(self, ctx: Context, name: str | None, *, switched_off: bool) -> list[Source]:
        with ctx.transaction() as conn:
            rows = conn.execute(SQL["sources"], {"name": name, "all": switched_off}).fetchall()
        if not rows and name is not None:
            raise PermanentError(
                f"there is no enabled log source {name!r}. Next: jobs stats sources", error_class="unknown_source"
            )
        return [Source.of_row(row, self._settings.log_root, self._settings.media_root) for row in rows]

    def _read_sources(
        self, ctx: Context, sources: list[Source], report: Report, deadline: float
    ) -> tuple[Report, list[LogTroubleError], bool]:
        troubles: list[LogTroubleError] = []
        more = False
        for source in sources:
            facts = read_facts(ctx, source, report)
            make = partial(self._counting, source, facts)
            store = Store(source.name, self._list_version)
            parser = Parser(ctx, source, store, make, report=report, deadline=deadline)
            try:
                parser.run()
            except OutOfTimeError:
                more = True
            report = parser.report
            troubles += parser.troubles
        return report, troubles, more

    def _counting(self, source: Source, facts: Facts, closed: frozenset[date]) -> Counting:
        addresses = AddressBook(self._deny, self._allow, self._country_of)
        return Counting(
            source.layout, source.time_zone, self._agents, addresses,
            facts=facts, closed=closed, whole_duration=source.whole_duration,
        )  # fmt: skip

    def _result(self, ctx: Context, report: Report, more: bool, seconds: float) -> dict[str, Any]:
        with ctx.transaction() as conn:
            days = conn.execute(SQL["day_figures"], {"days": sorted(report.days)}).fetchall()
            (planned,) = conn.execute(SQL["next_run"]).fetchall()
        next_run = datetime.now(UTC) if more else planned["at"]
        last = datetime.fromtimestamp(report.last_moment, UTC) if report.last_moment else None
        return {
            "v": RESULT_VERSION,
            "method": METHOD,
            "list_version": self._list_version,
            "more": more,
            "files": [msgspec.to_builtins(file) for file in report.files.values()],
            "unfinished": [msgspec.to_builtins(file) for file in report.unfinished],
            "lines": report.lines,
            "counted_requests": report.counted,
            "excluded": report.excluded,
            "bad": report.bad,
            "late": report.late,
            "lost_bytes": report.lost_bytes,
            "query_dropped": report.query_dropped,
            "days": {str(row.pop("day")): row for row in days},
            "max_ts": last and last.isoformat(),
            "lag_s": last and round(max(0.0, time.time() - report.last_moment), 1),
            "lines_per_s": round(report.lines / seconds) if seconds else None,
            "duration_s": round(seconds, 3),
            "warnings": sorted(report.warnings),
            "next_run": next_run and next_run.astimezone(UTC).isoformat(timespec="seconds"),
        }


def _enqueue_more(payload: dict[str, Any], conn: Connection) -> None:
    """The next run, at once; a run that is itself such a one is followed by exactly one."""
    enqueue(conn, JOB_TYPE, payload, unique_key=MORE_KEY)


def _failure(troubles: list[LogTroubleError], report: Report) -> PermanentError:
    """What was read is committed and stays; the next run tries the rest again."""
    told = "; ".join(str(trouble) for trouble in troubles[:_SHOWN_TROUBLES])
    left = len(troubles) - _SHOWN_TROUBLES
    return PermanentError(
        f"{told}{f'; and {left} more' if left > 0 else ''} ({report.lines} other lines were counted)",
        error_class=troubles[0].kind,
    )
