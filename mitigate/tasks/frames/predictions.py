"""Frames of posts by the trained models, and by baselines that know none of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from mitigate.runs.progress import progress
from mitigate.tasks.frames.forms import SCHEMA, fill_posts
from mitigate.tasks.frames.training import BASE, needs_folds
from mitigate.words.frames import CHOICES
from models.form import Form

PIECE = 512  # posts filled in at once
BASELINES = ("always yes", "tf-idf", "nearest")


def predict_base(posts: pl.DataFrame, samples: int, seed: int, *, folder: Path) -> pl.DataFrame:
    """The frames of test posts by the model that learnt from training posts: key, and forms.SCHEMA; without folds also
    of dev posts, which then calibrate the scorer."""
    wanted = posts.filter(pl.col("split").is_in(["test"] if needs_folds(posts) else ["dev", "test"]))
    return _predict(wanted, folder / "models" / BASE, samples, seed, "frames")


def predict_folds(posts: pl.DataFrame, folds: Sequence[int], samples: int, seed: int, *, folder: Path) -> pl.DataFrame:
    """The frames of test posts, each by the model that did not learn from its fold."""
    parts = []
    for fold in folds:
        part = posts.filter(pl.col("fold") == fold)
        parts.append(_predict(part, folder / "models" / f"fold_{fold}", samples, seed, f"frames of fold {fold + 1}"))
    return pl.concat(parts)


def _predict(posts: pl.DataFrame, model: Path, samples: int, seed: int, what: str) -> pl.DataFrame:
    """Posts with references have their texts generated whatever the model says of the classifications, so that the
    texts can be measured apart from these; `evaluate` also counts what is decoded without that."""
    form = Form.load(model)
    told = (pl.col("implied").list.len() > 0) | (pl.col("groups").list.len() > 0)
    found = []
    with progress(what, posts.height, "posts") as advance:
        for always in (True, False):
            part = posts.filter(told if always else ~told)
            for piece in part.iter_slices(PIECE):
                filled = fill_posts(form, piece["post"].to_list(), samples=samples, seed=seed, always=always)
                found.append(filled.with_columns(piece["key"]))
                advance(piece.height)
    return pl.concat(found) if found else pl.DataFrame(schema={**SCHEMA, "key": pl.String})


def truth_of(posts: pl.DataFrame, name: str) -> pl.Series:
    """A classification where it is known: below a negative parent it is negative, as the paper counts it."""
    parent = {"targeted": ["offensive"], "ingroup": ["offensive", "targeted"]}.get(name, [])
    negative = pl.any_horizontal(pl.lit(False), *(pl.col(one).eq_missing(False) for one in parent))
    return posts.select(pl.when(negative).then(False).otherwise(name).alias(name))[name]


def predict_baselines(posts: pl.DataFrame, seed: int) -> pl.DataFrame:
    """What simple rules say of test posts' classifications, learnt from training posts: key, system, and CHOICES
    (null where training posts give no two values). "always yes"; "tf-idf": logistic regression on TF-IDF of words and
    pairs of words; "nearest": the value of the training post with the highest cosine of TF-IDF."""
    test = posts.filter(pl.col("split") == "test")
    tables = {system: test.select("key", system=pl.lit(system)) for system in BASELINES}
    for name in CHOICES:
        train = posts.filter(pl.col("split") == "train").with_columns(
            truth_of(posts.filter(pl.col("split") == "train"), name)
        )
        train = train.drop_nulls(name)
        if train[name].n_unique() < 2:
            tables = {s: t.with_columns(pl.lit(None, pl.Boolean).alias(name)) for s, t in tables.items()}
            continue
        known, asked = _vectors(train["post"].to_list(), test["post"].to_list())
        regression = LogisticRegression(C=4.0, max_iter=1000, random_state=seed).fit(known, train[name].to_numpy())
        said = {
            "always yes": np.ones(test.height, bool),
            "tf-idf": regression.predict(asked),
            "nearest": train[name].to_numpy()[_nearest(known, asked)],
        }
        tables = {s: t.with_columns(pl.Series(name, said[s], pl.Boolean)) for s, t in tables.items()}
    return pl.concat(tables.values())


def predict_texts(posts: pl.DataFrame, folds: Sequence[int], predicted: pl.DataFrame) -> pl.DataFrame:
    """What simple rules say of the group and the implied statement of test posts with references: key, system, group,
    implied. "commonest": the commonest group and statement; "nearest": those of the post with the highest cosine of
    TF-IDF, its first ones; "commonest of the group": the commonest statement of the group that the model generates,
    which it takes from `predicted` (key, group). Learnt as the models are: from training posts, or from the test posts
    of other folds."""
    told = posts.filter(pl.col("implied").list.len() > 0)
    said = predicted.select("key", "group")
    found = []
    every: list[int | None] = [*folds] or [None]
    for fold in every:
        if fold is None:
            known, asked = told.filter(pl.col("split") == "train"), told.filter(pl.col("split") == "test")
        else:
            known, asked = told.filter(pl.col("fold") != fold), told.filter(pl.col("fold") == fold)
        if known.is_empty() or asked.is_empty():
            continue
        common = [_commonest(known, column) for column in ("groups", "implied")]
        vectors, others = _vectors(known["post"].to_list(), asked["post"].to_list())
        near = known[_nearest(vectors, others)]
        first = [near[column].list.get(0, null_on_oob=True).fill_null("") for column in ("groups", "implied")]
        groups = asked.select("key").join(said, on="key", how="left", maintain_order="left")["group"]
        of_group = groups.replace_strict(_commonest_of_groups(known), default=common[1], return_dtype=pl.String)
        for system, group, implied in (
            ("commonest", *common),
            ("nearest", *first),
            ("commonest of the group", "", of_group),
        ):
            found.append(pl.DataFrame({"key": asked["key"], "system": system, "group": group, "implied": implied}))
    schema = dict.fromkeys(("key", "system", "group", "implied"), pl.String)
    return pl.concat(found) if found else pl.DataFrame(schema=schema)


def _commonest(posts: pl.DataFrame, column: str) -> str:
    """The commonest of the texts in a column of lists."""
    counts = posts.select(pl.col(column).explode())[column].value_counts(sort=True)
    return counts.sort("count", column, descending=[True, False])[column][0]


def _commonest_of_groups(posts: pl.DataFrame) -> dict[str, str]:
    """The commonest statement of each group."""
    pairs = posts.explode("implied", "implied_groups").group_by("implied_groups", "implied").len()
    pairs = pairs.sort("len", "implied", descending=[True, False]).unique("implied_groups", keep="first")
    return dict(pairs.drop_nulls("implied_groups").select("implied_groups", "implied").iter_rows())


def _vectors(known: list[str], asked: list[str]) -> tuple[Any, Any]:
    """TF-IDF of words and pairs of words, two sparse matrices with rows of length 1."""
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2 if len(known) > 1000 else 1, sublinear_tf=True)
    return words.fit_transform(known), words.transform(asked)


def _nearest(known: Any, asked: Any) -> np.ndarray:
    """The row of `known` with the highest cosine for each row of `asked`."""
    return np.concatenate([(asked[i : i + 256] @ known.T).toarray().argmax(1) for i in range(0, asked.shape[0], 256)])
