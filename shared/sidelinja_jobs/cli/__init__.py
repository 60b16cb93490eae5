"""The command line `jobs`: the queue for people (tables, live lines) and for programs (`--json`, exit codes).

It reads with the statements of queries.sql and changes things only through the database's functions, so whatever it
does to a job, a program in any language can do as well.
"""

import io
import os
import sys
import traceback

import click

from sidelinja_jobs.cli.completing import COMPLETE_VARIABLE, answer, completion
from sidelinja_jobs.cli.discovery import service_commands
from sidelinja_jobs.cli.enqueueing import enqueue
from sidelinja_jobs.cli.exits import MEANINGS, ExitCode
from sidelinja_jobs.cli.fleet import types, workers
from sidelinja_jobs.cli.interrupts import Interrupted, prompt_interrupts
from sidelinja_jobs.cli.listing import list_jobs
from sidelinja_jobs.cli.migrating import migrate
from sidelinja_jobs.cli.operating import cancel, pause, resume, retry
from sidelinja_jobs.cli.retaining import retention
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
    enqueue, list_jobs, show, why, watch, retry, cancel, types, pause, resume, workers, retention, migrate, completion
):  # fmt: skip
    jobs.add_command(_command)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code. No failure that was foreseen shows a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal in another encoding gets escapes for what it cannot show.
            stream.reconfigure(errors="backslashreplace")
    try:
        with prompt_interrupts():
            return _run(sys.argv[1:] if arguments is None else arguments)
    except click.exceptions.Exit as ended:
        return ended.exit_code
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
    except (Interrupted, KeyboardInterrupt, click.Abort):
        click.echo("jobs: stopped", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough (`jobs list | head`); what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception:  # the edge of the program
        traceback.print_exc()
        click.echo("jobs: this is a fault in jobs itself, not in what you asked for", err=True)
        return ExitCode.INTERNAL


def _run(arguments: list[str]) -> int:
    # Not click's own main(): it would end a broken pipe with 1, which here means that a job failed.
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return answer(jobs, instruction)
    with jobs.make_context("jobs", list(arguments)) as context:
        code = int(jobs.invoke(context) or ExitCode.OK)
        sys.stdout.flush()
        return code
