"""Each line once: rotation, compression, copies, vanished files, repeated and interrupted runs, two parsers at once."""

import gzip
import os
import shutil
import threading
from typing import Any

import pytest

from services.stats import line_reader, parsing
from services.stats.store import Store
from sidelinja_jobs import PermanentError
from tests.queue.stats_support import Stats, some
from tests.unit.stats_support import line

ROLLED = "access-2026-11-29T12-00-00.000.log"


def test_a_second_run_adds_nothing(stats: Stats) -> None:
    stats.write(*some(10))
    stats.run()
    before = stats.tables()

    result = stats.run()

    assert (result["lines"], result["files"]) == (0, [])
    assert stats.tables() == before
    assert stats.downloads() == 10


def test_lines_with_one_and_the_same_time_over_two_runs_are_all_counted(stats: Stats) -> None:
    """A position by time would skip or double them."""
    same = [line(agent=f"App{number}/1") for number in range(60)]
    stats.write(*same[:31])
    stats.run()
    stats.write(*same[31:])
    stats.run()

    assert stats.downloads() == 60


def test_half_a_line_waits_until_it_is_whole(stats: Stats) -> None:
    text = line(agent="Half/1")
    stats.write(*some(2), text[:100])
    assert stats.run()["lines"] == 2
    stats.write(text[100:])

    assert (stats.run()["lines"], stats.downloads()) == (1, 3)


def test_a_file_that_is_rolled_and_compressed_between_runs_is_read_on(stats: Stats) -> None:
    live = stats.write(*some(5))
    stats.run()
    with live.open("ab") as file:
        file.writelines(some(3, 5))
    rolled = live.rename(stats.logs / ROLLED)
    stats.write(*some(2, 8))
    (stats.logs / f"{ROLLED}.gz").write_bytes(gzip.compress(rolled.read_bytes()))
    rolled.unlink()

    result = stats.run()

    assert (result["lines"], stats.downloads()) == (5, 10)
    assert {name: state for name, (_, state) in stats.files().items()} == {f"{ROLLED}.gz": "done", "access.log": "live"}


def test_two_rotations_while_nothing_ran_lose_nothing(stats: Stats) -> None:
    stats.write(*some(4))
    stats.run()
    for number in (1, 2):
        (stats.logs / "access.log").rename(stats.logs / f"access-2026-11-29T1{number}-00-00.000-size.log")
        stats.write(*some(4, 4 * number))

    assert (stats.run()["lines"], stats.downloads()) == (8, 12)


def test_a_half_written_gz_beside_its_source_is_not_read(stats: Stats) -> None:
    whole = gzip.compress(b"".join(some(200)))
    stats.write(*some(200), name=ROLLED)
    (stats.logs / f"{ROLLED}.gz").write_bytes(whole[: len(whole) // 2])
    stats.run()
    (stats.logs / f"{ROLLED}.gz").write_bytes(whole)
    (stats.logs / ROLLED).unlink()

    assert (stats.run()["lines"], stats.downloads()) == (0, 200)


def test_copytruncate_is_read_to_the_copys_end(stats: Stats) -> None:
    live = stats.write(*some(5))
    stats.run()
    stats.write(*some(2, 5))
    shutil.copy(live, stats.logs / "access.log.1")
    stats.run()  # between the copy and the truncation there are two of one identity
    os.truncate(live, 0)
    stats.write(*some(3, 7))

    assert (stats.run()["lines"], stats.downloads()) == (3, 10)


@pytest.mark.parametrize("names", [(ROLLED, "access.log"), (f"{ROLLED}.gz", "access.log"), (ROLLED, f"{ROLLED}.gz")])
def test_two_different_files_that_begin_alike_are_refused(stats: Stats, names: tuple[str, str]) -> None:
    """Whichever of them is compressed: read as one, the lines of the other would never be counted."""
    stats.write(line(), *some(2), name=names[0])
    stats.write(line(), *some(9, 9), name=names[1])

    with pytest.raises(PermanentError, match="begin with the same line") as caught:
        stats.run()

    assert caught.value.error_class == "ambiguous"
    assert stats.files() == {}


def test_an_inode_that_is_used_again_means_nothing(stats: Stats) -> None:
    live = stats.write(*some(5))
    stats.run()
    with live.open("r+b") as file:  # the same inode with another log
        file.truncate(0)
        file.writelines(some(9, 100))
    result = stats.run()

    assert (result["lines"], result["lost_bytes"], stats.downloads()) == (9, 0, 14)


def test_a_log_that_is_rolled_between_the_look_and_the_opening_is_not_taken_for_the_new_one(
    stats: Stats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by killing workers during rotation: the new file's lines were counted at the old one's position."""
    live = stats.write(*some(5))
    look = parsing.find_log_files

    def look_and_roll(*arguments: Any) -> Any:
        found = look(*arguments)
        live.rename(stats.logs / ROLLED)
        stats.write(*some(7, 100))
        return found

    monkeypatch.setattr(parsing, "find_log_files", look_and_roll)
    assert stats.run()["lines"] == 0
    monkeypatch.setattr(parsing, "find_log_files", look)

    assert (stats.run()["lines"], stats.downloads()) == (12, 12)
    assert {name: state for name, (_, state) in stats.files().items()} == {ROLLED: "done", "access.log": "live"}


def test_a_log_that_is_gone_between_the_look_and_the_opening_costs_the_others_nothing(
    stats: Stats, monkeypatch: pytest.MonkeyPatch
) -> None:
    rolled, away = stats.write(*some(5), name=ROLLED), stats.logs / "elsewhere"
    stats.write(*some(7, 100))
    look = parsing.find_log_files

    def look_and_move(*arguments: Any) -> Any:
        found = look(*arguments)
        rolled.rename(away)
        return found

    monkeypatch.setattr(parsing, "find_log_files", look_and_move)
    assert stats.run()["lines"] == 7
    monkeypatch.setattr(parsing, "find_log_files", look)
    away.rename(rolled)

    assert (stats.run()["lines"], stats.downloads()) == (5, 12)


def test_a_file_that_is_shorter_than_what_was_read_is_told_and_left_alone(stats: Stats) -> None:
    live = stats.write(*some(5))
    stats.run()
    os.truncate(live, live.stat().st_size // 2)

    result = stats.run()

    assert (result["lines"], result["warnings"], stats.files()["access.log"][1]) == (0, ["truncated"], "truncated")


def test_what_vanished_unread_is_told_and_what_reappears_is_read_on(
    stats: Stats, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = stats.write(*some(20))
    read = stats.run_partly(monkeypatch)
    away = live.rename(stats.logs / "elsewhere")

    gone = stats.run()
    assert gone["warnings"] == ["lost_bytes", "no_log_file"]
    assert gone["lost_bytes"] == away.stat().st_size - stats.files()["access.log"][0]
    away.rename(live)

    assert (stats.run()["lines"], stats.downloads()) == (20 - read, 20)


def test_the_end_of_a_rolled_file_without_a_newline_is_one_line(stats: Stats) -> None:
    stats.write(*some(2), line(agent="Whole/1").rstrip(), name="access-2026-11-29T11-00-00.000.log")
    stats.write(line(agent="B/1"), line(agent="Cut/1")[:200], name=ROLLED)

    result = stats.run()

    assert (result["lines"], result["bad"], stats.downloads()) == (5, {"leftover": 1}, 4)
    assert stats.run()["lines"] == 0


def test_a_crash_before_a_commit_repeats_that_batch_alone(stats: Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "BATCH_LINES", 4)
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 700)
    write, calls = Store.write, []

    def failing(self: Store, conn: Any, batch: Any) -> None:
        write(self, conn, batch)
        calls.append(batch)
        if len(calls) == 3:
            raise ConnectionError("lost in the middle")

    monkeypatch.setattr(Store, "write", failing)
    stats.write(*some(20))
    job_id = stats.database.enqueue("stats_parse", {})
    with pytest.raises(ConnectionError):
        stats.run_job(job_id)
    stats.database.rows("update job_queue set status = 'pending', lease_token = null, lease_until = null")
    result, _ = stats.run_job(job_id)

    assert (result["lines"], stats.downloads()) == (20, 20)  # what the first attempt had committed is in the sum


def test_two_parsers_at_once_count_each_line_once(stats: Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "BATCH_LINES", 7)
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 2000)
    stats.write(*some(150))
    results: list[int] = []

    def run() -> None:
        results.append(stats.run_next()["lines"])

    for _ in range(2):
        stats.database.enqueue("stats_parse", {})
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert (sum(results), stats.downloads()) == (150, 150)
