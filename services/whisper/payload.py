"""The payload of a whisper_transcribe job. Unknown fields are refused."""

from typing import Annotated, Literal

import msgspec

from services.whisper.languages import LANGUAGES

OutputKind = Literal["vtt", "srt", "txt", "json", "podcast_json"]
OUTPUT_KINDS: tuple[OutputKind, ...] = ("vtt", "srt", "txt", "json", "podcast_json")
DETECT = "auto"
LONGEST_PATH = 1024  # characters
Id = Annotated[str | int | None, msgspec.Meta(description="the surrounding system's id, passed on unchanged")]
IDS = ("episode_id", "tema_id")
FEWEST_TRACKS, MOST_TRACKS = 2, 16

AudioPath = Annotated[
    str, msgspec.Meta(min_length=1, max_length=LONGEST_PATH, description="an audio file, relative to MEDIA_ROOT")
]

Sha256 = Annotated[
    str, msgspec.Meta(pattern="^[0-9a-f]{64}$", description="digest of the audio: another file is not taken for it")
]


class Track(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One speaker's own recording. All tracks of a job begin at the same moment."""

    path: AudioPath
    speaker: Annotated[
        str, msgspec.Meta(min_length=1, max_length=80, description="the name that every output gives the speaker")
    ]
    sha256: Sha256 | None = None


class WhisperPayload(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One audio file, or one per speaker, to transcribe; every other field has a default."""

    path: Annotated[AudioPath | None, msgspec.Meta(description="the audio file, relative to MEDIA_ROOT")] = None
    tracks: Annotated[
        tuple[Track, ...],
        msgspec.Meta(max_length=MOST_TRACKS, description="in place of `path`: one file for each speaker"),
    ] = ()
    sha256: Sha256 | None = None
    show: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="its names and settings hold, too")]
        | None
    ) = None
    language: (
        Annotated[
            str, msgspec.Meta(max_length=4, description="Whisper's code, or auto to detect it; else the show's, no")
        ]
        | None
    ) = None
    hotwords: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=100)], ...],
        msgspec.Meta(max_length=100, description="names that are spoken, likeliest first; 50 tokens are used"),
    ] = ()
    prompt: (
        Annotated[str, msgspec.Meta(max_length=1000, description="a line in the wanted style, before each unit")] | None
    ) = None
    word_timestamps: Annotated[bool, msgspec.Meta(description="times per word, in .transcript.json only")] = False
    outputs: Annotated[tuple[OutputKind, ...], msgspec.Meta(max_length=16, description="files to write")] = OUTPUT_KINDS
    subtitle_lines: Annotated[
        bool, msgspec.Meta(description="subtitles of two lines of 42 characters and 7 seconds at most")
    ] = False
    force: Annotated[bool, msgspec.Meta(description="transcribe anew, even where the same transcript is there")] = False
    lenient: Annotated[bool, msgspec.Meta(description="leave out a part that the engine died on twice")] = False
    analyze: Annotated[bool, msgspec.Meta(description="enqueue openrouter_analyze when done")] = False
    episode_id: Id = None
    tema_id: Id = None

    @property
    def ids(self) -> dict[str, str | int]:
        """Those that were given."""
        return {name: value for name in IDS if (value := getattr(self, name)) is not None}

    def __post_init__(self) -> None:
        if (self.path is None) == (not self.tracks):
            raise ValueError("expected either path (one file) or tracks (one file for each speaker)")
        self._check_tracks()
        if self.language not in (None, DETECT, *LANGUAGES):
            raise ValueError(
                f"language is {self.language!r}, expected 'auto' or a Whisper language code such as 'no', 'nn' or 'en'"
            )

    def _check_tracks(self) -> None:
        if self.tracks and self.sha256:
            raise ValueError("sha256 is that of path; with tracks, each names its own")
        if self.tracks and len(self.tracks) < FEWEST_TRACKS:
            raise ValueError(f"tracks has one file, expected {FEWEST_TRACKS} to {MOST_TRACKS}; use path for one")
        for field in ("path", "speaker"):
            values = [" ".join(getattr(track, field).split()) for track in self.tracks]
            if len(set(values)) < len(values):
                raise ValueError(f"tracks names a {field} twice, expected another one for each track")
            if "" in values:
                raise ValueError(f"tracks has a {field} of blanks, expected a name")
