"""RESULTS.md, where every benchmark keeps a section of its own."""

import platform
import re
from pathlib import Path

import torch

RESULTS = Path(__file__).with_name("RESULTS.md")


def write_section(name: str, text: str, on: str | None = None) -> None:
    """Replaces the section of that name, or adds it at the end; the others stay as they are.

    on: the processor, for what differs between processors, as `processor()` says it. Sections of one name measured on
    several stand side by side, each with its processor in the heading."""
    whole = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# What was measured\n"
    key = name
    if on is not None:
        key = f"{name}, {on}"
        text = re.sub(r"^(## .*)$", lambda heading: f"{heading[1]} ({on})", text.strip(), count=1, flags=re.MULTILINE)
    section = f"<!-- {key} -->\n{text.strip()}\n<!-- end of {key} -->"
    alike = list(re.finditer(rf"<!-- end of {re.escape(name)}(?:, [^\n]*)? -->", whole))
    own = re.search(rf"<!-- {re.escape(key)} -->.*<!-- end of {re.escape(key)} -->", whole, re.DOTALL)
    if own:
        whole = whole[: own.start()] + section + whole[own.end() :]
    elif alike:
        whole = f"{whole[: alike[-1].end()]}\n\n{section}{whole[alike[-1].end() :]}"
    else:
        whole = f"{whole.rstrip()}\n\n{section}\n"
    RESULTS.write_text(whole, encoding="utf-8")


def processor() -> str:
    """The processor and its widest vector instructions: "AMD EPYC, AVX2"."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = cpus[0].split(":")[1].strip() if cpus else platform.processor()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


def machine() -> str:
    """The machine of the measurement, in a few words."""
    name, instructions = processor().rsplit(", ", 1)
    amx = " with AMX" if torch.cpu._is_amx_tile_supported() else ""
    return f"{name}, {torch.get_num_threads()} threads, {instructions}{amx}, torch {torch.__version__}"
