"""Makes sample.mp3 and sample.txt from the lines that Debian's package pocketsphinx-testdata holds.

apt-get download pocketsphinx-testdata && dpkg-deb -x pocketsphinx-testdata_*.deb lines
python -m demo.make_sample lines/usr/share/pocketsphinx/test/data/librivox
"""

import re
import sys
import wave
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
RATE = 16_000
PAUSE_SECONDS = 0.6
BIT_RATE = 64_000
Samples = NDArray[np.int16]


def main(folder: Path) -> None:
    """Joins the lines with pauses, in the order of the book."""
    texts, parts = [], []
    for text, name in read_transcription(folder / "transcription"):
        texts.append(text)
        parts += [read_samples(folder / f"{name}.wav"), np.zeros(int(PAUSE_SECONDS * RATE), dtype=np.int16)]
    write_mp3(HERE / "sample.mp3", np.concatenate(parts))
    (HERE / "sample.txt").write_text("\n".join(texts) + "\n")


def read_transcription(file: Path) -> list[tuple[str, str]]:
    """Pairs of text and file name; a line reads `<s> words </s> (name)`."""
    return re.findall(r"<s> (.*?) </s> \((.*?)\)", file.read_text())


def read_samples(file: Path) -> Samples:
    with wave.open(str(file)) as recording:
        if (recording.getframerate(), recording.getnchannels(), recording.getsampwidth()) != (RATE, 1, 2):
            raise SystemExit(f"{file}: expected 16-bit mono at {RATE} Hz")
        return np.frombuffer(recording.readframes(recording.getnframes()), dtype=np.int16)


def write_mp3(file: Path, samples: Samples) -> None:
    with av.open(str(file), "w", format="mp3") as container:
        stream = container.add_stream("libmp3lame", rate=RATE, layout="mono")
        stream.bit_rate = BIT_RATE
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        # The encoder wants floats in frames of its own size.
        resampler = av.AudioResampler(stream.format, "mono", RATE, frame_size=stream.frame_size)
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
