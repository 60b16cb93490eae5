"""How a command ends: exit codes, and the errors that carry them.

click.ClickException
└── CommandError            the base: one line for the person, an exit code for the program
    ├── RefusedError        2   what was given is not accepted
    ├── NotFoundError       3   no such job or type
    ├── NotPossibleError    4   not in the state that the job or type is in
    ├── UnreachableError    69  the database does not answer
    ├── NotAllowedError     77  the login may not do this
    └── SetupError          78  a setting or the schema is missing
"""

from enum import IntEnum
from typing import IO, Any, ClassVar

import click

from sidelinja_jobs.cli.text import neutral

SHOWN_CHARACTERS = 2000


class ExitCode(IntEnum):
    """What the exit codes mean; `jobs --help` prints this list."""

    OK = 0
    JOB_ERROR = 1
    REFUSED = 2
    NOT_FOUND = 3
    NOT_POSSIBLE = 4
    UNREACHABLE = 69
    INTERNAL = 70
    NOT_ALLOWED = 77
    SETUP = 78
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.JOB_ERROR: "a job that was waited for ended in error (watch, enqueue --wait)",
    ExitCode.REFUSED: "wrong usage, or input that was refused",
    ExitCode.NOT_FOUND: "no such job or job type",
    ExitCode.NOT_POSSIBLE: "not possible in the state that the job or type is in",
    ExitCode.UNREACHABLE: "the database cannot be reached",
    ExitCode.INTERNAL: "a fault in this program",
    ExitCode.NOT_ALLOWED: "the login is refused or may not do this",
    ExitCode.SETUP: "a setting is missing or wrong, or the database has no schema",
    ExitCode.INTERRUPTED: "stopped with Ctrl-C",
}


class CommandError(click.ClickException):
    """A failure that was foreseen; prints `jobs: what failed. Next: what to do` and no traceback."""

    exit_code: ClassVar[int] = ExitCode.INTERNAL

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.next_step = next_step

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"jobs: {self.line()}", file=file, err=file is None)

    def line(self) -> str:
        """The message on one line; a database's message may quote a payload of a megabyte."""
        text = neutral(self.message)
        if len(text) > SHOWN_CHARACTERS:
            text = f"{text[:SHOWN_CHARACTERS]}…"
        if not self.next_step:
            return text
        return f"{text.rstrip('.')}. Next: {neutral(self.next_step)}"


class RefusedError(CommandError):
    """What was given is not accepted."""

    exit_code = ExitCode.REFUSED


class NotFoundError(CommandError):
    """No such job or type."""

    exit_code = ExitCode.NOT_FOUND


class NotPossibleError(CommandError):
    """Not possible in the state that the job or type is in."""

    exit_code = ExitCode.NOT_POSSIBLE


class UnreachableError(CommandError):
    """The database does not answer."""

    exit_code = ExitCode.UNREACHABLE


class NotAllowedError(CommandError):
    """The login is refused or may not do this."""

    exit_code = ExitCode.NOT_ALLOWED


class SetupError(CommandError):
    """A setting is missing or wrong, or the database has no schema."""

    exit_code = ExitCode.SETUP
