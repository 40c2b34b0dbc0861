"""Memory that one training step frees, the next one needs again."""

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # parameters of mallopt, from glibc's malloc.h


def keep_freed_memory() -> None:
    """Has glibc keep large blocks instead of handing them back to the system, which zeroes each page before it
    gives it out again: a tenth of the step of a small model on a CPU. Without glibc there is nothing to do."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_MMAP_MAX, 0)
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
