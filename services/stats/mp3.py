"""Length and tag of an MP3, read from its first bytes and, where these don't say, from its frames.

Own code for three numbers: a library for tags is larger than this worker. Hostile files are read within bounds.
"""

import mmap
from dataclasses import dataclass
from pathlib import Path

_BITRATES = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # MPEG 1, layer III, kbit/s
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),  # MPEG 2 and 2.5
}
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_ID3_HEAD = 10
_LONGEST_SEARCH = 1 << 16  # bytes, for the first frame behind the tag
_MOST_FRAMES = 3_000_000  # a day of audio


@dataclass(frozen=True)
class Mp3Facts:
    """What a threshold needs."""

    total: int
    id3_bytes: int
    duration_seconds: float | None  # None: this is no MP3 that can be measured


@dataclass(frozen=True)
class _Frame:
    size: int
    samples: int
    rate: int
    xing_at: int  # where a Xing or Info head would stand, from the frame's start


def read_mp3(path: Path) -> Mp3Facts:
    """Raises OSError."""
    with path.open("rb") as file:
        total = file.seek(0, 2)
        if total == 0:
            return Mp3Facts(0, 0, None)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            id3 = min(_id3_bytes(content), total)
            return Mp3Facts(total, id3, _duration(content, id3, total))


def _id3_bytes(content: mmap.mmap) -> int:
    head = content[:_ID3_HEAD]
    if len(head) < _ID3_HEAD or head[:3] != b"ID3" or any(byte > 127 for byte in head[6:10]):
        return 0
    size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
    return _ID3_HEAD + size + (_ID3_HEAD if head[5] & 0x10 else 0)  # a footer repeats the head


def _duration(content: mmap.mmap, start: int, total: int) -> float | None:
    place = _first_frame(content, start, total)
    if place is None:
        return None
    frame = _frame_at(content, place)
    if frame is None:
        return None
    counted = _counted_frames(content, place, frame)
    if counted:
        return counted * frame.samples / frame.rate
    return _walked(content, place, total) or None


def _first_frame(content: mmap.mmap, start: int, total: int) -> int | None:
    """The first place where a frame is followed by another."""
    for place in range(start, min(start + _LONGEST_SEARCH, total - 4)):
        if content[place] != 0xFF:
            continue
        frame = _frame_at(content, place)
        if frame is not None and (place + frame.size >= total - 4 or _frame_at(content, place + frame.size)):
            return place
    return None


def _frame_at(content: mmap.mmap, place: int) -> _Frame | None:
    head = content[place : place + 4]
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bitrate_index, rate_index, padding = head[2] >> 4, head[2] >> 2 & 3, head[2] >> 1 & 1
    if version == 1 or layer != 1 or rate_index == 3 or bitrate_index in (0, 15):
        return None
    is_first = version == 3
    rate = _RATES[version][rate_index]
    samples = 1152 if is_first else 576
    size = samples // 8 * _BITRATES[1 if is_first else 2][bitrate_index] * 1000 // rate + padding
    is_mono = head[3] >> 6 == 3
    side = (17 if is_mono else 32) if is_first else (9 if is_mono else 17)
    return _Frame(size, samples, rate, 4 + side)


def _counted_frames(content: mmap.mmap, place: int, frame: _Frame) -> int:
    """As the encoder wrote it into the first frame; 0 when it did not."""
    at = place + frame.xing_at
    if content[at : at + 4] in (b"Xing", b"Info") and content[at + 7 : at + 8] and content[at + 7] & 1:
        return int.from_bytes(content[at + 8 : at + 12], "big")
    at = place + 36
    if content[at : at + 4] == b"VBRI":
        return int.from_bytes(content[at + 14 : at + 18], "big")
    return 0


def _walked(content: mmap.mmap, place: int, total: int) -> float:
    seconds = 0.0
    for _ in range(_MOST_FRAMES):
        frame = _frame_at(content, place) if place < total - 4 else None
        if frame is None or frame.size <= 4:
            break
        seconds += frame.samples / frame.rate
        place += frame.size
    return seconds
