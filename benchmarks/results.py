"""The processor and the machine of a measurement, as tables name them."""

import platform
from pathlib import Path

import torch


def processor() -> str:
    """The processor and its widest vector instructions: "AMD EPYC, AVX2"."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = cpus[0].split(":")[1].strip() if cpus else platform.processor()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


def machine() -> str:
    """The machine of the measurement, in a few words."""
    name, instructions = processor().rsplit(", ", 1)
    amx = " with AMX" if torch.cpu.get_capabilities().get("amx_tile") else ""
    return f"{name}, {torch.get_num_threads()} threads, {instructions}{amx}, torch {torch.__version__}"
