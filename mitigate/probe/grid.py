"""The grid of a probe's prompts, in parts, and the generator's answers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from mitigate.errors import MitigateError
from mitigate.probe.generator import Generator
from mitigate.triples import PROBED, Parts
from models.beam_state import Beam

PART = 544  # prompts: 16 targets x 34 relations, a few seconds on two cores
CPU_ROWS = 680  # beams at a time; of a GPU's memory those of a whole part take 7 GB with a decoder of GPT-1's size


PROMPTS = {**{name: PROBED[name] for name in ("target", "category", "head", "relation")}, "phrase": pl.String}


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

    def asked(self, part: int) -> pl.DataFrame:
        """The prompts of a part."""
        return self.prompts[part * PART : (part + 1) * PART]


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
        asked = grid.asked(part)
        prompts = generator.prompts(asked["head"].to_list(), asked["phrase"].to_list())
        try:
            found = generator.search(prompts, beams=grid.beams, max_length=grid.max_length, rows=rows)
        except ValueError as error:
            raise MitigateError(f"the probe cannot run: {error} (probe.max_length={grid.max_length})") from error
        parts.save(part, _rows(generator, asked, [result[: grid.top] for result in found]))
        yield part


def _rows(generator: Generator, asked: pl.DataFrame, found: list[list[Beam]]) -> pl.DataFrame:
    """The prompts' beams as rows of PROBED."""
    beams = [beam for result in found for beam in result]
    rows = asked[[place for place, result in enumerate(found) for _ in result]]
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
