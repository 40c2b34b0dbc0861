"""Support of bf16 by the processor. Without it bf16 is slower than float32."""

import torch


def in_processor() -> bool:
    """Return whether PyTorch computes in bf16 by AVX-512's instructions for it or by AMX: the processor has them, and
    ATEN_CPU_CAPABILITY does not forbid AVX-512. Emulated, a training step takes twenty times as long."""
    is_allowed = torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2")
    return is_allowed and (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
