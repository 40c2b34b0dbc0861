"""Frames of posts by the trained models, and by baselines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from mitigate.progress import progress
from mitigate.tasks.frames.forms import BASE, SCHEMA, fill_posts, needs_folds
from mitigate.words.frames import CHOICES
from models.form import Form

PIECE = 512  # posts filled in at once
BASELINES = ("always yes", "tf-idf", "nearest")


def predict_base(posts: pl.DataFrame, samples: int, seed: int, *, folder: Path) -> pl.DataFrame:
    """Predict frames of test posts by the model that learnt from training posts: key, and forms.SCHEMA; without folds
    also of dev posts, which then calibrate the scorer."""
    wanted = posts.filter(pl.col("split").is_in(["test"] if needs_folds(posts) else ["dev", "test"]))
    return _predict(wanted, folder / "models" / BASE, samples, seed, "frames")


def predict_folds(posts: pl.DataFrame, folds: Sequence[int], samples: int, seed: int, *, folder: Path) -> pl.DataFrame:
    """Predict frames of test posts, each by the model that did not learn from its fold."""
    return pl.concat(
        _predict(
            posts.filter(fold=fold), folder / "models" / f"fold_{fold}", samples, seed, f"frames of fold {fold + 1}"
        )
        for fold in folds
    )


def _predict(posts: pl.DataFrame, model: Path, samples: int, seed: int, title: str) -> pl.DataFrame:
    """Predict frames. Posts with references get texts whatever their predicted classifications, so that texts can be
    measured apart from these."""
    form = Form.load(model)
    has_references = (pl.col("implied").list.len() > 0) | (pl.col("groups").list.len() > 0)
    found = []
    with progress(title, posts.height, "posts") as advance:
        for always in (True, False):
            part = posts.filter(has_references if always else ~has_references)
            for piece in part.iter_slices(PIECE):
                filled = fill_posts(form, piece["post"].to_list(), samples=samples, seed=seed, always=always)
                found.append(filled.with_columns(piece["key"]))
                advance(piece.height)
    return pl.concat(found) if found else pl.DataFrame(schema={**SCHEMA, "key": pl.String})


def truth_of(posts: pl.DataFrame, name: str) -> pl.Series:
    """A classification, null where it is missing; below a negative parent it is negative, as in the paper."""
    parent = {"targeted": ["offensive"], "ingroup": ["offensive", "targeted"]}.get(name, [])
    negative = pl.any_horizontal(pl.lit(False), *(pl.col(one).eq_missing(False) for one in parent))
    return posts.select(pl.when(negative).then(False).otherwise(name).alias(name))[name]


def predict_baselines(posts: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Classify test posts by simple rules, learnt from training posts: key, system, and CHOICES (null where training
    posts have one value). "always yes"; "tf-idf": logistic regression on TF-IDF of words and pairs of words; "nearest":
    the value of the training post with the highest cosine of TF-IDF."""
    test, training = (posts.filter(pl.col("split") == split) for split in ("test", "train"))
    tables = {system: test.select("key", system=pl.lit(system)) for system in BASELINES}
    for name in CHOICES:
        learnt = training.with_columns(truth_of(training, name)).drop_nulls(name)
        truth = learnt[name].to_numpy()
        found: dict[str, Any] = dict.fromkeys(BASELINES, [None] * test.height)
        if learnt[name].n_unique() == 2:
            train_vectors, test_vectors = _vectors(learnt["post"].to_list(), test["post"].to_list())
            regression = LogisticRegression(C=4.0, max_iter=1000, random_state=seed).fit(train_vectors, truth)
            nearest = truth[_nearest(train_vectors, test_vectors)]
            classified = np.ones(test.height, bool), regression.predict(test_vectors), nearest
            found = dict(zip(BASELINES, classified, strict=True))
        tables = {s: table.with_columns(pl.Series(name, found[s], pl.Boolean)) for s, table in tables.items()}
    return pl.concat(tables.values())


def predict_texts(posts: pl.DataFrame, folds: Sequence[int], predicted: pl.DataFrame) -> pl.DataFrame:
    """Texts of simple rules for the group and the implied statement of test posts with references: key, system, group,
    implied. "commonest": the commonest group and statement; "nearest": the first ones of the post with the highest
    cosine of TF-IDF; "commonest of the group": the commonest statement of the group that the model generates, from
    `predicted` (key, group). The rules learn from the same posts as the models: from training posts, or from the test
    posts of other folds."""
    with_text = posts.filter(pl.col("implied").list.len() > 0)
    found = []
    pairs = [(with_text.filter(pl.col("fold") != fold), with_text.filter(fold=fold)) for fold in folds]
    for train, test in pairs or [(with_text.filter(split="train"), with_text.filter(split="test"))]:
        if train.is_empty() or test.is_empty():
            continue
        common = [_commonest(train, column) for column in ("groups", "implied")]
        near = train[_nearest(*_vectors(train["post"].to_list(), test["post"].to_list()))]
        first = [near[column].list.get(0, null_on_oob=True).fill_null("") for column in ("groups", "implied")]
        groups = test.join(predicted.select("key", "group"), on="key", how="left", maintain_order="left")["group"]
        of_group = groups.replace_strict(_commonest_of_groups(train), default=common[1], return_dtype=pl.String)
        texts: dict[str, Any] = {"commonest": common, "nearest": first, "commonest of the group": ["", of_group]}
        for system, (group, implied) in texts.items():
            found.append(pl.DataFrame({"key": test["key"], "system": system, "group": group, "implied": implied}))
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


def _vectors(train: list[str], test: list[str]) -> tuple[Any, Any]:
    """TF-IDF of words and pairs of words, two sparse matrices with rows of length 1."""
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2 if len(train) > 1000 else 1, sublinear_tf=True)
    return words.fit_transform(train), words.transform(test)


def _nearest(train: Any, test: Any) -> np.ndarray:
    """The row of `train` with the highest cosine for each row of `test`."""
    return np.concatenate([(test[i : i + 256] @ train.T).toarray().argmax(1) for i in range(0, test.shape[0], 256)])
