"""Makes and shows the secrets of the stack: `python -m services.admin.secrets [show ROLE | renew ROLE]`.

The one-shot service `secrets` runs it at every start, with the volume of that name at /secrets. What one
service may know is a folder of its own, since Compose mounts only that folder into it (the mount's subpath);
inside, a file is 0444, because the database rereads its own as another user than it started as. Without a
command it makes what is missing and changes nothing that is there.
"""

import contextlib
import os
import secrets
import string
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import PASSWORD_FILE, secret_folders

SERVICES = Path(__file__).resolve().parents[1]
VOLUME = Path("/secrets")
SUPERUSER_FILE = Path("db", "superuser")
# Letters and digits only: a `$` would be interpolated by Compose, a `-` in front read as an option.
ALPHABET = string.ascii_letters + string.digits
LENGTH = 32  # 190 bits


def secret_files(services: Path = SERVICES) -> dict[str, Path]:
    """Role -> its file below the volume; the database's superuser is `postgres`."""
    job_types = JobType.load_all(services)
    return {"postgres": SUPERUSER_FILE} | {
        role: Path(folder, PASSWORD_FILE) for role, folder in secret_folders(job_types).items()
    }


def fill(volume: Path, files: dict[str, Path]) -> list[str]:
    """Make what is missing; returns the roles that got a new secret. Two at once agree on one secret."""
    return [role for role, file in files.items() if _make(volume / file)]


def _make(path: Path) -> bool:
    """Make one secret, whole or not at all."""
    if path.exists():
        return False
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with draft.open("x", encoding="ascii") as file:
        file.write("".join(secrets.choice(ALPHABET) for _ in range(LENGTH)))
        file.flush()
        os.fchmod(file.fileno(), 0o444)
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


@click.group(invoke_without_command=True)
@click.option(
    "--volume",
    type=click.Path(path_type=Path),
    default=VOLUME,
    show_default=True,
    help="Where the volume is mounted.",
)
@click.pass_context
def main(context: click.Context, volume: Path) -> None:
    """Secrets of the stack: without a command, make those that are missing."""
    context.obj = volume
    if context.invoked_subcommand is None:
        context.invoke(fill_command)


@main.command("fill")
@click.pass_obj
def fill_command(volume: Path) -> None:
    """Make the secrets that are missing."""
    files = secret_files()
    with _told_as_one_line(volume):
        made = fill(volume, files)
    click.echo(f"secrets: made {len(made)} of {len(files)}" + (f" ({', '.join(made)})" if made else ", all there"))


@main.command("show")
@click.argument("role", metavar="ROLE", type=click.Choice(sorted(secret_files())), default="jobbko_operator")
@click.pass_obj
def show_command(volume: Path, role: str) -> None:
    """Print the password of a role."""
    with _told_as_one_line(volume):
        click.echo((volume / secret_files()[role]).read_text(encoding="ascii"))


@main.command("renew")
@click.argument("role", metavar="ROLE", type=click.Choice(sorted(secret_files())))
@click.pass_obj
def renew_command(volume: Path, role: str) -> None:
    """Replace the password of a role; it holds once `migrate` has told the database."""
    path = volume / secret_files()[role]
    with _told_as_one_line(volume):
        path.unlink(missing_ok=True)
        _make(path)
    click.echo(f"secrets: renewed {role}")


@contextlib.contextmanager
def _told_as_one_line(volume: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        sys.exit(
            f"secrets: {error.filename or volume}: {error.strerror} (running as uid {os.getuid()}). Next: "
            "the volume must be mounted there, owned by that uid; `docker compose run --rm secrets` makes"
            " what is missing"
        )


if __name__ == "__main__":
    main()
