"""Training of the heads of crowd2 and crowd_lm on rated polarity, and of people_valid on rated validity."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from mitigate.errors import one_of
from mitigate.runs.files import replacing_folder
from mitigate.score.people import VALID, features, plain
from mitigate.score.precision import native_dtype
from mitigate.tasks.caveats import HALVES, WHOLE
from mitigate.tasks.crowd.accuracy import GENERATED
from mitigate.tasks.crowd.training import VOTES
from mitigate.tasks.regard.texts import swapped, written_statements
from mitigate.train.crowd import Rows, calibrate, fit_crossed
from mitigate.triples import NEUTRAL, PREJUDICE
from models import hub, minilm
from models.heads import LABELS, CrossFitted, fold_of, hash_of, softmax
from models.mean_states import Causal, Encoder, States


class Part(NamedTuple):
    """Training texts of one kind, n of them."""

    texts: list[str]
    shares: np.ndarray  # (n, columns)
    weight: float  # of each text
    subjects: np.ndarray  # (n,), as in train.crowd.Rows
    folds: np.ndarray  # (n,), of texts


def train_harm(
    rated: pl.DataFrame,
    implied: Sequence[str],
    settings: Mapping[str, Any],
    seed: int,
    *,
    scorer: str,
    base: str | None = None,
    folder: Path,
) -> dict[str, int]:
    """Train on rated statements (resource, masked, masked_neutral, cluster, shares, most) and write the heads to the
    folder `scorer` of a folder; returns the number of training texts.

    settings: layers of the encoder or, with a language model `base`, depth (mean_states); reads, the kinds of texts
    with joined features (score.people.features); decay and steps, as for `fitted`; implied, the weight of each implied
    statement; copies of each rated and written statement with identity terms, and `copied`, their total weight;
    written, the weight of a statement written with its label, together with its copies; false_alarms, the share of
    COMeT's neutral statements that the threshold labels as polarised."""
    states = states_for(settings, base)
    first = rated_part(rated, rated["shares"].list.to_array(len(VOTES)).to_numpy())
    copies, parts = range(seed, seed + settings["copies"]), [first]
    for copy in copies:
        weight = settings["copied"] / len(copies)
        parts.append(first._replace(texts=swapped(first.texts, copy), weight=weight))
    statements = written_statements()
    written = [statements["text"].to_list()]
    written += [swapped(written[0], copy + len(copies)) for copy in copies]
    parts += [in_all(texts, statements["label"], settings["written"] / len(written)) for texts in written]
    if settings["implied"]:
        parts.append(in_all(implied, [PREJUDICE] * len(implied), settings["implied"]))
    texts = {"masked": [text for part in parts for text in part.texts]}
    read = features(states, settings["reads"], texts)
    generated = np.flatnonzero(rated["resource"] == GENERATED)
    heads, found = fitted(rows_of(parts, read), settings, generated, facts_of(states, settings, LABELS))
    neutral = rated["most"].gather(generated).to_numpy() == NEUTRAL
    threshold = np.quantile(1 - found[neutral, LABELS.index("neutral")], 1 - settings["false_alarms"])
    worded = {hash_of(plain(text)): fold for text, fold in zip(rated["masked_neutral"], first.folds, strict=True)}
    save(replace(heads, threshold=threshold), worded | marks_of(first), folder / scorer)
    return {"texts": len(read)}


def train_validity(
    rated: pl.DataFrame, settings: Mapping[str, Any], *, base: str | None = None, folder: Path
) -> dict[str, int]:
    """Train on rated statements (sentence, masked, cluster, quality) and write the heads to people_valid/ in a folder;
    returns the number of training texts. settings: layers or, of a language model `base`, depth; reads, decay, steps,
    and half, as of half_of."""
    rated, states = half_of(rated, settings["half"]), states_for(settings, base)
    valid = rated["quality"].list.eval(pl.element().cast(pl.Float64)).list.mean().to_numpy()
    part = rated_part(rated, np.stack([1 - valid, valid], axis=1))
    texts = {"masked": rated["masked"].to_list(), "statement": rated["sentence"].to_list()}
    read = features(states, settings["reads"], texts)
    facts = facts_of(states, settings, VALID) | {"half": settings["half"]}
    heads, _ = fitted(rows_of([part], read), settings, np.arange(len(read)), facts)
    save(heads, marks_of(part), folder / "people_valid")
    return {"texts": len(read)}


def rated_part(rated: pl.DataFrame, shares: np.ndarray) -> Part:
    """Part of rated statements (masked, cluster), each left out by the heads of two folds."""
    subjects = np.array([fold_of(cluster) for cluster in rated["cluster"]])
    folds = np.array([fold_of(plain(text)) for text in rated["masked"]])
    return Part(rated["masked"].to_list(), shares, 1.0, subjects, folds)


def in_all(texts: Sequence[str], labels: Iterable[int], weight: float) -> Part:
    """Part of texts with their labels that every head learns from."""
    shares = np.eye(len(VOTES))[[VOTES.index(label) for label in labels]]
    return Part(list(texts), shares, weight, *np.full((2, len(texts)), -1))


def rows_of(parts: Sequence[Part], read: np.ndarray) -> Rows:
    """Join the parts in their order, with the features of their texts."""
    weights = np.repeat([part.weight for part in parts], [len(part.texts) for part in parts])
    shares, subjects, folds = (np.concatenate([part[place] for part in parts]) for place in (1, 3, 4))
    return Rows(read, shares, weights, subjects, folds)


def fitted(
    rows: Rows, settings: Mapping[str, Any], calibrated: np.ndarray, facts: Mapping[str, Any]
) -> tuple[CrossFitted, np.ndarray]:
    """Fit heads, calibrated on some of the rows, each by the head that left it out; with these rows' probabilities.
    settings: decay, and steps of each head's search."""
    weight, bias = fit_crossed(rows, settings["decay"], settings["steps"])
    subjects, texts = rows.subjects[calibrated], rows.texts[calibrated]
    logits = np.einsum("nd,ndc->nc", rows.features[calibrated], weight[subjects, texts]) + bias[subjects, texts]
    slope, shift = calibrate(logits, rows.shares[calibrated])
    nothing = np.zeros(0, dtype=np.int64)
    heads = CrossFitted(slope * weight, slope * bias + shift, np.array(0.5), nothing, nothing, facts)
    return heads, softmax(slope * logits + shift)


def marks_of(part: Part) -> dict[int, int]:
    """The fold of each text by its hash."""
    return {hash_of(plain(text)): int(fold) for text, fold in zip(part.texts, part.folds, strict=True)}


def save(heads: CrossFitted, marks: Mapping[int, int], folder: Path) -> None:
    """Write the heads with the hashes of their training texts."""
    hashes, folds = np.array(list(marks), dtype=np.int64), np.array(list(marks.values()), dtype=np.uint8)
    with replacing_folder(folder) as part:
        replace(heads, marks=hashes, marked=folds).save(part)


def states_for(settings: Mapping[str, Any], base: str | None = None) -> States:
    """The network below the heads: the encoder, or the language model `base`."""
    if base is None:
        return Encoder(minilm.locate(), native_dtype(), settings["layers"])
    return Causal(hub.locate(base, seq2seq=False), native_dtype(), settings["depth"])


def facts_of(states: States, settings: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """Content of the heads' config.json."""
    network = {"sha256": states.sha256, "layers": settings.get("layers"), "depth": settings.get("depth")}
    return {"labels": list(labels), "reads": settings["reads"], **network}


def half_of(rated: pl.DataFrame, half: str) -> pl.DataFrame:
    """Select the rated statements (masked, cluster) of a half of the clusters of targets, or all. A masked text that
    both halves have stays in one of them. Raises MitigateError for another word."""
    if half == WHOLE:
        return rated
    if half not in HALVES:
        raise one_of("recipe.validity.half", half, (WHOLE, *HALVES))
    rows = rated.select(
        text=pl.Series([plain(text) for text in rated["masked"]]),
        of_cluster=pl.Series([fold_of(cluster) % 2 for cluster in rated["cluster"]]),
    )
    of_text = pl.Series([fold_of(text) % 2 for text in rows["text"]])
    in_both = rows.select(pl.col("of_cluster").n_unique().over("text") == 2).to_series()
    place = HALVES.index(half)
    return rated.filter((rows["of_cluster"] == place) & (~in_both | (of_text == place)))
