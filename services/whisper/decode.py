"""Any audio container, as a stream of 16 kHz mono samples, by FFmpeg's libraries (PyAV).

Decoding goes packet by packet. A packet that cannot be decoded is skipped and counted; the usual decoding loop
ends at the first one and so loses the rest of the file without a word. The resampler is made anew when the
format changes in the middle, as it does where files were joined end to end. Times are counts of decoded samples,
because what a container says about its length is often a guess.
"""

import os
from collections.abc import Generator, Iterator
from typing import Any

import av
import numpy as np
from av.audio.fifo import AudioFifo
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from numpy.typing import NDArray

from services.whisper.containers import FAILURES_IN_A_ROW, container_seconds, open_container
from services.whisper.messages import SAMPLE_RATE
from sidelinja_jobs import PermanentError
from sidelinja_jobs.volumes import MediumError

SAMPLES_AT_A_TIME = 65_536
JOINED_PART_SECONDS = 0.5
BLOCK_BYTES = 1 << 20

Samples = NDArray[np.int16]


class AudioReader:
    """Decodes one file from its start to its end; `position` is the number of samples given out or skipped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._container = _open(descriptor)
        try:
            self._stream = _audio_stream(self._container)
            length = container_seconds(descriptor, self._container, self._stream)
            self.container_seconds, self.is_length_stated = length
        except BaseException:
            self._container.close()
            raise
        self.format_name = f"{self._container.format.name}/{self._stream.codec_context.name}"
        self.packets = 0
        self.bad_packets = 0
        self.position = 0
        self.ended = False
        self._heard_at: dict[int, float] = {}  # sample rate -> seconds
        self._pieces = self._decode()
        self._rest: Samples = np.empty(0, dtype=np.int16)

    def __enter__(self) -> "AudioReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._pieces.close()
        self._container.close()

    @property
    def has_joined_rates(self) -> bool:
        """Whether parts with different sample rates were met; a stray frame is none."""
        return sum(heard >= JOINED_PART_SECONDS for heard in self._heard_at.values()) > 1

    def read(self, samples: int) -> Samples:
        """The next `samples` samples; fewer only at the end of the audio."""
        parts = list(self._take(samples))
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int16)

    def skip(self, samples: int) -> Iterator[int]:
        """Decodes and drops `samples` samples; yields the position from time to time."""
        for part in self._take(samples):
            del part
            yield self.position

    def _take(self, samples: int) -> Iterator[Samples]:
        missing = samples
        while missing > 0:
            if not self._rest.size:
                piece = next(self._pieces, None)
                if piece is None:
                    self.ended = True
                    return
                self._rest = piece
            part, self._rest = self._rest[:missing], self._rest[missing:]
            missing -= part.size
            self.position += part.size
            yield part

    def _decode(self) -> Generator[Samples, None, None]:
        converter: Converter | None = None
        for frame in self._frames():
            if converter is None or not converter.takes(frame):
                if converter is not None:
                    yield from converter.rest()
                converter = Converter(frame)
            yield from converter.convert(frame)
        if converter is not None:
            yield from converter.rest()

    def _frames(self) -> Iterator[AudioFrame]:
        for packet in self._packets():
            self.packets += 1
            try:
                frames: list[Any] = packet.decode()
            except av.FFmpegError:
                self.bad_packets += 1
                continue
            for frame in frames:
                if frame.samples and frame.sample_rate:
                    heard = frame.samples / frame.sample_rate
                    self._heard_at[frame.sample_rate] = self._heard_at.get(frame.sample_rate, 0.0) + heard
                    yield frame

    def _packets(self) -> Iterator["Packet[AudioStream]"]:
        failures, is_checked = 0, False
        while failures < FAILURES_IN_A_ROW:
            try:
                for packet in self._container.demux(self._stream):
                    failures = 0
                    yield packet
                return
            except av.FFmpegError:
                if not is_checked:
                    require_readable(self._descriptor)
                    is_checked = True
                self.bad_packets += 1
                failures += 1
        require_readable(self._descriptor)


class Converter:
    """Frames of one format, made 16 kHz mono. Some seconds at a time: by frames of 26 ms it costs twice as much."""

    def __init__(self, frame: AudioFrame) -> None:
        self._format = _format(frame)
        self._resampler = AudioResampler("s16", "mono", SAMPLE_RATE)
        self._waiting = AudioFifo()

    def takes(self, frame: AudioFrame) -> bool:
        return _format(frame) == self._format

    def convert(self, frame: AudioFrame) -> Iterator[Samples]:
        frame.pts = None  # times are counted, never read: joined files start again at zero
        self._waiting.write(frame)
        if self._waiting.samples >= SAMPLES_AT_A_TIME:
            yield from self._resample(self._waiting.read())

    def rest(self) -> Iterator[Samples]:
        """What waits here and in the resampler, at the end of the format."""
        if self._waiting.samples:
            yield from self._resample(self._waiting.read())
        yield from self._resample(None)

    def _resample(self, frame: AudioFrame | None) -> Iterator[Samples]:
        for resampled in self._resampler.resample(frame):
            yield resampled.to_ndarray().astype(np.int16, copy=False).reshape(-1)


def _format(frame: AudioFrame) -> tuple[str, str, int]:
    return frame.format.name, frame.layout.name, frame.sample_rate


def require_readable(descriptor: int) -> None:
    """Reads every byte, where FFmpeg found damage: it says the same of a disk or a network folder that fails.

    Raises:
        MediumError: they cannot be read, so the job comes back later.
    """
    position = 0
    try:
        while block := os.pread(descriptor, BLOCK_BYTES, position):
            position += len(block)
    except OSError as error:
        raise MediumError(f"the audio cannot be read beyond {position} bytes: {error.strerror}") from error


def _open(descriptor: int) -> InputContainer:
    try:
        return open_container(descriptor)
    except av.FFmpegError as error:
        require_readable(descriptor)
        raise PermanentError(
            f"Not an audio file: no known audio or video format was found in its content ({error.strerror}). "
            "Next: check that the upload was complete and that the file plays",
            error_class="not_audio",
        ) from error


def _audio_stream(container: InputContainer) -> AudioStream:
    stream = container.streams.best("audio")
    if isinstance(stream, AudioStream):
        return stream
    kinds = ", ".join(sorted({found.type for found in container.streams})) or "nothing"
    raise PermanentError(
        f"No audio in the file: expected an audio stream, found {kinds} in a {container.format.long_name} file. "
        "Next: export it with its sound",
        error_class="no_audio",
    )
