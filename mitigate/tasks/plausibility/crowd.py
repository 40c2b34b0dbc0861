"""What people say of the validity of COMeT's statements about targets (harms paper, Tables 7 and 12), as triples."""

from pathlib import Path

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.crowd import read_beside
from mitigate.measure.quality import valid_share
from mitigate.measure.ranking import auc, auc_of_a_rater
from mitigate.relations import parse_sentence
from mitigate.tasks.plausibility.classifier import Classifier, logits_of

RATERS = 3  # of a statement; three statements of the release have six, of which the first three are read


def rated_triples(folder: Path) -> pl.DataFrame:
    """The triples that people rated as making sense or not: head, relation and tail in lower case, votes (three bool),
    and valid, whether most say so.

    folder: that of COMeT_sentences.txt, COMeT_bias_labels.txt and COMeT_quality_labels.txt. Raises MitigateError as
    read_beside does, and for a sentence that is no triple, or has fewer votes than three."""
    files = [folder / f"COMeT_{name}.txt" for name in ("sentences", "bias_labels", "quality_labels")]
    rated = read_beside(*files).group_by("item", maintain_order=True).agg("quality")
    triples = [_triple(sentence) for sentence in rated["item"]]
    if wrong := [sentence for sentence, triple in zip(rated["item"], triples, strict=True) if triple is None]:
        raise MitigateError(f"{files[0]}: {len(wrong):,} sentences are no triple of COMeT, such as {wrong[0]!r}")
    if few := rated.filter(pl.col("quality").list.len() < RATERS)["item"].to_list():
        raise MitigateError(f"{files[2]}: {few[0]!r} has fewer than {RATERS} quality labels")
    frame = pl.DataFrame(triples, schema=["head", "relation", "tail"], orient="row")
    votes = rated["quality"].list.head(RATERS)
    return frame.with_columns(votes=votes, valid=votes.list.eval(pl.element().cast(pl.Int8)).list.sum() * 2 > RATERS)


def crowd_figures(network: Classifier, rated: pl.DataFrame) -> dict[str, float | None]:
    """For each relation of rated_triples crowd/{relation}/auc, how well the classifier's logits rank what most raters
    accept above the rest, and the same of one rater against the two others (rater); and the percentages that the
    classifier (accepted) and most raters (valid) accept."""
    found: dict[str, float | None] = {}
    for (relation,), part in rated.group_by("relation", maintain_order=True):
        logits = logits_of(network, part)
        found |= {
            f"crowd/{relation}/triples": part.height,
            f"crowd/{relation}/auc": auc(logits, part["valid"].to_numpy()),
            f"crowd/{relation}/rater": auc_of_a_rater(votes_of(part)),
            f"crowd/{relation}/accepted": valid_share(pl.Series(logits > 0)),
            f"crowd/{relation}/valid": valid_share(part["valid"]),
        }
    return found


def votes_of(rated: pl.DataFrame) -> np.ndarray:
    """The votes as an array, (n, 3) bool."""
    return np.array(rated["votes"].to_list(), dtype=bool).reshape(-1, RATERS)


def _triple(sentence: str) -> tuple[str, str, str] | None:
    """Head, relation and tail of a sentence such as "opera_singer is capable of sing opera"."""
    if not (parts := parse_sentence(sentence, in_comet=True)):
        return None
    head, relation, tail = parts
    return head.replace("_", " ").lower(), relation.name, tail.lower()
