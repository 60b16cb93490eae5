"""The transcript of one file, or of the tracks of a conversation: units put together, with what a reader must know.

Nothing in it tells how the work went (that is the result's `timing`), so a run that was interrupted and resumed
gives the same transcript, byte for byte.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from services.whisper.messages import UNIT_NOTES, DecodeCounts, UnitResult, seconds
from services.whisper.model import TRIAL_NOTE, ModelFolder

SCHEMA = 1
# Something is missing: less than this share of the stated length, these seconds of what the sound itself states, more
# than this share or number of unreadable packets.
LEAST_DECODED, MOST_MISSING_SECONDS = 0.9, 5.0
MOST_BAD_SHARE, MOST_BAD_PACKETS = 0.01, 250  # a packet holds 20 to 26 ms

Row = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """What a transcript was made from and with. With tracks, path, digest and size are those of each `Voice`."""

    path: str
    sha256: str
    size_bytes: int
    model: ModelFolder
    compute_type: str
    device: str
    versions: dict[str, str]
    settings_hash: str
    language_was_given: bool
    ids: dict[str, str | int]  # of the surrounding system
    device_note: str | None = None  # why it is not the GPU that was looked for


@dataclass(frozen=True)
class Voice:
    """The finished track of one speaker."""

    speaker: str
    path: str
    sha256: str
    size_bytes: int
    units: Sequence[UnitResult]


def build_transcript(units: Sequence[UnitResult], origin: Origin) -> Row:
    """The transcript with all it knows, times of words included where the job asked for them."""
    rows = [row for unit in units for row in unit.segments]
    dropped = [row for unit in units for row in unit.dropped]
    transcript = _transcript(rows, dropped, [units], origin, _remarks(units, rows))
    transcript["source"] = {"path": origin.path, "sha256": origin.sha256, "bytes": origin.size_bytes}
    return transcript


def build_conversation(voices: Sequence[Voice], origin: Origin) -> Row:
    """The transcript of all tracks, by time, each segment with its speaker. Who speaks at once, stands at once."""
    rows, dropped = (
        [{"speaker": voice.speaker, **row} for voice in voices for unit in voice.units for row in getattr(unit, kind)]
        for kind in ("segments", "dropped")
    )
    for kind in (rows, dropped):  # stable: in the order of the tracks where times are the same
        kind.sort(key=lambda row: (row["start"], row["end"]))
    remarks = _conversation_remarks(voices, rows)
    transcript = _transcript(rows, dropped, [voice.units for voice in voices], origin, remarks)
    transcript["tracks"] = [
        {
            "speaker": voice.speaker,
            "path": voice.path,
            "sha256": voice.sha256,
            "bytes": voice.size_bytes,
            "language": _language(voice.units),
            "duration": seconds(voice.units[-1].end_sample),
            "speech_seconds": _speech_seconds(voice.units),
        }
        for voice in voices
    ]
    return transcript


def without_words(transcript: Row) -> Row:
    """For the database: times of words are many times the text and stand in the file."""
    rows = [{name: value for name, value in row.items() if name != "words"} for row in transcript["segments"]]
    return {**transcript, "segments": rows}


def _transcript(
    rows: Iterable[Row],
    dropped: Sequence[Row],
    parts: Sequence[Sequence[UnitResult]],
    origin: Origin,
    remarks: dict[str, str],
) -> Row:
    segments = [{"id": number, **row} for number, row in enumerate(rows)]
    if origin.model.is_for_trying_out:
        remarks = {**remarks, "trial_model": TRIAL_NOTE}
    transcript: Row = {
        "schema": SCHEMA,
        "text": " ".join(row["text"] for row in segments),
        "language": next((language for units in parts if (language := _language(units)) is not None), None),
        "language_probability": next(
            (p for units in parts for unit in units if (p := unit.language_probability) is not None), None
        ),
        "language_source": "forced" if origin.language_was_given else "detected",
        "duration": max(seconds(units[-1].end_sample) for units in parts),
        "speech_seconds": round(sum(map(_speech_seconds, parts)), 3),
        "segments": segments,
        "dropped": list(dropped),
        "dropped_by_reason": dict(sorted(Counter(row["reason"] for row in dropped).items())),
        "flags": list(remarks),
        "notes": [note for note in remarks.values() if note],
        "model": {
            "name": origin.model.name,
            "sha256": origin.model.sha256,
            "compute_type": origin.compute_type,
            "device": origin.device,
            **({"device_note": origin.device_note} if origin.device_note else {}),
        },
        "engine": origin.versions,
        "settings_hash": origin.settings_hash,
    }
    return transcript | origin.ids


def _language(units: Sequence[UnitResult]) -> str | None:
    return next((unit.language for unit in units if unit.language is not None), None)


def _speech_seconds(units: Sequence[UnitResult]) -> float:
    return seconds(sum(unit.speech_samples for unit in units))


def _remarks(units: Sequence[UnitResult], rows: Sequence[Row]) -> dict[str, str]:
    """Flag -> the sentence that explains it."""
    remarks: dict[str, str] = {}
    if damaged := damage(units[-1].decoding, seconds(units[-1].end_sample)):
        remarks["audio_damaged"] = damaged
    if not rows:
        remarks["no_speech"] = "No speech was found in the audio."
    raised = {flag for unit in units for flag in unit.flags}
    return remarks | {flag: note for flag, note in UNIT_NOTES.items() if flag in raised}


def _conversation_remarks(voices: Sequence[Voice], rows: Sequence[Row]) -> dict[str, str]:
    """The remarks of every track, in one sentence each that names the speaker."""
    remarks: dict[str, list[str]] = {}
    for voice in voices:
        own = _remarks(voice.units, [row for unit in voice.units for row in unit.segments])
        if "no_speech" in own and rows:  # of one track only: the others are the conversation
            own["silent_track"] = own.pop("no_speech")
        for flag, sentence in own.items():
            remarks.setdefault(flag, []).append(f"{voice.speaker}: {sentence}")
    return {flag: " ".join(sentences) for flag, sentences in remarks.items()}


def damage(counts: DecodeCounts, decoded: float) -> str | None:
    """What is to be said where sound is lost; `decoded` in seconds."""
    stated = counts.container_seconds or 0.0
    is_short = decoded < LEAST_DECODED * stated
    is_short |= counts.is_length_stated and stated - decoded > MOST_MISSING_SECONDS
    if not is_short and counts.bad_packets <= min(MOST_BAD_SHARE * counts.packets, MOST_BAD_PACKETS):
        return None
    return (
        f"The audio is damaged: {decoded:.1f} s were decoded, {stated:.1f} s are stated in the file; "
        f"{counts.bad_packets} of {counts.packets} packets were unreadable. Text may be missing."
    )
