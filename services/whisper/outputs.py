"""Transcript files: where they go, and how they get there whole.

They stand beside the audio, named after it and the language (`ep042.no.vtt`); where that folder cannot be written,
in the same place below OUTPUT_ROOT. Each is written under a temporary name in its folder, synced and renamed, so a
reader sees the old file or the new one, never a part. No link is followed on the way: folders are opened one by
one, and a link that stands at a file's name is replaced, not written through.
"""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from services.whisper.media import resolve_audio
from sidelinja_jobs import PermanentError
from sidelinja_jobs.confined_files import FULL, DiskFullError, folder_beneath, open_beneath, write_whole

SUFFIXES = {
    "vtt": ".vtt",
    "srt": ".srt",
    "txt": ".txt",
    "json": ".transcript.json",
    "podcast_json": ".podcast.json",
}
LONGEST_NAME_BYTES = 255
UNKNOWN_LANGUAGE = "und"  # ISO 639-2, undetermined: no speech, and no language given
READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}
LARGEST_READ_BYTES = 64 << 20

RootName = Literal["media", "output"]


@dataclass(frozen=True)
class Destination:
    """A folder below one of the two roots. `folder` holds no link and no '..'."""

    root_name: RootName
    root: Path
    folder: str
    stem: str

    def path(self, kind: str, language: str | None) -> str:
        """The path of an output below its root."""
        name = f"{self.stem}.{language or UNKNOWN_LANGUAGE}{SUFFIXES[kind]}"
        return str(PurePosixPath(self.folder, name))

    def write(self, files: Mapping[str, str], language: str | None, mark: str) -> dict[str, str]:
        """Writes each kind's text; returns the paths. `mark`, of the job's own, names the temporary files."""
        written = {}
        with folder_beneath(self.root, self.folder, make=self.root_name == "output") as folder:
            for kind, text in files.items():
                path = self.path(kind, language)
                write_whole(folder, PurePosixPath(path).name, f".{mark}.{kind}.part", text.encode())
                written[kind] = path
            os.fsync(folder)
        return written

    def read(self, kind: str, language: str | None) -> bytes | None:
        """What an output holds; None where there is no such file, or none of ours: a link, a folder, a giant."""
        path = self.path(kind, language)
        try:
            descriptor = open_beneath(self.root, path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST_READ_BYTES:
                return None
            return file.read()


def places(media_root: Path, output_root: Path | None, path: str) -> list[Destination]:
    """Where files of this audio may lie already, whether they can be written there now or not."""
    given = PurePosixPath(path)
    folder = resolve_audio(media_root, str(given.parent))
    roots: list[tuple[RootName, Path | None]] = [("media", media_root), ("output", output_root)]
    return [Destination(name, root, folder, given.stem) for name, root in roots if root is not None]


def destinations(media_root: Path, output_root: Path | None, path: str) -> list[Destination]:
    """Where the files of this audio may go, best first.

    Raises:
        PermanentError: neither place can be written, or the names would be too long. Known before any work is done.
    """
    all_places = places(media_root, output_root, path)
    _require_short(all_places[0].stem)
    found = [place for place in all_places if _is_writable(place)]
    if not found:
        other = "not set" if output_root is None else f"{str(output_root)!r}, nor is that"
        folder = str(media_root / all_places[0].folder)
        raise PermanentError(
            f"Transcripts cannot be written beside the audio: {folder!r} is not writable for uid "
            f"{os.getuid()}, and OUTPUT_ROOT is {other}. "
            'Next: make one of them writable, or enqueue with "outputs": []',
            error_class="not_writable",
        )
    return found


def write_outputs(
    targets: Sequence[Destination], files: Mapping[str, str], language: str | None, mark: str
) -> dict[str, Any]:
    """Writes to the first place that takes them; returns the paths and the name of the root they are below.

    Raises:
        DiskFullError: there is no room. What was there before is there still, whole.
    """
    for number, place in enumerate(targets, start=1):
        try:
            return {"outputs": place.write(files, language, mark), "output_root": place.root_name}
        except OSError as error:
            if error.errno in FULL:
                raise DiskFullError(
                    f"No room for the transcript in {str(place.root / place.folder)!r}: {error.strerror}. "
                    "Next: free some space; the job is tried again and has only the writing to do"
                ) from error
            if error.errno not in READ_ONLY or number == len(targets):
                raise
    return {"outputs": {}, "output_root": None}


def _is_writable(place: Destination) -> bool:
    folder = place.root / place.folder if place.root_name == "media" else place.root
    return os.access(folder, os.W_OK | os.X_OK)


def _require_short(stem: str) -> None:
    longest = max(SUFFIXES.values(), key=len)
    size = len(f"{stem}.und{longest}".encode())
    if size > LONGEST_NAME_BYTES:
        raise PermanentError(
            f"The transcript's name would have {size} bytes, a file system takes {LONGEST_NAME_BYTES}. "
            "Next: give the audio file a shorter name",
            error_class="name_too_long",
        )
