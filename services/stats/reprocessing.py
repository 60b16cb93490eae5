"""Counts days again from the raw files: after a new list of user agents, a corrected length or publication.

All that is read goes beside what the days have, as a new generation of rows, under new keys; positions are not touched.
At the end one transaction, in which no batch can be committed, puts the new rows in the place of the old. A failure
before leaves everything as it was.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from services.stats.closing import limits_of
from services.stats.counting import Counting
from services.stats.line_reader import LineReader
from services.stats.lines import BadLine, decode_line
from services.stats.log_files import LogFile, LogTroubleError, find_log_files
from services.stats.parsing import BATCH_LINES
from services.stats.payload import Reprocess
from services.stats.settings import StatsSettings
from services.stats.sources import Source
from services.stats.store import SQL, Store
from services.stats.tally import Tally
from sidelinja_jobs import Context, PermanentError, RetryLaterError

_MOST_ROUNDS = 20
_RETRY_SECONDS = 60.0


@dataclass(frozen=True)
class Part:
    """What is to be read of one file: from `start` to `end`, uncompressed."""

    source: Source
    file: LogFile
    start: int
    end: int


class Reprocessing:
    """One request to count days again."""

    def __init__(
        self,
        ctx: Context,
        sources: list[Source],
        settings: StatsSettings,
        list_version: str,
        make_counting: Callable[[Source], Counting],
    ) -> None:
        self._ctx, self._settings, self._make_counting = ctx, settings, make_counting
        self._sources = {source.name: source for source in sources}
        self._stores = {source.name: Store(source.name, list_version) for source in sources}
        self._read: dict[tuple[str, bytes], int] = {}  # how far, of each file
        self.total = Tally()

    def run(self, asked: Reprocess) -> list[date]:
        """Counts the days; returns those that there are.

        Raises:
            PermanentError: the raw files of these days are not all there any more.
            RetryLaterError: other workers are faster at adding lines than this is at reading them.
        """
        span = {"first": asked.first, "last": asked.last}
        with self._ctx.transaction() as conn:
            conn.execute(SQL["forget_staged"], span)
            generations = {
                row["day"]: row["generation"] + 1 for row in conn.execute(SQL["days_between"], span).fetchall()
            }
        for _ in range(_MOST_ROUNDS):
            for part in self._parts(span):
                self._stage(part, generations)
            if self._replaced(span, generations, asked.note):
                return sorted(generations)
        raise RetryLaterError("the days' files are still being added to", seconds=_RETRY_SECONDS)

    def _parts(self, span: dict[str, date]) -> list[Part]:
        """What counts of these days and was not read yet."""
        with self._ctx.transaction() as conn:
            rows = conn.execute(SQL["files_between"], span).fetchall()
        found = {name: _by_fingerprint(source) for name, source in self._sources.items()}
        parts = []
        for row in rows:
            key = row["source"], bytes(row["fingerprint"])
            file = found.get(key[0], {}).get(key[1])
            if file is None:
                raise PermanentError(
                    f"{row['name']} of the source {key[0]!r} has requests of these days and is not there any more, so "
                    "they cannot be counted again. Next: bring the file back, or ask for later days",
                    error_class="raw_files_missing",
                )
            start = self._read.get(key, 0)
            if start < row["byte_offset"]:
                parts.append(Part(self._sources[key[0]], file, start, row["byte_offset"]))
        return parts

    def _stage(self, part: Part, generations: dict[date, int]) -> None:
        counting = self._make_counting(part.source)
        try:
            with closing(LineReader(part.file, part.start, part.end)) as reader:
                for piece in reader.pieces():
                    if not piece.is_too_long:
                        counting.read(piece.chunk, piece.offset)
                    if counting.tally.lines >= BATCH_LINES:
                        self._write(part, counting.take(), generations)
                if reader.leftover and not isinstance(decode_line(reader.leftover), BadLine):
                    counting.read(reader.leftover + b"\n", reader.offset)
                is_whole = reader.is_ready
        except (OSError, LogTroubleError) as error:
            raise PermanentError(f"{part.file.path} cannot be read again: {error}", error_class="unreadable") from error
        if not is_whole:
            raise PermanentError(f"{part.file.path} ends before what was read of it", error_class="unreadable")
        self._write(part, counting.take(), generations)
        self._read[part.source.name, part.file.fingerprint] = part.end

    def _write(self, part: Part, tally: Tally, generations: dict[date, int]) -> None:
        for day in list(tally.days):
            if day not in generations:
                del tally.days[day]  # of other days
        with self._ctx.transaction() as conn:
            self._stores[part.source.name].stage(conn, tally, {day: generations[day] for day in tally.days})
        for day, today in tally.days.items():
            self.total.days[day].excluded.update(today.excluded)
        self._ctx.progress(None, f"{part.source.name}: {part.file.name}")

    def _replaced(self, span: dict[str, date], generations: dict[date, int], note: str) -> bool:
        """Puts the new rows in the place of the old; False when lines were added meanwhile, which come first."""
        with self._ctx.transaction() as conn:
            conn.execute(SQL["lock_sources"])
            rows = conn.execute(SQL["files_between"], span).fetchall()
            known = {(row["source"], bytes(row["fingerprint"])): row["byte_offset"] for row in rows}
            days = {row["day"] for row in conn.execute(SQL["days_between"], span).fetchall()}
            if known != self._read or days != generations.keys():
                return False
            for day, generation in generations.items():
                values: dict[str, Any] = {"day": day, "generation": generation, "note": note}
                conn.execute(SQL["replace_day"], values | limits_of(self._settings))
        return True


def _by_fingerprint(source: Source) -> dict[bytes, LogFile]:
    try:
        found = find_log_files(source.log_folder, source.base_name)
    except LogTroubleError as trouble:
        raise PermanentError(str(trouble), error_class=trouble.kind) from trouble
    return {file.fingerprint: replace(file, is_live=False) for file in found.files}
