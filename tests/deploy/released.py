"""What databases exist of: the frozen files of db/init, and the state of the tree that is upgraded from."""

import subprocess
from pathlib import Path

import pytest

from tests.databases import ROOT

RELEASED = ROOT / "db" / "released.sha256"  # written by `make freeze`
STATE_MARK = "# upgraded from "


def frozen_files() -> dict[str, str]:
    """Checksum of each frozen file, by its path below the root."""
    lines = [line for line in RELEASED.read_text().splitlines() if not line.startswith("#")]
    return dict(reversed(line.split()) for line in lines)


def state() -> str:
    """The commit or tag that is upgraded from."""
    return RELEASED.read_text().partition("\n")[0].removeprefix(STATE_MARK)


def unpack(folder: Path, *paths: str) -> Path:
    """Writes these paths of that state (all without any) into the folder, out of git; skips where git lacks it."""
    if subprocess.run(["git", "cat-file", "-e", f"{state()}^{{commit}}"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip(f"the history of this clone has no {state()}. Next: git fetch --unshallow")
    archive = subprocess.run(["git", "archive", state(), *paths], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder
