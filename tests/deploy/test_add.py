"""`make add`: a file comes into the media folder whole, under its name, and nothing leaves the folder."""

import errno
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from services.admin.add import main


def add(media: Path, name: str, *arguments: str, content: bytes = b"sound") -> tuple[int, str]:
    result = CliRunner().invoke(main, ["--media", str(media), *arguments, "--", name], input=content)
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["a.mp3", "2026/12/Ærlig talt – episode 12.mp3", "-x '\".mp3", "....mp3"])
def test_file_is_there_under_its_name(tmp_path: Path, name: str) -> None:
    code, told = add(tmp_path, name)

    assert code == 0
    assert (tmp_path / name).read_bytes() == b"sound"
    assert "jobs enqueue whisper_transcribe" in told
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name], "no draft is left"


@pytest.mark.parametrize("name", ["../a.mp3", "/etc/a.mp3", "a/../../b.mp3", "", " "])
def test_name_cannot_lead_out(tmp_path: Path, name: str) -> None:
    media = tmp_path / "media"
    media.mkdir()
    code, told = add(media, name)

    assert code == 1
    assert "no name inside the media folder" in told
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_link_cannot_lead_out(tmp_path: Path) -> None:
    media = tmp_path / "media"
    (tmp_path / "outside").mkdir()
    media.mkdir()
    (media / "link").symlink_to(tmp_path / "outside")
    code, told = add(media, "link/deeper/a.mp3")

    assert code == 1
    assert "leads out of the media folder by a link" in told
    assert list((tmp_path / "outside").iterdir()) == []


def test_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    add(tmp_path, "a.mp3")
    code, told = add(tmp_path, "a.mp3", content=b"other")

    assert code == 1
    assert "is there already" in told
    assert (tmp_path / "a.mp3").read_bytes() == b"sound"
    assert add(tmp_path, "a.mp3", "--replace", content=b"other")[0] == 0
    assert (tmp_path / "a.mp3").read_bytes() == b"other"


def test_folder_that_cannot_be_written_is_told_with_path_and_user() -> None:
    code, told = add(Path("/proc"), "a.mp3")

    assert code == 1
    assert f"uid {os.getuid()}, gid {os.getgid()}" in told
    assert "MEDIA_DIR" in told


def test_name_of_a_folder_and_name_below_a_file_ask_for_another_name(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    add(tmp_path, "file")
    told = [add(tmp_path, "folder", "--replace"), add(tmp_path, "file/a.mp3"), add(tmp_path, "a" * 300)]

    assert [code for code, _ in told] == [1, 1, 1]
    assert all("Next: another name (AS=…)" in line for _, line in told)
    assert f"{tmp_path / 'folder'}: Is a directory" in told[0][1]


def test_full_disk_asks_for_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    code, told = add(tmp_path, "a.mp3")

    assert code == 1
    assert "No space left on device" in told
    assert "Next: free some space there" in told
    assert list(tmp_path.iterdir()) == [], "no draft is left"
