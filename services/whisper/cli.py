"""Commands of the whisper service: `jobs transcribe`, `retranscribe` and `shows`.

They run where the command line is, without the worker's packages, so nothing else of this service is imported.
"""

import functools
import json
import posixpath
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from psycopg.types.json import Jsonb

from sidelinja_jobs.cli.connection import rows_of
from sidelinja_jobs.cli.documents import JSON_OPTION, print_document
from sidelinja_jobs.cli.enqueueing import SMALLINT, enqueue
from sidelinja_jobs.cli.exits import NotFoundError, RefusedError
from sidelinja_jobs.cli.screen import screen_of
from sidelinja_jobs.cli.tables import Cell, Column, print_table
from sidelinja_jobs.queries import load_queries

_SQL = load_queries(Path(__file__).with_name("cli.sql"))
_rows = functools.partial(rows_of, _SQL)
_JOB_TYPE = "whisper_transcribe"
_LOW_PRIORITY = -10
_SHOWN_PATHS = 10
_COLUMNS = (
    Column("SHOW", flexible=True, least=8),
    Column("FOLDER", flexible=True, least=8),
    Column("LANGUAGE"),
    Column("HOTWORDS", flexible=True, least=12),
    Column("PROMPT", flexible=True, least=8, leaves=1),
)

Row = dict[str, Any]


@click.command()
@click.argument("path")
@click.option("--show", metavar="NAME", help="The show whose names and settings hold.")
@click.option("--language", metavar="CODE", help="no, nn, en …, or auto.")
@click.option("--hotword", "hotwords", metavar="NAME", multiple=True, help="A name that is spoken; several times.")
@click.option("--analyze", is_flag=True, help="Enqueue the analysis when it is done.")
@click.option("--force", is_flag=True, help="Even where the same transcript is there already.")
@click.option("--priority", type=SMALLINT, default=0, show_default=True, help="Higher is more important.")
@click.option("--wait", is_flag=True, help="Watch the job until it ends; exit code 1 if it ends in error.")
@JSON_OPTION
@click.pass_context
def transcribe(ctx: click.Context, /, path: str, priority: int, wait: bool, as_json: bool, **fields: Any) -> Any:
    """Transcribe a file of the media folder.

    PATH is relative to the media folder. `jobs enqueue whisper_transcribe` takes everything else.
    """
    given = {name: value for name, value in fields.items() if value}
    payload = json.dumps({"path": path, **given})
    options = {"priority": priority, "max_attempts": 3, "key": None, "wait": wait, "as_json": as_json}
    empty = {"pairs": (), "payload_file": None, "at_time": None, "in_duration": None, "no_check": False}
    return ctx.invoke(enqueue, job_type=_JOB_TYPE, payload=payload, **options, **empty)


@click.command()
@click.argument("folder", required=False)
@click.option("--show", metavar="NAME", help="All episodes of a show, in place of a folder.")
@click.option("--yes", is_flag=True, help="Do it; without, only say what would be done.")
@click.option("--analyze", is_flag=True, help="Analyze again, too, what was analyzed then.")
@click.option("--force", is_flag=True, help="Even where the model and all settings are still the same.")
@click.option("--priority", type=SMALLINT, default=_LOW_PRIORITY, show_default=True, help="Higher is more important.")
@JSON_OPTION
def retranscribe(
    *, folder: str | None, show: str | None, yes: bool, analyze: bool, force: bool, priority: int, as_json: bool
) -> None:
    """Transcribe a folder or a show again.

    For a new model or new names. Each file that was transcribed below FOLDER (. is all of the media folder) is
    enqueued with the settings of its newest completed job. A file whose audio and settings are still the same is done
    at once, and costs nothing.
    """
    if (folder is None) == (show is None):
        raise RefusedError("it is not said which files", "give a FOLDER of the media folder, or --show NAME")
    if show is not None and show not in {row["name"] for row in _rows("list_shows")}:
        raise NotFoundError(f"there is no show {show!r}", "jobs shows list")
    below = None if folder is None else posixpath.normpath(folder)
    found = _rows("transcribed", folder=below, show=show)
    outcomes: dict[str, int] = {}
    if yes:
        payloads = [Jsonb(_again(row["payload"], analyze=analyze, force=force)) for row in found]
        paths = [row["path"] for row in found]
        told = _rows("enqueue_again", payloads=payloads, paths=paths, priority=priority)
        outcomes = {row["outcome"]: row["jobs"] for row in told}
    if as_json:
        print_document({"paths": [row["path"] for row in found], "enqueued": outcomes if yes else None})
    else:
        _tell(found, outcomes, done=yes)


@click.group()
def shows() -> None:
    """Keep what all episodes of a show share.

    Names, language and style; a job names the show, or its audio lies in the show's folder.
    """


@shows.command(name="list")
@JSON_OPTION
def list_shows(as_json: bool) -> None:
    """List the shows."""
    rows = _rows("list_shows")
    if as_json:
        print_document(rows)
    elif rows:
        print_table(_COLUMNS, [_cells(row) for row in rows], screen_of(sys.stdout))
    else:
        click.echo("there is no show yet. Next: jobs shows set NAME --hotword … --folder …", err=True)


@shows.command(name="set")
@click.argument("name")
@click.option("--hotword", "hotwords", metavar="NAME", multiple=True, help="A name; several times, likeliest first.")
@click.option("--folder", help="Audio below it belongs to the show where a job names none.")
@click.option("--language", metavar="CODE", help="no, nn, en …, or auto.")
@click.option("--prompt", help="A line in the wanted style.")
@JSON_OPTION
def set_show(*, name: str, hotwords: tuple[str, ...], folder: str | None, as_json: bool, **texts: str | None) -> None:
    """Make a show, or change what is given of it.

    The hotwords given take the place of all before; an empty text ("") takes a field away.
    """
    words = [word for word in hotwords if word] if hotwords else None
    where = posixpath.normpath(folder) if folder else folder
    (row,) = _rows("set_show", name=name, hotwords=words, folder=where, **texts)
    if as_json:
        print_document(row)
    else:
        print_table(_COLUMNS, [_cells(row)], screen_of(sys.stdout))


@shows.command(name="remove")
@click.argument("name")
def remove_show(name: str) -> None:
    """Remove a show; its transcripts stay."""
    if not _rows("remove_show", name=name):
        raise NotFoundError(f"there is no show {name!r}", "jobs shows list")
    click.echo(f"{name} is removed")


def _again(payload: Row, *, analyze: bool, force: bool) -> Row:
    """The payload of a job that is done, to be done anew with the file that is there now."""
    kept = {name: value for name, value in payload.items() if name not in ("analyze", "force", "sha256")}
    if tracks := kept.get("tracks"):
        kept["tracks"] = [{name: track[name] for name in ("path", "speaker")} for track in tracks]
    kept |= {"analyze": True} if analyze and payload.get("analyze") else {}
    return kept | ({"force": True} if force else {})


def _tell(found: list[Row], outcomes: Mapping[str, int], *, done: bool) -> None:
    files = f"{len(found)} {'file' if len(found) == 1 else 'files'}"
    if not found:
        click.echo("jobs: no file there was transcribed before: nothing to do", err=True)
    elif done:
        created = outcomes.get("created", 0)
        waiting = len(found) - created
        click.echo(f"{created} of {files} enqueued" + (f", {waiting} waited already" if waiting else ""))
    else:
        for row in found[:_SHOWN_PATHS]:
            click.echo(row["path"])
        if len(found) > _SHOWN_PATHS:
            click.echo(f"… and {len(found) - _SHOWN_PATHS} more")
        click.echo(f"jobs: {files} would be transcribed again. Next: the same with --yes", err=True)


def _cells(row: Row) -> list[Cell]:
    words = ", ".join(row["hotwords"])
    return [Cell(row[name] or "") for name in ("name", "folder", "language")] + [Cell(words), Cell(row["prompt"] or "")]


commands: list[click.Command] = [transcribe, retranscribe, shows]
