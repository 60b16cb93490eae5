"""Reads a source's log files from where they were left, batch by batch, each line exactly once.

A batch is one transaction with the position, so a crash repeats the batch that was not committed and nothing else.
Several parsers may be at work on one source: whoever commits second finds the position moved and goes on from there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from services.stats.counting import Counting
from services.stats.line_reader import LineReader, Piece
from services.stats.lines import BadLine, decode_line, shape_of
from services.stats.log_files import LogFile, LogTroubleError, find_log_files
from services.stats.report import BROKEN, GONE, WAITING, Report, Unfinished
from services.stats.sources import Source
from services.stats.store import SQL, Batch, Connection, DayClosedError, PositionMovedError, Store
from sidelinja_jobs import Context
from sidelinja_jobs.json_text import clean_text

BATCH_LINES = 25_000
BATCH_SECONDS = 5.0
_TOLERATED_BAD_LINES = 100
_TOLERATED_BAD_SHARE = 0.05
_FEWEST_LINES = 10  # that say what format a file has
_MOST_RESTARTS = 20
_READY_SECONDS = 86400  # a compressed file that has no end after a day never gets one


@dataclass(frozen=True)
class Position:
    """How far a file was read."""

    name: str
    byte_offset: int
    size_seen: int
    lines: int
    state: str

    def is_end_of(self, file: LogFile) -> bool:
        """Whether there is nothing to read: it was read to its end, and has not grown against all expectation."""
        return self.state == "done" and (file.is_gzip or file.size <= self.byte_offset)


class OutOfTimeError(Exception):
    """The run's time is used up; there is more to read."""


class Parser:
    """Reads one source."""

    def __init__(
        self,
        ctx: Context,
        source: Source,
        store: Store,
        make_counting: Callable[[frozenset[date]], Counting],
        *,
        report: Report,
        deadline: float,
    ) -> None:
        self._ctx, self._source, self._store = ctx, source, store
        self._make_counting, self._deadline = make_counting, deadline
        self.report = report
        self.troubles: list[LogTroubleError] = []
        self._counting = self._new_counting()

    def run(self) -> None:
        """Reads all files to their ends.

        Raises:
            OutOfTimeError: at the edge of a batch.
        """
        try:
            found = find_log_files(self._source.log_folder, self._source.base_name)
        except LogTroubleError as trouble:
            self.troubles.append(trouble)
            return
        self.troubles += found.troubles
        if not (found.files or found.troubles or found.unfinished):
            if self._source.was_read and (problem := self._source.volume.problem()):
                self.troubles.append(LogTroubleError("no_folder", f"{problem}. Next: mount it there, readable"))
                return
            self.report.warn("no_log_file")
        positions = self._positions()
        for path in found.unfinished:
            self._note_unfinished(path, 0, 0)
        for file in found.files:
            try:
                self._read(file, positions.get(file.fingerprint))
            except LogTroubleError as trouble:
                self.troubles.append(trouble)
                self._counting.take()  # what was not committed is read again
        if not (found.troubles or found.unfinished):  # a file that cannot be read now has not vanished
            self._note_vanished({file.fingerprint for file in found.files}, positions)

    def _read(self, file: LogFile, position: Position | None) -> None:
        for _ in range(_MOST_RESTARTS):
            if position is not None and position.is_end_of(file):
                return
            try:
                self._read_on(file, position)
                return
            except FileNotFoundError:
                return  # renamed since it was listed; the next run finds it by its first line
            except (PositionMovedError, DayClosedError):
                self._counting = self._new_counting()
                position = self._positions().get(file.fingerprint)
        raise OutOfTimeError  # another parser is always faster: it reads the file

    def _read_on(self, file: LogFile, position: Position | None) -> None:
        try:
            reader = LineReader(file, position.byte_offset if position else 0)
        except LogTroubleError as trouble:
            if trouble.kind != "truncated":
                raise
            self._set_state(file, trouble.kind)
            self.report.warn(trouble.kind)
            return
        try:
            start = self._read_pieces(file, reader)
            is_read = not file.is_live and reader.is_ready
            end = reader.offset
            if is_read and reader.leftover_bytes:
                end += reader.leftover_bytes
                self._count_leftover(reader)
            state = "live" if file.is_live else "done" if is_read else "rolled" if reader.is_ready else "unfinished"
            if start < end or position is None or (position.state, position.name) != (state, file.name):
                self._commit(file, reader, start, end, state)
            if not reader.is_ready:
                position = self._positions()[file.fingerprint]
                self._note_unfinished(file.path, position.byte_offset, position.lines)
        finally:
            reader.close()

    def _read_pieces(self, file: LogFile, reader: LineReader) -> int:
        """Counts what is there; returns where the batch that is not committed yet begins."""
        start, begun = reader.offset, time.monotonic()
        for piece in reader.pieces():
            self._count(piece)
            if self._counting.tally.lines >= BATCH_LINES or time.monotonic() - begun > BATCH_SECONDS:
                self._commit(file, reader, start, piece.end, "live" if file.is_live else "rolled")
                start, begun = piece.end, time.monotonic()
                if begun > self._deadline:
                    raise OutOfTimeError
        return start

    def _count(self, piece: Piece) -> None:
        if piece.is_too_long:
            self._counting.tally.lines += 1
            self._counting.tally.add_bad("too_long", piece.offset, shape_of(piece.chunk))
        else:
            self._counting.read(piece.chunk, piece.offset)

    def _count_leftover(self, reader: LineReader) -> None:
        """What stands behind the last newline of a file that nobody writes any more: mostly half a line."""
        if reader.leftover_bytes == len(reader.leftover) and not isinstance(decode_line(reader.leftover), BadLine):
            self._counting.read(reader.leftover + b"\n", reader.offset)
        else:
            self._counting.tally.lines += 1
            self._counting.tally.add_bad("leftover", reader.offset, shape_of(reader.leftover))

    def _commit(self, file: LogFile, reader: LineReader, start: int, end: int, state: str) -> None:
        tally = self._counting.take()
        bad, lines = tally.bad.total(), tally.lines
        is_other_format = bad > _TOLERATED_BAD_LINES and bad > lines * _TOLERATED_BAD_SHARE
        if is_other_format or (start == 0 and lines >= _FEWEST_LINES and bad == lines):
            reasons = ", ".join(f"{count} {reason}" for reason, count in tally.bad.most_common())
            raise LogTroubleError(
                "format_error",
                f"{file.path} is no access log in Caddy's JSON from byte {start} on: of {lines} lines {bad} cannot be "
                f"read ({reasons}). Nothing was skipped. Next: let Caddy's log write `format json`"
                f"{', or bring the file whole: it is compressed and may be damaged' if file.is_gzip else ''}",
            )
        new = self.report.with_batch(self._source.name, file, start, end, state, tally)
        with self._ctx.transaction(checkpoint=msgspec.to_builtins(new)) as conn:
            self._store.write(conn, Batch(file, start, end, max(reader.size_seen, end), state, tally))
        self.report = new
        self._ctx.progress(None, f"{self._source.name}: {file.name}, byte {end}")

    def _positions(self) -> dict[bytes, Position]:
        with self._ctx.transaction() as conn:
            rows = conn.execute(SQL["positions"], {"source": self._source.name}).fetchall()
        return {bytes(row.pop("fingerprint")): Position(**row) for row in rows}

    def _new_counting(self) -> Counting:
        with self._ctx.transaction() as conn:
            closed = frozenset(row["day"] for row in conn.execute(SQL["closed_days"]).fetchall())
        return self._make_counting(closed)

    def _set_state(self, file: LogFile, state: str) -> None:
        with self._ctx.transaction() as conn:
            self._change_state(conn, file.fingerprint, state)

    def _change_state(self, conn: Connection, fingerprint: bytes, state: str) -> Any:
        values = {"source": self._source.name, "fingerprint": fingerprint, "state": state}
        return conn.execute(SQL["set_state"], values).rowcount

    def _note_vanished(self, seen: set[bytes], positions: dict[bytes, Position]) -> None:
        """Files that are not there any more; what was not read of them is lost."""
        gone = {
            fingerprint: position
            for fingerprint, position in positions.items()
            if fingerprint not in seen and position.state not in ("done", "gone")
        }
        if not gone:
            return
        with self._ctx.transaction() as conn:
            for fingerprint, position in gone.items():
                self._change_state(conn, fingerprint, "gone")
                lost = max(0, position.size_seen - position.byte_offset)
                self.report.lost_bytes += lost
                if lost:
                    self.report.warn("lost_bytes")
                if position.state == "unfinished":
                    self.report.note_unfinished(
                        Unfinished(self._source.name, position.name, position.byte_offset, position.lines, 0, GONE)
                    )

    def _note_unfinished(self, path: Path, byte: int, lines: int) -> None:
        """A compressed file is read as far as it goes, and on from there once it is whole."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return  # the next run sees what came of it
        state = WAITING if time.time() - status.st_mtime < _READY_SECONDS else BROKEN
        name = clean_text(path.name)
        self.report.note_unfinished(Unfinished(self._source.name, name, byte, lines, status.st_size, state))
