"""Audio files below MEDIA_ROOT: found, confined and held open.

A payload's path is untrusted: `sidelinja_jobs.confined_files` keeps it inside. Links that stay inside are followed.
What was opened is what is read: the engine's process opens the file the same way and compares its `FileIdentity`.
Errors are told as if the root were there; whether it is, the handler asks (`sidelinja_jobs.volumes`).
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sidelinja_jobs import PermanentError, RetryLaterError
from sidelinja_jobs.confined_files import OutsideRootError, open_beneath, resolve_beneath

HASH_BLOCK_BYTES = 1 << 20


class FileChangedError(RetryLaterError):
    """The audio is not what it was at the beginning of the run, or not what the job names; the next run looks anew."""

    error_class = "file_changed"

    def __init__(self, message: str) -> None:
        super().__init__(message, seconds=30)  # a copy that is still going on gets time to end


@dataclass(frozen=True)
class FileIdentity:
    """What tells two states of a file apart without reading it."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, descriptor: int) -> "FileIdentity":
        state = os.fstat(descriptor)
        return cls(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


@dataclass(frozen=True)
class Source:
    """One audio file, open for reading. `path` is the job's, below the root."""

    root: Path
    path: str
    descriptor: int
    identity: FileIdentity

    def sha256(self) -> str:
        """The content's digest, read from the start."""
        digest = hashlib.sha256()
        position = 0
        while block := os.pread(self.descriptor, HASH_BLOCK_BYTES, position):
            digest.update(block)
            position += len(block)
        return digest.hexdigest()

    def require_unchanged(self) -> None:
        """Raises FileChangedError when the path no longer leads to the bytes that were opened."""
        try:
            with open_source(self.root, self.path) as now:
                found = now.identity
        except PermanentError as gone:
            raise FileChangedError(f"{self.path!r} was taken away during the run. {gone}") from gone
        if found != self.identity:
            raise FileChangedError(
                f"{self.path!r} changed during the run: expected {self.identity.size_bytes} bytes as first opened, "
                f"found {found.size_bytes} bytes with another time or inode. Next: nothing, the job runs again"
            )


@contextmanager
def open_source(root: Path, path: str) -> Iterator[Source]:
    """The audio file at `path` below `root`, closed at the end of the block.

    Raises:
        PermanentError: the path is outside the root, missing, not a regular file, empty or unreadable.
        OSError: of the disk or the share.
    """
    resolved = resolve_audio(root, path)
    descriptor = _open_file(root, path, resolved)
    try:
        identity = _regular_file(root, path, descriptor)
        yield Source(root, path, descriptor, identity)
    finally:
        os.close(descriptor)


def resolve_audio(root: Path, path: str) -> str:
    """`path` with its links followed, relative to the root; PermanentError when that leads out of it."""
    try:
        return resolve_beneath(root, path)
    except OutsideRootError as outside:
        _refuse(root, path, "outside_root", str(outside))
    except OSError as error:
        _refuse_os_error(root, path, error)


def _open_file(root: Path, path: str, resolved: str) -> int:
    try:
        # O_NONBLOCK: a named pipe in the folder must not hold the worker.
        return open_beneath(root, resolved, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        _refuse_os_error(root, path, error)


def _regular_file(root: Path, path: str, descriptor: int) -> FileIdentity:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "a device, pipe or socket"
        _refuse(root, path, "not_a_file", f"expected a regular file, found {kind}")
    identity = FileIdentity.of(descriptor)
    if identity.size_bytes == 0:
        _refuse(root, path, "empty_file", "expected audio, found zero bytes")
    return identity


def _refuse_os_error(root: Path, path: str, error: OSError) -> NoReturn:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            _refuse(root, path, "not_found", "no such file", cause=error)
        case errno.ELOOP:
            _refuse(root, path, "outside_root", "a symlink took the name's place or leads in a circle", cause=error)
        case errno.EACCES | errno.EPERM:
            why = f"not readable for uid {os.getuid()}; make the file and its folders readable"
            _refuse(root, path, "not_readable", why, cause=error)
        case errno.ENAMETOOLONG:
            _refuse(root, path, "not_found", "the file system takes no name that long", cause=error)
        case errno.ENXIO:
            _refuse(root, path, "not_a_file", "expected a regular file, found a socket", cause=error)
        case errno.EINVAL:  # it was a link when looked at, and none when read
            raise FileChangedError(f"{path!r} was exchanged while it was looked up") from error
    raise error


def _refuse(root: Path, path: str, error_class: str, reason: str, *, cause: OSError | None = None) -> NoReturn:
    raise PermanentError(
        f"Audio file refused: {reason}. Path in the job: {path!r}; MEDIA_ROOT: {str(root)!r}. "
        "Next: enqueue with the path of an audio file below MEDIA_ROOT",
        error_class=error_class,
    ) from cause
