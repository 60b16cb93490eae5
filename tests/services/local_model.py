"""Starts the server of the real small model, in the environment that `make test-local-llm` makes."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.waiting import wait_until

SERVER = Path(__file__).with_name("local_model_server.py")
START_SECONDS = 60


@contextlib.contextmanager
def local_model(folder: Path) -> Iterator[str]:
    """The address of a running server; its log goes into the folder."""
    place = os.environ.get("JOBBKO_LOCAL_LLM")
    assert place, "JOBBKO_LOCAL_LLM is not set, expected the environment of the model. Next: make test-local-llm"
    log = folder / "model.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [f"{place}/bin/python", SERVER],
            stdin=subprocess.PIPE,  # closed with this process, which ends the server
            stdout=written,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"},
        )
    try:
        yield wait_until(lambda: _address(process, log), START_SECONDS, every=0.1, what="the model to listen") + "/v1"
    finally:
        process.kill()
        process.communicate()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    text = log.read_text(errors="replace")
    assert process.poll() is None, f"the model's server ended with {process.returncode}:\n{text[-2000:]}"
    lines = [line for line in text.splitlines() if line.startswith("listening on ")]
    return lines[0].removeprefix("listening on ") if lines else ""
