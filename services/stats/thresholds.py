"""How many bytes of a file hold its first minute (R15, R16)."""

from math import ceil

MINUTE_SECONDS = 60


def threshold_of(total: int, duration_seconds: float | None, id3_bytes: int | None) -> int:
    """Bytes that a download must have: the tag and a minute of audio; the whole file when it is shorter or unknown.

    R15: `id3 + ceil(60 * (total - id3) / duration)`. R16: less than a minute, or a length that nobody knows, asks for
    every byte.
    """
    if duration_seconds is None or id3_bytes is None or duration_seconds < MINUTE_SECONDS or not 0 <= id3_bytes < total:
        return total
    return min(total, id3_bytes + ceil(MINUTE_SECONDS * (total - id3_bytes) / duration_seconds))
