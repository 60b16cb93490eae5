"""What the worker and its engine process say to each other over the pipe."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from services.whisper.media import FileIdentity

SAMPLE_RATE = 16_000  # of everything that is counted in samples

# Flag of a unit -> the sentence that explains it in the transcript.
UNIT_NOTES = {
    "hotwords_cut": "Not all hotwords were used: together they are too long, the last ones were left out.",
    "joined_rates": "The file was joined from parts with different sample rates. All of them were transcribed.",
    "unit_skipped": "A part of the audio was left out, since the engine died on it more than once.",
    "no_word_times": "In some part the times of words could not be found: its text has none.",
    "low_density": "In some part people speak for long and little text was found, also at a second try. Listen to it.",
}


@dataclass(frozen=True)
class ModelRequest:
    """The model to load, from a folder that was checked."""

    folder: Path
    compute_type: str  # "auto" = int8 on a CPU, the best that a GPU can
    cpu_threads: int  # 0 = as many as there are cores
    device: str = "cpu"  # "cuda" = nothing else; "auto" = a GPU where one works
    batch_size: int = 0  # windows at once on a GPU; 0 = by its memory


@dataclass(frozen=True)
class SpeechRequest:
    """What decides the text, apart from the audio and the model. `language` None asks for detection."""

    language: str | None
    hotwords: tuple[str, ...] = ()
    prompt: str | None = None
    word_timestamps: bool = False
    beam_size: int = 5
    unit_seconds: int = 300


@dataclass(frozen=True)
class EngineRequest:
    """One job for the engine: a file below MEDIA_ROOT, from `start_sample` on. Without a path: only load the model."""

    model: ModelRequest
    speech: SpeechRequest
    media_root: Path = Path()
    path: str = ""
    identity: FileIdentity | None = None
    first_unit: int = 0
    start_sample: int = 0
    skip_first: bool = False  # the engine died on the first unit, and the job says to go on without it


@dataclass(frozen=True)
class UnitStarted:
    """A unit was cut and is now transcribed."""

    index: int
    start_sample: int
    end_sample: int


@dataclass(frozen=True)
class UnitProgress:
    """A sign of life inside a unit. `total_seconds` is the container's word and may be missing or wrong."""

    stage: str  # "reading" or "transcribing"
    seconds: float
    total_seconds: float | None


@dataclass(frozen=True)
class DecodeCounts:
    """What decoding met from the start of the file to the end of a unit."""

    packets: int
    bad_packets: int
    container_seconds: float | None
    is_length_stated: bool = False  # by the sound itself: a video may go on without it, and a count follows the file


@dataclass(frozen=True)
class UnitResult:
    """One finished unit. Times are seconds from the start of the file."""

    SPENT: ClassVar = ("decode_s", "vad_s", "infer_s")

    index: int
    start_sample: int
    end_sample: int
    is_last: bool
    speech_samples: int
    language: str | None
    language_probability: float | None
    segments: list[dict[str, Any]] = field(repr=False)  # the log shows the last message of an engine that died
    decoding: DecodeCounts
    seconds_spent: dict[str, float]  # by the names of SPENT
    flags: list[str] = field(default_factory=list)  # what a reader of the text should know: keys of UNIT_NOTES
    dropped: list[dict[str, Any]] = field(default_factory=list, repr=False)  # segments that nobody said, by `reason`


@dataclass(frozen=True)
class EngineReport:
    """The answer to a request, once all its units were sent."""

    device: str
    compute_type: str
    cpu_threads: int
    load_seconds: float
    peak_rss_bytes: int
    batch_size: int = 1
    device_note: str | None = None  # why it is not the GPU, where one was looked for


def seconds(samples: int) -> float:
    """Seconds, to the millisecond."""
    return round(samples / SAMPLE_RATE, 3)
