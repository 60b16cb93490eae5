"""The whisper worker starts without a network, on a read-only root, from a model folder that it may only read."""

import json
import re
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.deploy.containers import docker
from tests.services.whisper_support import base_model

pytestmark = [pytest.mark.containers, pytest.mark.model, pytest.mark.timeout(600)]
IMAGE = "jobbko-whisper:offline-test"
MOST_SECONDS = 10.0
SLOW_MACHINE = 3  # others may be at work on it


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    docker("build", "--quiet", "--tag", IMAGE, "--file", "services/whisper/Dockerfile", ".")
    yield IMAGE
    docker("image", "rm", IMAGE, check=False)


def test_worker_loads_its_model_within_ten_seconds_without_a_network(image: str) -> None:
    models = base_model().folder.parent
    settings = {"DATABASE_URL": "postgresql://worker_whisper@localhost:1/jobbko", "LOG_FORMAT": "json"}
    command = ["docker", "run", "--rm", "--network", "none", "--read-only", "--tmpfs=/tmp", "--user", "10001:10001"]
    command += ["--volume", f"{models}:/models:ro", *(f"--env={name}={value}" for name, value in settings.items())]
    started = time.monotonic()
    seconds = None
    with subprocess.Popen(
        [*command, image, "timeout", "60", "python", "-m", "services.whisper"], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        lines = []
        for line in worker.stdout:
            lines.append(line)
            if re.search('"event": "model loaded"', line):
                seconds = time.monotonic() - started
                break
        worker.terminate()
        worker.stdout.read()

    assert seconds is not None, "".join(lines)
    print(
        f"\nmodel loaded {seconds:.1f} s after docker run: {json.loads(lines[-1])['seconds']} s of them for the model"
    )
    assert seconds < MOST_SECONDS * SLOW_MACHINE
