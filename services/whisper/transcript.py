"""The transcript of one file: its units put together, with what a reader must know about them.

Nothing in it tells how the work went (that is the result's `timing`), so a run that was interrupted and resumed
gives the same transcript, byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.whisper.messages import UnitResult, seconds
from services.whisper.model import TRIAL_NOTE, ModelFolder

SCHEMA = 1
# Below this share of the stated length, or above this share of unreadable packets, something is missing.
LEAST_DECODED = 0.9
MOST_BAD_PACKETS = 0.01

Row = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """What a transcript was made from and with."""

    path: str
    sha256: str
    size_bytes: int
    model: ModelFolder
    compute_type: str
    device: str
    versions: dict[str, str]
    settings_hash: str
    language_was_given: bool
    episode_id: str | int | None


def build_transcript(units: Sequence[UnitResult], origin: Origin) -> Row:
    """The transcript with all it knows, times of words included where the job asked for them."""
    segments = [{"id": number, **row} for number, row in enumerate(row for unit in units for row in unit.segments)]
    speaking = next((unit for unit in units if unit.language is not None), None)
    remarks = _remarks(units, segments, origin.model)
    transcript: Row = {
        "schema": SCHEMA,
        "text": " ".join(row["text"] for row in segments),
        "language": speaking.language if speaking else None,
        "language_probability": next((p for unit in units if (p := unit.language_probability) is not None), None),
        "language_source": "forced" if origin.language_was_given else "detected",
        "duration": seconds(units[-1].end_sample),
        "speech_seconds": seconds(sum(unit.speech_samples for unit in units)),
        "segments": segments,
        "flags": list(remarks),
        "notes": [note for note in remarks.values() if note],
        "model": {
            "name": origin.model.name,
            "sha256": origin.model.sha256,
            "compute_type": origin.compute_type,
            "device": origin.device,
        },
        "engine": origin.versions,
        "settings_hash": origin.settings_hash,
        "source": {"path": origin.path, "sha256": origin.sha256, "bytes": origin.size_bytes},
    }
    if origin.episode_id is not None:
        transcript["episode_id"] = origin.episode_id
    return transcript


def without_words(transcript: Row) -> Row:
    """For the database: times of words are many times the text and stand in the file."""
    rows = [{name: value for name, value in row.items() if name != "words"} for row in transcript["segments"]]
    return {**transcript, "segments": rows}


def _remarks(units: Sequence[UnitResult], segments: list[Row], model: ModelFolder) -> dict[str, str]:
    """Flag -> the sentence that explains it."""
    remarks: dict[str, str] = {}
    if damage := _damage(units[-1]):
        remarks["audio_damaged"] = damage
    if not segments:
        remarks["no_speech"] = "No speech was found in the audio."
    if any("hotwords_cut" in unit.flags for unit in units):
        remarks["hotwords_cut"] = "Not all hotwords were used: together they are too long, the last ones were left out."
    if model.is_for_trying_out:
        remarks["trial_model"] = TRIAL_NOTE
    return remarks


def _damage(last: UnitResult) -> str | None:
    counts, decoded = last.decoding, seconds(last.end_sample)
    stated = counts.container_seconds or 0.0
    is_short = decoded < LEAST_DECODED * stated
    if not is_short and counts.bad_packets <= MOST_BAD_PACKETS * counts.packets:
        return None
    return (
        f"The audio is damaged: {decoded:.1f} s were decoded, {stated:.1f} s are stated in the file; "
        f"{counts.bad_packets} of {counts.packets} packets were unreadable. Text may be missing."
    )
