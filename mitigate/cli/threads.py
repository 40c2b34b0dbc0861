"""How long a thread of PyTorch's that waits for another keeps its core before it gives it up.

OpenMP's threads wait by spinning, for milliseconds by default. Where another program wants the same cores, the thread
that is waited for cannot run meanwhile, and training becomes many times slower
(benchmarks/RESULTS.md, "Training beside other work on the same cores"). The variables are read when PyTorch is loaded:
`set_waiting` must be called before."""

import os

CHOSEN_BY = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")
"""Where one of these is set, the user has chosen."""
QUIET = {"GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "1"}
BUSY = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""Of GNU's OpenMP the turns of a loop that looks whether the wait is over, of LLVM's and Intel's milliseconds."""
BUSY_FROM = 0.25  # load of a core, mean over the last minute, before this program has begun


def set_waiting() -> None:
    """Set for this process and those it starts how long their threads wait, shorter where the cores are in use; what
    the user has set is left alone."""
    if not any(name in os.environ for name in CHOSEN_BY):
        os.environ |= BUSY if load() > BUSY_FROM else QUIET


def load() -> float:
    """How many processes wanted to run in the last minute, for each core; 0 where the system does not say."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows has none
        return 0.0
