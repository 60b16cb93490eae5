"""Files below a root folder, whatever path an untrusted payload names, and whole or not at all.

A path is resolved once, links included, then every component is opened from the root down with O_NOFOLLOW: a name
that is exchanged for a symlink after the check is refused by the kernel, so no race leads out of the root. What is
written gets a temporary name in its folder, is synced and renamed, so that a reader sees the old file or the new one,
never a part; a link that stands at the name is replaced, not written through.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sidelinja_jobs.errors import RetryLaterError

FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))  # errors that become a DiskFullError


class OutsideRootError(ValueError):
    """The path leads, or tries to lead, out of its root; the message says how."""


class RootUnreadableError(RetryLaterError):
    """The root itself cannot be opened: the worker's trouble, not the job's, so the job is tried again."""

    error_class = "root_unreadable"

    def __init__(self, message: str) -> None:
        super().__init__(message, seconds=60)


class DiskFullError(RetryLaterError):
    """No room for a file. What was there before is there still; the job is tried again when some may be free."""

    error_class = "disk_full"

    def __init__(self, message: str) -> None:
        super().__init__(message, seconds=300)


def resolve_beneath(root: Path, path: str) -> str:
    """`path` with its links followed, relative to the root.

    Raises:
        OutsideRootError: it is absolute, holds '..' or NUL, or a link leads out of the root.
        OSError: it cannot be looked up, or is not there.
    """
    if "\0" in path:
        raise OutsideRootError("a file name cannot hold a NUL character")
    if path.startswith("/"):
        raise OutsideRootError("expected a path relative to the root, found an absolute one")
    if ".." in path.split("/"):
        raise OutsideRootError("a path may not hold '..'")
    real_root = os.path.realpath(root)
    real = os.path.realpath(os.path.join(real_root, path), strict=True)
    if os.path.commonpath([real_root, real]) != real_root:
        raise OutsideRootError("a symlink leads out of it")
    return os.path.relpath(real, real_root)


def open_beneath(root: Path, relative: str, flags: int) -> int:
    """Opens a path that holds no link, component by component from the root down; returns the descriptor.

    Raises:
        RootUnreadableError: the root cannot be opened.
        OSError: anything below cannot be, or is a link.
    """
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RootUnreadableError(
            f"{root} cannot be opened: {error.strerror}. Next: mount it, readable for uid {os.getuid()}"
        ) from error
    try:
        *folders, name = os.path.normpath(relative).split("/")
        for part in folders:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def folder_beneath(root: Path, folder: str, *, make: bool) -> Iterator[int]:
    """The descriptor of a folder whose path holds no link; with `make`, it and its parents are made first."""
    if make:
        _make_folders(root, folder)
    descriptor = open_beneath(root, folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_whole(folder: int, name: str, temporary: str, content: bytes) -> None:
    """Writes a file in the folder of that descriptor. `temporary` is a name of the job's own; no part stays behind."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)  # of an earlier run that was killed here
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _make_folders(root: Path, folder: str) -> None:
    parents = [str(parent) for parent in reversed(PurePosixPath(folder).parents)]
    for below in [*parents[1:], folder]:
        if below == ".":
            continue
        above = folder_beneath(root, str(PurePosixPath(below).parent), make=False)
        with above as parent, contextlib.suppress(FileExistsError):
            os.mkdir(PurePosixPath(below).name, dir_fd=parent)
