"""The model: a folder whose files are checked before anything is loaded from it.

CTranslate2 and faster-whisper go looking on a hub when a file is missing, and say little when one is cut short. So
the worker looks first: the files exist, `model.bin` ends where its own table of tensors says, the JSON files can be
read, and where the folder holds a SHA256SUMS, every file has its digest. Nothing here needs the libraries.
"""

import hashlib
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sidelinja_jobs import SettingsError

WEIGHTS = "model.bin"
VOCABULARIES = ("vocabulary.txt", "vocabulary.json")
DIGESTS = "SHA256SUMS"
SMALLEST_WEIGHTS_BYTES = 10_000_000  # tiny, in 8 bits, has 40 MB
FORMAT_VERSION = 6  # of CTranslate2's binary format, since its version 2
TRIAL_MODELS = ("tiny", "base")
# As several independent projects publish it for the multilingual base model, revision ebe41f70d5b6.
BASE_WEIGHTS_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
TRIAL_NOTE = (
    "The model base is for trying out: 37 % of the words are wrong in Norwegian (measured on one speech). "
    "Set WHISPER_MODEL to a larger model for real use."
)


@dataclass(frozen=True)
class ModelFolder:
    """A model that passed the checks."""

    name: str
    folder: Path
    sha256: str  # of model.bin

    @property
    def is_for_trying_out(self) -> bool:
        return self.name.split(".")[0] in TRIAL_MODELS or self.sha256 == BASE_WEIGHTS_SHA256


def check_model(model_root: Path, name: str) -> ModelFolder:
    """The model's folder, fit to be loaded.

    Raises:
        SettingsError: which file is missing, cut short or altered, and what to do.
    """
    if "/" in name or name in {"", ".", ".."}:
        raise SettingsError(f"WHISPER_MODEL is {name!r}, expected the name of a folder in MODEL_ROOT such as 'base'")
    folder = model_root / name
    if not folder.is_dir():
        raise _problem(folder, f"no such folder; MODEL_ROOT is {str(model_root)!r}, WHISPER_MODEL {name!r}")
    try:
        _require_files(folder)
        _require_whole(folder / WEIGHTS)
        return ModelFolder(name, folder, _checked_digest(folder))
    except OSError as error:
        raise _problem(folder, f"{error.filename} cannot be read by uid {os.getuid()}: {error.strerror}") from error


def file_sha256(file: Path) -> str:
    """The digest of a file's content."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _require_files(folder: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        _require_json(folder, name)
    vocabulary = next((name for name in VOCABULARIES if (folder / name).is_file()), None)
    if vocabulary is None:
        raise _problem(folder, f"{' or '.join(VOCABULARIES)} is missing")
    if (folder / vocabulary).stat().st_size == 0:
        raise _problem(folder, f"{vocabulary} is empty")
    if not (folder / WEIGHTS).is_file():
        raise _problem(folder, f"{WEIGHTS} is missing")


def _require_json(folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        raise _problem(folder, f"{name} is missing")
    try:
        json.loads((folder / name).read_bytes())
    except ValueError as error:
        raise _problem(folder, f"{name} is not JSON ({error})") from error


def _require_whole(weights: Path) -> None:
    """Walks the table of tensors: name, shape, type, size, bytes, over and over, then the aliases."""
    size = weights.stat().st_size
    if size < SMALLEST_WEIGHTS_BYTES:
        raise _problem(weights.parent, f"{WEIGHTS} has {size:,} bytes, expected at least {SMALLEST_WEIGHTS_BYTES:,}")
    try:
        with weights.open("rb") as file:
            end = _end_of_tensors(file)
    except (struct.error, UnicodeDecodeError) as error:
        raise _problem(weights.parent, f"{WEIGHTS} has {size:,} bytes and ends inside its list of tensors") from error
    if end is not None and end != size:
        raise _problem(weights.parent, f"{WEIGHTS} has {size:,} bytes, expected {end:,} by its own list of tensors")


def _end_of_tensors(file: BinaryIO) -> int | None:
    """Where the file should end; None for a format that is not known here (the library judges it at loading)."""
    (version,) = _unpack(file, "<I")
    if version != FORMAT_VERSION:
        return None
    _skip_text(file)
    _revision, tensors = _unpack(file, "<II")
    for _ in range(tensors):
        _skip_text(file)
        (rank,) = _unpack(file, "<B")
        *_shape, _kind, size = _unpack(file, f"<{rank}IBI")
        file.seek(size, os.SEEK_CUR)
    (aliases,) = _unpack(file, "<I")
    for _ in range(2 * aliases):
        _skip_text(file)
    return file.tell()


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _skip_text(file: BinaryIO) -> None:
    (length,) = _unpack(file, "<H")
    file.seek(length, os.SEEK_CUR)


def _checked_digest(folder: Path) -> str:
    """The digest of the weights; every file that SHA256SUMS lists must have its own."""
    listed = _listed_digests(folder)
    found = {name: file_sha256(folder / name) for name in sorted({*listed, WEIGHTS})}
    for name, digest in listed.items():
        if found[name] != digest:
            raise _problem(folder, f"{name} was altered: expected sha256 {digest}, found {found[name]}")
    return found[WEIGHTS]


def _listed_digests(folder: Path) -> dict[str, str]:
    if not (folder / DIGESTS).is_file():
        return {}
    lines = [line.split() for line in (folder / DIGESTS).read_text(encoding="utf-8").splitlines() if line.strip()]
    if not all(len(line) == 2 and "/" not in line[1] for line in lines):
        raise _problem(folder, f"{DIGESTS} is not a list of '<sha256>  <file>' lines")
    return {name.lstrip("*"): digest.lower() for digest, name in lines}


def _problem(folder: Path, what: str) -> SettingsError:
    return SettingsError(
        f"model {folder}: {what}. Next: python -m services.whisper.model_fetch --root {folder.parent} "
        f"--name {folder.name} (in the stack: docker compose up model), or set MODEL_ROOT and WHISPER_MODEL"
    )
