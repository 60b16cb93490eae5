"""`jobs stats`: reports as tables, JSON and CSV, sources, the parallel week, and pulling a run forward."""

import csv
import io
from datetime import timedelta
from pathlib import Path

import pytest

from services.stats.cli import compare_counts, read_old_counts
from services.stats.cli import stats as stats_group
from sidelinja_jobs import queue
from sidelinja_jobs.cli.exits import ExitCode
from tests.command_line import Jobs
from tests.databases import Database
from tests.queue.stats_support import TODAY, Stats
from tests.sessions import worker_session
from tests.unit.stats_support import NOON, SHOW, line

REPORTS = ("episodes", "days", "downloads", "apps", "devices", "countries", "referrers", "excluded", "feeds", "unknown",
           "files", "sources")  # fmt: skip


def count_some(stats: Stats) -> None:
    stats.database.rows("update stats.source set feed_paths = '{/feed.xml}'")
    stats.write(*(line(agent="AntennaPod/3.4.0", ip=f"192.0.2.{n}") for n in range(6)))
    stats.write(line("/ep2.mp3", agent="Ny app/1", referer="https://player.example.no/x"), line(method="HEAD"))
    stats.write(line("/feed.xml", agent="Feedbin feed-id:1 - 42 subscribers"))
    stats.run()


def test_every_report_is_a_table_a_document_and_a_sheet(stats: Stats, jobs: Jobs) -> None:
    count_some(stats)
    for name in REPORTS:
        shown = jobs("stats", name, columns=100)
        document = jobs("stats", name, "--json").document

        assert shown.code == 0
        assert len(shown.lines) == len(document) + 1 > 1, name
        rows = list(csv.DictReader(io.StringIO(jobs("stats", name, "--csv").out)))
        assert [list(row) for row in rows] == [list(row) for row in document], name
        if name != "unknown":
            assert jobs("stats", name, role="reader").code == 0, name


def test_reports_say_what_was_counted(stats: Stats, jobs: Jobs) -> None:
    count_some(stats)

    episodes = {row["episode"]: row for row in jobs("stats", "episodes", "--json").document}
    assert (episodes["ep1.mp3"]["first_24_hours"], episodes["ep1.mp3"]["downloads"]) == (6, 6)
    (day,) = jobs("stats", "days", "--json").document
    assert (day["day"], day["show"], day["downloads"], day["listeners"]) == (str(TODAY), SHOW, 7, 7)
    assert [row["app"] for row in jobs("stats", "apps", "--json").document] == ["AntennaPod", ""]
    assert [row["app"] for row in jobs("stats", "apps", "--json", "--public").document] == ["AntennaPod"]
    assert jobs("stats", "referrers", "--json").document[0]["host"] == "player.example.no"
    excluded = {row["reason"]: row["requests"] for row in jobs("stats", "excluded", "--json").document}
    assert excluded == {"counted": 7, "method": 1, "feed": 1}
    assert jobs("stats", "feeds", "--json").document[0]["reported_subscribers"] == 42


def test_days_and_shows_narrow_a_report(stats: Stats, jobs: Jobs) -> None:
    stats.write(line(), line(at=NOON - timedelta(days=3), agent="B/1"))
    stats.run()
    past = str((NOON - timedelta(days=3)).date())

    assert [row["day"] for row in jobs("stats", "downloads", "--json", "--to", past).document] == [past]
    assert [row["day"] for row in jobs("stats", "downloads", "--json", "--from", str(TODAY)).document] == [str(TODAY)]
    assert jobs("stats", "downloads", "--json", "--show", "Annen").document == []
    assert "nothing was counted there yet" in jobs("stats", "downloads", "--show", "Annen").err
    assert jobs("stats", "downloads", "--from", "yesterday").code == ExitCode.REFUSED


def test_an_empty_table_says_where_to_look(database: Database, jobs: Jobs) -> None:
    assert "Next: jobs stats files" in jobs("stats", "days").err
    assert "no log was read yet. Next: is there one in the folder" in jobs("stats", "files").err
    assert "there is no source. Next: jobs stats sources set" in jobs("stats", "sources").err


def test_the_first_hours_of_an_episode_begin_when_it_was_published(stats: Stats, jobs: Jobs) -> None:
    published = NOON - timedelta(days=9, minutes=10)
    stats.database.rows("insert into stats.episode values (%s, 'ep1.mp3', 'Ett', %s)", SHOW, published)
    for days in (9, 8, 5, 0):
        stats.write(line(at=NOON - timedelta(days=days), agent=f"App{days}/1"))
    stats.run()

    (row,) = jobs("stats", "episodes", "--json").document

    assert [row[name] for name in ("title", "first_24_hours", "first_7_days", "first_30_days", "downloads")] == [
        "Ett", 1, 3, 4, 4,
    ]  # fmt: skip


def test_a_source_is_made_changed_and_removed(stats: Stats, jobs: Jobs) -> None:
    made = jobs("stats", "sources", "set", "to", "--host", "a.no", "--feed", "/rss", "--media-folder", "to").document
    changed = jobs(
        "stats", "sources", "set", "to", "--host", "", "--show", "To", "--media-folder", "", "--disable"
    ).document

    (made,), (changed,) = made, changed
    assert (made["hosts"], made["show"], made["media_folder"], made["enabled"]) == (["a.no"], "to", "to", True)
    assert changed == made | {"hosts": [], "show": "To", "media_folder": None, "enabled": False}
    assert jobs("stats", "sources", "set", "x", "--folder", "../out").code == ExitCode.REFUSED
    assert jobs("stats", "sources", "set", "x", "--time-zone", "Mars/Olympus").code != 0
    assert jobs("stats", "sources", "set", "to", role="reader").code == ExitCode.NOT_ALLOWED
    assert jobs("stats", "sources", "remove", "to").code == 0
    assert jobs("stats", "sources", "remove", "to").code == ExitCode.NOT_FOUND


def test_run_pulls_the_planned_run_forward_in_place_of_adding_one(stats: Stats, jobs: Jobs) -> None:
    conn = worker_session(stats.database, "worker_stats", "stats_parse")
    conn.execute("select stats.set_up(interval '1 day')")
    queue.sweep(conn)

    assert jobs("stats", "run").code == 0
    row = stats.database.row("select count(*) as jobs, bool_and(scheduled_for <= now()) as due from job_queue")
    assert row == {"jobs": 1, "due": True}
    planned = jobs("stats", "run", "--json").document
    assert planned == {"id": str(stats.database.value("select id from job_queue")), "outcome": "pulled_forward"}
    stats.database.rows("delete from job_queue")
    assert "created" in jobs("stats", "run").out
    assert jobs("stats", "run", "--json").document["outcome"] == "exists"


def test_every_command_that_prints_a_table_prints_json_and_csv_and_every_other_one_that_answers_json() -> None:
    options = {name: {flag for option in command.params for flag in option.opts}
               for name, command in stats_group.commands.items()}  # fmt: skip

    assert {name for name, flags in options.items() if "--json" not in flags} == set()
    assert {name for name, flags in options.items() if "--csv" not in flags} == {"run", "reprocess"}


def test_a_name_that_looks_like_a_formula_stays_a_text_in_a_sheet(stats: Stats, jobs: Jobs) -> None:
    stats.write(line(agent="=HYPERLINK(1)/1"))
    stats.run()

    assert "'=HYPERLINK(1)/1" in jobs("stats", "unknown", "--csv").out
    assert "\x1b" not in jobs("stats", "unknown").out


HEAD = "day,episode,downloads\n"
OLD = """dato;fil;antall
{day};https://media.example.no/ep1.mp3?x=1;4
{day};/ep1.mp3;1
{day};borte.mp3;3
"""


def test_the_parallel_week_shows_where_both_differ(stats: Stats, jobs: Jobs, tmp_path: Path) -> None:
    stats.write(*(line(ip=f"192.0.2.{n}") for n in range(6)), line("/ny.mp3"))
    stats.run()
    old = tmp_path / "old.csv"
    old.write_text(OLD.format(day=TODAY))

    found = {row["episode"]: row for row in jobs("stats", "compare", str(old), "--json").document}

    assert [found[name]["difference"] for name in ("ep1.mp3", "borte.mp3", "ny.mp3")] == [1, -3, 1]
    assert found["ep1.mp3"]["percent"] == 20.0
    assert "PERCENT" in jobs("stats", "compare", str(old)).out


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "day,episode,downloads\nyesterday,x,1\n", "day,episode,downloads\n2026-01-01,x,\n"]
)
def test_old_counts_that_cannot_be_read_are_refused(jobs: Jobs, tmp_path: Path, text: str) -> None:
    (tmp_path / "old.csv").write_text(text)

    assert jobs("stats", "compare", str(tmp_path / "old.csv")).code == ExitCode.REFUSED


def test_names_in_paths_are_matched_by_their_end(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text(f"day,episode,downloads\n{TODAY},/a/b/ep%20æ.mp3,7\n{TODAY}T10:00,ep.mp3,1\n")
    counts = read_old_counts(tmp_path / "old.csv")

    (first, _) = compare_counts(counts, [{"day": TODAY, "episode": "b/ep æ.mp3", "downloads": 5}])

    assert (first.episode, first.old, first.new, first.percent) == ("b/ep æ.mp3", 7, 5, -28.6)
