"""Reads the numbered files of db/init, and cuts those into statements that may not run in one transaction.

The same files are run by psql when the image fills an empty volume, and by `migrate` on every later start.
Each is plain SQL, begins its own transaction and records its number first. A first line `--
non-transactional` marks what PostgreSQL does not allow in a transaction (indexes made concurrently): such a
file runs statement by statement, records its number last, and each of its statements may run twice, since a
killed run starts over.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidelinja_jobs.errors import JobQueueError

NON_TRANSACTIONAL = "-- non-transactional"
FILE_NAME = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql")

# What may hold a semicolon that ends no statement. Order matters: the first alternative that matches wins.
LEXEME = re.compile(
    r"""
      --[^\n]*
    | /\*
    | [eE]'(?:[^'\\]|\\.|'')*'
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$).*?(?P=dollar)
    | [\w$]+
    | ;
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class MigrationError(JobQueueError):
    """The database cannot be brought to the state of these files."""


@dataclass(frozen=True)
class InitFile:
    """One numbered file of db/init."""

    version: int
    name: str
    path: Path
    text: str

    @property
    def is_transactional(self) -> bool:
        return self.text.partition("\n")[0].strip() != NON_TRANSACTIONAL

    @property
    def statements(self) -> list[str]:
        """The text as it is to be sent: whole, or cut into its statements."""
        return [self.text] if self.is_transactional else list(split_statements(self.text))


def read_init_folder(folder: Path) -> list[InitFile]:
    """All numbered files in order.

    Raises:
        MigrationError: no file, a name without a number, a number that is missing or there twice.
    """
    paths = sorted(folder.glob("*.sql"))
    if not paths:
        raise MigrationError(f"no SQL file in {folder}. Next: set INIT_FOLDER to the project's db/init")
    files = [_read(path) for path in paths]
    for expected, file in enumerate(files, start=1):
        if file.version != expected:
            raise MigrationError(
                f"{file.path} has the number {file.version}, expected {expected}: the numbers in {folder} "
                "run from 1 without a gap. Next: rename the file, or add the missing one"
            )
    return files


def _read(path: Path) -> InitFile:
    match = FILE_NAME.fullmatch(path.name)
    if not match:
        raise MigrationError(f"{path} is not named like 0001_words.sql. Next: rename it, or take it away")
    return InitFile(int(match["version"]), match["name"], path, path.read_text(encoding="utf-8"))


def split_statements(text: str) -> Iterator[str]:
    """The statements of a text, without the semicolons between them; quotes and comments stay whole."""
    start = position = 0
    has_words = False
    while match := LEXEME.match(text, position):
        lexeme, position = match[0], match.end()
        if lexeme == "/*":
            position = _comment_end(text, match.start())
        elif lexeme == ";":
            if has_words:
                yield text[start : match.start()].strip()
            start, has_words = position, False
        elif not lexeme.isspace() and not lexeme.startswith("--"):
            has_words = True
    if has_words:
        yield text[start:].strip()


def _comment_end(text: str, start: int) -> int:
    """Where the block comment that opens at `start` ends; they nest in PostgreSQL."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)
