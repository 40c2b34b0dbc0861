"""Ask a COMeT for the best tails of every target and relation (harms paper, Section 4.1).

The grid of prompts is worked through in parts of fixed size, so that memory stays bounded and a killed probe goes
on at the first part that is missing, with the same result."""

import copy
from typing import Literal

import polars as pl
from tqdm.auto import tqdm

from mitigate.errors import MitigateError, one_of
from mitigate.triples import PROBED, Parts
from models.beam import Beam
from models.comet import Comet

Precision = Literal["fp32", "bf16"]
PART = 544  # prompts: 16 targets x 34 relations, a few seconds on two cores


def probe(
    comet: Comet,
    targets: pl.DataFrame,
    relations: list[tuple[str, str]],
    *,
    parts: Parts,
    beams: int = 10,
    top: int = 10,
    max_length: int = 15,
    precision: Precision = "fp32",
    rows: int = 680,
) -> None:
    """Leaves in `parts` the rows of PROBED, in the order of targets, then relations, then rank.

    targets has the columns (target, category); a relation is its name and the phrase it is asked with. Of `beams`
    beams of at most max_length tokens the best `top` are kept. fp32 is exact; bf16 is faster where the processor
    has it, and approximate. rows is the most beams worked on at a time; it sets memory and speed only.
    Raises MitigateError for settings that do not fit together."""
    if not 1 <= top <= beams:
        raise MitigateError(f"probe.top={top} must be at least 1 and at most probe.beams={beams}")
    if precision not in ("fp32", "bf16"):
        raise one_of("probe.precision", precision, ("fp32", "bf16"))
    if precision == "bf16":
        comet = copy.deepcopy(comet).bfloat16()
    size = targets.height * len(relations)
    with tqdm(total=size, desc="probe", unit=" prompts", disable=None, leave=False) as bar:
        for number, start in enumerate(range(0, size, PART)):
            places = range(start, min(start + PART, size))
            if number not in parts:
                asked = _asked(targets, relations, places)
                prompts = comet.prompts(asked["target"].to_list(), asked["phrase"].to_list())
                found = comet.search(prompts, beams=beams, max_length=max_length, rows=rows)
                parts.save(number, _answers(comet, asked, [result[:top] for result in found]))
            bar.update(len(places))


def _asked(targets: pl.DataFrame, relations: list[tuple[str, str]], places: range) -> pl.DataFrame:
    """The prompts at some places of the grid: target, category, relation, phrase."""
    about = targets.select("target", "category")[[place // len(relations) for place in places]]
    names, phrases = zip(*(relations[place % len(relations)] for place in places), strict=True)
    return about.with_columns(relation=pl.Series(names), phrase=pl.Series(phrases))


def _answers(comet: Comet, asked: pl.DataFrame, found: list[list[Beam]]) -> pl.DataFrame:
    """The prompts' beams as rows of PROBED."""
    beams = [beam for result in found for beam in result]
    rows = asked[[place for place, result in enumerate(found) for _ in result]]
    return rows.select(
        "target",
        "category",
        "relation",
        pl.Series("tail", [comet.decode(beam.tokens) for beam in beams]),
        pl.Series("rank", [rank for result in found for rank in range(1, len(result) + 1)]),
        pl.Series("log_prob", [beam.log_prob for beam in beams]),
        pl.Series("score", [beam.score for beam in beams]),
    ).cast(pl.Schema(PROBED))
