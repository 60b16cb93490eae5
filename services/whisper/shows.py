"""The show of an episode: names, language and style that hold for all its episodes, from the table `show`."""

import posixpath
from dataclasses import dataclass
from pathlib import Path

from services.whisper.languages import LANGUAGES
from services.whisper.payload import DETECT, WhisperPayload
from services.whisper.tracks import first_path
from sidelinja_jobs import Context, PermanentError
from sidelinja_jobs.queries import load_queries

SQL = load_queries(Path(__file__).with_name("queries.sql"))
DEFAULT_LANGUAGE = "no"


@dataclass(frozen=True)
class Speech:
    """What holds for one job: the payload's own word first, then the show's, then the default."""

    show: str | None
    language: str  # or DETECT
    hotwords: tuple[str, ...]
    prompt: str | None


def speech_of(payload: WhisperPayload, ctx: Context) -> Speech:
    """The job's settings, with those of its show.

    Raises:
        PermanentError: the payload names a show that is not there, or the show has a language that nobody knows.
    """
    with ctx.transaction() as conn:
        path = posixpath.normpath(first_path(payload))
        row = conn.execute(SQL["find_show"], {"name": payload.show, "path": path}).fetchone()
    if row is None:
        if payload.show is not None:
            raise PermanentError(
                f"There is no show {payload.show!r}. Next: see `jobs shows list`, or make it with `jobs shows set`",
                error_class="unknown_show",
            )
        return Speech(None, payload.language or DEFAULT_LANGUAGE, payload.hotwords, payload.prompt)
    language = payload.language or row["language"] or DEFAULT_LANGUAGE
    if language != DETECT and language not in LANGUAGES:
        raise PermanentError(
            f"The show {row['name']!r} has the language {language!r}, expected 'auto' or a Whisper language code. "
            "Next: jobs shows set NAME --language no",
            error_class="unsupported_language",
        )
    hotwords = tuple(dict.fromkeys([*payload.hotwords, *row["hotwords"]]))  # the payload's come first: likelier
    return Speech(row["name"], language, hotwords, payload.prompt or row["prompt"])
