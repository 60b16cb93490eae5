"""A transcript with its audio: read, searched, corrected line by line, written as subtitles, analysed again.

A correction is a version of its own (transcript_correction); the job's result stays as it is. What is downloaded and
analysed is the newest version.
"""

import json
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.admin.access.accounts import operator_only
from services.admin.pages.form_values import text_of, whole_number
from services.admin.pages.media import media_problem
from services.admin.pages.transcript_versions import Version, corrected, document_of, read_version, segments_json
from services.admin.rendering import redirect, render
from services.admin.views.transcript import Line, as_rows, lines_of
from sidelinja_jobs.errors import RefusedError
from subtitles import as_srt, as_txt, as_vtt

SHOWN_LINES = 4000  # a page; three hours of talk are some 2,500
EDITED_LINES = 200
PARTS, VERSIONS = range(10**6), range(10**9)
LONGEST_LINE, LONGEST_SPEAKER = 20_000, 80
_TYPES = {"vtt": "text/vtt", "srt": "application/x-subrip", "txt": "text/plain", "json": "application/json"}


async def transcript_page(request: Request) -> Response:
    """Player and lines."""
    text = await read_version(request)
    analyses = await request.app.state.database.fetch_all("analyses_of_transcript", id=text.job["id"])
    sought = request.query_params.get("q", "").strip()[:200]
    track = _number(request, "track")
    sources = text.transcript.sources
    part = _number(request, "part")
    lines = lines_of(text.segments)
    if sought:
        lines = [line for line in lines if sought.casefold() in line.segment.text.casefold()]
    shown = lines[part * SHOWN_LINES : (part + 1) * SHOWN_LINES]
    root = request.app.state.settings.media_root
    is_playable = track < len(sources) and root.is_dir() and media_problem(root, sources[track].path) is None
    return render(
        request,
        "jobs/transcript.html",
        text=text,
        lines=shown,
        found=len(lines),
        parts=range(-(-len(lines) // SHOWN_LINES)),
        part=part,
        sought=sought,
        sources=sources,
        track=track,
        is_playable=is_playable,
        has_media=root.is_dir(),
        edited_part=part * SHOWN_LINES // EDITED_LINES,
        analyses=analyses,
        split=lambda line: split_found(line, sought),
        request_id=uuid4(),
    )


@operator_only
async def edit(request: Request) -> Response:
    """Some of the lines, to correct."""
    return _edit_form(request, await read_version(request), _number(request, "part"), {})


async def save(request: Request) -> Response:
    """Stores the corrected lines as the next version."""
    text = await read_version(request)
    part = _number(request, "part")
    async with request.form(max_fields=4 * EDITED_LINES + 20) as form:
        version = whole_number(text_of(form, "version"), VERSIONS)
        changed = {
            number: (text_of(form, f"t{number}", LONGEST_LINE), text_of(form, f"s{number}", LONGEST_SPEAKER))
            for number in range(part * EDITED_LINES, min((part + 1) * EDITED_LINES, len(text.segments)))
            if f"t{number}" in form
        }
    if version is None:
        raise HTTPException(400)
    whole = await read_version(request, reveal=True)
    segments = [corrected(segment, *changed.get(number, (None, None))) for number, segment in enumerate(whole.segments)]
    try:
        async with request.app.state.database.acting_as(request.state.account.name) as session:
            saved = await session.fetch_value(
                "correct_transcript", id=text.job["id"], version=version, segments=segments_json(segments)
            )
    except RefusedError as error:
        return _edit_form(request, text, part, changed, problem=str(error), status_code=409)
    query = {"part": str(part * EDITED_LINES // SHOWN_LINES)} if part * EDITED_LINES >= SHOWN_LINES else {}
    return redirect(
        request, "transcript", id=text.job["id"], query=query, notice="transcript.saved", values={"version": saved}
    )


async def download(request: Request) -> Response:
    """The newest version as a file, or with `original` the job's own."""
    text = await read_version(request, original="original" in request.query_params)
    kind = request.path_params["kind"]
    rows = as_rows(text.segments)
    if kind == "vtt":
        body = as_vtt(rows)
    elif kind == "srt":
        body = as_srt(rows)
    elif kind == "txt":
        body = as_txt(rows)
    elif kind == "json":
        body = json.dumps(document_of(text, rows), ensure_ascii=False, indent=1) + "\n"
    else:
        raise HTTPException(404)
    name = f"transcript-{str(text.job['id'])[:8]}.{kind}"
    return Response(
        body,
        media_type=_TYPES[kind],
        headers={"Content-Disposition": f'attachment; filename="{name}"', "X-Robots-Tag": "noindex"},
    )


def split_found(line: Line, sought: str) -> list[tuple[str, bool]]:
    """The words of a line in pieces, each with whether it is what was sought."""
    text = line.segment.text
    if not sought:
        return [(text, False)]
    pieces: list[tuple[str, bool]] = []
    folded, wanted, place = text.lower(), sought.lower(), 0
    if len(folded) != len(text):  # a letter that becomes two would shift every place behind it
        return [(text, False)]
    while (found := folded.find(wanted, place)) >= 0:
        pieces += [(text[place:found], False), (text[found : found + len(wanted)], True)]
        place = found + len(wanted)
    return [piece for piece in [*pieces, (text[place:], False)] if piece[0]]


def _edit_form(
    request: Request,
    text: Version,
    part: int,
    typed: dict[int, tuple[str, str]],
    *,
    problem: str = "",
    status_code: int = 200,
) -> Response:
    lines = lines_of(text.segments)[part * EDITED_LINES : (part + 1) * EDITED_LINES]
    return render(
        request,
        "jobs/transcript_edit.html",
        status_code=status_code,
        text=text,
        lines=lines,
        typed=typed,
        part=part,
        parts=range(-(-len(text.segments) // EDITED_LINES)),
        has_speakers=any(segment.speaker for segment in text.segments),
        problem=problem,
    )


def _number(request: Request, name: str) -> int:
    return whole_number(request.query_params.get(name, ""), PARTS) or 0


routes = [
    Route("/jobs/{id:uuid}/transcript", transcript_page, name="transcript"),
    Route("/jobs/{id:uuid}/transcript/edit", edit, name="transcript_edit"),
    Route("/jobs/{id:uuid}/transcript/edit", save, name="transcript_save", methods=["POST"]),
    Route("/jobs/{id:uuid}/transcript.{kind}", download, name="transcript_file"),
]
