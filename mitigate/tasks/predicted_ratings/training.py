"""Training of the heads of crowd2 and crowd_lm on rated polarity, and of people_valid on rated validity."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import softmax

from mitigate.errors import one_of
from mitigate.files import replacing_folder
from mitigate.measure.caveats import HALVES, WHOLE
from mitigate.score.people import VALID, features, plain
from mitigate.score.precision import native_dtype
from mitigate.tasks.crowd.accuracy import GENERATED
from mitigate.tasks.crowd.training import Texts, known_rows, rated_rows, vote_shares
from mitigate.tasks.regard.texts import swapped, written_statements
from mitigate.train.crowd import Rows, calibrate, fit_crossed
from mitigate.triples import NEUTRAL, PREJUDICE
from models import hub, minilm
from models.encoder import Encoder, States
from models.heads import LABELS, CrossFitted, fold_of, hash_of
from models.hf import CausalStates


def train_harm(
    texts: Texts, settings: Mapping[str, Any], seed: int, *, scorer: str, base: str | None = None, folder: Path
) -> dict[str, int]:
    """Train on rated statements (resource, masked, masked_neutral, cluster, votes, most) and on implied ones, and write
    the heads to the folder `scorer` of a folder; returns the number of training texts.

    settings: layers of the encoder or, with a language model `base`, depth (hf.CausalStates); reads, the kinds of texts
    with joined features (score.people.features); decay and steps, as for `fitted`; implied, the weight of each implied
    statement; copies of each rated and written statement with identity terms, and `copied`, their total weight;
    written, the weight of a statement written with its label, together with its copies; false_alarms, the share of
    COMeT's neutral statements that the threshold labels as polarised."""
    states, rated, implied = states_for(settings, base), texts.rated, texts.implied
    first = rated_rows(rated, vote_shares(rated))
    copies = range(seed, seed + settings["copies"])
    weights = np.full(rated.height, settings["copied"] / max(1, len(copies)))
    parts = [first, *(replace(first, texts=swapped(first.texts, copy), weights=weights) for copy in copies)]
    statements = written_statements()
    written = [statements["text"].to_list()]
    written += [swapped(written[0], copy + len(copies)) for copy in copies]
    parts += [known_rows(copy, statements["label"], settings["written"] / len(written)) for copy in written]
    if settings["implied"]:
        parts.append(known_rows(implied, [PREJUDICE] * len(implied), settings["implied"]))
    rows = Rows.joined(parts)
    read = features(states, settings["reads"], {"masked": rows.texts})
    generated = np.flatnonzero(rated["resource"] == GENERATED)
    heads, found = fitted(rows, read, settings, generated, facts_of(states, settings, LABELS))
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
    valid = valid_votes(rated)
    rows = rated_rows(rated, np.stack([1 - valid, valid], axis=1))
    texts = {"masked": rated["masked"].to_list(), "statement": rated["sentence"].to_list()}
    read = features(states, settings["reads"], texts)
    facts = facts_of(states, settings, VALID) | {"half": settings["half"]}
    heads, _ = fitted(rows, read, settings, np.arange(len(read)), facts)
    save(heads, marks_of(rows), folder / "people_valid")
    return {"texts": len(read)}


def valid_votes(rated: pl.DataFrame) -> np.ndarray:
    """The share of raters who call each statement valid, (n,)."""
    return rated["quality"].list.eval(pl.element().cast(pl.Float64)).list.mean().to_numpy()


def fitted(
    rows: Rows, read: np.ndarray, settings: Mapping[str, Any], calibrated: np.ndarray, facts: Mapping[str, Any]
) -> tuple[CrossFitted, np.ndarray]:
    """Fit heads on the features `read` (n, width) of rows, calibrated on some of these, each by the head that left it
    out; with these rows' probabilities. settings: decay, and steps of each head's search."""
    weight, bias = fit_crossed(rows, read, settings["decay"], settings["steps"])
    left_out = rows.subjects[calibrated], rows.folds[calibrated]
    logits = np.einsum("nd,ndc->nc", read[calibrated], weight[left_out]) + bias[left_out]
    slope, shift = calibrate(logits, rows.shares[calibrated])
    nothing = np.zeros(0, dtype=np.int64)
    heads = CrossFitted(slope * weight, slope * bias + shift, np.array(0.5), nothing, nothing, facts)
    return heads, softmax(slope * logits + shift, axis=-1)


def marks_of(rows: Rows) -> dict[int, int]:
    """The fold of each text by its hash."""
    return {hash_of(plain(text)): int(fold) for text, fold in zip(rows.texts, rows.folds, strict=True)}


def save(heads: CrossFitted, marks: Mapping[int, int], folder: Path) -> None:
    """Write the heads with the hashes of their training texts."""
    hashes, folds = np.array(list(marks), dtype=np.int64), np.array(list(marks.values()), dtype=np.uint8)
    with replacing_folder(folder) as part:
        replace(heads, marks=hashes, marked=folds).save(part)


def states_for(settings: Mapping[str, Any], base: str | None = None) -> States:
    """The network below the heads: the encoder, or the language model `base`."""
    if base is None:
        return Encoder(minilm.locate(), native_dtype(), settings["layers"])
    return CausalStates(hub.locate(base, seq2seq=False), native_dtype(), settings["depth"])


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
