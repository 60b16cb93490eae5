"""Days that are counted again from the raw files: the same tables, or what a new list or length makes of them."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.stats.payload import StatsPayload
from services.stats.store import Store
from sidelinja_jobs import PermanentError
from tests.command_line import Jobs
from tests.databases import Database
from tests.queue.stats_support import LONG_AGO, TODAY, Stats
from tests.unit.stats_support import FILE_BYTES, SHOW, line

ROLLED = "access-2026-11-29T12-00-00.000.log"


@pytest.fixture
def stats(database: Database, tmp_path: Path) -> Iterator[Stats]:
    stats = Stats(database, tmp_path)
    database.rows("update stats.source set feed_paths = '{/feed.xml}'")
    stats.write(*(line(at=LONG_AGO, agent=f"App{n}/1") for n in range(5)), line(at=LONG_AGO, method="HEAD"),
                line(at=LONG_AGO - timedelta(days=1)), name=f"{ROLLED}.gz")  # fmt: skip
    stats.write(line(), line(part=(0, 99), agent="Short/1"), line("/feed.xml"), line(agent="Googlebot/2"), b"no json\n")
    stats.run()
    return stats


def again(stats: Stats, **days: Any) -> dict[str, Any]:
    span = {"from": str(LONG_AGO.date()), "to": str(TODAY)} | days
    return stats.run(reprocess=span)


def without_generation(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [{key: value for key, value in row.items() if key != "generation"} for row in rows]
            for name, rows in tables.items()}  # fmt: skip


def test_counting_again_changes_nothing_by_itself(stats: Stats) -> None:
    before, files = without_generation(stats.tables()), stats.files()

    result = again(stats, note="to be sure")

    assert without_generation(stats.tables()) == before
    assert stats.files() == files
    assert (result["lines"], result["counted_requests"], result["warnings"]) == (10, 7, ["reprocessed"])
    rows = stats.database.rows("select day, state, note, generation from stats.day order by 1")
    assert [(row["state"], row["note"], row["generation"]) for row in rows] == [
        ("closed", None, 0), ("closed", "to be sure", 1), ("open", "to be sure", 1),
    ]  # fmt: skip
    assert stats.database.value("select count(*) from stats.salt") == 1


def test_what_is_not_read_yet_is_counted_once_by_the_next_run(stats: Stats) -> None:
    stats.write(line(agent="New/1"))
    again(stats)
    assert stats.downloads() == 1
    stats.run()

    assert stats.downloads() == 2


def test_a_new_list_holds_for_the_days_that_are_counted_again_and_for_no_other(stats: Stats, tmp_path: Path) -> None:
    for name in ("bots", "apps", "libraries", "browsers", "devices"):
        entries = [{"name": "All of them", "pattern": "^App[01]/"}] if name == "bots" else []
        (tmp_path / f"{name}.json").write_text(json.dumps({"entries": entries}))
    stats.worker = stats.new_worker(agents_folder=tmp_path)

    again(stats, to=str(LONG_AGO.date()))

    assert stats.downloads(LONG_AGO.date()) == 3
    versions = stats.database.rows(
        "select day, min(list_version) as version from stats.download_day group by 1 order by 1"
    )
    assert [row["version"].partition("@")[0] for row in versions] == ["jobbko-2026.11", "opawg-v2", "jobbko-2026.11"]


def test_a_corrected_length_holds_for_a_closed_day_once_it_is_counted_again(stats: Stats) -> None:
    stats.database.rows("update stats.media set duration_seconds = 1")
    stats.write(line(at=LONG_AGO, agent="Partly/1", size=FILE_BYTES - 1))
    assert stats.run()["late"] == 1

    result = again(stats)

    assert result["days"][str(LONG_AGO.date())]["downloads"] == 5
    assert stats.database.rows("select * from stats.excluded_day where reason = 'late'") == []
    assert stats.database.value("select counted_requests from stats.day where day = %s", LONG_AGO.date()) == 6


def test_without_a_raw_file_nothing_is_touched_and_the_file_is_named(stats: Stats) -> None:
    before = stats.tables()
    (stats.logs / f"{ROLLED}.gz").unlink()

    with pytest.raises(PermanentError, match=ROLLED) as caught:
        again(stats)

    assert caught.value.error_class == "raw_files_missing"
    assert stats.tables() == before


def test_a_crash_in_the_middle_leaves_the_days_as_they_were(stats: Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stats.tables()
    stage, calls = Store.stage, []

    def failing(self: Store, *arguments: Any) -> None:
        stage(self, *arguments)
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("in the middle")

    monkeypatch.setattr(Store, "stage", failing)
    with pytest.raises(RuntimeError):
        again(stats)
    stats.database.rows("delete from job_queue")
    reports = ("accounts", "downloads_per_day", "apps")
    assert {name: stats.tables()[name] for name in ("download_day", "day")} == {
        name: before[name] for name in ("download_day", "day")
    }
    seen = [stats.database.rows(f"select * from stats.{name} order by 1, 2, 3") for name in reports]

    again(stats)

    assert without_generation(stats.tables()) == without_generation(before)
    assert [stats.database.rows(f"select * from stats.{name} order by 1, 2, 3") for name in reports] == seen


@pytest.mark.parametrize(
    "payload",
    [
        {"reprocess": {"from": "2026-11-02", "to": "2026-11-01"}},
        {"reprocess": {"from": "2020-01-01", "to": "2026-11-01"}},
        {"reprocess": {"from": "2026-11-01", "to": "2026-11-01"}, "source": "media"},
    ],
)
def test_days_that_make_no_sense_are_refused(stats: Stats, payload: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="reprocess"):
        msgspec.convert(payload, StatsPayload)
    assert stats.downloads() == 1


def test_the_command_enqueues_it(
    stats: Stats, database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(database, capsys, monkeypatch)

    assert jobs("stats", "reprocess", str(LONG_AGO.date()), str(TODAY), "--note", "ny liste").code == 0

    result = stats.run_next()
    assert list(result["days"]) == [str(LONG_AGO.date()), str(TODAY)]
    assert database.value("select show from stats.listener_day where day = %s", TODAY) == SHOW
