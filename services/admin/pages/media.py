"""Audio of MEDIA_ROOT: played by a page, picked in a form. Whatever a path says, nothing outside the root is opened.

A page names a job and the number of a track, never a path: only audio that a job was about is played.
"""

import errno
import mimetypes
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from services.admin.views.transcript import read_transcript
from sidelinja_jobs.confined_files import OutsideRootError, RootUnreadableError, open_beneath, resolve_beneath

CHUNK_BYTES = 64 * 1024
MOST_LISTED, MOST_LOOKED_AT = 1000, 20_000
DEEPEST = 8
AUDIO = {".mp3", ".m4a", ".m4b", ".aac", ".wav", ".flac", ".ogg", ".oga", ".opus", ".mp4", ".webm", ".wma"}
# Never what a browser would run, whatever the file is called.
_TYPES = ("audio/", "video/")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)


@dataclass(frozen=True)
class OpenFile:
    """A regular file below the root, open for reading."""

    descriptor: int
    size: int
    media_type: str


def open_media(root: Path, path: str) -> OpenFile:
    """Opens a file below the root.

    Raises:
        OutsideRootError: the path leads out of it.
        OSError: it is not there, or no regular file.
    """
    real = resolve_beneath(root, path)
    descriptor = open_beneath(root, real, os.O_RDONLY | os.O_NONBLOCK)
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file", path)
    guessed = mimetypes.guess_type(path)[0] or ""
    return OpenFile(descriptor, state.st_size, guessed if guessed.startswith(_TYPES) else "application/octet-stream")


def media_problem(root: Path, path: str) -> str | None:
    """Why a job could not read this path, as a key of words; None where it can, or where there is no root here."""
    if not root.is_dir():
        return None
    try:
        os.close(open_media(root, path).descriptor)
    except OutsideRootError:
        return "enqueue.path_outside"
    except RootUnreadableError:
        return None
    except (OSError, ValueError):
        return "enqueue.path_missing"
    return None


def audio_files(root: Path) -> list[str]:
    """Audio below the root, newest first, links left out; of very many files only some are looked at."""
    found: list[tuple[float, str]] = []
    for number, (path, changed) in enumerate(_walk(root, "", 0)):
        if number >= MOST_LOOKED_AT:
            break
        found.append((changed, path))
    return [path for _, path in sorted(found, reverse=True)[:MOST_LISTED]]


async def audio(request: Request) -> Response:
    """The audio of a transcript's job, whole or a part of it."""
    job_id: UUID = request.path_params["id"]
    row = await request.app.state.database.fetch_one("job_text", id=job_id, part="result")
    if row is None or row["text"] is None or row["job_type"] != "whisper_transcribe":
        raise HTTPException(404)
    try:
        path = read_transcript(row["text"]).sources[request.path_params["track"]].path
        file = await anyio.to_thread.run_sync(open_media, request.app.state.settings.media_root, path)
    except (ValueError, IndexError, OSError, RootUnreadableError):
        raise HTTPException(404) from None
    return _answer(request, file)


def _answer(request: Request, file: OpenFile) -> Response:
    """200, or 206 with one range; a range that is none of the file is 416."""
    headers = {"Accept-Ranges": "bytes", "Content-Disposition": "inline", "Cache-Control": "private, no-cache"}
    begin, end = 0, file.size
    status = 200
    if (asked := request.headers.get("range")) and (found := _RANGE.fullmatch(asked.strip())):
        span = _span(found[1], found[2], file.size)
        if span is None:
            os.close(file.descriptor)
            return Response(status_code=416, headers={"Content-Range": f"bytes */{file.size}"})
        begin, end = span
        status = 206
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{file.size}"
    headers["Content-Length"] = str(end - begin)
    if request.method == "HEAD":
        os.close(file.descriptor)
        return Response(status_code=status, headers=headers, media_type=file.media_type)
    return StreamingResponse(_chunks(file, begin, end), status, headers, file.media_type)


def _span(first: str, last: str, size: int) -> tuple[int, int] | None:
    """Begin and end of a range of HTTP; None where it cannot be satisfied."""
    if first:
        begin, end = int(first[:20]), min(int(last[:20]) + 1, size) if last else size
    elif last:
        begin, end = max(0, size - int(last[:20])), size
    else:
        return None
    return (begin, end) if begin < end else None


def _chunks(file: OpenFile, begin: int, end: int) -> Iterator[bytes]:
    """The bytes; run by Starlette in a thread, since a disk may be slow."""
    with open(file.descriptor, "rb", buffering=0) as opened:
        opened.seek(begin)
        left = end - begin
        while left > 0 and (chunk := opened.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk


def _walk(root: Path, folder: str, depth: int) -> Iterator[tuple[str, float]]:
    try:
        entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        try:
            if entry.name.startswith(".") or entry.is_symlink() or not path.isprintable():
                continue
            if entry.is_dir():
                if depth < DEEPEST:
                    yield from _walk(root, path, depth + 1)
            elif Path(entry.name).suffix.lower() in AUDIO:
                yield path, entry.stat().st_mtime
        except OSError:
            continue


routes = [Route("/jobs/{id:uuid}/audio/{track:int}", audio, name="job_audio")]
