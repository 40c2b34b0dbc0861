"""Probes of a generator for its best tails about every target, and the heads and prompts of probes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.probe import comet as probing
from mitigate.probe.comet import Generator, Precision
from mitigate.train.base_model import Start
from mitigate.triples import PROBED, Parts
from mitigate.words.events import heads_about, heads_of_relations
from mitigate.words.prompts import kind_of
from mitigate.words.relations import prompt_phrases
from mitigate.words.targets import PAPER, TargetList, choose_targets

HELD_OUT = "held_out"
"""Group of the heads of test triples, in place of a target's category."""
EVENTS = {"target": pl.String, "relation": pl.String, "head": pl.String}


class PartsInMemory:
    """Parts (the Protocol `Parts`) in memory, lost when the process ends."""

    def __init__(self) -> None:
        self._frames: dict[int, pl.DataFrame] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._frames

    def save(self, number: int, frame: pl.DataFrame) -> None:
        """Keep a part."""
        self._frames[number] = frame

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return (self._frames[number] for number in sorted(self._frames))


def probe_generator(
    generator: Generator | Start,
    targets: pl.DataFrame | Sequence[str],
    phrases: Mapping[str, str] | Sequence[str] | None = None,
    *,
    beams: int = 10,
    top: int = 10,
    max_length: int = 15,
    precision: Precision = "fp32",
    parts: Parts | None = None,
    devices: Sequence[str] = ("cpu",),
    heads: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The best tails of every target and relation (columns PROBED), in the order of targets, then relations, then rank.

    targets: (target, category), as choose_targets returns, or words. phrases: the wording of each relation, by name; or
    names of relations, worded as the generator was trained; None: COMeT's 34 and the generator's further ones. Of
    `beams` beams of at most max_length tokens the best `top` are kept. fp32 is exact; bf16 is approximate. parts: store
    of finished parts, which survives a kill. devices: a process for each; for several, `parts` must be a folder's.
    heads: (target, relation, head), the head in place of a target, such as an event that names it (event_heads); None,
    or none for a target and relation: the target itself.

    Raises MitigateError for settings that do not fit together, for unknown relations, and for no target or relation."""
    parts = PartsInMemory() if parts is None else parts
    if not isinstance(targets, pl.DataFrame):
        targets = choose_targets(targets)
    if not isinstance(phrases, Mapping):
        wordings = generator.phrases if isinstance(generator, Start) else prompt_phrases("phrase")
        names = list(wordings) if phrases is None else phrases
        if unknown := next((name for name in names if name not in wordings), None):
            raise one_of("relation", unknown, wordings)
        phrases = {name: wordings[name] for name in names}
    if targets.is_empty() or not phrases:
        raise MitigateError(f"the probe has no {'targets' if targets.is_empty() else 'relations'}; give at least one")
    model = generator.load() if isinstance(generator, Start) else generator
    probing.probe(
        model,
        targets,
        list(phrases.items()),
        parts=parts,
        beams=beams,
        top=top,
        max_length=max_length,
        precision=precision,
        devices=devices,
        heads=heads,
    )
    return pl.concat(list(parts))


def held_out_prompts(
    triples: pl.DataFrame, target_list: TargetList, relations: Iterable[str], size: int, seed: int = 1
) -> pl.DataFrame:
    """Prompts (head, relation) of `size` heads of valid test triples that are not targets, drawn by seed, in the order
    of the file; all where there are fewer. Only the given relations count."""
    valid = triples.filter(pl.col("split") == "test", "valid", pl.col("relation").is_in(list(relations)))
    others = valid.filter(~target_list.target_of(pl.col("head")).is_in(list(target_list.categories)))
    heads = others["head"].unique().sort()
    drawn = heads.gather(np.random.default_rng(seed).permutation(len(heads))[:size].tolist())
    return others.filter(pl.col("head").is_in(drawn.implode())).select("head", "relation").unique(maintain_order=True)


def event_heads(about: pl.DataFrame, relations: Iterable[str], target_list: TargetList = PAPER) -> pl.DataFrame:
    """Events that name each target (target, category), as heads for each relation (columns EVENTS), in the order of
    targets, relations, events. Relations whose heads are not events have no rows."""
    kinds = {name: heads_of_relations().get(name, "object") for name in relations}
    rows = [
        (target, relation, head)
        for target, category in about.select("target", "category").iter_rows()
        for relation, heads in kinds.items()
        for head in heads_about(target, category, kind_of(target, target_list), heads)
    ]
    return pl.DataFrame(rows, schema=EVENTS, orient="row")


def probe_heads(generator: Start, prompts: pl.DataFrame, *, device: str = "cpu", **search: Any) -> pl.DataFrame:
    """The generator's best tails (columns PROBED, each head as `target`, of the category HELD_OUT) for the prompts
    (head, relation). search: beams, top, max_length and precision of the probe."""
    model, found = generator.load(), [pl.DataFrame(schema=PROBED)]
    for (relation,), rows in prompts.group_by("relation", maintain_order=True):
        heads = rows.select(target="head", category=pl.lit(HELD_OUT))
        phrase = {str(relation): generator.phrases[str(relation)]}
        found.append(probe_generator(model, heads, phrase, devices=[device], **search))
    return pl.concat(found)
