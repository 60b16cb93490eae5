"""Sound is found by content, damage is skipped, and no file reaches out for another."""

import wave
from pathlib import Path

import numpy as np
import pytest

from services.whisper.decode import AudioReader
from services.whisper.messages import SAMPLE_RATE
from sidelinja_jobs import PermanentError


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
