"""Quality of a classifier of regard on texts of targets that were not in training, and against the crowd's labels."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from mitigate.measure.agreement import classification, majority, vote_counts
from mitigate.measure.intervals import Bootstrap
from mitigate.score.base import make_scorer
from mitigate.score.precision import native_dtype
from mitigate.score.regard import MiniLMRegard, NgramRegard, labels
from mitigate.tasks.identity import identity_metrics, identity_summary, label_identity_terms, measure_identity_terms
from mitigate.tasks.ratings.paper_statements import target_of
from mitigate.tasks.regard.minilm import load_teacher
from mitigate.train.regard import part_of
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, Labels, Scorer, fold_other
from models.encoder import Cascade, MiniLMClassifier
from models.minilm import locate

GATE = {
    "source": pl.String,
    **dict.fromkeys(("texts", "polarised"), pl.Int64),
    **dict.fromkeys(("kept", "kept_low", "kept_high", "passed"), pl.Float64),
}


def figures(
    classifier: Callable[[Sequence[str]], Labels], labelled: pl.DataFrame, crowd: pl.DataFrame
) -> dict[str, float | None]:
    """{test|people}/... from labelled texts (text, label, part), {resource}/{majority|vote|unseen}/... from the crowd's
    (resource, statement, masked, votes); unseen: against the majority on statements about targets of part test."""
    found: dict[str, float | None] = {}
    for part in ("test", "people"):
        texts = labelled.filter(part=part)
        found |= _agreement(part, texts["label"].to_numpy(), classifier(texts["text"].to_list()).label)
    for (resource,), sentences in crowd.group_by("resource", maintain_order=True):
        label = classifier(sentences["masked"].to_list()).label
        votes = sentences.with_row_index("item").with_columns(label=pl.Series(label)).explode("votes")
        most = majority(vote_counts(votes["item"].to_list(), votes["votes"].to_numpy()))
        found |= _agreement(f"{resource}/vote", votes["votes"].to_numpy(), votes["label"].to_numpy())
        found |= _agreement(f"{resource}/majority", most, label)
        about = [target_of(text) for text in sentences["statement"]]
        unseen = np.array([target is not None and part_of(target) == "test" for target in about])
        found |= _agreement(f"{resource}/unseen", most[unseen], label[unseen]) if unseen.any() else {}
    return found


def _agreement(place: str, true: np.ndarray, label: np.ndarray) -> dict[str, float | None]:
    """The figures of measure.agreement, and for comparison the accuracy of labelling every text neutral."""
    true, label = fold_other(true), fold_other(label)
    found = classification(true, label) | {"texts": len(true), "always_neutral": float((true == NEUTRAL).mean())}
    return {f"{place}/{key}": value if value is None else round(value, 4) for key, value in found.items()}


def measure_regard(
    labelled: pl.DataFrame, crowd: pl.DataFrame, identity: pl.DataFrame, *, folder: Path
) -> dict[str, Any]:
    """Figures of the teacher and of both classifiers of a folder, in the precision that scorers use; and of identity,
    the result of identity_terms."""
    teacher, found = load_teacher(folder).to(native_dtype()), dict[str, Any]()
    of_teacher = make_scorer(lambda texts: labels(teacher.probabilities(texts)), "teacher")
    for scorer in (of_teacher, *scorers_in(folder)):
        found |= {f"{scorer.name}/{key}": value for key, value in figures(scorer, labelled, crowd).items()}
    return found | identity_metrics(identity_summary(identity))


def scorers_in(folder: Path) -> list[Scorer]:
    """The scorers by the classifiers in minilm/, behind its gate, and ngram/ of a folder, named as these."""
    found: list[Scorer] = [MiniLMRegard(folder / "minilm"), NgramRegard(folder / "ngram")]
    return [make_scorer(scorer, name) for scorer, name in zip(found, ("minilm", "ngram"), strict=True)]


def gate_figures(checking: pl.DataFrame, *, folder: Path) -> pl.DataFrame:
    """Losses by the gate of minilm/ of a folder, by source of the texts (source, text): texts, the classifier's
    polarised labels among them, kept (the share of these that the gate does not pass, in percent), kept_low, kept_high
    (its 95 % interval, Clopper and Pearson 1934), passed (the share of all texts, in percent)."""
    trained = folder / "minilm"
    cascade = Cascade.load(trained, locate(), MiniLMClassifier.load(trained, locate()).to(native_dtype()))
    rows = []
    for (source,), texts in checking.group_by("source", maintain_order=True):
        encoded = cascade.classifier.encode(texts["text"].to_list())
        passed = cascade.passes(cascade.opinions(encoded))
        polarised = np.isin(labels(cascade.classifier.read(encoded)).label, [PREJUDICE, FAVOURITISM])
        kept, count = int((polarised & ~passed).sum()), int(polarised.sum())
        exact = stats.binomtest(kept, count).proportion_ci() if count else None
        share = [100 * value for value in (kept / count, exact.low, exact.high)] if exact else [None] * 3
        rows.append((source, len(encoded), count, *share, 100 * float(passed.mean())))
    return pl.DataFrame(rows, schema=GATE, orient="row")


def identity_terms(intervals: Bootstrap, *, folder: Path) -> pl.DataFrame:
    """Errors of both classifiers of a folder by identity term: tasks.identity.measure_identity_terms."""
    scorers = scorers_in(folder)
    return measure_identity_terms(label_identity_terms(scorers), [scorer.name for scorer in scorers], intervals)
