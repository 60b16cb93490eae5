"""The GPU: what compose.gpu.yaml adds, and the image, whose build loads the libraries that CTranslate2 will ask for."""

import ctypes
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from services.whisper.gpu_libraries import LibraryError, load, main, wanted_libraries
from tests.databases import ROOT
from tests.deploy.containers import docker, inside
from tests.deploy.stack import SERVICES
from tests.deploy.test_dockerfiles import BASE

ADDED = yaml.safe_load((ROOT / "compose.gpu.yaml").read_text())["services"]
MEGABYTES_ABOVE_BASE = 1400  # 855 of them are cuBLAS
IMAGE = "jobbko-whisper:gpu-deploy-test"


def ctranslate2_folder() -> Path:
    package = importlib.util.find_spec("ctranslate2")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent


def test_gpu_is_whispers_alone_and_the_model_a_large_one() -> None:
    assert ADDED.keys() == {"whisper", "model"}
    assert ADDED["whisper"]["build"] == {"target": "gpu"}
    (device,) = ADDED["whisper"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    for service in ADDED.values():
        assert service["environment"]["WHISPER_MODEL"] == "${WHISPER_MODEL:-large-v3-turbo}"
        assert service["environment"].keys() <= SERVICES["whisper"]["environment"].keys()


def test_the_list_holds_what_the_installed_ctranslate2_asks_for_and_nothing_else() -> None:
    lock = (ROOT / "services/whisper/requirements-gpu.lock").read_text()
    listed = re.findall(r"^nvidia-(\w+)-cu(\d+)==", lock, re.MULTILINE)

    assert [f"lib{name}.so.{cuda}" for name, cuda in listed] == wanted_libraries(ctranslate2_folder())


def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)

    with pytest.raises(LibraryError, match=r"CTranslate2 asks for libcublas\.so\.99"):
        load(["libcublas.so.99"])
    assert main() == 1
    assert "asks for libcublas.so.12" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.containers
@pytest.mark.timeout(3600)
def test_gpu_image_builds_with_libraries_that_load() -> None:
    docker("build", "--quiet", "--target", "gpu", "--tag", IMAGE, "--file", "services/whisper/Dockerfile", ".")
    sizes = [int(docker("image", "inspect", "--format", "{{.Size}}", image).stdout) for image in (IMAGE, BASE)]

    assert "libcublas.so.12 can be loaded" in inside(IMAGE, "python", "-m", "services.whisper.gpu_libraries").stdout
    assert inside(IMAGE, "python", "-c", "import ctranslate2; print(ctranslate2.get_cuda_device_count())").stdout
    assert (sizes[0] - sizes[1]) / 1e6 <= MEGABYTES_ABOVE_BASE
    assert inside(IMAGE, "id", "-u").stdout == "10001\n"
