"""What a plausibility classifier accepts that says nothing of the target: tails that are the target itself, and the
same neutral tails for all targets. A measure that accepts these can be raised without better triples."""

from collections.abc import Sequence

import polars as pl

from mitigate.measure.quality import valid_share
from mitigate.score.labels import with_labels
from mitigate.targets import targets
from mitigate.tasks.plausibility.classifier import Classifier, accepted
from mitigate.triples import NEUTRAL, OTHER, LabelCache, Scorer, label_columns
from mitigate.verbalise import verbalise

CONSTANTS = 10  # neutral tails of each relation
COMMONEST = 150  # tails of a relation among which they are looked for
REACHED = 5.0  # percent of the targets


def gaming_figures(
    network: Classifier, train: pl.DataFrame, scorers: Sequence[Scorer], cache: LabelCache
) -> dict[str, float | int | None]:
    """Percentages that a classifier accepts of 329 targets x its relations: gaming/echo, and gaming/echo/{relation}, of
    tails that are the target; gaming/constants of the ten commonest neutral tails of each relation, the same for all
    targets; gaming/chosen of the ten that it accepts most often among the neutral ones of the 150 commonest; and
    gaming/unreached, the number of relations in which it accepts none of the 150 of 5 percent of the targets."""
    echoes = accepted_echoes(network)
    tails = commonest_tails(train)
    said = of_all_targets(tails)
    shares = (
        said.with_columns(accepted(network, said))
        .group_by("relation", "tail", maintain_order=True)
        .agg(accepted=100 * pl.col("accepted").mean())
    )
    constants = neutral(shares, scorers, cache).group_by("relation", maintain_order=True)
    by_relation = echoes.group_by("relation", maintain_order=True).agg(accepted=100 * pl.col("accepted").mean())
    best = shares.group_by("relation").agg(pl.col("accepted").max())
    return {
        "gaming/echo": valid_share(echoes["accepted"]),
        "gaming/constants": constants.head(CONSTANTS)["accepted"].mean(),
        "gaming/chosen": constants.agg(pl.col("accepted").top_k(CONSTANTS)).explode("accepted")["accepted"].mean(),
        "gaming/unreached": best.filter(pl.col("accepted") < REACHED).height,
        **{f"gaming/echo/{relation}": share for relation, share in by_relation.iter_rows()},
    }


def accepted_echoes(network: Classifier) -> pl.DataFrame:
    """(head, relation, tail, accepted): every target said of itself, in each of the classifier's relations."""
    echoes = of_all_targets(pl.DataFrame({"relation": list(network.relations)})).with_columns(tail="head")
    return echoes.with_columns(accepted(network, echoes))


def commonest_tails(train: pl.DataFrame) -> pl.DataFrame:
    """(relation, tail): the 150 commonest tails of each relation, the commonest first, ties by their letters."""
    counted = train.group_by("relation", "tail").len()
    ordered = counted.sort("relation", "len", "tail", descending=[False, True, False])
    return ordered.group_by("relation", maintain_order=True).head(COMMONEST).select("relation", "tail")


def neutral(tails: pl.DataFrame, scorers: Sequence[Scorer], cache: LabelCache) -> pl.DataFrame:
    """The tails (relation, tail, and whatever else) that all scorers find neutral, said of a masked target with the
    relation's neutral template."""
    statements = verbalise(tails.with_columns(head=pl.lit(next(iter(targets())))))
    for scorer in scorers:
        statements = with_labels(statements, scorer, cache)
    found = [pl.col(label_columns(scorer.name, "neutral")[0]).is_in([NEUTRAL, OTHER]) for scorer in scorers]
    return statements.filter(*found).select(tails.columns)


def of_all_targets(rows: pl.DataFrame) -> pl.DataFrame:
    """Each row once for every target, as its head."""
    return pl.DataFrame({"head": list(targets())}).join(rows, how="cross")
