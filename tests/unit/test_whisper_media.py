"""Paths from payloads never lead out of MEDIA_ROOT."""

import hashlib
import os
import pickle
import threading
from pathlib import Path

import pytest

from services.whisper.media import FileChangedError, open_source
from sidelinja_jobs import PermanentError
from sidelinja_jobs.confined_files import open_beneath


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A media folder with a good file, and a secret beside it."""
    (tmp_path / "secret.mp3").write_bytes(b"secret")
    media = tmp_path / "media"
    (media / "2026").mkdir(parents=True)
    (media / "2026" / "ep.mp3").write_bytes(b"sound")
    return media


def refusal(root: Path, path: str) -> PermanentError:
    with pytest.raises(PermanentError) as caught, open_source(root, path):
        pass
    return caught.value


def test_file_below_the_root_is_opened(root: Path) -> None:
    with open_source(root, "2026/ep.mp3") as source:
        assert os.pread(source.descriptor, 10, 0) == b"sound"
        assert source.sha256() == hashlib.sha256(b"sound").hexdigest()
        assert source.identity.size_bytes == 5
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(source.descriptor)


@pytest.mark.parametrize(
    ("path", "error_class"),
    [
        ("2026/missing.mp3", "not_found"),
        ("2026/ep.mp3/inner.mp3", "not_found"),
        ("n" * 300, "not_found"),
        ("../secret.mp3", "outside_root"),
        ("2026/../../secret.mp3", "outside_root"),
        ("2026/../2026/ep.mp3", "outside_root"),
        ("/etc/hostname", "outside_root"),
        ("ep\0.mp3", "outside_root"),
        ("2026", "not_a_file"),
        (".", "not_a_file"),
        ("empty.mp3", "empty_file"),
        ("pipe.mp3", "not_a_file"),
        ("device.mp3", "outside_root"),
        ("link.mp3", "outside_root"),
        ("folder/secret.mp3", "outside_root"),
        ("circle.mp3", "outside_root"),
        ("dangling.mp3", "not_found"),
    ],
)
def test_bad_path_is_refused_with_both_sides_named(root: Path, path: str, error_class: str) -> None:
    (root / "empty.mp3").touch()
    os.mkfifo(root / "pipe.mp3")
    (root / "device.mp3").symlink_to("/dev/zero")
    (root / "link.mp3").symlink_to("../secret.mp3")
    (root / "folder").symlink_to("..")
    (root / "circle.mp3").symlink_to("circle.mp3")
    (root / "dangling.mp3").symlink_to("gone.mp3")

    error = refusal(root, path)

    assert error.error_class == error_class
    assert repr(path) in str(error)
    assert repr(str(root)) in str(error)
    assert "Next:" in str(error)


def test_links_inside_the_root_are_followed(root: Path) -> None:
    (root / "latest.mp3").symlink_to("2026/ep.mp3")
    (root / "year").symlink_to("2026")

    for path in ("latest.mp3", "year/ep.mp3"):
        with open_source(root, path) as source:
            assert os.pread(source.descriptor, 10, 0) == b"sound"


def test_root_may_itself_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(root)

    with open_source(tmp_path / "linked", "2026/ep.mp3") as source:
        assert os.pread(source.descriptor, 10, 0) == b"sound"


@pytest.mark.parametrize("swapped", ["ep.mp3", "2026"])
def test_no_component_opened_is_ever_a_link(root: Path, swapped: str) -> None:
    """What a race between the check and the opening would leave behind."""
    place = next(root.rglob(swapped))
    place.rename(root / "moved")
    place.symlink_to(root.parent / "secret.mp3" if swapped == "ep.mp3" else root.parent)

    with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
        open_beneath(root, "2026/ep.mp3", os.O_RDONLY)


def test_exchanging_the_file_for_a_link_while_it_is_opened_never_gives_the_secret(root: Path) -> None:
    place, other = root / "2026" / "ep.mp3", root / "other"
    other.symlink_to(root.parent / "secret.mp3")
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            for source, target in ((place, root / "aside"), (other, place), (place, other), (root / "aside", place)):
                os.rename(source, target)

    racer = threading.Thread(target=exchange)
    racer.start()
    seen = set()
    try:
        for _ in range(2000):
            try:
                with open_source(root, "2026/ep.mp3") as source:
                    seen.add(os.pread(source.descriptor, 10, 0))
            except (PermanentError, FileChangedError) as error:
                seen.add(error.error_class)
    finally:
        stop.set()
        racer.join()

    assert b"sound" in seen
    assert seen <= {b"sound", "outside_root", "not_found", "file_changed"}


def test_file_that_is_replaced_or_written_to_is_noticed(root: Path) -> None:
    with open_source(root, "2026/ep.mp3") as source:
        source.require_unchanged()
        (root / "new").write_bytes(b"sound")
        (root / "new").rename(root / "2026" / "ep.mp3")
        with pytest.raises(FileChangedError, match="changed during the run"):
            source.require_unchanged()
        (root / "2026" / "ep.mp3").unlink()
        with pytest.raises(FileChangedError, match="taken away"):
            source.require_unchanged()


def test_errors_survive_the_pipe_from_the_engine() -> None:
    error = pickle.loads(pickle.dumps(FileChangedError("changed")))  # noqa: S301 - our own bytes

    assert isinstance(error, FileChangedError)
    assert (str(error), error.error_class, error.seconds) == ("changed", "file_changed", 30)
