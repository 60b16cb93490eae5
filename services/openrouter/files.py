"""Files of an analysis, below OUTPUT_ROOT: chapters for the feed (JSON chapters 1.2 of Podcasting 2.0), show notes."""

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

from services.openrouter.payload import AnalyzePayload, OutputKind
from sidelinja_jobs import PermanentError
from sidelinja_jobs.confined_files import FULL, DiskFullError, folder_beneath, write_whole

SUFFIXES: dict[OutputKind, str] = {"chapters": ".chapters.json", "shownotes": ".shownotes.md"}
CHAPTERS_VERSION = "1.2.0"
LONGEST_NAME_BYTES = 255
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}


@dataclass(frozen=True)
class Target:
    """Where the files of one job go: `folder/stem` below the root."""

    root: Path
    folder: str
    stem: str

    def path(self, kind: OutputKind) -> str:
        """The path of a file below the root."""
        return str(PurePosixPath(self.folder, self.stem + SUFFIXES[kind]))

    def require_writable(self, kinds: Sequence[OutputKind]) -> None:
        """Makes the folder; raises PermanentError when files cannot be made in it."""
        with self._folder() as folder:
            for kind in kinds:
                with contextlib.suppress(FileNotFoundError):
                    found = os.stat(PurePosixPath(self.path(kind)).name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        raise _not_writable(f"{str(self.root / self.path(kind))!r} is a folder")
            if not os.access(f"/proc/self/fd/{folder}", os.W_OK | os.X_OK):
                raise _not_writable(f"{str(self.root / self.folder)!r} may not be written by uid {os.getuid()}")

    def write(self, files: dict[OutputKind, str], mark: str) -> dict[str, str]:
        """Writes each file whole; returns the paths. `mark` names the temporary files.

        Raises:
            DiskFullError, PermanentError: there is no room; the folder may not be written, or is a link.
        """
        with self._folder() as folder:
            for kind, text in files.items():
                write_whole(folder, PurePosixPath(self.path(kind)).name, f".{mark}.{kind}.part", text.encode())
            os.fsync(folder)
        return {kind: self.path(kind) for kind in files}

    @contextlib.contextmanager
    def _folder(self) -> Iterator[int]:
        try:
            with folder_beneath(self.root, self.folder, make=True) as folder:
                yield folder
        except OSError as error:
            where = str(self.root / self.folder)
            if error.errno in FULL:
                raise DiskFullError(
                    f"No room for the files in {where!r}: {error.strerror}. Next: free some space; the job is tried "
                    "again with the answer that it has"
                ) from error
            if error.errno in REFUSED:
                raise _not_writable(f"{where!r}: {error.strerror}, for uid {os.getuid()}") from error
            raise


def find_target(root: Path | None, payload: AnalyzePayload, audio_path: str | None, job_id: UUID) -> Target | None:
    """Where the payload's outputs go, or None where it wants none. Known before anything is paid for.

    Raises:
        PermanentError: there is no OUTPUT_ROOT, it cannot be written, or the path leads out of it.
    """
    if not payload.outputs:
        return None
    if root is None:
        raise _not_writable("OUTPUT_ROOT is not set")
    if not os.access(root, os.W_OK | os.X_OK):
        raise _not_writable(f"OUTPUT_ROOT is {str(root)!r}, not a folder that uid {os.getuid()} may write")
    path = payload.output_path
    if path is None:
        path = str(PurePosixPath(audio_path).with_suffix("")) if audio_path else str(job_id)
    given = PurePosixPath(path)
    longest = max(map(len, SUFFIXES.values()))
    if "\0" in path or given.is_absolute() or ".." in given.parts or given.name in ("", ".") or path.endswith("/"):
        raise PermanentError(
            f"output_path is {path!r}, expected a path below OUTPUT_ROOT without '..'. Next: enqueue with another one",
            error_class="outside_root",
        )
    if any(len(part.encode()) + longest > LONGEST_NAME_BYTES for part in given.parts):
        raise PermanentError(
            f"output_path has a name of more than {LONGEST_NAME_BYTES - longest} bytes. Next: choose a shorter one",
            error_class="name_too_long",
        )
    target = Target(root, str(given.parent), given.name)
    target.require_writable(payload.outputs)
    return target


def render_files(kinds: Sequence[OutputKind], result: dict[str, Any], show: str | None) -> dict[OutputKind, str]:
    """The text of each file. Chapters are written also where there are none, so that an old file does not stay."""
    texts: dict[OutputKind, str] = {}
    if "chapters" in kinds:
        texts["chapters"] = chapters_json(result["chapters"], result["title"], show)
    if "shownotes" in kinds:
        texts["shownotes"] = result["shownotes_md"]
    return texts


def chapters_json(chapters: Sequence[dict[str, Any]], title: str | None, show: str | None) -> str:
    """Served as application/json+chapters."""
    rows = [
        {"startTime": chapter["start_s"], "endTime": chapter["end_s"], "title": chapter["title"]}
        for chapter in chapters
    ]
    names = {name: value for name, value in (("title", title), ("podcastName", show)) if value}
    return json.dumps({"version": CHAPTERS_VERSION, **names, "chapters": rows}, ensure_ascii=False, indent=1) + "\n"


def _not_writable(reason: str) -> PermanentError:
    return PermanentError(
        f"The files cannot be written: {reason}. Next: set OUTPUT_ROOT to a folder that can be, or enqueue with "
        '"outputs": []',
        error_class="not_writable",
    )
