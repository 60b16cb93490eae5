"""The payload of a whisper_transcribe job. Unknown fields are refused."""

from typing import Annotated, Literal

import msgspec

from services.whisper.languages import LANGUAGES

OutputKind = Literal["vtt", "srt", "txt", "json"]
DETECT = "auto"


class WhisperPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One audio file to transcribe; every field but `path` has a default."""

    path: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1024, description="the audio file, relative to MEDIA_ROOT")
    ]
    language: Annotated[
        str, msgspec.Meta(max_length=4, description="a language code of Whisper's, or auto to detect it")
    ] = "no"
    hotwords: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=100)], ...],
        msgspec.Meta(max_length=100, description="names that are spoken, likeliest first; 50 tokens are used"),
    ] = ()
    prompt: (
        Annotated[str, msgspec.Meta(max_length=1000, description="a line in the wanted style, before each unit")] | None
    ) = None
    word_timestamps: Annotated[bool, msgspec.Meta(description="times per word, in .transcript.json only")] = False
    outputs: Annotated[
        tuple[OutputKind, ...], msgspec.Meta(max_length=16, description="files to write beside the audio")
    ] = ("vtt", "srt", "txt", "json")
    analyze: Annotated[bool, msgspec.Meta(description="enqueue openrouter_analyze when done")] = False
    episode_id: Annotated[
        str | int | None, msgspec.Meta(description="the surrounding system's id, passed on unchanged")
    ] = None

    def __post_init__(self) -> None:
        if self.language != DETECT and self.language not in LANGUAGES:
            raise ValueError(
                f"language is {self.language!r}, expected 'auto' or a Whisper language code such as 'no', 'nn' or 'en'"
            )
