"""Where the model computes, on machines with GPUs that are played by fakes."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from services.whisper import device, recognizer
from services.whisper.device import NoDeviceError, choose_batch_size, choose_compute_type, gpu_memory_bytes, load_model
from services.whisper.messages import SAMPLE_RATE, ModelRequest, SpeechRequest
from services.whisper.recognizer import Recognizer
from services.whisper.units import Stretch, Unit, speech_windows
from sidelinja_jobs.errors import HandlerError

LARGE, BASE = 3_100_000_000, 145_000_000
AMPERE = {"float32", "float16", "bfloat16", "int8", "int8_float16", "int8_bfloat16", "int8_float32"}


@pytest.mark.parametrize(
    ("supported", "weights", "memory_gb", "expected"),
    [
        (AMPERE, LARGE, 24, "float16"),
        (AMPERE, LARGE, None, "float16"),
        (AMPERE, LARGE, 4, "int8_float16"),
        (AMPERE, BASE, 4, "float16"),
        (AMPERE - {"bfloat16", "int8_bfloat16"}, LARGE, 11, "float16"),
        ({"float32", "int8", "int8_float32"}, LARGE, 11, "int8_float32"),
        ({"float32"}, LARGE, 24, "float32"),
    ],
)
def test_arithmetic_fits_chip_and_memory(
    supported: set[str], weights: int, memory_gb: int | None, expected: str
) -> None:
    assert choose_compute_type(supported, weights, memory_gb and memory_gb << 30) == expected


@pytest.mark.parametrize(
    ("weights", "memory_gb", "expected"),
    [(LARGE, 24, 16), (LARGE, 8, 8), (LARGE, 6, 4), (LARGE, 2, 1), (BASE, 4, 16), (LARGE, None, 8)],
)
def test_batch_fits_the_memory(weights: int, memory_gb: int | None, expected: int) -> None:
    assert choose_batch_size(weights, memory_gb and memory_gb << 30) == expected


def test_memory_of_a_gpu_that_is_not_there_is_unknown() -> None:
    assert gpu_memory_bytes("libnone.so.1") is None


class FakeWhisper:
    """Stands in for faster_whisper.WhisperModel."""

    made: list[tuple[str, str]] = []  # noqa: RUF012 - emptied by the fixture
    fails: dict[str, Exception] = {}  # noqa: RUF012 - "construct" or "transcribe" on the GPU

    def __init__(
        self, _folder: str, *, device: str, compute_type: str, cpu_threads: int, local_files_only: bool
    ) -> None:
        assert local_files_only
        self.made.append((device, compute_type))
        self._device = device
        self._raise("construct")
        self.model = SimpleNamespace(device=device, compute_type=compute_type, is_multilingual=True)
        self.hf_tokenizer = SimpleNamespace(encode=lambda *_, **__: SimpleNamespace(ids=[1]))

    def transcribe(self, _audio: Any, **_: Any) -> tuple[list[Any], None]:
        self._raise("transcribe")
        return [], None

    def _raise(self, step: str) -> None:
        if self._device == "cuda" and step in self.fails:
            raise self.fails[step]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], type[FakeWhisper]]:
    FakeWhisper.made, FakeWhisper.fails = [], {}
    monkeypatch.setattr(device, "WhisperModel", FakeWhisper)
    monkeypatch.setattr(device, "gpu_memory_bytes", lambda: 24 << 30)

    def show(count: int) -> type[FakeWhisper]:
        monkeypatch.setattr(device.ctranslate2, "get_cuda_device_count", lambda: count)
        monkeypatch.setattr(device.ctranslate2, "get_supported_compute_types", lambda _: AMPERE)
        return FakeWhisper

    return show


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.bin").write_bytes(b"weights")
    return tmp_path


def request(folder: Path, wanted: str, compute_type: str = "auto") -> ModelRequest:
    return ModelRequest(folder, compute_type, 2, device=wanted)


def test_gpu_that_works_is_used(gpus: Callable[[int], type[FakeWhisper]], folder: Path) -> None:
    fake = gpus(1)

    loaded = load_model(request(folder, "auto"), 2)

    assert (loaded.device, loaded.compute_type, loaded.batch_size, loaded.note) == ("cuda", "float16", 16, None)
    assert load_model(request(folder, "cuda", "int8_float16"), 2).compute_type == "int8_float16"
    assert load_model(ModelRequest(folder, "auto", 2, "cuda", batch_size=4), 2).batch_size == 4
    assert fake.made == [("cuda", "float16"), ("cuda", "int8_float16"), ("cuda", "float16")]


TOO_OLD = RuntimeError("CUDA failed with error CUDA driver version is insufficient for CUDA runtime version")
NO_LIBRARY = RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")
UNSUPPORTED = ValueError("Requested int8_float16 compute type, but the target device does not support it")


@pytest.mark.parametrize(
    ("count", "fails", "reason"),
    [
        (0, {}, "no CUDA device is visible"),
        (1, {"construct": TOO_OLD}, "driver version is insufficient"),
        (1, {"construct": UNSUPPORTED}, "does not support"),
        (1, {"transcribe": NO_LIBRARY}, "libcublas"),  # shows at the first multiplication
        (1, {"transcribe": RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")}, "CUBLAS"),
    ],
)
def test_gpu_that_does_not_work_leads_to_the_cpu_with_the_reason_or_to_an_error(
    gpus: Callable[[int], type[FakeWhisper]], folder: Path, count: int, fails: dict[str, Exception], reason: str
) -> None:
    gpus(count).fails = fails

    loaded = load_model(request(folder, "auto", "float16"), 2)

    assert (loaded.device, loaded.compute_type, loaded.batch_size) == ("cpu", "int8", 1)
    assert reason in (loaded.note or "")
    with pytest.raises(NoDeviceError, match=reason):
        load_model(request(folder, "cuda"), 2)


def test_gpu_is_not_touched_when_the_cpu_is_asked_for(gpus: Callable[[int], type[FakeWhisper]], folder: Path) -> None:
    fake = gpus(1)

    loaded = load_model(request(folder, "cpu", "float32"), 2)

    assert (loaded.device, loaded.compute_type, loaded.note) == ("cpu", "float32", None)
    assert fake.made == [("cpu", "float32")]


class FakePipeline:
    """Stands in for BatchedInferencePipeline: has memory for so many windows at once."""

    room = 3
    batches: list[int] = []  # noqa: RUF012 - emptied by the test
    error = "CUDA failed with error out of memory"

    def __init__(self, _whisper: Any) -> None:
        pass

    def transcribe(self, _audio: Any, *, batch_size: int, clip_timestamps: list[dict[str, float]], **_: Any) -> Any:
        def found() -> Any:
            self.batches.append(batch_size)
            if batch_size > self.room:
                raise RuntimeError(self.error)
            for clip in clip_timestamps:
                yield SimpleNamespace(
                    start=clip["start"], end=clip["end"], text=" Hei.", avg_logprob=-0.1, no_speech_prob=0.1,
                    compression_ratio=1.0, temperature=0.0, words=None,
                )  # fmt: skip

        return found(), None


def unit_of(*speech: tuple[int, int]) -> Unit:
    parts = tuple(Stretch(start * SAMPLE_RATE, end * SAMPLE_RATE) for start, end in speech)
    end = parts[-1].end
    return Unit(0, end, True, parts, np.random.default_rng(1).normal(0, 0.1, end).astype(np.float32), 0.0, 0.0)


@pytest.fixture
def on_gpu(gpus: Callable[[int], type[FakeWhisper]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recognizer:
    gpus(1)
    FakePipeline.batches = []
    monkeypatch.setattr(recognizer, "BatchedInferencePipeline", FakePipeline)
    return Recognizer(request(folder, "auto"), 2)


@pytest.mark.parametrize(("room", "batches"), [(16, [16]), (8, [16, 8]), (3, [16, 8, 4, 1]), (1, [16, 8, 4, 1])])
def test_batch_is_halved_until_there_is_memory_and_stays_so(
    on_gpu: Recognizer, monkeypatch: pytest.MonkeyPatch, room: int, batches: list[int]
) -> None:
    monkeypatch.setattr(FakePipeline, "room", room)

    rows = list(on_gpu.transcribe(unit_of((0, 20), (25, 40)), "no", SpeechRequest("no")))
    list(on_gpu.transcribe(unit_of((0, 20)), "no", SpeechRequest("no")))

    assert FakePipeline.batches == [*batches, batches[-1]]
    assert [(row["start"], row["end"]) for row in rows] == [(0.0, 20.0), (25.0, 40.0)]
    assert on_gpu.batch_size == batches[-1]


def test_gpu_without_memory_for_one_window_is_an_error_that_is_tried_again(
    on_gpu: Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakePipeline, "room", 0)

    with pytest.raises(HandlerError, match=r"out of memory.*Next:") as caught:
        list(on_gpu.transcribe(unit_of((0, 20)), "no", SpeechRequest("no")))

    assert caught.value.error_class == "out_of_memory"


def test_other_errors_of_a_gpu_are_not_taken_for_want_of_memory(
    on_gpu: Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakePipeline, "room", 0)
    monkeypatch.setattr(FakePipeline, "error", "CUDA failed with error an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal memory access"):
        list(on_gpu.transcribe(unit_of((0, 20)), "no", SpeechRequest("no")))

    assert FakePipeline.batches == [16]


def test_windows_for_a_batch_hold_all_speech_in_pieces_of_half_a_minute_that_end_at_pauses() -> None:
    unit = unit_of((0, 10), (12, 25), (30, 38), (50, 125))

    windows = speech_windows(unit)

    assert [window.start for window in windows] == [0, *(window.end for window in windows[:-1])]
    assert windows[-1].end == unit.heard().size
    assert all(0 < window.length <= 30 * SAMPLE_RATE for window in windows)
    assert windows[0].end == 23 * SAMPLE_RATE
    assert windows[1].end == 31 * SAMPLE_RATE
