"""The watched folder: finished audio becomes a job, once, whoever looks and however often."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from services.whisper.watch import Watch, WatchSettings, audio_files, run
from sidelinja_jobs import SettingsError, WorkerSettings, load_settings
from tests.databases import Database
from tests.sessions import refused
from tests.waiting import stays, wait_until


@pytest.fixture
def media(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    (folder / "inn" / "2026").mkdir(parents=True)
    return folder


Watching = Callable[..., Watch]


@pytest.fixture
def watching(database: Database, media: Path) -> Iterator[Watching]:
    made: list[Watch] = []

    def another(settle_seconds: float = 0.0, *, analyze: bool = False) -> Watch:
        settings = WatchSettings(media, "inn", settle_seconds, 0.1, analyze)
        made.append(Watch(settings, worker_settings(database)))
        return made[-1]

    yield another
    for watch in made:
        watch.close()


def worker_settings(database: Database, health_file: Path = Path("/dev/null")) -> WorkerSettings:
    return WorkerSettings(url=database.dsn("worker_whisper"), health_file=health_file)


def paths(database: Database) -> list[str]:
    rows = database.rows("select payload ->> 'path' as path from job_queue order by created_at, path")
    return [row["path"] for row in rows]


def test_only_audio_that_lies_there_plainly_is_found(media: Path) -> None:
    inn = media / "inn"
    for name in ("a.mp3", "2026/Blåbær.M4A", "notat.txt", ".a.mp3.Xy12", ".skjult.mp3", "uten", "a.mp3.part"):
        (inn / name).write_bytes(b"lyd")
    (inn / "tom.mp3").touch()
    (inn / "lenke.mp3").symlink_to(inn / "a.mp3")
    (inn / ".papirkurv").mkdir()
    (inn / ".papirkurv" / "b.mp3").write_bytes(b"lyd")
    (inn / "mappe.mp3").mkdir()
    Path(os.fsdecode(os.fsencode(inn) + b"/latin\xe6.mp3")).write_bytes(b"lyd")

    assert [path for path, _ in audio_files(media, "inn")] == ["inn/a.mp3", "inn/2026/Blåbær.M4A"]
    assert [path for path, _ in audio_files(media, ".")] == ["inn/a.mp3", "inn/2026/Blåbær.M4A"]


def test_a_file_becomes_a_job_once_through_restarts_and_several_watchers(
    database: Database, media: Path, watching: Watching
) -> None:
    (media / "inn" / "a.mp3").write_bytes(b"lyd")
    first, second = watching(), watching()

    assert [first.look(), first.look(), second.look(), watching().look()] == [1, 0, 0, 0]

    row = database.row("select payload, priority, unique_key from job_queue")
    assert row == {"payload": {"path": "inn/a.mp3"}, "priority": 0, "unique_key": None}
    assert database.value("select count(*) from watched_file join job_queue on job_id = id") == 1


def test_an_analysis_is_asked_for_where_that_is_set_and_old_files_stay_as_they_are(
    database: Database, media: Path, watching: Watching
) -> None:
    (media / "inn" / "a.mp3").write_bytes(b"lyd")
    assert watching().look() == 1
    (media / "inn" / "b.mp3").write_bytes(b"lyd")

    assert watching(analyze=True).look() == 1

    payloads = [row["payload"] for row in database.rows("select payload from job_queue order by created_at")]
    assert payloads == [{"path": "inn/a.mp3"}, {"path": "inn/b.mp3", "analyze": True}]


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("false", False), ("", False)])
def test_whether_to_analyze_is_a_setting(text: str, expected: bool) -> None:
    assert load_settings(WatchSettings, {"WATCH_FOLDER": "inn", "WATCH_ANALYZE": text}).analyze is expected


def test_many_watchers_at_once_make_one_job_of_each(database: Database, media: Path, watching: Watching) -> None:
    for number in range(20):
        (media / "inn" / f"{number:02}.mp3").write_bytes(b"lyd")
    watches = [watching() for _ in range(4)]
    made: list[int] = []
    threads = [threading.Thread(target=lambda watch=watch: made.append(watch.look())) for watch in watches]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(made) == 20
    assert len(paths(database)) == 20


def test_a_file_that_is_replaced_becomes_another_job(database: Database, media: Path, watching: Watching) -> None:
    file = media / "inn" / "a.mp3"
    file.write_bytes(b"lyd")
    watch = watching()
    watch.look()

    file.write_bytes(b"annen lyd")
    assert watch.look() == 1
    file.unlink()
    assert watch.look() == 0
    file.write_bytes(b"lyd")
    os.utime(file, ns=(1, 1))

    assert watch.look() == 1
    assert len(paths(database)) == 3


def test_a_file_that_grows_is_left_alone_until_it_rests(
    media: Path, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = media / "inn" / "a.mp3"
    clock = [0.0]
    monkeypatch.setattr("services.whisper.watch.time.monotonic", lambda: clock[0])
    watch = watching(settle_seconds=60)
    made = []
    for at, size in ((0, 1), (59, 2), (118, 3), (177, 3), (178, 3), (400, 3)):
        clock[0] = at
        file.write_bytes(b"x" * size)
        os.utime(file, ns=(size, size))
        made.append(watch.look())

    assert made == [0, 0, 0, 0, 1, 0]


def test_a_database_that_is_away_loses_no_file(database: Database, media: Path, watching: Watching) -> None:
    (media / "inn" / "a.mp3").write_bytes(b"lyd")
    watch = watching()
    database.rows("alter table watched_file rename to away")
    with pytest.raises(psycopg.Error):
        watch.look()
    database.rows("alter table away rename to watched_file")
    watch.close()

    assert watch.look() == 1


@pytest.mark.parametrize(("gone", "is_well"), [("media", False), ("media/inn", True)])
def test_it_waits_for_its_folder_and_stops_when_told(
    database: Database, media: Path, tmp_path: Path, gone: str, is_well: bool
) -> None:
    """A new stack's media folder is empty, and the watched one comes with the first file."""
    stop, health = threading.Event(), tmp_path / "healthy"
    (media / "inn" / "a.mp3").write_bytes(b"lyd")
    (tmp_path / gone).rename(tmp_path / "borte")
    settings = WatchSettings(media, "inn", 0.0, 0.1)
    thread = threading.Thread(target=run, args=(settings, worker_settings(database, health), stop))
    thread.start()
    try:
        if is_well:
            wait_until(health.exists, 5, what="the sign of life")
        else:
            stays(lambda: not health.exists(), 0.5, what="no sign of life")
        (tmp_path / "borte").rename(tmp_path / gone)
        wait_until(lambda: paths(database) == ["inn/a.mp3"], 20, what="the job")
        wait_until(health.exists, 5, what="the sign of life")
    finally:
        stop.set()
        thread.join(10)

    assert not thread.is_alive()


@pytest.mark.parametrize("folder", ["/inn", "..", "../inn", "inn/../../x"])
def test_a_folder_outside_is_refused(folder: str) -> None:
    with pytest.raises(SettingsError, match="WATCH_FOLDER is"):
        _ = WatchSettings(folder=folder).watched


def test_without_a_folder_it_says_what_to_set() -> None:
    with pytest.raises(SettingsError, match="WATCH_FOLDER is not set"):
        _ = WatchSettings().watched


def test_no_other_worker_may_watch(database: Database) -> None:
    with refused("42501"):
        database.connect("worker_test").execute("select enqueue_watched_file('a.mp3', 1, 1)")
