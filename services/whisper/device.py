"""Where the model computes: on a GPU when one works, else on the CPU, with the reason.

Whether a GPU works is known only by using it: a driver may be too old, a library may be missing until the first
multiplication, the arithmetic may not be supported by the chip. So a second of noise is transcribed, and whatever goes
wrong there is a reason to compute on the CPU, or not to start where that is not wanted.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel

from services.whisper.messages import SAMPLE_RATE, ModelRequest

AUTO = "auto"
CPU_COMPUTE_TYPE = "int8"
CPU_COMPUTE_TYPES = ("int8", "int8_float32", "float32")
# Best first. Where memory is short, the first one with 8 bits.
GPU_COMPUTE_TYPES = ("float16", "bfloat16", "int8_float16", "int8_bfloat16", "int8_float32", "float32")
BATCH_SIZES = (16, 8, 4, 1)
GIB = 1 << 30
# Published for large-v3 (3.1 GB of weights): 4.6 GB alone, 9.0 GB with a batch of 16.
WORKING_SHARE, ITEM_SHARE, SPARE_BYTES = 1.5, 0.09, GIB // 2


class NoDeviceError(Exception):
    """There is no GPU that works, and the CPU is not wanted."""


@dataclass(frozen=True)
class Loaded:
    """A model that computes."""

    whisper: Any
    device: str
    compute_type: str  # as it was asked for
    batch_size: int  # 1 = one window after the other
    note: str | None  # why it is not the GPU


def load_model(request: ModelRequest, cpu_threads: int) -> Loaded:
    """Loads the model where the request says; `auto` tries a GPU first.

    Raises:
        NoDeviceError: a GPU is demanded, and none works.
    """
    note = None
    if request.device != "cpu":
        try:
            return _on_gpu(request, cpu_threads)
        except (RuntimeError, ValueError, OSError) as error:
            note = str(error) or type(error).__name__
        if request.device != AUTO:
            raise NoDeviceError(f"no GPU can be used: {note}")
    wanted = request.compute_type if request.compute_type in CPU_COMPUTE_TYPES else CPU_COMPUTE_TYPE
    whisper = _construct(request, "cpu", wanted, cpu_threads)
    return Loaded(whisper, "cpu", wanted, 1, note)


def _on_gpu(request: ModelRequest, cpu_threads: int) -> Loaded:
    if not ctranslate2.get_cuda_device_count():
        raise RuntimeError("no CUDA device is visible")
    weights = (request.folder / "model.bin").stat().st_size
    memory = gpu_memory_bytes()
    wanted = request.compute_type
    if wanted == AUTO:
        wanted = choose_compute_type(ctranslate2.get_supported_compute_types("cuda"), weights, memory)
    whisper = _construct(request, "cuda", wanted, cpu_threads)
    noise = np.random.default_rng(1).normal(0, 0.1, SAMPLE_RATE).astype(np.float32)
    list(whisper.transcribe(noise, language="en", beam_size=1, temperature=0.0, max_new_tokens=8)[0])
    return Loaded(whisper, "cuda", wanted, request.batch_size or choose_batch_size(weights, memory), None)


def _construct(request: ModelRequest, device: str, compute_type: str, cpu_threads: int) -> Any:
    return WhisperModel(
        str(request.folder),
        device=device,
        compute_type=compute_type,
        cpu_threads=cpu_threads,
        local_files_only=True,
    )


def choose_compute_type(supported: set[str], weights_bytes: int, memory_bytes: int | None) -> str:
    """The best arithmetic that the chip supports, in 8 bits where 16 bits would leave no room for work."""
    is_tight = memory_bytes is not None and memory_bytes < _working_bytes(weights_bytes) + 4 * _item_bytes(
        weights_bytes
    )
    fitting = [kind for kind in GPU_COMPUTE_TYPES if kind in supported and not (is_tight and "int8" not in kind)]
    if not fitting:
        raise RuntimeError(f"the GPU supports none of {', '.join(GPU_COMPUTE_TYPES)}, but {', '.join(supported)}")
    return fitting[0]


def choose_batch_size(weights_bytes: int, memory_bytes: int | None) -> int:
    """As many windows at once as there is memory for; 8 where the memory is not known."""
    if memory_bytes is None:
        return 8
    room = memory_bytes - _working_bytes(weights_bytes)
    return next((size for size in BATCH_SIZES if size * _item_bytes(weights_bytes) <= room), BATCH_SIZES[-1])


def _working_bytes(weights_bytes: int) -> int:
    return int(WORKING_SHARE * weights_bytes) + SPARE_BYTES


def _item_bytes(weights_bytes: int) -> int:
    return int(ITEM_SHARE * weights_bytes)


def gpu_memory_bytes(library: str = "libcuda.so.1") -> int | None:
    """The memory of the first GPU, by the driver's own word; None when it does not say."""
    try:
        driver = ctypes.CDLL(library)
        device, size = ctypes.c_int(), ctypes.c_size_t()
        asked = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0)
        failed = asked or driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    except (OSError, AttributeError):
        return None
    return None if failed else size.value


def is_out_of_memory(error: BaseException) -> bool:
    """CTranslate2 has no class of its own for it."""
    return isinstance(error, RuntimeError) and "out of memory" in str(error).lower()
