"""The engine's libraries report to nobody."""

import os
import subprocess
import sys
from pathlib import Path

from tests.databases import ROOT
from tests.services.whisper_support import base_model

# Loads the model and finds speech, as the engine's process does.
ENGINE = """
import sys
from pathlib import Path
import services.whisper.engine as engine
from services.whisper.messages import ModelRequest
engine.load(ModelRequest(Path(sys.argv[1]), "int8", 1))
import numpy
from services.whisper.units import find_speech
assert find_speech(numpy.zeros(32000, numpy.float32)) == []
"""


def test_the_speech_detector_keeps_no_record_of_its_use(tmp_path: Path) -> None:
    """onnxruntime leaves a session file in TMPDIR for its reports unless ORT_DISABLE_TELEMETRY is set in time."""
    environ = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environ |= {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}"}

    subprocess.run([sys.executable, "-c", ENGINE, str(base_model().folder)], env=environ, check=True, timeout=100)

    assert list(tmp_path.iterdir()) == []
