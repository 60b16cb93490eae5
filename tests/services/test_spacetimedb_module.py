"""The example module for SpacetimeDB: its reducer takes what the forwarder sends, and its types fit the library."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.databases import ROOT
from tests.services.spacetimedb_fake import PARAMETERS, is_optional_string, is_string, is_u32, is_u64

MODULE = ROOT / "docs" / "spacetimedb"
TYPES = {
    "t.string()": is_string,
    "t.u64()": is_u64,
    "t.u32()": is_u32,
    "t.option(t.string())": is_optional_string,
}


def test_the_reducer_takes_the_arguments_in_the_order_in_which_they_are_sent() -> None:
    source = (MODULE / "src" / "index.ts").read_text(encoding="utf-8")
    (parameters,) = re.findall(r"job_event = spacetimedb\.reducer\(\s*\{(.*?)\n  \},", source, re.DOTALL)
    found = {name: TYPES[kind] for name, kind in re.findall(r"^ *(\w+): (t\..*),$", parameters, re.MULTILINE)}

    assert list(found.items()) == list(PARAMETERS.items())


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["npm", "run", "--silent", "check"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_types_of_the_module_fit_the_library(tmp_path: Path) -> None:
    """Fetches 50 MB of packages from the registry that npm is set to; no script of theirs is run."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm on the PATH: Node 20 or newer brings it")
    shutil.copytree(MODULE, tmp_path, dirs_exist_ok=True)
    subprocess.run(
        ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=tmp_path, check=True, timeout=300
    )

    assert checked(tmp_path).stdout == ""
    source = tmp_path / "src" / "index.ts"
    source.write_text(source.read_text().replace("attempt: event.attempt,", "attempt: event.text,"))
    broken = checked(tmp_path)
    assert (broken.returncode, "TS2339" in broken.stdout) == (2, True), "a check that finds nothing is none"
