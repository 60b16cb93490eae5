"""Makes and shows the secrets of the stack: `python -m services.admin.secrets [show ROLE | renew ROLE | give NAME]`.

The one-shot service `secrets` runs it at every start, with the volume of that name at /secrets. What one
service may know is a folder of its own, since Compose mounts only that folder into it (the mount's subpath);
inside, a file is 0444, because the database rereads its own as another user than it started as. Without a
command it makes what is missing and changes nothing that is there. What only an operator can give (a provider's
key) is an empty file until then.
"""

import contextlib
import itertools
import os
import re
import secrets
import string
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from sidelinja_jobs.job_type import JobType
from sidelinja_jobs.logins import PASSWORD_FILE, secret_folders

SERVICES = Path(__file__).resolve().parents[1]
VOLUME = Path("/secrets")
SUPERUSER_FILE = Path("db", "superuser")
ADMIN_ACCOUNT_FILE = Path("admin", "admin_password")
# Of the delivery of events and alerts; a job type names its own in job_type.toml. Addresses are among them, since many
# receivers put a key into the path.
DELIVERY_SECRETS = (
    "webhook_url", "webhook_secret", "webhook_old_secret", "spacetimedb_url", "spacetimedb_token",
    "alert_webhook_url", "alert_webhook_secret", "alert_smtp_password",
)  # fmt: skip
# Letters and digits only: a `$` would be interpolated by Compose, a `-` in front read as an option.
ALPHABET = string.ascii_letters + string.digits
LENGTH = 32  # 190 bits
LONGEST_GIVEN = 1024


def secret_files(services: Path = SERVICES) -> dict[str, Path]:
    """Role -> its file below the volume; the database's superuser is `postgres`, the admin view's account `admin`."""
    job_types = JobType.load_all(services)
    return {"postgres": SUPERUSER_FILE, "admin": ADMIN_ACCOUNT_FILE} | {
        role: Path(folder, PASSWORD_FILE) for role, folder in secret_folders(job_types).items()
    }


def operator_files(services: Path = SERVICES) -> dict[str, list[Path]]:
    """Name of a secret that only an operator can give -> its files, one for each service that reads it."""
    files = {name: [Path("delivery", name)] for name in DELIVERY_SECRETS}
    for job_type in JobType.load_all(services):
        for name in job_type.operator_secrets:
            files.setdefault(name, []).append(Path(job_type.role, name))
    return files


def fill(volume: Path, files: dict[str, Path], empty: Iterable[Path] = ()) -> list[str]:
    """Make what is missing; returns the roles that got a new secret. Two at once agree on one secret.

    `empty` are the files that wait for an operator.
    """
    for file in empty:
        _make(volume / file, "")
    return [role for role, file in files.items() if _make(volume / file, _new_secret())]


def give(volume: Path, files: Iterable[Path], secret: str) -> None:
    """Put what an operator gave into each service's file, in place of what was there."""
    for file in files:
        with _draft(volume / file, secret) as draft:
            draft.replace(volume / file)


def _new_secret() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def _make(path: Path, secret: str) -> bool:
    """Make one secret, whole or not at all."""
    if path.exists():
        return False
    with _draft(path, secret) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    return True


@contextlib.contextmanager
def _draft(path: Path, secret: str) -> Iterator[Path]:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with draft.open("x", encoding="ascii") as file:
            file.write(secret)
            file.flush()
            os.fchmod(file.fileno(), 0o444)
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


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
        made = fill(volume, files, itertools.chain(*operator_files().values()))
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
    """Replace the password of a role; it holds once `migrate` has told the database, admin's once the view restarts."""
    path = volume / secret_files()[role]
    with _told_as_one_line(volume):
        path.unlink(missing_ok=True)
        _make(path, _new_secret())
    click.echo(f"secrets: renewed {role}")


@main.command("give")
@click.argument("name", metavar="NAME", type=click.Choice(sorted(operator_files())))
@click.pass_obj
def give_command(volume: Path, name: str) -> None:
    """Store a secret that standard input holds, for the services that read it; an empty one takes it away."""
    secret = sys.stdin.read(LONGEST_GIVEN + 1).strip()
    if len(secret) > LONGEST_GIVEN or not re.fullmatch(r"[!-~]*", secret):
        sys.exit(
            f"secrets: what standard input holds is no {name}: expected one line of at most {LONGEST_GIVEN} letters, "
            "digits and signs, without spaces. Next: copy it again"
        )
    files = operator_files()[name]
    with _told_as_one_line(volume):
        give(volume, files, secret)
    readers = ", ".join(file.parts[0] for file in files)
    click.echo(f"secrets: {name} {'stored' if secret else 'taken away'} for {readers}")


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
