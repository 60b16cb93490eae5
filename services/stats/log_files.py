"""The files of a log: the live one and those that were rolled, told apart by their first line.

Names don't identify a file (they are rolled, compressed, copied), nor do inodes (they are used again). The first line
does: its time has microseconds, and beside it stands the client's port. `X.log` and `X.log.gz` have the same.
"""

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.stats.lines import LONGEST_LINE

GZIP_MAGIC = b"\x1f\x8b"
NOT_READY = (EOFError, gzip.BadGzipFile, zlib.error)
_COMPARED_BYTES = 1 << 20
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # the header is gzip's


class LogTroubleError(Exception):
    """A file or folder that cannot be read as a log. `kind` becomes the job's error class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class LogFile:
    """One file as it lies in the folder."""

    path: Path
    fingerprint: bytes
    is_live: bool
    is_gzip: bool
    size: int  # on the disk

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class FoundFiles:
    """Rolled files by name, then the live one, each identity once. And what is there but cannot be read."""

    files: list[LogFile]
    troubles: list[LogTroubleError]
    unfinished: list[Path]  # compressed, without as much as a first line yet


def find_log_files(folder: Path, base_name: str) -> FoundFiles:
    """The files of a log.

    Raises:
        LogTroubleError: the folder is not there or cannot be read.
    """
    files: list[LogFile] = []
    troubles: list[LogTroubleError] = []
    unfinished: list[Path] = []
    for path in _candidates(folder, base_name):
        try:
            found = _looked_at(path, is_live=path.name == base_name)
        except FileNotFoundError:
            continue  # renamed or removed since it was listed; the next run sees it where it is then
        except NOT_READY:
            unfinished.append(path)
        except OSError as error:
            troubles.append(_unreadable(path, error))
        except LogTroubleError as trouble:
            troubles.append(trouble)
        else:
            files += [found] if found is not None else []
    return FoundFiles(list(_each_once(files, troubles)), troubles, _without_source(unfinished, files))


def _candidates(folder: Path, base_name: str) -> list[Path]:
    """Caddy rolls access.log to access-2026-11-29T13-25-39.721.log, logrotate to access.log.1 or access.log-20261129.

    access-tls.log beside it is another log.
    """
    stem, extension = os.path.splitext(base_name)
    rolled = re.compile(
        rf"{re.escape(stem)}-\d{{4}}[^/]*{re.escape(extension)}(\.gz|\.zst)?|{re.escape(base_name)}[.-]\d[^/]*"
    )
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError as error:
        message = f"cannot list {folder}: {error.strerror}. Next: mount the log's folder there, readable"
        raise LogTroubleError("no_folder", message) from error
    files = [folder / name for name in names if rolled.fullmatch(name) and not name.endswith(".tmp")]
    return files + [folder / base_name] * (base_name in names)


def _unreadable(path: Path, error: OSError) -> LogTroubleError:
    trouble = LogTroubleError(
        "unreadable",
        f"cannot read {path}: {error.strerror} (this process is user id {os.getuid()}, group id {os.getgid()}). "
        "Next: in Caddy's log, set mode 0640 and a group they share",
    )
    trouble.__cause__ = error  # by which a disk that fails is told from rights that are missing
    return trouble


def _looked_at(path: Path, *, is_live: bool) -> LogFile | None:
    """None while there is no whole line yet."""
    if path.name.endswith(".zst"):
        raise LogTroubleError(
            "unsupported_compression", f"{path} is compressed with zstd, expected gzip. Next: roll_compression gzip"
        )
    with path.open("rb") as raw:
        status = os.fstat(raw.fileno())
        is_gzip = raw.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        fingerprint = fingerprint_of(raw, is_gzip=is_gzip)
    return None if fingerprint is None else LogFile(path, fingerprint, is_live, is_gzip, status.st_size)


def fingerprint_of(raw: BinaryIO, *, is_gzip: bool) -> bytes | None:
    """The identity of an open file, None while it has no whole line; the file stands at its start again."""
    raw.seek(0)
    first = gzip.GzipFile(fileobj=raw).readline(LONGEST_LINE) if is_gzip else raw.readline(LONGEST_LINE)
    raw.seek(0)
    is_whole = first.endswith(b"\n") or len(first) >= LONGEST_LINE
    return hashlib.sha256(first).digest() if is_whole else None


def _each_once(files: list[LogFile], troubles: list[LogTroubleError]) -> Iterator[LogFile]:
    """Of one identity the uncompressed file, since its .gz may be half written; of two, the one that has more."""
    by_identity: dict[bytes, list[LogFile]] = {}
    for file in files:
        by_identity.setdefault(file.fingerprint, []).append(file)
    for file in files:
        same = by_identity[file.fingerprint]
        best = min(same, key=lambda one: (one.is_gzip, -one.size))
        if file is not best:
            continue
        rival = next((one for one in same if one is not best and not _begins_alike(one, best)), None)
        if rival is None:
            yield file
        else:
            troubles.append(
                LogTroubleError(
                    "ambiguous",
                    f"{best.path} and {rival.path} begin with the same line and are different files, so their "
                    "positions cannot be told apart. Next: leave the time in microseconds and remote_port in the log",
                )
            )


def _without_source(unfinished: list[Path], files: list[LogFile]) -> list[Path]:
    """Caddy removes X.log when X.log.gz is whole; as long as it is there, it is what is read."""
    plain = {file.path for file in files}
    return [path for path in unfinished if path.with_suffix("") not in plain]


def _begins_alike(one: LogFile, other: LogFile) -> bool:
    try:
        first, second = _beginning(one), _beginning(other)
    except OSError:
        return True  # it is gone
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]


def _beginning(file: LogFile) -> bytes:
    """The first megabyte of lines; of a compressed file that is half written or broken, what can be had."""
    with file.path.open("rb") as raw:
        data = raw.read(_COMPARED_BYTES)
    if not file.is_gzip:
        return data
    try:
        return zlib.decompressobj(wbits=_GZIP_WINDOW).decompress(data, _COMPARED_BYTES)
    except zlib.error:
        return b""
