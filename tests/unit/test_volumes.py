"""When a volume counts as away, what becomes of the run then, and for how long."""

import errno
import os
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from sidelinja_jobs import ChildError, ComeBackLaterError, PermanentError
from sidelinja_jobs import volumes as module
from sidelinja_jobs.errors import JobStopped, StopReason
from sidelinja_jobs.volumes import MEDIUM_ERRORS, MediumError, Volume, VolumeWatch

MISSING = PermanentError("no such file", error_class="not_found")


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    """A media folder with a file."""
    root = tmp_path / "media"
    root.mkdir()
    (root / "ep.mp3").touch()
    return Volume("MEDIA_ROOT", root)


def raised(error: BaseException, *volumes: Volume, watch: VolumeWatch | None = None) -> BaseException:
    watch = watch or VolumeWatch()
    with pytest.raises((Exception, JobStopped)) as caught, watch.waiting_for(*volumes):
        raise error
    return caught.value


def test_in_a_volume_that_is_there_each_error_stands_as_it_is(volume: Volume) -> None:
    for error in (MISSING, FileNotFoundError(errno.ENOENT, "no such file"), ChildError("died")):
        assert raised(error, volume) is error


def test_root_that_is_gone_empty_or_no_folder_is_away(volume: Volume) -> None:
    (volume.root / "ep.mp3").rename(volume.root / ".hidden")
    empty = raised(MISSING, volume)
    (volume.root / ".hidden").unlink()
    volume.root.rmdir()
    gone = raised(MISSING, volume)
    volume.root.touch()
    no_folder = raised(MISSING, volume)

    assert [type(error) for error in (empty, gone, no_folder)] == [ComeBackLaterError] * 3
    for error, why in ((empty, "is empty"), (gone, "No such file"), (no_folder, "Not a directory")):
        assert why in str(error)
        assert f"MEDIA_ROOT {volume.root}" in str(error)
        assert "Next: see to the disk or share" in str(error)
    assert empty.__cause__ is MISSING


def test_root_that_fails_when_it_is_read_is_away(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        """A folder that can be opened, and not read."""

        def __enter__(self) -> Iterator[None]:
            return self.entries()

        def __exit__(self, *_: object) -> None:
            pass

        def entries(self) -> Iterator[None]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
            yield

    monkeypatch.setattr(os, "scandir", lambda _: Failing())

    assert "Input/output error" in str(raised(MISSING, volume))


def test_folder_that_is_written_to_may_be_empty_and_may_not_be_gone(volume: Volume, tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    output = Volume("OUTPUT_ROOT", tmp_path / "output", may_be_empty=True)

    assert raised(MISSING, volume, output) is MISSING
    output.root.rmdir()
    assert "OUTPUT_ROOT" in str(raised(MISSING, volume, output))


@pytest.mark.parametrize("number", sorted(MEDIUM_ERRORS))
def test_error_of_the_medium_is_no_jobs_fault_whatever_the_root_says(volume: Volume, number: int) -> None:
    """A disk that was pulled out: its root may still be listed, from memory."""
    failed = OSError(number, os.strerror(number))
    told = PermanentError("cannot be read")
    told.__cause__ = failed

    for error in (failed, told, pickle.loads(pickle.dumps(MediumError("bytes 5 to 9")))):  # noqa: S301 - our own
        back = raised(error, volume)
        assert isinstance(back, ComeBackLaterError)
        assert str(back).startswith(str(error))


def test_run_that_is_stopped_is_stopped_and_one_that_ends_well_has_ended(volume: Volume) -> None:
    volume.root.joinpath("ep.mp3").unlink()
    stopped = JobStopped(StopReason.CANCELLED)

    assert raised(stopped, volume) is stopped
    with VolumeWatch().waiting_for(volume):
        pass


def test_waits_grow_with_the_outage_to_ten_hours_and_begin_anew_with_the_next(
    volume: Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock))
    watch, waits = VolumeWatch(), []
    (volume.root / "ep.mp3").unlink()
    for _ in range(20):
        back = raised(MISSING, volume, watch=watch)
        assert isinstance(back, ComeBackLaterError)
        waits.append((back.until - datetime.now(UTC)).total_seconds())
        clock += waits[-1]
    (volume.root / "ep.mp3").touch()
    assert raised(MISSING, volume, watch=watch) is MISSING
    (volume.root / "ep.mp3").unlink()
    anew = raised(MISSING, volume, watch=watch)

    assert waits[:4] == pytest.approx([60, 60, 60, 90], abs=1)
    assert max(waits) == pytest.approx(3600, abs=1)
    assert 9 < sum(waits) / 3600 < 11
    assert isinstance(anew, ComeBackLaterError)
    assert (anew.until - datetime.now(UTC)).total_seconds() == pytest.approx(60, abs=1)
