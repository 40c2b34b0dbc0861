"""Posts of the Social Bias Inference Corpus with their frames: one row and one split for each distinct post over all
files, folds of test posts, and the corpus's statistics."""

import hashlib
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.sbic import POSITIVE, read_annotations
from mitigate.words.frames import CHOICES, PARENTS

SPLITS = ("test", "dev", "train")
"""A post in files of several splits belongs to the first of these, so that no model learns from a test post."""

SHARES = {"train": 0.75, "dev": 0.125, "test": 0.125}
"""Shares of posts, for files without a split (Section 4.2)."""

HELD_BACK = 0.1
"""Share of dev posts, for thresholds and calibration, among training posts whose classification no dev file has."""

FOLDS = 5


def read_posts(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the annotations of a folder (load.sbic.ANNOTATIONS), and their posts (gather). Raises MitigateError as
    read_annotations does."""
    annotations = read_annotations(folder)
    return annotations, gather(annotations)


def gather(annotations: pl.DataFrame) -> pl.DataFrame:
    """A row for each distinct normalised post: key, post, split, the five classifications (Boolean, null without an
    answer or below a negative parent), groups (list), implied and implied_groups (lists of equal length), files (list),
    fold (0 to 4 for posts with implied statements, else null).

    A classification is the mean over annotators of their binarised answers, positive from .5 on (Section 4.2); below a
    negative parent it is null. Groups and statements of single annotators stay, as references. An annotator who was not
    asked about a group, as the post was not offensive to them, counts as negative for `targeted`, and is left out for
    `ingroup`."""
    binary = annotations.with_columns((pl.col(name) >= POSITIVE).cast(pl.Float64) for name in CHOICES)
    not_offensive = pl.col("unit").is_not_null() & (pl.col("offensive") == 0)
    binary = binary.with_columns(
        targeted=pl.when(not_offensive).then(pl.col("targeted").fill_null(0.0)).otherwise("targeted")
    )
    units = binary.unique(["key", "file", "unit", *CHOICES], maintain_order=True)
    posts = (
        units.group_by("key", maintain_order=True)
        .agg(pl.col("post").first(), *(pl.col(name).mean() for name in CHOICES))
        .with_columns(pl.col(name) >= POSITIVE for name in CHOICES)
    )
    given = pl.col("part").drop_nulls().unique()
    files = annotations.group_by("key", maintain_order=True).agg(
        files=pl.col("file").unique(maintain_order=True), parts=given, source=pl.col("source").drop_nulls().first()
    )
    with_text = annotations.filter(pl.col("group").is_not_null() | pl.col("implied").is_not_null())
    texts = with_text.group_by("key", maintain_order=True).agg(
        groups=pl.col("group").drop_nulls().unique(maintain_order=True),
        pairs=pl.struct("implied", "group").filter(pl.col("implied").is_not_null()).unique(maintain_order=True),
    )
    posts = posts.join(files, on="key", maintain_order="left").join(texts, on="key", how="left", maintain_order="left")
    empty = pl.lit([], dtype=pl.List(pl.String))
    posts = posts.with_columns(
        groups=pl.col("groups").fill_null(empty),
        implied=pl.col("pairs").list.eval(pl.element().struct.field("implied")).fill_null(empty),
        implied_groups=pl.col("pairs").list.eval(pl.element().struct.field("group")).fill_null(empty),
        split=pl.struct("key", "parts", "files").map_elements(_split, return_dtype=pl.String),
    ).drop("pairs", "parts")
    posts = posts.with_columns(
        pl.when(pl.col(parent).eq_missing(False).not_()).then(name).alias(name)
        for name, parent in PARENTS.items()
        if name in CHOICES
    )
    fold = pl.col("key").map_elements(lambda key: int(share_of(key, "fold") * FOLDS), return_dtype=pl.Int64)
    return _untargeted(posts).with_columns(fold=pl.when(pl.col("split") == "test").then(fold)).sort("key")


def _split(row: dict[str, Any]) -> str:
    if row["parts"]:
        split = next(split for split in SPLITS if split in row["parts"])
        alone = all(file.startswith("offensive") for file in row["files"])
        return "dev" if split == "train" and alone and share_of(row["key"], "dev") < HELD_BACK else split
    place = share_of(row["key"], "split")
    return "train" if place < SHARES["train"] else "dev" if place < SHARES["train"] + SHARES["dev"] else "test"


def share_of(key: str, purpose: str) -> float:
    """A number from 0 to 1, from a hash of the post and the purpose."""
    return int(hashlib.sha256(f"{purpose}/{key}".encode()).hexdigest()[:12], 16) / 16**12


def _untargeted(posts: pl.DataFrame) -> pl.DataFrame:
    """Mark posts that target no group: offensive posts of offensive_test.csv that neither a groups file nor
    `frames_test_posts.csv`, the original test posts with an implied statement, has."""
    if not posts["files"].list.contains("frames_test_posts.csv").any():
        return posts
    is_lacking = pl.col("offensive").eq_missing(True) & pl.col("targeted").is_null()
    lacking = is_lacking & pl.col("files").list.contains("offensive_test.csv")
    return posts.with_columns(targeted=pl.when(lacking).then(False).otherwise("targeted"))


def check(posts: pl.DataFrame) -> None:
    """Raise MitigateError where there is nothing to learn, or nothing to measure on."""
    for split in ("train", "test"):
        if posts.filter(pl.col("split") == split, pl.col("offensive").is_not_null()).is_empty():
            raise MitigateError(
                f"no {split} post has a value of `offensive`; recipe=frames needs some in train and test"
            )


def statistics(annotations: pl.DataFrame, posts: pl.DataFrame) -> dict[str, Any]:
    """The paper's Table 3: numbers of tuples, posts, groups, implications and pairs; percentages of
    positives under positive/NAME. Percentages are of annotations that give a value."""
    texts = annotations.filter(pl.col("group").is_not_null())
    implied = annotations.filter(pl.col("implied").is_not_null())
    pairs = texts.filter(pl.col("implied").is_not_null())
    found: dict[str, Any] = {
        "tuples": annotations.height,
        "posts": posts.height,
        "groups": texts["group"].n_unique(),
        "implications": implied["implied"].n_unique(),
        "post_group": texts.select("key", "group").n_unique(),
        "post_group_implication": pairs.select("key", "group", "implied").n_unique(),
        "group_implication": pairs.select("group", "implied").n_unique(),
    }
    units = annotations.unique(["key", "file", "unit", *CHOICES])
    for name in CHOICES:
        values = units[name].drop_nulls()
        found[f"positive/{name}"] = 100 * float((values >= POSITIVE).mean()) if len(values) else None  # type: ignore[arg-type]
    return found


def sources(posts: pl.DataFrame) -> pl.DataFrame:
    """The paper's Table 2, and the content of partial files: source (the website, or the file), split, posts, and the
    number of them with a value of each classification, a group and an implied statement."""
    by = posts.with_columns(source=pl.coalesce(pl.col("source"), pl.col("files").list.join(", ")))
    choices = [pl.col(name).is_not_null().sum().alias(name) for name in CHOICES]
    texts = [(pl.col("groups").list.len() > 0).sum().alias("group"), (pl.col("implied").list.len() > 0).sum()]
    counted = by.group_by("source", "split").agg(pl.len().alias("posts"), *choices, *texts)
    return counted.sort("posts", "source", "split", descending=[True, False, False])


def categories(annotations: pl.DataFrame) -> pl.DataFrame:
    """The paper's Figure 3: percentages of categories of groups among each website's annotations with a category. Empty
    where no file has categories."""
    categorised = annotations.drop_nulls("category").with_columns(source=pl.coalesce("source", "file"))
    counted = categorised.group_by("source", "category").agg(pl.len().alias("annotations"))
    percent = 100 * pl.col("annotations") / pl.col("annotations").sum().over("source")
    return counted.with_columns(percent=percent).sort("source", "percent", "category", descending=[False, True, False])
