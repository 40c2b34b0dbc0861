"""Labels of rated statements by a crowd classifier that has not learnt from their targets' ratings."""

from pathlib import Path

import polars as pl

from mitigate.score.crowd import SHIPPED, Crowd
from mitigate.score.labels import with_labels
from mitigate.triples import LabelCache
from mitigate.words.targets import clusters, targets
from models.heads import fold_of

FOLDS_FILE = "folds.csv"


def folds_of_targets() -> pl.DataFrame:
    """The fold of each of the 329 targets: target, fold."""
    words = clusters()
    found = [(target, fold_of(words.get(target, target))) for target in targets()]
    return pl.DataFrame(found, schema={"target": pl.String, "fold": pl.Int64}, orient="row")


def label_unseen(rated: pl.DataFrame, folder: Path | None = None, *, cache: LabelCache) -> pl.DataFrame:
    """Rated statements (target, cluster, masked, masked_neutral) with labels and strengths of `crowd` under both
    templates, each by the classifier that left out the fold of its target. folder: None for the shipped classifier,
    whose folds stand in its folder: the list of clusters may have changed since it was trained."""
    known = dict(pl.read_csv((folder or SHIPPED) / FOLDS_FILE, glob=False).iter_rows())
    folds = [
        known[target] if target else fold_of(cluster)
        for target, cluster in rated.select("target", "cluster").iter_rows()
    ]
    numbered = rated.with_row_index("_row").with_columns(_fold=pl.Series(folds, dtype=pl.Int64))
    parts = [
        with_labels(part, Crowd(folder, unseen=fold), cache)
        for (fold,), part in numbered.group_by("_fold", maintain_order=True)
        if isinstance(fold, int)
    ]
    return pl.concat(parts).sort("_row").drop("_row", "_fold")
