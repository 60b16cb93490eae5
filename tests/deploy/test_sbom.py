"""The bill of materials of an image: by the schema of CycloneDX, and with what its lock file pins."""

import json
import re
import subprocess
import sys

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.databases import ROOT
from tests.unit.test_project import pins

PROGRAM = ROOT / "services" / "admin" / "sbom.py"


def written(*command: str) -> dict[str, str]:
    """Versions by package URL without its version, of a document that passed the schema."""
    with PROGRAM.open() as program:
        told = subprocess.run([*command, "-", "jobbko-x", "1"], stdin=program, capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, "")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(told.stdout) is None
    components = json.loads(told.stdout)["components"]
    assert len({each["bom-ref"] for each in components}) == len(components)
    return {each["purl"].partition("@")[0]: each["version"] for each in components}


def test_it_is_a_document_of_cyclonedx_with_the_packages_of_this_environment() -> None:
    found = written(sys.executable)

    assert found["pkg:pypi/psycopg"] == pins(ROOT / "requirements-dev.lock")["psycopg"]
    assert found["pkg:generic/python"] == sys.version.split()[0]


@pytest.mark.containers
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_lists_what_lies_in_an_image() -> None:
    """Debian's packages of the base, Python's of the lock file, each in its version."""
    image = "jobbko-stats:test-sbom"  # of its own: what has no name goes with the last test that built the same
    docker = ["docker", "build", "--quiet", "--tag", image, "--file", "services/stats/Dockerfile", "."]
    subprocess.run(docker, cwd=ROOT, capture_output=True, text=True, check=True)
    found = written("docker", "run", "--rm", "--interactive", "--network", "none", "--entrypoint", "python", image)
    subprocess.run(["docker", "image", "rm", image], capture_output=True, check=True)

    lock = ROOT / "services" / "stats" / "requirements.lock"
    conditional = re.findall(r"^(\S+)==\S+ ;", lock.read_text(), re.MULTILINE)  # for other Pythons and systems
    locked = {f"pkg:pypi/{name.lower()}": version for name, version in pins(lock).items() if name not in conditional}
    assert len(locked) > 5
    assert locked.items() <= found.items()
    assert "pkg:deb/debian/libc6" in found
