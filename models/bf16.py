"""Support of bf16 by the processor. Without it bf16 is slower than float32."""

import torch


def in_processor() -> bool:
    """Return whether the processor computes in bf16, by AVX-512's instructions for it or by AMX."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
