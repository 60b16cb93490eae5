"""Sound for the tests of the transcription: read from samples, put together, written as a file."""

import wave
from pathlib import Path
from typing import Any

import av
import numpy as np

from services.whisper.messages import SAMPLE_RATE

Sound = np.ndarray[Any, np.dtype[np.float32]]  # 16 kHz, mono, from -1 to 1


def read_sound(file: Path) -> Sound:
    """By FFmpeg's own decoding, not the worker's."""
    resampler = av.AudioResampler("flt", "mono", SAMPLE_RATE)
    with av.open(str(file)) as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


def write_wave(file: Path, sound: Sound) -> None:
    with wave.open(str(file), "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(SAMPLE_RATE)
        written.writeframes((sound * 32767).astype("<i2").tobytes())
