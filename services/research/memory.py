"""Gives memory back to the system as soon as it is free: worker and cleaner have 200 MB together."""

import ctypes

_MMAP_THRESHOLD = -3  # glibc's malloc.h: M_MMAP_THRESHOLD
_LARGE = 128 << 10  # bytes; glibc's own first value, which it would raise with each large block that is freed


def keep_large_blocks_apart() -> None:
    """Lets blocks of 128 kB and more go back to the system when they are freed, for as long as the process lives."""
    if (set_option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:  # glibc alone has it
        set_option(_MMAP_THRESHOLD, _LARGE)


def return_memory() -> None:
    """Gives back what lies free between blocks that are in use."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
