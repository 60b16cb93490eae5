"""Transcript files arrive whole, beside the audio or below OUTPUT_ROOT, and follow no link."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.whisper.outputs import Destination, destinations, write_outputs
from sidelinja_jobs import PermanentError
from sidelinja_jobs.confined_files import DiskFullError
from tests.databases import ROOT

FILES = {"vtt": "WEBVTT\n", "json": "{}\n"}


@pytest.fixture
def media(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    (folder / "2026").mkdir(parents=True)
    (folder / "2026" / "ep042.mp3").write_bytes(b"sound")
    return folder


def write(places: list[Destination], language: str | None = "no") -> dict[str, object]:
    return write_outputs(places, FILES, language, "abc")


def test_files_stand_beside_the_audio_and_nothing_else_does(media: Path) -> None:
    written = write(destinations(media, None, "2026/ep042.mp3"))

    assert written == {
        "outputs": {"vtt": "2026/ep042.no.vtt", "json": "2026/ep042.no.transcript.json"},
        "output_root": "media",
    }
    assert (media / "2026" / "ep042.no.vtt").read_text() == "WEBVTT\n"
    assert len(list((media / "2026").iterdir())) == 3


def test_unknown_language_is_called_und(media: Path) -> None:
    outputs = write(destinations(media, None, "2026/ep042.mp3"), language=None)["outputs"]

    assert isinstance(outputs, dict)
    assert outputs["vtt"] == "2026/ep042.und.vtt"


def test_file_at_the_root_and_names_with_dots_and_letters(media: Path) -> None:
    (media / "Blåbær. Del 1.mp3").touch()

    outputs = write(destinations(media, None, "Blåbær. Del 1.mp3"))["outputs"]

    assert isinstance(outputs, dict)
    assert (media / "Blåbær. Del 1.no.vtt").is_file()


def test_old_files_and_leftovers_are_replaced_and_no_link_is_written_through(media: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    folder = media / "2026"
    (folder / "ep042.no.vtt").symlink_to(victim)
    (folder / ".abc.vtt.part").symlink_to(victim)
    (folder / ".abc.json.part").write_text("left by a run that was killed")
    (folder / "ep042.no.transcript.json").write_text("old")

    write(destinations(media, None, "2026/ep042.mp3"))

    assert victim.read_text() == "untouched"
    assert not (folder / "ep042.no.vtt").is_symlink()
    assert (folder / "ep042.no.transcript.json").read_text() == "{}\n"
    assert not list(folder.glob(".abc*"))


def test_folder_that_became_a_link_is_not_followed(media: Path, tmp_path: Path) -> None:
    places = destinations(media, None, "2026/ep042.mp3")
    (media / "2026").rename(media / "moved")
    (tmp_path / "elsewhere").mkdir()
    (media / "2026").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
        write(places)

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_link_in_the_output_root_is_not_followed(media: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (output / "2026").symlink_to(tmp_path / "elsewhere")
    place = destinations(media, output, "2026/ep042.mp3")[-1]

    with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
        place.write(FILES, "no", "abc")

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_failed_write_leaves_no_part(media: Path) -> None:
    (media / "2026" / "ep042.no.vtt").mkdir()

    with pytest.raises(IsADirectoryError):
        write(destinations(media, None, "2026/ep042.mp3"))

    assert not list((media / "2026").glob(".abc*"))


def test_full_disk_is_tried_again_and_leaves_what_was_there(media: Path) -> None:
    folder = media / "2026"
    (folder / "ep042.no.transcript.json").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(DiskFullError, match=r"No room .*2026.* Next: free some space") as caught:
            write_outputs(destinations(media, None, "2026/ep042.mp3"), {"vtt": "W", "json": "x" * 101}, "no", "abc")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert (caught.value.error_class, caught.value.seconds) == ("disk_full", 300)
    assert (folder / "ep042.no.transcript.json").read_text() == "old"
    assert {file.name for file in folder.iterdir()} == {"ep042.mp3", "ep042.no.vtt", "ep042.no.transcript.json"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_room_that_ends_at_the_sync_is_a_full_disk_too(
    media: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(DiskFullError, match=os.strerror(number)):
        write(destinations(media, None, "2026/ep042.mp3"))

    assert [file.name for file in (media / "2026").iterdir()] == ["ep042.mp3"]


def test_name_too_long_for_the_transcript_is_known_before_the_work(media: Path) -> None:
    with pytest.raises(PermanentError, match="shorter name") as caught:
        destinations(media, None, f"2026/{'å' * 120}.mp3")

    assert caught.value.error_class == "name_too_long"


@pytest.fixture
def read_only_media() -> Iterator[Path]:
    """A tree that another user may read, and a folder below it that he may write."""
    parent = Path(tempfile.mkdtemp(prefix="jobbko-test-outputs-"))
    parent.chmod(0o755)
    (parent / "media" / "2026" / "høst").mkdir(parents=True)
    (parent / "media" / "2026" / "høst" / "ep042.mp3").write_bytes(b"sound")
    (parent / "output").mkdir()
    (parent / "output").chmod(0o777)
    for folder in (parent / "media", *(parent / "media").rglob("*/")):
        folder.chmod(0o555)
    yield parent
    subprocess.run(["chmod", "-R", "u+w", str(parent)], check=True)
    shutil.rmtree(parent)


PROGRAM = """
import json, os, sys
from pathlib import Path
from services.whisper.outputs import Destination, destinations, write_outputs
from sidelinja_jobs import PermanentError
media, output, believes = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
if os.getuid() == 0:
    os.setuid(65534)
try:
    places = destinations(media, Path(output) if output else None, "2026/høst/ep042.mp3")
    if believes:
        places.insert(0, Destination("media", media, "2026/høst", "ep042"))
    print(json.dumps(write_outputs(places, {"vtt": "WEBVTT"}, "no", "abc")))
except PermanentError as error:
    print(json.dumps({"error_class": error.error_class, "message": str(error)}))
"""


def write_as_somebody_else(parent: Path, output: str, *, believes_writable: bool = False) -> dict[str, object]:
    """Runs as a user who is not root, whom no folder would be read-only for."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(parent / "media"), output, "yes" if believes_writable else ""],
        env={"PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("believes_writable", [False, True], ids=["seen-before", "seen-when-writing"])
def test_read_only_folder_sends_the_files_to_the_output_root(read_only_media: Path, believes_writable: bool) -> None:
    output = read_only_media / "output"

    written = write_as_somebody_else(read_only_media, str(output), believes_writable=believes_writable)

    assert written == {"outputs": {"vtt": "2026/høst/ep042.no.vtt"}, "output_root": "output"}
    assert (output / "2026" / "høst" / "ep042.no.vtt").read_text() == "WEBVTT"


def test_read_only_folder_without_output_root_is_refused_before_the_work(read_only_media: Path) -> None:
    answer = write_as_somebody_else(read_only_media, "")

    assert answer["error_class"] == "not_writable"
    assert "OUTPUT_ROOT" in str(answer["message"])
