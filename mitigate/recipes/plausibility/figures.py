"""How good a judge of triples is: on labelled triples, on triples made wrong on purpose, and whether it likes neutral
ones better."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl

from mitigate.measure.quality import accuracy, valid_share
from mitigate.score.labels import with_labels
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, LabelCache, Scorer, label_columns
from mitigate.verbalise import verbalise

LABELLED = {"dev1": "dev", "dev2": "dev2", "test": "test"}  # how the figures call the splits
POLARITIES = {"prejudice": [PREJUDICE], "neutral": [NEUTRAL, OTHER], "favouritism": [FAVOURITISM]}


class Judge(Protocol):
    """What is measured."""

    relations: tuple[str, ...]

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray: ...


def figures(
    network: Judge,
    triples: pl.DataFrame,
    probes: Mapping[str, pl.DataFrame],
    scorers: Sequence[Scorer],
    cache: LabelCache,
) -> dict[str, float | int | None]:
    """{dev1|dev2|test}/... from labelled triples; valid/{true|shuffled|...} on the true test triples, as they are and
    made wrong; valid/{scorer}/{polarity} on the true ones by their label; valid/probe/{name} on probed ones."""
    found: dict[str, float | int | None] = {}
    for name, split in LABELLED.items():
        labelled = triples.filter(split=split)
        judged, valid = judgements(network, labelled), labelled["valid"]
        found |= {
            f"{name}/triples": labelled.height,
            f"{name}/accuracy": accuracy(judged.to_numpy(), valid.to_numpy()),
            f"{name}/true_judged_valid": valid_share(judged.filter(valid)),
            f"{name}/false_judged_valid": valid_share(judged.filter(~valid)),
        }
    true = triples.filter("valid", split="test")
    for name, made in {"true": true, **made_wrong(true)}.items():
        found[f"valid/{name}"] = valid_share(judgements(network, made))
    found |= by_polarity(network, true, scorers, cache)
    known = set(network.relations)
    for name, probed in probes.items():
        asked = probed.filter(pl.col("relation").is_in(known))
        found[f"valid/probe/{name}"] = valid_share(judgements(network, asked))
    return found


def made_wrong(true: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The true triples with their tails shuffled, among all and within each relation, and turned round."""
    chance = np.random.default_rng(0)
    within = pl.int_range(pl.len()).shuffle(seed=0)
    return {
        "shuffled": true.with_columns(tail=true["tail"].gather(chance.permutation(true.height))),
        "shuffled_within_relation": true.with_columns(pl.col("tail").gather(within).over("relation")),
        "turned_round": true.with_columns(head="tail", tail="head"),
    }


def by_polarity(
    network: Judge, true: pl.DataFrame, scorers: Sequence[Scorer], cache: LabelCache
) -> dict[str, float | int | None]:
    """The share of true triples judged valid, by how each scorer labels them with the relation's phrase neutralised:
    alike, if the judge does not simply prefer neutral statements; and of those about a target."""
    statements = verbalise(true)
    for scorer in scorers:
        statements = with_labels(statements, scorer, cache)
    judged = statements.with_columns(judged=judgements(network, true))
    parts = {
        f"{scorer.name}/{polarity}": judged.filter(pl.col(label_columns(scorer.name, "neutral")[0]).is_in(labels))
        for scorer in scorers
        for polarity, labels in POLARITIES.items()
    }
    parts["target"] = judged.filter(pl.col("target").is_not_null())
    shares: dict[str, float | int | None] = {f"valid/{name}": valid_share(p["judged"]) for name, p in parts.items()}
    return shares | {f"triples/{name}": part.height for name, part in parts.items()}


def judgements(network: Judge, triples: pl.DataFrame) -> pl.Series:
    """Whether each triple is judged valid."""
    return pl.Series(network.logits(*parts(triples)) > 0)


def parts(triples: pl.DataFrame) -> list[list[str]]:
    """Heads, relations and tails."""
    return [triples[column].to_list() for column in ("head", "relation", "tail")]


def table(metrics: Mapping[str, Any], names: Sequence[str]) -> str:
    """The figures for the terminal, a column for each network."""
    keys = list(dict.fromkeys(key.partition("/")[2] for key in metrics))
    lines = [f"{'':<40}" + "".join(f"{name:>12}" for name in names)]
    for key in keys:
        values = [metrics.get(f"{name}/{key}") for name in names]
        shown = (f"{value:>12,.2f}" if isinstance(value, float) else f"{value or '–':>12}" for value in values)
        lines.append(f"  {key:<38}" + "".join(shown))
    return "\n".join(lines)
