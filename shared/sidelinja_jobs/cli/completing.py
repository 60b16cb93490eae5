"""Shell completion: the script for each shell, and names asked of the database while one types.

A completion must never print, fail or hang: whatever goes wrong, it offers nothing.
"""

import contextlib
import io

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from sidelinja_jobs.cli.connection import open_database
from sidelinja_jobs.cli.exits import ExitCode
from sidelinja_jobs.cli.lookup import SHORTEST_PREFIX, id_range
from sidelinja_jobs.cli.rows import IdRow, TypeFacts

COMPLETE_VARIABLE = "_JOBS_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_ANSWER_SECONDS = 2.0  # nobody waits longer for a name
# Bash and zsh have a builtin command of the same name, which wins over a file on the PATH.
_TURN_OFF_BUILTIN = {"bash": "enable -n jobs", "zsh": "disable jobs"}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  eval "$(jobs completion bash)"     in ~/.bashrc
    zsh:   eval "$(jobs completion zsh)"      in ~/.zshrc
    fish:  jobs completion fish > ~/.config/fish/completions/jobs.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    group = click.get_current_context().find_root().command
    if command := _TURN_OFF_BUILTIN.get(shell):
        click.echo(f"# jobs is also a builtin of {shell}, which comes first. A path, or `env jobs`, means this one;")
        click.echo(f"# so does the bare name after: {command}")
    click.echo(kind(group, {}, "jobs", COMPLETE_VARIABLE).source())


def answer(group: click.Group, instruction: str) -> int:
    """What a shell asks while one types. Returns the exit code."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            return shell_complete(group, {}, "jobs", COMPLETE_VARIABLE, instruction)
        except Exception:  # an edge of the program: no database, or a service that cannot be read
            return ExitCode.INTERNAL


def complete_types(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Job types that begin like this."""
    with open_database(_ANSWER_SECONDS) as database:
        names = database.row("describe_type", TypeFacts, job_type="").known_types
    return [CompletionItem(name) for name in names if name.startswith(begun) and name.isprintable()]


def complete_ids(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Jobs whose ids begin like this, once there are enough characters to ask for."""
    if len(begun) < SHORTEST_PREFIX:
        return []
    lower, upper = id_range(begun)
    with open_database(_ANSWER_SECONDS) as database:
        return [CompletionItem(str(row.id)) for row in database.rows("find_ids", IdRow, lower=lower, upper=upper)]


TYPE_OPTION = click.option("--type", "job_type", metavar="TYPE", shell_complete=complete_types)
