"""Any audio container, opened; and how long it is, by its own word where it has one.

The content decides what a file is: it is opened by descriptor, so FFmpeg never sees a name. Formats that make
FFmpeg open other files (playlists, concat lists) are not on the list, so a file cannot reach out of its folder.

An MP3 without a Xing header, a raw stream and what was recorded live state no length. FFmpeg then reckons one from the
first frames' bit rate, or has none: a quiet beginning makes two minutes ten. So the packets are counted instead,
which costs half a second for three hours.
"""

import os

import av
from av.audio.stream import AudioStream
from av.container import InputContainer

FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,eac3,flac,flv,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,"
    "mp2,mp3,mpc,mpc8,mpeg,mpegts,ogg,tta,w64,wav,wv"
)
RAW = {"aac", "ac3", "eac3"}
MP3_HEADERS = (b"Xing", b"Info", b"VBRI")  # in the first frame, where the encoder wrote one
FIRST_FRAME_BYTES = 4096
# A reader that fails again and again without giving a packet in between has nothing more to give.
FAILURES_IN_A_ROW = 100


def open_container(descriptor: int) -> InputContainer:
    """Raises av.FFmpegError for what is no audio or video."""
    options = {"format_whitelist": FORMATS, "protocol_whitelist": "file"}
    return av.open(f"/proc/self/fd/{descriptor}", options=options, metadata_errors="ignore")


def container_seconds(descriptor: int, container: InputContainer, stream: AudioStream) -> tuple[float | None, bool]:
    """What the file says, and whether the sound itself says it (a video may outlast it); else what is counted."""
    name = container.format.name
    if name in RAW or (name == "mp3" and not has_mp3_header(descriptor)):
        return counted_seconds(descriptor), False
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base), True
    if container.duration is not None:
        return container.duration / av.time_base, False
    return counted_seconds(descriptor), False


def has_mp3_header(descriptor: int) -> bool:
    """Whether the first frame behind the tags is one that states the number of frames."""
    position = 0
    while (head := os.pread(descriptor, 10, position))[:3] == b"ID3" and len(head) == 10:
        size = sum((byte & 0x7F) << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))
        position += 10 + size
    first = os.pread(descriptor, FIRST_FRAME_BYTES, position)
    return any(name in first for name in MP3_HEADERS)


def counted_seconds(descriptor: int) -> float | None:
    """The lengths of all packets together; nothing is decoded."""
    ticks, failures = 0, 0
    with open_container(descriptor) as container:
        stream = container.streams.best("audio")
        if stream is None or stream.time_base is None:
            return None
        while failures < FAILURES_IN_A_ROW:
            try:
                for packet in container.demux(stream):
                    ticks += packet.duration or 0
                    failures = 0
                break
            except av.FFmpegError:
                failures += 1
        return float(ticks * stream.time_base) or None
