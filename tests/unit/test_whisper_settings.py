"""What the worker is told, checked before it takes a job."""

from pathlib import Path

import pytest

from services.whisper.handler import Transcriber
from services.whisper.model import ModelFolder
from services.whisper.settings import WhisperSettings
from sidelinja_jobs import SettingsError, load_settings


def test_defaults_are_those_of_the_stack() -> None:
    settings = load_settings(WhisperSettings, {"WHISPER_MODEL": "", "OUTPUT_ROOT": ""})

    assert (settings.media_root, settings.model_root, settings.output_root) == (Path("/media"), Path("/models"), None)
    assert (settings.model_name, settings.compute_type, settings.unit_seconds) == ("base", "auto", 300)


def test_all_wrong_values_are_named_at_once() -> None:
    wrong = {
        "UNIT_SECONDS": "5",
        "WHISPER_BEAM_SIZE": "many",
        "WHISPER_COMPUTE_TYPE": "int4",
        "WHISPER_CPU_THREADS": "-1",
    }

    with pytest.raises(SettingsError) as caught:
        load_settings(WhisperSettings, wrong)

    assert all(name in str(caught.value) for name in wrong)


def test_both_missing_folders_are_named_at_once(tmp_path: Path) -> None:
    settings = WhisperSettings(media_root=tmp_path / "media", output_root=tmp_path / "output")

    with pytest.raises(SettingsError, match=r"MEDIA_ROOT.*OUTPUT_ROOT"):
        settings.require_folders()

    (tmp_path / "media").mkdir()
    (tmp_path / "output").mkdir()
    settings.require_folders()
    assert settings.can_write


def test_model_that_does_not_load_is_a_matter_of_settings(tmp_path: Path) -> None:
    """As where the precision does not fit the processor: no job may be charged for it."""
    (tmp_path / "model.bin").write_bytes(b"no model")
    transcriber = Transcriber(WhisperSettings(), ModelFolder("small", tmp_path, "0" * 64))

    with pytest.raises(SettingsError, match="cannot be loaded as auto"):
        transcriber.load_model()

    transcriber.close()
