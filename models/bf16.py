"""Whether the processor computes in bf16 itself. Elsewhere bf16 is slower than float32."""

import torch


def in_processor() -> bool:
    """By the instructions for bf16 of AVX-512, or by AMX."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
