"""The number format that scorers with a network compute in, and a hash of their weights."""

import os
from pathlib import Path

import torch

from mitigate.errors import MitigateError
from mitigate.runs.fingerprints import digest_of
from models import bf16

CHOSEN_BY = "MITIGATE_PRECISION"
"""The environment variable that makes scorers compute in the same format on all processors: auto, fp32 or bf16."""
CHOICES = {"auto": None, "fp32": torch.float32, "bf16": torch.bfloat16}


def native_dtype() -> torch.dtype:
    """The format that CHOSEN_BY names; else bfloat16 where the processor computes in it, and float32 elsewhere. Raises
    MitigateError for another name."""
    chosen = os.environ.get(CHOSEN_BY) or "auto"
    if chosen not in CHOICES:
        raise MitigateError(f"the variable {CHOSEN_BY} is {chosen!r}; it must be one of {', '.join(CHOICES)}")
    if (dtype := CHOICES[chosen]) is not None:
        return dtype
    return torch.bfloat16 if bf16.in_processor() else torch.float32


def digest_of_folder(folder: Path) -> str:
    """One hash of the files in a network's folder, without its card."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".md"]
    return digest_of(" ".join(digest_of(path.read_bytes()) for path in paths))
