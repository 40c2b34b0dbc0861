"""The number format that scorers with a network compute in, and a hash of their weights."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mitigate.errors import MitigateError
from mitigate.runs.fingerprints import digest_of

if TYPE_CHECKING:
    import torch

CHOSEN_BY = "MITIGATE_PRECISION"
"""The environment variable with the format: fp32, or bf16, which is faster where the processor computes in it."""
CHOICES = ("fp32", "bf16")


def native_dtype() -> "torch.dtype":
    """The format that CHOSEN_BY names, float32 without it: labels of bfloat16 depend on the texts that are read
    together. Raises MitigateError for another name."""
    chosen = os.environ.get(CHOSEN_BY) or "fp32"
    if chosen not in CHOICES:
        raise MitigateError(f"the variable {CHOSEN_BY} is {chosen!r}; it must be one of {', '.join(CHOICES)}")
    import torch  # takes a second, which scorers without a network do without

    return torch.bfloat16 if chosen == "bf16" else torch.float32


def digest_of_folder(folder: Path) -> str:
    """One hash of the files in a network's folder, without its card."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".md"]
    return digest_of(" ".join(digest_of(path.read_bytes()) for path in paths))
