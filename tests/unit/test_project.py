"""The project's own rules, checked on the files that git tracks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import ROOT

MOST_LINES = 300
CODE = {".py", ".sql", ".js", ".css", ".html", ".sh"}
LOCKS = sorted([ROOT / "requirements-dev.lock", *ROOT.glob("services/*/requirements.lock")])
ALL_LOCKS = sorted([*ROOT.glob("*.lock"), *ROOT.glob("services/*/*.lock"), *ROOT.glob("tests/services/*.lock")])
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
# Spelled apart, so that this file does not name them itself.
REGISTRY_HOSTS = ("pypi" + ".org", "python" + "hosted.org", "deb.debian" + ".org", "npmjs" + ".org")
MACHINE_PATHS = (
    "/work/" + "main",
    "/work/" + "shared",
    "/work/" + ".library",
    "/opt/" + "pypi",
    "/opt/" + "wheels",
)


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def texts() -> list[tuple[Path, str]]:
    """Path below the root and content of each tracked text file."""
    found = []
    for file in tracked_files():
        content = file.read_bytes()
        if b"\0" not in content:
            found.append((file.relative_to(ROOT), content.decode()))
    return found


def pins(lock: Path) -> dict[str, str]:
    return dict(PIN.findall(lock.read_text()))


def test_no_code_file_is_longer_than_300_lines() -> None:
    long = {
        str(file): text.count("\n") for file, text in texts()
        if file.suffix in CODE and text.count("\n") > MOST_LINES
    }  # fmt: skip

    assert long == {}


def test_no_tracked_file_names_a_registry_host_or_a_path_of_a_machine() -> None:
    named = [f"{file}: {word}" for file, text in texts() for word in REGISTRY_HOSTS + MACHINE_PATHS if word in text]

    assert named == []


def test_every_folder_of_the_path_is_free_of_modules_that_shadow_the_standard_library() -> None:
    shadowing = [
        path.name
        for folder in (ROOT, ROOT / "shared")
        for path in folder.iterdir()
        if path.stem in sys.stdlib_module_names
    ]

    assert shadowing == []


def test_make_without_a_target_lists_every_target_with_its_comment() -> None:
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    makefiles = [ROOT / "Makefile", *ROOT.glob("*.mk")]
    targets = {
        target
        for makefile in makefiles
        for line in re.findall(r"^\.PHONY:(.*)$", makefile.read_text(), re.MULTILINE)
        for target in line.split()
    }
    listed = [line.split() for line in shown.splitlines() if line.startswith("  ")]
    assert sorted(words[0] for words in listed) == sorted(targets)
    assert all(len(words) > 1 for words in listed)


@pytest.mark.parametrize("lock", ALL_LOCKS, ids=lambda lock: str(lock.relative_to(ROOT)))
def test_lock_file_pins_every_package_with_hashes_and_names_no_address(lock: Path) -> None:
    text = lock.read_text()
    entries = re.split(r"\n(?=\S)", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE).strip())

    for entry in entries:
        assert PIN.match(entry), entry
        assert entry.count("--hash=sha256:") >= 1, entry
    assert "://" not in text
    assert not re.search(r"^ *(-i|--index-url|--extra-index-url|--find-links|-f)\b", text, re.MULTILINE)


def test_images_and_host_run_the_same_versions() -> None:
    host = pins(ROOT / "requirements-dev.lock")

    for lock in LOCKS:
        assert {name: host.get(name) for name in pins(lock)} == pins(lock), lock


def test_lock_files_hold_what_the_requirement_lists_pin() -> None:
    for wanted in ROOT.glob("services/*/requirements.in"):
        lock = wanted.with_suffix(".lock")
        both = (ROOT / "shared/sidelinja_jobs/requirements.in").read_text() + wanted.read_text()
        asked = {
            re.sub(r"\[.*?\]", "", name): version
            for name, version in re.findall(r"^([\w.\[\]-]+)==(\S+)", both, re.MULTILINE)
        }

        assert asked.items() <= pins(lock).items(), f"{lock} is older than {wanted}. Next: make lock"


def test_only_the_whisper_image_carries_numpy() -> None:
    carrying = [lock.parent.name for lock in LOCKS if "numpy" in pins(lock) and lock.parent != ROOT]

    assert carrying == ["whisper"]
    assert "torch" not in pins(ROOT / "requirements-dev.lock")
