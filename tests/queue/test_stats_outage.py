"""A folder of logs, or its disk, that is not there: waited for, unless it never was."""

import errno
import os
from typing import Any

import pytest

from services.stats import log_files
from sidelinja_jobs import ComeBackLaterError, PermanentError
from tests.queue.stats_support import LONG_AGO, TODAY, Stats, some
from tests.unit.stats_support import line


def test_a_folder_that_was_never_there_is_a_failure_that_names_it(stats: Stats) -> None:
    stats.logs.rmdir()

    with pytest.raises(PermanentError, match="cannot list") as caught:
        stats.run()

    assert caught.value.error_class == "no_folder"
    assert stats.downloads(TODAY) == 0


@pytest.mark.parametrize("is_mount_point_left", [False, True])
def test_a_folder_that_goes_away_is_waited_for_and_its_logs_are_not_taken_for_vanished(
    stats: Stats, monkeypatch: pytest.MonkeyPatch, is_mount_point_left: bool
) -> None:
    """Else its open days would be closed, and what is unread would be late once the folder is back."""
    stats.write(*(line(at=LONG_AGO, agent=f"App{number}/1") for number in range(20)))
    read = stats.run_partly(monkeypatch)
    away = stats.logs.rename(stats.logs.with_name("away"))
    if is_mount_point_left:
        stats.logs.mkdir()

    for asked in ({}, {"reprocess": {"from": str(LONG_AGO.date()), "to": str(TODAY)}}):
        with pytest.raises(ComeBackLaterError, match=f"{stats.logs} .*Next: see to the disk"):
            stats.run(**asked)
    stats.database.rows("delete from job_queue")
    if is_mount_point_left:
        stats.logs.rmdir()
    away.rename(stats.logs)
    result = stats.run()

    assert (result["lines"], result["lost_bytes"], result["late"]) == (20 - read, 0, 0)
    assert stats.downloads(LONG_AGO.date()) == 20


def test_a_log_that_its_disk_does_not_give_is_waited_for(stats: Stats, monkeypatch: pytest.MonkeyPatch) -> None:
    stats.write(*some(5))
    stats.run()

    def failing(*_: Any, **__: Any) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(log_files, "fingerprint_of", failing)

    with pytest.raises(ComeBackLaterError, match="Input/output error"):
        stats.run()
