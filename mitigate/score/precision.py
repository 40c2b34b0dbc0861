"""The number format that scorers with a network compute in, and a hash of their weights."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mitigate.errors import MitigateError
from mitigate.runs.fingerprints import digest_of

if TYPE_CHECKING:
    import torch

CHOSEN_BY = "MITIGATE_PRECISION"
"""The environment variable that makes scorers compute in the same format on all processors: auto, fp32 or bf16."""
CHOICES = ("auto", "fp32", "bf16")


def chosen_precision() -> str:
    """The name of CHOICES that CHOSEN_BY has, or auto. Raises MitigateError for another name."""
    chosen = os.environ.get(CHOSEN_BY) or "auto"
    if chosen not in CHOICES:
        raise MitigateError(f"the variable {CHOSEN_BY} is {chosen!r}; it must be one of {', '.join(CHOICES)}")
    return chosen


def native_dtype() -> "torch.dtype":
    """The format that CHOSEN_BY names; else bfloat16 where the processor computes in it, and float32 elsewhere. Raises
    MitigateError for another name."""
    chosen = chosen_precision()
    import torch  # takes a second, which scorers without a network do without

    from models import bf16

    is_half = bf16.in_processor() if chosen == "auto" else chosen == "bf16"
    return torch.bfloat16 if is_half else torch.float32


def digest_of_folder(folder: Path) -> str:
    """One hash of the files in a network's folder, without its card."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".md"]
    return digest_of(" ".join(digest_of(path.read_bytes()) for path in paths))
