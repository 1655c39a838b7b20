"""Keeping freed memory for the next use.

The C library returns large pieces of freed memory to the system and asks for them again. A step of
the LSTM does that with 7 MB: to touch fresh pages then takes as long as the arithmetic.
"""

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""The names of these parameters in glibc's malloc.h."""
KEPT_BYTES = 2**28
LARGEST_KEPT_PIECE = 2**25


def keep_freed_memory() -> None:
    """Let this process keep up to 256 MiB that it has freed; only glibc can do that."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(MMAP_THRESHOLD, LARGEST_KEPT_PIECE)
