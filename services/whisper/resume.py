"""Finished units of an earlier run, used again when nothing that decides the text has changed.

A unit's text is decided by the audio, the model, the settings and the libraries. Their digest is the key that every
checkpoint carries; a checkpoint with another key belongs to another text.
"""

import dataclasses
import hashlib
import json
from importlib.metadata import version
from typing import Any

import msgspec

from services.whisper.guards import GUARDS_VERSION
from services.whisper.messages import SpeechRequest, UnitResult
from sidelinja_jobs import Checkpoint

# Raised when the code changes in a way that changes texts or cuts.
TEXT_VERSION = 1
PACKAGES = ("faster-whisper", "ctranslate2", "onnxruntime", "av")


def package_versions() -> dict[str, str]:
    """The libraries that decide the text."""
    return {name.replace("-", "_"): version(name) for name in PACKAGES}


def settings_hash(speech: SpeechRequest, model_sha256: str, compute_type: str) -> str:
    """Names everything that decides the text, apart from the audio."""
    settings = {
        "text_version": TEXT_VERSION,
        "guards_version": GUARDS_VERSION,
        "model": model_sha256,
        "compute_type": compute_type,
        "packages": package_versions(),
        **dataclasses.asdict(speech),
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def resume_key(source_sha256: str, settings: str) -> str:
    """What a checkpoint must carry to be used again."""
    return f"{source_sha256}:{settings}"


def as_checkpoint(unit: UnitResult, key: str) -> dict[str, Any]:
    """A finished unit as JSON."""
    return {"key": key, **dataclasses.asdict(unit)}


def is_record(data: Any, key: str) -> bool:
    """Whether a checkpoint tells of a run, and not of a finished unit."""
    return isinstance(data, dict) and data.get("key") == key and ("run" in data or "run_end" in data)


def usable_units(checkpoints: list[Checkpoint], key: str) -> list[UnitResult]:
    """The units that earlier runs finished, in order without a gap; none when they do not fit."""
    units: list[UnitResult] = []
    for checkpoint in checkpoints:
        unit = _unit(checkpoint.data, key)
        reached = units[-1].end_sample if units else 0
        if unit is None or unit.index != len(units) or unit.start_sample != reached:
            return []
        units.append(unit)
    return units


def _unit(data: Any, key: str) -> UnitResult | None:
    if not isinstance(data, dict) or data.get("key") != key:
        return None
    try:
        return msgspec.convert(data, UnitResult)
    except msgspec.ValidationError:
        return None
