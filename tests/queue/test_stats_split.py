"""Whatever way lines are divided into files, batches and runs, and in whatever order, the tables are the same."""

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.stats import line_reader, parsing
from tests.databases import Database
from tests.queue.stats_support import Stats
from tests.unit.stats_support import FILE_BYTES, NOON, line

NIGHT = NOON.replace(hour=23, minute=50)
_AGENTS = ["A/1", "B/1", "AntennaPod/3.1", "Googlebot/2.1", "atc/1.0 watchOS/9.4", ""]


@st.composite
def a_line(draw: Any) -> bytes:
    """Any of the lines that matter, around midnight."""
    at = NIGHT + timedelta(seconds=draw(st.integers(0, 1200)))
    agent, ip = draw(st.sampled_from(_AGENTS)), draw(st.sampled_from(["192.0.2.1", "2001:db8::1", "2001:db8::2"]))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([b"no json\n", b'{"request":1}\n', line(ip="x", agent="A/1"), line(at=1.0)]))
    if kind == 1:
        return line(method="HEAD", at=at)
    if kind == 2:
        return line("/feed.xml", at=at, agent="Feedly/1 (12 subscribers)")
    first = draw(st.integers(0, 12)) * 100_000
    last = min(first + draw(st.sampled_from([2, 150_000, 400_000])), FILE_BYTES) - 1
    referer = draw(st.sampled_from([{}, {"referer": "https://a.no/"}, {"referer": "https://b.no/"}]))
    return line(part=(first, last), at=at, agent=agent, ip=ip, **referer)


@st.composite
def a_split(draw: Any) -> tuple[list[bytes], list[int], int, int]:
    lines = draw(st.lists(a_line(), min_size=1, max_size=40))
    # Lines are made unique, so that no two files can begin alike.
    lines = [_numbered(text, number) for number, text in enumerate(lines)]
    cuts = sorted(draw(st.lists(st.integers(0, len(lines)), max_size=4)))
    return lines, cuts, draw(st.integers(1, 12)), draw(st.sampled_from([300, 2000, 65536]))


def _numbered(text: bytes, number: int) -> bytes:
    if b'"size"' in text:
        return text.replace(b'"size"', b'"n":%d,"size"' % number)
    return b"%d " % number + text if text.startswith(b"no") else text.replace(b":1}", b':1,"n":%d}' % number)


@pytest.mark.timeout(200)
def test_any_split_into_files_batches_and_runs_gives_the_same_tables(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_splits(Stats(database, tmp_path), monkeypatch, settings(max_examples=30, derandomize=True))


@pytest.mark.long
def test_a_thousand_other_splits_give_the_same_tables(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_splits(Stats(database, tmp_path), monkeypatch, settings(max_examples=1000, print_blob=True))


def check_splits(stats: Stats, monkeypatch: pytest.MonkeyPatch, examples: settings) -> None:
    stats.database.rows("update stats.source set feed_paths = '{/feed.xml}'")

    @settings(examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(a_split(), st.randoms(use_true_random=False), st.booleans())
    def check(split: tuple[list[bytes], list[int], int, int], order: Any, in_runs: bool) -> None:
        lines, cuts, batch_lines, piece_bytes = split
        clean(stats)
        stats.write(*lines)
        stats.run()
        expected = stats.tables()

        clean(stats)
        with monkeypatch.context() as patched:
            patched.setattr(parsing, "BATCH_LINES", batch_lines)
            patched.setattr(line_reader, "PIECE_BYTES", piece_bytes)
            write_in_parts(stats, lines, cuts, order, in_runs)
            stats.run()
        assert stats.tables() == expected

    check()


def write_in_parts(stats: Stats, lines: list[bytes], cuts: list[int], order: Any, in_runs: bool) -> None:
    """Rolled files in any order, plain or compressed, and the live one; with a run after each, or none."""
    parts = [part for start, end in pairwise([0, *cuts, len(lines)]) if (part := lines[start:end])]
    order.shuffle(parts)
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        suffix = "" if number % 2 else ".gz"
        stats.write(*part, name="access.log" if is_last else f"access-2026-11-29T0{number}-00.log{suffix}")
        if in_runs:
            stats.run()


def clean(stats: Stats) -> None:
    names = ("day", "salt", "listener_window", "file", "bad_line", "unknown_agent", "excluded_day", "feed_day",
             "download_day", "download_hour", "referrer_day", "listener_day")  # fmt: skip
    stats.database.rows("truncate " + ", ".join(f"stats.{name}" for name in names))
    for path in stats.logs.iterdir():
        path.unlink()
