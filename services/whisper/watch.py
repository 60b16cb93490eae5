"""The watched folder: `python -m services.whisper.watch` makes a job of every new, finished audio file in it.

A file is finished when its size and time of change stay the same for a while. The database remembers which states of
which files became jobs, so restarts and several watchers make one job of each; a file that is replaced is new. The
process keeps nothing but what it saw last.
"""

import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import psycopg

from services.whisper.payload import LONGEST_PATH
from services.whisper.shows import SQL
from sidelinja_jobs import SettingsError, load_settings
from sidelinja_jobs.database import QueueConnection, connect
from sidelinja_jobs.log import configure_logging, get_logger
from sidelinja_jobs.settings import WorkerSettings, setting

AUDIO = frozenset((
    ".aac", ".aif", ".aiff", ".amr", ".flac", ".m4a", ".m4b", ".mka", ".mp2", ".mp3", ".oga", ".ogg", ".opus", ".wav",
    ".wma", ".mkv", ".mov", ".mp4", ".webm",
))  # fmt: skip
RETRY_SECONDS = 5.0

log = get_logger(job_type="whisper_transcribe")


@dataclass(frozen=True)
class WatchSettings:
    """What is watched, and when a file counts as finished."""

    media_root: Path = setting("MEDIA_ROOT", default=Path("/media"), help="folder that the jobs' paths start from")
    folder: str | None = setting("WATCH_FOLDER", default=None, help="folder below MEDIA_ROOT, . = all of it")
    settle_seconds: float = setting(
        "WATCH_SETTLE_SECONDS", default=60.0, minimum=0.0, maximum=86400.0, help="unchanged for so long = finished"
    )
    every_seconds: float = setting(
        "WATCH_EVERY_SECONDS", default=15.0, minimum=0.1, maximum=3600.0, help="between looks"
    )
    analyze: bool = setting("WATCH_ANALYZE", default=False, help="true: each transcript is analyzed, too")

    @property
    def watched(self) -> str:
        """The folder below MEDIA_ROOT, as paths are written.

        Raises:
            SettingsError: none is set, or it leads out of MEDIA_ROOT.
        """
        if self.folder is None:
            raise SettingsError("WATCH_FOLDER is not set: name a folder below MEDIA_ROOT, or . for all of it")
        folder = os.path.normpath(self.folder)
        if folder.startswith(("/", "..")):
            raise SettingsError(f"WATCH_FOLDER is {self.folder!r}, expected a folder below MEDIA_ROOT such as inbox")
        return folder


@dataclass(frozen=True)
class FileState:
    """What changes when a file is written to or replaced."""

    size_bytes: int
    modified_ns: int


Seen = dict[str, FileState]


def audio_files(root: Path, folder: str) -> Iterator[tuple[str, FileState]]:
    """The audio below a folder, by its name's ending; no hidden files and folders, no links, nothing empty."""
    for where, folders, names in os.walk(root / folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.startswith(".") or PurePosixPath(name).suffix.lower() not in AUDIO:
                continue
            path = os.path.normpath(os.path.join(os.path.relpath(where, root), name))
            try:
                state = os.lstat(os.path.join(where, name))
            except OSError:  # taken away between the two looks
                continue
            if stat.S_ISREG(state.st_mode) and state.st_size and _can_be_queued(path):
                yield path, FileState(state.st_size, state.st_mtime_ns)


def _can_be_queued(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # a name that is not UTF-8
        return False
    return len(path) <= LONGEST_PATH


class Watch:
    """Looks at the folder again and again, and tells the database what is finished."""

    def __init__(self, settings: WatchSettings, worker_settings: WorkerSettings) -> None:
        self._settings, self._database = settings, worker_settings
        self._since: dict[str, tuple[FileState, float]] = {}
        self._queued: Seen = {}
        self._conn: QueueConnection | None = None

    def look(self) -> int:
        """One look; returns how many jobs it made.

        Raises:
            psycopg.Error: the database cannot be asked; what is finished is found again at the next look.
        """
        now = time.monotonic()
        found = dict(audio_files(self._settings.media_root, self._settings.watched))
        self._since = {
            path: self._since[path] if self._since.get(path, (None, 0))[0] == state else (state, now)
            for path, state in found.items()
        }
        self._queued = {path: state for path, state in self._queued.items() if found.get(path) == state}
        finished = {
            path: state
            for path, (state, since) in self._since.items()
            if now - since >= self._settings.settle_seconds and path not in self._queued
        }
        made = self._enqueue(finished) if finished else 0
        self._queued |= finished
        return made

    def close(self) -> None:
        """Closes the connection; the next look opens another."""
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    def _enqueue(self, finished: Mapping[str, FileState]) -> int:
        conn = self._conn = self._conn or connect(self._database, name="whisper watch")
        files = list(finished.items())
        parameters: dict[str, Any] = {
            "paths": [path for path, _ in files],
            "sizes_bytes": [state.size_bytes for _, state in files],
            "modified_ns": [state.modified_ns for _, state in files],
        }
        made = 0
        for row in conn.execute(SQL["new_watched_files"], parameters).fetchall():
            path, state = files[row["number"] - 1]
            values = {
                "path": path,
                "size_bytes": state.size_bytes,
                "modified_ns": state.modified_ns,
                "analyze": self._settings.analyze,
            }
            job = conn.execute(SQL["enqueue_watched_file"], values).fetchone()
            if job is not None and job["id"] is not None:
                made += 1
                log.info("new file enqueued", path=path, job_id=str(job["id"]))
        return made


def run(settings: WatchSettings, worker_settings: WorkerSettings, stop: threading.Event) -> None:
    """Looks until `stop` is set; a database or folder that is away is waited for."""
    watch = Watch(settings, worker_settings)
    folder = settings.media_root / settings.watched
    is_well, is_there = True, True
    while not stop.is_set():
        try:
            if not settings.media_root.is_dir():
                raise FileNotFoundError(f"MEDIA_ROOT {settings.media_root} is not a folder")
            if is_there and not folder.is_dir():
                log.warning("the watched folder is not there yet, waiting for its first file", folder=str(folder))
            is_there = folder.is_dir()
            watch.look()
            worker_settings.health_file.touch()
            is_well = True
            stop.wait(settings.every_seconds)
        except (psycopg.Error, OSError) as error:
            if is_well:
                log.warning("cannot look now, trying again", problem=str(error).strip())
            is_well = False
            watch.close()
            stop.wait(min(RETRY_SECONDS, settings.every_seconds))
    watch.close()


def main() -> int:
    """Watches until it is told to stop; returns the exit code."""
    configure_logging()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        worker_settings = load_settings(WorkerSettings)
        configure_logging(worker_settings.log_format, worker_settings.log_level)
        settings = load_settings(WatchSettings)
        log.info(
            "watching",
            folder=str(settings.media_root / settings.watched),
            settle_seconds=settings.settle_seconds,
            analyze=settings.analyze,
        )
        run(settings, worker_settings, stop)
    except SettingsError as error:
        log.error("cannot start", problem=str(error))
        return os.EX_CONFIG
    return 0


if __name__ == "__main__":
    sys.exit(main())
