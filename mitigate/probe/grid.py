"""The grid of prompts that a probe asks, part by part, and the answers to them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from mitigate.probe.generator import Generator
from mitigate.triples import PROBED, Parts
from models.beams import Beam

PART = 544  # prompts: 16 targets x 34 relations, a few seconds on two cores
CPU_ROWS = 680  # beams at a time; of a GPU's memory those of a whole part take 7 GB with a decoder of GPT-1's size


@dataclass(frozen=True)
class Grid:
    """The prompts of a probe, in the order of targets, then relations, and how many beams of which length are
    searched for each, of which the best are kept."""

    targets: pl.DataFrame  # (target, category)
    relations: list[tuple[str, str]]  # name and the phrase it is asked with
    beams: int
    top: int
    max_length: int

    @property
    def size(self) -> int:
        return self.targets.height * len(self.relations)

    @property
    def parts(self) -> range:
        return range(math.ceil(self.size / PART))

    def places(self, part: int) -> range:
        """The prompts of a part."""
        return range(part * PART, min((part + 1) * PART, self.size))

    def asked(self, part: int) -> pl.DataFrame:
        """The prompts of a part: target, category, relation, phrase."""
        places = self.places(part)
        about = self.targets.select("target", "category")[[place // len(self.relations) for place in places]]
        names, phrases = zip(*(self.relations[place % len(self.relations)] for place in places), strict=True)
        return about.with_columns(relation=pl.Series(names), phrase=pl.Series(phrases))


def answer(generator: Generator, grid: Grid, share: Sequence[int], parts: Parts, device: str) -> Iterator[int]:
    """Works through a share of the parts, and yields the number of each that is done."""
    generator = generator.to(device)
    rows = CPU_ROWS if device == "cpu" else PART * grid.beams
    for part in share:
        asked = grid.asked(part)
        prompts = generator.prompts(asked["target"].to_list(), asked["phrase"].to_list())
        found = generator.search(prompts, beams=grid.beams, max_length=grid.max_length, rows=rows)
        parts.save(part, _rows(generator, asked, [result[: grid.top] for result in found]))
        yield part


def _rows(generator: Generator, asked: pl.DataFrame, found: list[list[Beam]]) -> pl.DataFrame:
    """The prompts' beams as rows of PROBED."""
    beams = [beam for result in found for beam in result]
    rows = asked[[place for place, result in enumerate(found) for _ in result]]
    return rows.select(
        "target",
        "category",
        "relation",
        pl.Series("tail", [generator.decode(beam.tokens) for beam in beams]),
        pl.Series("rank", [rank for result in found for rank in range(1, len(result) + 1)]),
        pl.Series("log_prob", [beam.log_prob for beam in beams]),
        pl.Series("score", [beam.score for beam in beams]),
    ).cast(pl.Schema(PROBED))
