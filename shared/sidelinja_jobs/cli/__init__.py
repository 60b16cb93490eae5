"""The command line `jobs`: the queue for people (tables, live lines) and for programs (`--json`, exit codes).

It reads with the statements of queries.sql and changes things only through the database's functions, so whatever it
does to a job, a program in any language can do as well.
"""

import sys
import traceback

import click

from sidelinja_jobs.cli.completing import completion
from sidelinja_jobs.cli.discovery import service_commands
from sidelinja_jobs.cli.enqueueing import enqueue
from sidelinja_jobs.cli.exits import MEANINGS, ExitCode
from sidelinja_jobs.cli.listing import list_jobs, types, workers
from sidelinja_jobs.cli.migrating import migrate
from sidelinja_jobs.cli.operating import cancel, pause, resume, retry
from sidelinja_jobs.cli.showing import show, why
from sidelinja_jobs.cli.text import neutral
from sidelinja_jobs.cli.watching import watch

_EXIT_CODES = "\n".join(f"  {code.value:<4} {meaning}" for code, meaning in MEANINGS.items())


class Commands(click.Group):
    """The command line's own commands, in the order of a job's life, and those of the services that are here."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys([*self.commands, *sorted(service_commands())]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.commands.get(cmd_name) or service_commands().get(cmd_name)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"\b\nExit codes:\n{_EXIT_CODES}",
)
def jobs() -> None:
    """The job queue: enqueue, look, operate.

    \b
    The database is the one that DATABASE_URL names (postgresql://ROLE@HOST:5432/jobbko), with the password in
    DATABASE_PASSWORD or in the file that DATABASE_PASSWORD_FILE names.
    """


for _command in (
    enqueue, list_jobs, show, why, watch, retry, cancel, types, pause, resume, workers, migrate, completion
):  # fmt: skip
    jobs.add_command(_command)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code. No failure that was foreseen shows a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal in another encoding gets escapes for what it cannot show.
            stream.reconfigure(errors="backslashreplace")
    try:
        return int(jobs.main(arguments, prog_name="jobs", standalone_mode=False) or ExitCode.OK)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.REFUSED
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "jobs"
        click.echo(f"jobs: {neutral(error.format_message()).rstrip('.')}. Next: {path} --help", err=True)
        return ExitCode.REFUSED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("jobs: stopped", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough (`jobs list | head`). Nothing more can be written, not even at exit.
        sys.stdout = None
        return ExitCode.OK
    except Exception:  # the edge of the program
        traceback.print_exc()
        click.echo("jobs: this is a fault in jobs itself; nothing above is your doing", err=True)
        return ExitCode.INTERNAL
