"""Compressed logs whose end is missing or middle broken: what is there is counted, the rest told, and read later."""

import gzip
import os
import zlib
from datetime import timedelta
from pathlib import Path

import pytest

from sidelinja_jobs import PermanentError
from tests.queue.stats_support import Stats, some
from tests.unit.stats_support import NOON, line

ROLLED = "access-2026-11-29T12-00-00.000.log"


def cut_gz(stats: Stats, lines: list[bytes]) -> tuple[Path, bytes, int]:
    """Half of a compressed file, what it is half of, and how many whole lines are in the half."""
    whole = gzip.compress(b"".join(lines))
    half = whole[: len(whole) // 2]
    path = stats.logs / f"{ROLLED}.gz"
    path.write_bytes(half)
    return path, whole, zlib.decompressobj(31).decompress(half).count(b"\n")


def test_a_gz_that_is_still_being_written_is_read_to_its_last_whole_line_and_on_from_there(stats: Stats) -> None:
    lines = some(900)
    path, whole, there = cut_gz(stats, lines)
    first = stats.run()
    path.write_bytes(whole)
    second = stats.run()

    (told,) = first["unfinished"]
    assert told == {
        "source": "media", "name": path.name, "byte": len(b"".join(lines[:there])), "lines": there,
        "file_bytes": len(whole) // 2, "state": "waiting",
    }  # fmt: skip
    assert 0 < there < 900
    assert first["lines"] == there
    assert (second["lines"], second["unfinished"], stats.downloads()) == (900 - there, [], 900)
    assert stats.files() == {path.name: (len(b"".join(lines)), "done")}


def test_a_gz_that_never_gets_an_end_is_told_in_each_result_with_what_was_reached(stats: Stats) -> None:
    path, _, there = cut_gz(stats, some(900))
    os.utime(path, (1, 1))
    stats.write(*some(3, 900))
    for lines in (there + 3, 0):
        result = stats.run()
        (told,) = result["unfinished"]
        assert result["lines"] == lines
        assert "incomplete_gzip" in result["warnings"]
        assert (told["name"], told["lines"], told["state"]) == (path.name, there, "broken")
    path.unlink()

    (gone,) = stats.run()["unfinished"]
    assert (gone["name"], gone["lines"], gone["state"]) == (path.name, there, "gone")
    assert stats.run()["unfinished"] == []
    assert stats.downloads() == there + 3


def test_a_gz_with_a_broken_middle_fails_where_it_is_no_log_and_is_read_once_it_is_mended(
    stats: Stats,
) -> None:
    """What a broken stream unpacks to looks like anything; what was counted of it would stay."""
    whole = gzip.compress(b"".join(some(900)))
    path = stats.logs / f"{ROLLED}.gz"
    path.write_bytes(whole[: len(whole) // 2] + b"\xff" * 200 + whole[len(whole) // 2 + 200 :])
    with pytest.raises(PermanentError, match=r"Nothing was skipped.*or bring the file whole") as caught:
        stats.run()
    stats.database.rows("delete from job_queue")
    path.write_bytes(whole)
    mended = stats.run()

    assert caught.value.error_class == "format_error"
    assert (mended["lines"], mended["unfinished"], stats.downloads()) == (900, [], 900)


def test_a_gz_without_a_first_line_is_told_and_what_it_was_made_of_has_not_vanished(stats: Stats) -> None:
    live = stats.write(*some(5))
    stats.run()
    whole = gzip.compress(live.read_bytes() + b"".join(some(2, 5)))
    live.unlink()
    path = stats.logs / f"{ROLLED}.gz"
    path.write_bytes(whole[:12])
    first = stats.run()
    path.write_bytes(whole)
    second = stats.run()

    assert [(told["lines"], told["state"]) for told in first["unfinished"]] == [(0, "waiting")]
    assert (first["lost_bytes"], first["warnings"]) == (0, [])
    assert (second["lines"], stats.downloads(), stats.files()[path.name][1]) == (2, 7, "done")


def test_a_day_is_not_closed_while_a_file_is_being_compressed(stats: Stats) -> None:
    long_ago = [line(at=NOON - timedelta(days=10), agent=f"App{number}/1") for number in range(400)]
    path, whole, _ = cut_gz(stats, long_ago)
    first = stats.run()
    path.write_bytes(whole)
    second = stats.run()

    assert [day["state"] for day in first["days"].values()] == ["open"]
    assert [(day["state"], day["downloads"]) for day in second["days"].values()] == [("closed", 400)]
    assert second["late"] == 0
