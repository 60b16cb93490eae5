"""What is in an image: a bill of materials (CycloneDX 1.6, JSON) of the image in which this runs, on standard output.

    docker run --rm --interactive --entrypoint python IMAGE - NAME VERSION <services/admin/sbom.py

`make sbom` does that for every image. Nothing but the standard library is needed, so that it runs in each of them; it
reads what Debian's package manager and Python's have written down in the image, not what somebody meant to put there.
"""

import json
import platform
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

DPKG_STATUS = Path("/var/lib/dpkg/status")
OS_RELEASE = Path("/etc/os-release")
Component = dict[str, Any]


def bill(name: str, version: str) -> dict[str, Any]:
    """The document; `name` and `version` are the image's."""
    found = [python(), *sorted([*debian_packages(), *python_packages()], key=lambda each: str(each["purl"]))]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "component": {"type": "container", "bom-ref": "image", "name": name, "version": version},
        },
        "components": found,
        "dependencies": [{"ref": "image", "dependsOn": [each["bom-ref"] for each in found]}],
    }


def python() -> Component:
    """The interpreter, which the base image brings outside Debian's packages."""
    version = platform.python_version()
    return component("application", "python", version, f"pkg:generic/python@{version}")


def debian_packages() -> Iterator[Component]:
    """Installed packages, as dpkg has them; none on another system."""
    if not DPKG_STATUS.exists():
        return
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', OS_RELEASE.read_text(), re.MULTILINE))
    distro = f"{release.get('ID', 'debian')}-{release.get('VERSION_ID', 'unknown')}"
    for entry in DPKG_STATUS.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Architecture|Status): (.*)$", entry, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            name, version = fields["Package"], fields["Version"]
            place = f"?arch={fields['Architecture']}&distro={distro}"
            yield component("library", name, version, f"pkg:deb/debian/{quote(name)}@{quote(version)}{place}")


def python_packages() -> Iterator[Component]:
    """Distributions on the path, each once: pip's own are there, too, as long as the image has them."""
    seen = set()
    for distribution in distributions():
        name = re.sub(r"[-_.]+", "-", distribution.name).lower()
        if (name, distribution.version) not in seen:
            seen.add((name, distribution.version))
            version = distribution.version
            yield component("library", name, version, f"pkg:pypi/{name}@{quote(version)}") | licence(distribution)


def component(kind: str, name: str, version: str, purl: str) -> Component:
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def licence(distribution: Distribution) -> Component:
    """What the package says of itself, where it says so in an SPDX expression."""
    told = distribution.metadata
    return {"licenses": [{"expression": told["License-Expression"]}]} if "License-Expression" in told else {}


if __name__ == "__main__":
    json.dump(bill(*sys.argv[1:3]), sys.stdout, indent=1)
    print()
