"""Puts a file that comes on standard input into the media folder: `python -m services.admin.add NAME < FILE`.

`make add FILE=…` runs it in a container, since the media volume is no folder that a person could reach. The
file appears whole or not at all, under a name that no job can read half of.
"""

import errno
import os
import shlex
import shutil
import sys
from pathlib import Path, PurePosixPath

import click

MEDIA = Path("/media")
NEXT = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space there, or take another MEDIA_DIR") | dict.fromkeys(
    (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG), "another name (AS=…)"
)
NEXT_OF_OTHERS = "make the media folder writable for that user; see MEDIA_DIR, MEDIA_UID, MEDIA_GID in .env.example"


@click.command()
@click.argument("name")
@click.option("--replace", is_flag=True, help="Replace a file of that name.")
@click.option(
    "--media",
    type=click.Path(path_type=Path),
    default=MEDIA,
    show_default=True,
    help="Where the media folder is mounted.",
)
def main(name: str, replace: bool, media: Path) -> None:
    """Put standard input into the media folder as NAME (may have folders in it)."""
    try:
        path = place(media, name)
        if path.exists() and not replace:
            sys.exit(f"add: {name} is there already. Next: another name (AS=…), or REPLACE=1")
        audio_bytes = store(path)
    except OSError as error:
        sys.exit(
            f"add: {error.filename2 or error.filename or media}: {error.strerror} (running as uid {os.getuid()}, gid "
            f"{os.getgid()}). Next: {NEXT.get(error.errno or 0, NEXT_OF_OTHERS)}"
        )
    click.echo(
        f"added {name} ({audio_bytes / 1e6:.1f} MB). "
        f"Next: docker compose run --rm jobs enqueue whisper_transcribe {shlex.quote(f'path={name}')}"
    )


def place(media: Path, name: str) -> Path:
    """The path of a name below the media folder; a name that leads out of it ends the program."""
    relative = PurePosixPath(name)
    if not name.strip() or relative.is_absolute() or ".." in relative.parts or "\0" in name:
        sys.exit(f"add: {name!r} is no name inside the media folder. Next: give a relative one, like 2026/ep12.mp3")
    path = media / relative
    if not path.parent.resolve().is_relative_to(media.resolve()):
        sys.exit(f"add: {name!r} leads out of the media folder by a link. Next: give another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def store(path: Path) -> int:
    """Write standard input to the path, by way of a draft beside it; returns the bytes."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("xb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return size


if __name__ == "__main__":
    main()
