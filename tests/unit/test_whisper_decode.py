"""Sound is found by content, damage is skipped, and no file reaches out for another."""

import errno
import os
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from services.whisper.decode import AudioReader
from services.whisper.messages import SAMPLE_RATE, DecodeCounts
from services.whisper.transcript import damage
from sidelinja_jobs import PermanentError
from sidelinja_jobs.volumes import MediumError


def write_tone(path: Path, *, rate: int = 44_100, channels: int = 1, length_seconds: float = 2.0) -> None:
    time = np.arange(int(rate * length_seconds)) / rate
    tone = (np.sin(2 * np.pi * 440 * time) * 16_000).astype(np.int16)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.repeat(tone, channels).tobytes())


def read_all(path: Path) -> tuple[np.ndarray, AudioReader]:
    with path.open("rb") as file, AudioReader(file.fileno()) as reader:
        return reader.read(10**9), reader


@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (16_000, 1), (44_100, 2), (48_000, 2), (96_000, 1)])
def test_any_rate_becomes_16_khz_mono(tmp_path: Path, rate: int, channels: int) -> None:
    write_tone(tmp_path / "tone.mp3", rate=rate, channels=channels)

    samples, reader = read_all(tmp_path / "tone.mp3")

    assert samples.size == pytest.approx(2 * SAMPLE_RATE, abs=40)
    spectrum = np.abs(np.fft.rfft(samples[:SAMPLE_RATE]))
    assert int(np.argmax(spectrum)) == 440
    assert reader.container_seconds == pytest.approx(2.0)
    assert reader.bad_packets == 0


def test_reading_in_pieces_gives_what_reading_at_once_gives(tmp_path: Path) -> None:
    write_tone(tmp_path / "tone", length_seconds=5)
    whole, _ = read_all(tmp_path / "tone")

    with (tmp_path / "tone").open("rb") as file, AudioReader(file.fileno()) as reader:
        pieces = [reader.read(7), reader.read(20_001)]
        assert list(reader.skip(10_000))[-1] == reader.position == 30_008
        rest = reader.read(10**9)

    assert np.array_equal(np.concatenate(pieces), whole[:20_008])
    assert np.array_equal(rest, whole[30_008:])
    assert reader.position == whole.size


@pytest.mark.parametrize(
    "playlist",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{target}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile '{target}'\n",
        "[playlist]\nFile1={target}\nNumberOfEntries=1\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\n",
        "<?xml version='1.0'?><MPD xmlns='urn:mpeg:dash:schema:mpd:2011'><BaseURL>{target}</BaseURL></MPD>",
    ],
    ids=["hls", "concat", "pls", "sdp", "dash"],
)
@pytest.mark.parametrize("place", ["beside", "absolute"])
def test_playlist_is_not_audio(tmp_path: Path, playlist: str, place: str) -> None:
    """FFmpeg on its own opens the second of these and plays the file that it names."""
    write_tone(tmp_path / "other.wav")
    target = "other.wav" if place == "beside" else str(tmp_path / "other.wav")
    (tmp_path / "list.mp3").write_text(playlist.format(target=target))

    with pytest.raises(PermanentError) as caught:
        read_all(tmp_path / "list.mp3")

    assert caught.value.error_class == "not_audio"


def test_mp3_with_bytes_gone_gives_the_rest(samples: Path, tmp_path: Path) -> None:
    sound = bytearray((samples / "audio" / "jfk.mp3").read_bytes())
    middle = len(sound) * 2 // 5
    sound[middle : middle + len(sound) // 5] = bytes(len(sound) // 5)
    (tmp_path / "hole.mp3").write_bytes(sound)

    decoded, reader = read_all(tmp_path / "hole.mp3")

    assert decoded.size / SAMPLE_RATE > 8.0
    assert reader.packets > 300


def test_eight_seconds_gone_from_two_minutes_are_noticed(samples: Path, tmp_path: Path) -> None:
    """Zeroed, as a copy that failed leaves them: FFmpeg looks for the next frame and says nothing."""
    sound = bytearray((samples / "audio" / "ljspeech-2min.mp3").read_bytes())
    gone = len(sound) * 8 // 123
    sound[len(sound) // 2 : len(sound) // 2 + gone] = bytes(gone)
    (tmp_path / "hole.mp3").write_bytes(sound)

    decoded, reader = read_all(tmp_path / "hole.mp3")

    counts = DecodeCounts(reader.packets, reader.bad_packets, reader.container_seconds, reader.is_length_stated)
    assert decoded.size / SAMPLE_RATE == pytest.approx(115.5, abs=0.5)
    assert "115." in (damage(counts, decoded.size / SAMPLE_RATE) or "")


def encode(file: Path, codec: str, form: str, sound: np.ndarray, **options: str) -> None:
    """Sound at 16 kHz, written as to a pipe: nothing at the start is filled in at the end."""
    with file.open("wb") as written, av.open(PipeTo(written), "w", format=form, options=options) as container:
        chosen = {"flags": "+qscale", "global_quality": "472"} if codec == "libmp3lame" else {}
        stream: Any = container.add_stream(codec, rate=RATE_OF.get(codec, SAMPLE_RATE), layout="mono", options=chosen)
        frame = av.AudioFrame.from_ndarray(sound[np.newaxis].astype(np.float32), format="fltp", layout="mono")
        frame.sample_rate = stream.rate
        frame.pts = 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


RATE_OF = {"libopus": 48_000}


class PipeTo:
    """A file that cannot be sought in."""

    def __init__(self, file: Any) -> None:
        self.write = file.write


@pytest.mark.parametrize(
    ("codec", "form", "options"),
    [
        ("libmp3lame", "mp3", {"write_xing": "0", "id3v2_version": "0"}),
        ("libmp3lame", "mp3", {"write_xing": "0", "id3v2_version": "3"}),
        ("aac", "adts", {}),
        ("libopus", "webm", {"live": "1"}),
        ("flac", "flac", {}),
    ],
)
def test_file_that_does_not_say_how_long_it_is_is_counted(
    tmp_path: Path, codec: str, form: str, options: dict[str, str]
) -> None:
    """With variable bit rate and a quiet start, FFmpeg's guess of an MP3's length is several times too long."""
    rate = RATE_OF.get(codec, SAMPLE_RATE)
    noise = np.random.default_rng(1).normal(0, 0.3, 20 * rate)
    encode(tmp_path / "sound", codec, form, np.concatenate([np.zeros(10 * rate), noise]), **options)

    samples, reader = read_all(tmp_path / "sound")

    assert samples.size / SAMPLE_RATE == pytest.approx(30, abs=0.2)
    assert reader.container_seconds == pytest.approx(30, abs=0.2)


def test_mp3_that_says_how_long_it_is_is_believed_though_half_of_it_is_gone(samples: Path, tmp_path: Path) -> None:
    for name in ("jfk.mp3", "edge/cover.mp3"):  # with a picture before the first frame
        whole = (samples / "audio" / name).read_bytes()
        (tmp_path / "half.mp3").write_bytes(whole[: len(whole) * 2 // 3])

        _, reader = read_all(tmp_path / "half.mp3")

        assert reader.container_seconds == pytest.approx(11.0)


def test_disk_that_fails_at_the_start_is_not_the_files_fault() -> None:
    with open("/proc/self/mem", "rb") as file, pytest.raises(MediumError, match="Input/output error"):
        AudioReader(file.fileno())


class FailingContainer:
    """Gives some packets, then an error of the system's at every try."""

    def __init__(self, container: Any, packets: int) -> None:
        self._container, self._packets = container, packets

    def demux(self, stream: Any) -> Iterator[Any]:
        for packet in self._container.demux(stream):
            if not self._packets:
                av.error.err_check(-errno.EIO)
            self._packets -= 1
            yield packet

    def close(self) -> None:
        self._container.close()


@pytest.mark.parametrize("disk_fails", [True, False])
def test_disk_that_fails_later_is_no_damage_and_damage_is_no_failing_disk(
    samples: Path, monkeypatch: pytest.MonkeyPatch, disk_fails: bool
) -> None:
    """Some formats' readers say EIO of a file that ends too early, so what counts is whether its bytes can be read."""

    def failing(*_: Any) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with (samples / "audio" / "jfk.mp3").open("rb") as file, AudioReader(file.fileno()) as reader:
        reader._container = FailingContainer(reader._container, 100)  # type: ignore[assignment]
        if disk_fails:
            monkeypatch.setattr(os, "pread", failing)
            with pytest.raises(MediumError, match="Input/output error"):
                reader.read(10**9)
        else:
            assert reader.read(10**9).size / SAMPLE_RATE == pytest.approx(2.6, abs=0.1)
            assert reader.bad_packets


@pytest.mark.parametrize(
    ("counts", "decoded", "is_damaged"),
    [
        (DecodeCounts(300_000, 0, 10_800.0, True), 10_799.0, False),
        (DecodeCounts(300_000, 0, 10_800.0, True), 10_780.0, True),  # twenty seconds of three hours
        (DecodeCounts(300_000, 0, 10_800.0, False), 10_780.0, False),  # a video that goes on without sound
        (DecodeCounts(300_000, 0, 10_800.0, False), 9_700.0, True),
        (DecodeCounts(300_000, 200, 10_800.0, True), 10_800.0, False),
        (DecodeCounts(300_000, 300, 10_800.0, True), 10_800.0, True),
        (DecodeCounts(400, 5, 11.0, True), 11.0, True),
        (DecodeCounts(400, 0, None, False), 11.0, False),
        (DecodeCounts(849, 1, 11.0, True), 22.0, False),
    ],
)
def test_what_is_lost_counts_by_its_share_and_in_seconds(
    counts: DecodeCounts, decoded: float, is_damaged: bool
) -> None:
    assert (damage(counts, decoded) is not None) == is_damaged
