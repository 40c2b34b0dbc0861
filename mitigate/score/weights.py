"""What the networks among the scorers share: the number format they compute in, and a hash of their weights."""

from pathlib import Path

import torch

from mitigate.fingerprints import digest_of


def native_dtype() -> torch.dtype:
    """bfloat16 where the processor computes in it, else float32."""
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if native else torch.float32


def digest_of_folder(folder: Path) -> str:
    """One hash of the files of a network's folder, but for its card."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".md"]
    return digest_of(" ".join(digest_of(path.read_bytes()) for path in paths))
