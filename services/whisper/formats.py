"""A transcript in the formats of its output files."""

import json
from collections.abc import Callable

from services.whisper.payload import WhisperPayload
from services.whisper.transcript import Row
from subtitles import as_podcast_json, as_srt, as_txt, as_vtt

FORMATS: dict[str, Callable[[Row, bool], str]] = {
    "vtt": lambda transcript, lines: as_vtt(transcript["segments"], lines=lines),
    "srt": lambda transcript, lines: as_srt(transcript["segments"], lines=lines),
    "txt": lambda transcript, _: as_txt(transcript["segments"]),
    "json": lambda transcript, _: json.dumps(transcript, ensure_ascii=False, indent=1) + "\n",
    "podcast_json": lambda transcript, lines: as_podcast_json(transcript["segments"], lines=lines),
}


def rendered(transcript: Row, payload: WhisperPayload) -> dict[str, str]:
    """The text of every output that the job asks for."""
    return {kind: FORMATS[kind](transcript, payload.subtitle_lines) for kind in payload.outputs}
