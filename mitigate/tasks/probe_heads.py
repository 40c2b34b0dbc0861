"""What a generator is asked about besides targets as they are. Heads of held-out triples that are no targets: what it
says of them is a question of knowledge; they are asked for the relations that they have in the test file. And events
that name a target, for relations whose heads are events."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from mitigate.tasks.base_model import Start
from mitigate.tasks.probe import PartsInMemory, probe_generator
from mitigate.triples import PROBED, Parts
from mitigate.words.events import heads_about, heads_of_relations
from mitigate.words.prompts import kind_of
from mitigate.words.target_list import PAPER, TargetList

HELD_OUT = "held_out"
"""The group of these heads, where targets have their category."""


def held_out_prompts(
    triples: pl.DataFrame, target_list: TargetList, relations: Iterable[str], size: int, seed: int = 1
) -> pl.DataFrame:
    """(head, relation) of `size` heads of valid test triples that are no targets, drawn by seed, in the order of the
    file; all where there are fewer. Of the relations only those given are asked for."""
    valid = triples.filter(pl.col("split") == "test", "valid", pl.col("relation").is_in(list(relations)))
    known = valid.filter(~target_list.target_of(pl.col("head")).is_in(list(target_list.categories)))
    heads = known["head"].unique().sort()
    drawn = heads.gather(np.random.default_rng(seed).permutation(len(heads))[:size].tolist())
    return known.filter(pl.col("head").is_in(drawn.implode())).select("head", "relation").unique(maintain_order=True)


EVENTS = {"target": pl.String, "relation": pl.String, "head": pl.String}


def event_heads(about: pl.DataFrame, relations: Iterable[str], target_list: TargetList = PAPER) -> pl.DataFrame:
    """The events that each target (target, category) is asked about with each relation (columns EVENTS), in the order
    of targets, relations, events. Relations whose heads are no events have no rows."""
    kinds = {name: heads_of_relations().get(name, "object") for name in relations}
    rows = [
        (target, relation, head)
        for target, category in about.select("target", "category").iter_rows()
        for relation, heads in kinds.items()
        for head in heads_about(target, category, kind_of(target, target_list), heads)
    ]
    return pl.DataFrame(rows, schema=EVENTS, orient="row")


def probe_heads(
    generator: Start,
    prompts: pl.DataFrame,
    asked: Mapping[str, str],
    *,
    device: str = "cpu",
    parts: Parts | None = None,
    **search: Any,
) -> pl.DataFrame:
    """The generator's best tails (columns PROBED, each head as `target`, of the category HELD_OUT) for the prompts
    (head, relation). asked: the wording of each relation; search: beams, top, max_length and precision of the probe.
    parts: where the tails of each relation are kept once they are found, across a kill."""
    model, parts = generator.load(), PartsInMemory() if parts is None else parts
    for number, ((relation,), rows) in enumerate(prompts.group_by("relation", maintain_order=True)):
        if number in parts:
            continue
        heads = rows.select(target="head", category=pl.lit(HELD_OUT))
        phrase = {str(relation): asked[str(relation)]}
        parts.save(number, probe_generator(model, heads, phrase, devices=[device], **search))
    return pl.concat([pl.DataFrame(schema=PROBED), *parts])
