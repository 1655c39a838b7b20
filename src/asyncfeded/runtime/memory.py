"""Memory that was freed, kept for the next use.

The C library gives large pieces of freed memory back to the system and asks for them again. A step
of the LSTM does that with 7 MB, and to touch fresh pages then takes as long as the arithmetic.
"""

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""The names of these parameters in glibc's malloc.h."""
KEPT_BYTES = 2**28
LARGEST_KEPT_PIECE = 2**25


def keep_freed_memory() -> None:
    """Let this process keep up to 256 MiB that it has freed; elsewhere than on glibc, nothing."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(MMAP_THRESHOLD, LARGEST_KEPT_PIECE)
