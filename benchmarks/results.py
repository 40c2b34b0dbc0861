"""RESULTS.md, where every benchmark keeps a section of its own."""

import platform
import re
from pathlib import Path

import torch

RESULTS = Path(__file__).with_name("RESULTS.md")


def write_section(name: str, text: str) -> None:
    """Replaces the section of that name, or adds it at the end; the others stay as they are."""
    whole = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# What was measured\n"
    section = f"<!-- {name} -->\n{text.strip()}\n<!-- end of {name} -->"
    pattern = re.compile(rf"<!-- {re.escape(name)} -->.*<!-- end of {re.escape(name)} -->", re.DOTALL)
    whole = pattern.sub(lambda _: section, whole) if pattern.search(whole) else f"{whole.rstrip()}\n\n{section}\n"
    RESULTS.write_text(whole, encoding="utf-8")


def machine() -> str:
    """What the figures were measured on, in a few words."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = cpus[0].split(":")[1].strip() if cpus else platform.processor()
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{processor}, {torch.get_num_threads()} threads, {instructions}, torch {torch.__version__}"
