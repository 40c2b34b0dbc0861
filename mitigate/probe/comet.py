"""Probe of a generator: the best tails of every target and relation (harms paper, Section 4.1).

The grid of prompts is divided into parts of fixed size, so that memory stays bounded and a killed probe resumes with
the missing parts, with any number of processes and the same result."""

import copy
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Self, get_args

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.runs.child_processes import Send, share_out
from mitigate.runs.files import disk_fault
from mitigate.runs.progress import progress
from mitigate.triples import PROBED, Parts
from models.tail_prompts import Beam

if TYPE_CHECKING:
    from torch import Tensor

Precision = Literal["fp32", "bf16"]
PART = 544  # prompts: 16 targets x 34 relations, a few seconds on two cores
CPU_ROWS = 680  # beams at a time; of a GPU's memory those of a whole part take 7 GB with a decoder of GPT-1's size
PROMPTS = {**{name: PROBED[name] for name in ("target", "category", "head", "relation")}, "phrase": pl.String}


class Generator(Protocol):
    """A generator of tails: a COMeT, or any language model with the same prompts. Both are torch modules."""

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens of prompts."""

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of tails, with their end."""

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> "Tensor":
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first."""

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text."""

    def bfloat16(self) -> Self:
        """Convert to bfloat16; returns itself."""

    def to(self, device: str) -> Self:
        """Move to a device; returns itself."""


@dataclass(frozen=True)
class Grid:
    """The prompts of a probe (columns PROMPTS), the number and the length of the beams for each, and how many are
    kept."""

    prompts: pl.DataFrame
    beams: int
    top: int
    max_length: int

    @property
    def size(self) -> int:
        return self.prompts.height

    @property
    def parts(self) -> range:
        return range(math.ceil(self.size / PART))

    def prompts_of(self, part: int) -> pl.DataFrame:
        """The prompts of a part."""
        return self.prompts[part * PART : (part + 1) * PART]


def probe(
    generator: Generator,
    targets: pl.DataFrame,
    relations: list[tuple[str, str]],
    *,
    parts: Parts,
    beams: int = 10,
    top: int = 10,
    max_length: int = 15,
    precision: Precision = "fp32",
    devices: Sequence[str] = ("cpu",),
    heads: pl.DataFrame | None = None,
) -> None:
    """Write to `parts` the rows of PROBED, in the order of targets, then relations, then heads, then rank.

    targets: (target, category). relations: each a name and the phrase in prompts. heads: (target, relation, head), the
    heads of prompts about a target that are not the target itself. Of `beams` beams of at most max_length tokens the
    best `top` are kept. fp32 is exact; bf16 is faster where the processor has it, and approximate. Each of several
    devices has a process, which must be able to write `parts`. Raises MitigateError for settings that do not fit
    together."""
    check_search(beams, top, precision)
    if precision == "bf16":
        generator = copy.deepcopy(generator).bfloat16()
    grid = Grid(prompts(targets, relations, heads), beams, top, max_length)
    missing = [part for part in grid.parts if part not in parts]
    there = grid.size - sum(grid.prompts_of(part).height for part in missing)
    if len(devices) == 1:
        answered = answer(generator, grid, missing, parts, devices[0])
    else:
        answered = _answer_in_processes(generator, grid, missing, parts, devices)
    with progress("probe", grid.size, "prompts", done=there) as advance:
        for part in answered:
            advance(grid.prompts_of(part).height)


def check_search(beams: int, top: int, precision: str) -> None:
    """Raise MitigateError for invalid settings of a probe."""
    if not 1 <= top <= beams:
        raise MitigateError(f"probe.top={top} must be at least 1 and at most probe.beams={beams}")
    if precision not in get_args(Precision):
        raise one_of("probe.precision", precision, get_args(Precision))


def find_devices(device: str, processes: int) -> list[str]:
    """The device of each process: the CPU for all, or GPUs in turn. "auto" is the GPU where there is one. Raises
    MitigateError for other devices, and for fewer than one process."""
    if device not in ("auto", "cpu", "cuda"):
        raise one_of("probe.device", device, ("auto", "cpu", "cuda"))
    if processes < 1:
        raise MitigateError(f"probe.processes={processes} must be at least 1")
    if device == "cpu":
        return ["cpu"] * processes
    import torch  # takes a second, which a probe of a table does without

    if device == "cuda" and not torch.cuda.is_available():
        raise MitigateError("probe.device=cuda: PyTorch finds no GPU on this machine; set probe.device=cpu or auto")
    if not torch.cuda.is_available():
        return ["cpu"] * processes
    return [f"cuda:{process % torch.cuda.device_count()}" for process in range(processes)]


def _answer_in_processes(
    generator: Generator, grid: Grid, missing: Sequence[int], parts: Parts, devices: Sequence[str]
) -> Iterator[int]:
    """Run `answer` in several processes, which map one file with the weights, so that these are in memory once."""
    import torch

    threads = max(1, torch.get_num_threads() // len(devices))
    with tempfile.TemporaryDirectory(prefix="mitigate-") as place:
        weights = Path(place, "generator.pt")
        _share(generator, weights)
        shares = [missing[process :: len(devices)] for process in range(len(devices))]
        pairs = zip(shares, devices, strict=True)
        yield from share_out(
            _work, [(weights, grid, share, parts, device, threads) for share, device in pairs if share]
        )


def _share(generator: Generator, path: Path) -> None:
    """Save the generator for other processes. Raises MitigateError when the temporary folder is full."""
    import torch

    try:
        torch.save(generator, path)
    except (OSError, RuntimeError) as error:
        if not (reason := disk_fault(error)):
            raise
        raise MitigateError(
            f"cannot write {path} ({reason}), the file by which the processes of the probe share the generator; free "
            "some space there, set the variable TMPDIR to another folder, or set probe.processes=1"
        ) from error


def _work(weights: Path, grid: Grid, share: Sequence[int], parts: Parts, device: str, threads: int, send: Send) -> None:
    """The work of one process."""
    import torch

    torch.set_num_threads(threads)
    generator = torch.load(weights, mmap=True, weights_only=False)  # written by _share
    for part in answer(generator, grid, share, parts, device):
        send(part)


def prompts(
    targets: pl.DataFrame, relations: Sequence[tuple[str, str]], heads: pl.DataFrame | None = None
) -> pl.DataFrame:
    """The prompts of a probe (columns PROMPTS), in the order of targets (target, category), then relations (name and
    phrase), then heads. heads: (target, relation, head); where there are none the target is the head."""
    events: dict[tuple[str, str], list[str]] = {}
    for target, relation, head in () if heads is None else heads.select("target", "relation", "head").iter_rows():
        events.setdefault((target, relation), []).append(head)
    rows = [
        (target, category, head, relation, phrase)
        for target, category in targets.select("target", "category").iter_rows()
        for relation, phrase in relations
        for head in events.get((target, relation), [target])
    ]
    return pl.DataFrame(rows, schema=PROMPTS, orient="row")


def answer(generator: Generator, grid: Grid, share: Sequence[int], parts: Parts, device: str) -> Iterator[int]:
    """Search a share of the parts, and yield the number of each finished one."""
    generator = generator.to(device)
    rows = CPU_ROWS if device == "cpu" else PART * grid.beams
    for part in share:
        part_rows = grid.prompts_of(part)
        prompts = generator.prompts(part_rows["head"].to_list(), part_rows["phrase"].to_list())
        try:
            found = generator.search(prompts, beams=grid.beams, max_length=grid.max_length, rows=rows)
        except ValueError as error:
            raise MitigateError(f"the probe cannot run: {error} (probe.max_length={grid.max_length})") from error
        parts.save(part, _rows(generator, part_rows, [result[: grid.top] for result in found]))
        yield part


def _rows(generator: Generator, prompts: pl.DataFrame, found: list[list[Beam]]) -> pl.DataFrame:
    """The prompts' beams as rows of PROBED."""
    beams = [beam for result in found for beam in result]
    rows = prompts[[place for place, result in enumerate(found) for _ in result]]
    return rows.select(
        "target",
        "category",
        "head",
        "relation",
        pl.Series("tail", [generator.decode(beam.tokens) for beam in beams]),
        pl.Series("rank", [rank for result in found for rank in range(1, len(result) + 1)]),
        pl.Series("log_prob", [beam.log_prob for beam in beams]),
        pl.Series("score", [beam.score for beam in beams]),
    ).cast(pl.Schema(PROBED))
