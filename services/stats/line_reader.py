"""Reads whole lines of a log file from a position on, in pieces of bounded size, plain or gzip."""

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from services.stats.lines import LONGEST_LINE
from services.stats.log_files import NOT_READY, LogFile, LogTroubleError, fingerprint_of

# So small that decoded lines stay in the processor's cache: pieces of 1 MiB took 1.7 times as long (make bench-stats).
PIECE_BYTES = 64 << 10
_SKIPPED_AT_ONCE = 1 << 20
_HEAD_BYTES = 1000


@dataclass(frozen=True)
class Piece:
    """Whole lines, or one line that is too long, of which the beginning stands in `chunk`."""

    chunk: bytes
    offset: int
    end: int
    is_too_long: bool = False


class LineReader:
    """The lines of one file. `leftover` is what stands behind the last newline, once all pieces were read."""

    def __init__(self, file: LogFile, offset: int, end: int | None = None) -> None:
        """Opens the file; `end` is where to stop, its end as it is now where none is given.

        Raises:
            FileNotFoundError: it is gone, or another file has its name by now.
            LogTroubleError: "unreadable", or "truncated" when it is shorter than `offset`.
        """
        self._file = file
        try:
            self._raw: BinaryIO = file.path.open("rb")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise LogTroubleError("unreadable", f"cannot read {file.path}: {error.strerror}") from error
        try:
            # Caddy may have rolled its log since the folder was listed: the name does not say which file this is.
            is_the_same = fingerprint_of(self._raw, is_gzip=file.is_gzip) == file.fingerprint
        except (*NOT_READY, OSError):
            is_the_same = False
        if not is_the_same:
            self.close()
            raise FileNotFoundError(f"{file.path} is another file now")
        self._plain: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=self._raw) if file.is_gzip else self._raw
        self.offset = offset
        self.leftover = b""  # a whole line at most; of a longer one its beginning
        self.leftover_bytes = 0
        self.is_ready = True  # False: the end of a gzip file is not there yet
        size = None if file.is_gzip else os.fstat(self._raw.fileno()).st_size
        self._limit = size if end is None else end
        if size is not None and size < (offset if end is None else end):
            self.close()
            raise LogTroubleError(
                "truncated",
                f"{file.path} has {size} bytes, but {end or offset} of it were read before: it was truncated",
            )

    def close(self) -> None:
        self._raw.close()

    @property
    def size_seen(self) -> int:
        """Uncompressed bytes that are known to be there."""
        return self.offset + self.leftover_bytes if self._limit is None else self._limit

    def pieces(self) -> Iterator[Piece]:
        """All whole lines that were there when the file was opened.

        Raises:
            LogTroubleError: the disk does not give them.
        """
        try:
            yield from self._pieces()
        except NOT_READY:
            self.is_ready = False
        except OSError as error:
            raise LogTroubleError("unreadable", f"cannot read {self._file.path}: {error.strerror}") from error
        if not self.is_ready:
            self.leftover, self.leftover_bytes = b"", 0

    def _pieces(self) -> Iterator[Piece]:
        self._skip_to_offset()
        while part := self._next_part():
            cut = part.rfind(b"\n") + 1
            if cut:
                yield self._lines(part if cut == len(part) else part[:cut])
            if cut == len(part):
                continue
            self.leftover, self.leftover_bytes = part[cut:], len(part) - cut
            if self.leftover_bytes <= LONGEST_LINE:
                return  # the file ends in the middle of a line
            start = self.offset
            if not self._skip_line():
                return  # the end of a long line is not written yet: the next run begins at its start again
            yield Piece(self.leftover, start, self.offset, is_too_long=True)
            self.leftover, self.leftover_bytes = b"", 0

    def _lines(self, chunk: bytes) -> Piece:
        start = self.offset
        self.offset += len(chunk)
        return Piece(chunk, start, self.offset)

    def _next_part(self) -> bytes:
        """Some lines, the last one to its end, unless it is too long or the file ends before."""
        count = self._at_most(PIECE_BYTES, 0)
        # Of a compressed file whose end is missing, read() would drop what it had got before it found that out.
        part = self._plain.read1(count) if isinstance(self._plain, gzip.GzipFile) else self._plain.read(count)
        if not part or part.endswith(b"\n"):
            return part
        try:
            return part + self._plain.readline(self._at_most(LONGEST_LINE + 1, len(part)))
        except NOT_READY:
            self.is_ready = False
            return part

    def _at_most(self, count: int, held: int) -> int:
        """As much of `count` as is left before the limit, `held` bytes behind the offset."""
        return count if self._limit is None else max(0, min(count, self._limit - self.offset - held))

    def _skip_line(self) -> bool:
        """Goes behind a line that is too long, of which the beginning is kept; False when it has no end yet."""
        place = self.offset + self.leftover_bytes
        self.leftover = self.leftover[:_HEAD_BYTES]
        while part := self._plain.readline(self._at_most(PIECE_BYTES, self.leftover_bytes)):
            place += len(part)
            self.leftover_bytes = place - self.offset
            if part.endswith(b"\n"):
                self.offset = place
                return True
        return False

    def _skip_to_offset(self) -> None:
        if not self._file.is_gzip:
            self._plain.seek(self.offset)
            return
        left = self.offset
        while left and (part := self._plain.read(min(left, _SKIPPED_AT_ONCE))):
            left -= len(part)
        if left:
            raise EOFError(f"{self._file.path} ends {left} bytes before the position")
