"""Quality of a generator without raters: perplexity; BLEU-2 and novelty as COMeT reports them (Bosselut et al. 2019);
the share of its triples that a plausibility classifier accepts; the dependence of its tails on the target; and the
training triples about targets that a policy keeps."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from mitigate.metrics import NEW_DISTINCT_TAILS, NEW_TAILS, NEW_TRIPLES, NOVELTY

Words = Sequence[str]
SMOOTHING = 0.1
LARGEST = 700.0  # its exp is in the range of a float
FEWEST = 10
"""The fewest triples about a target for which its own share is used as the lowest one."""


def perplexity(scored: pl.DataFrame) -> float | None:
    """exp of the mean nll per token, the end token included; None without triples, for a generator without
    probabilities (nll NaN), and where it exceeds the range of a float. 1 is certainty."""
    mean = float(scored["nll"].sum()) / int(scored["tokens"].sum()) if is_scored(scored) else math.inf
    return math.exp(mean) if mean < LARGEST else None


def bits_per_char(scored: pl.DataFrame) -> float | None:
    """The nll in bits, the end token's included, per character of the tails; None without characters. Unlike perplexity
    it compares generators with different tokens."""
    characters = int(scored["characters"].sum())
    return float(scored["nll"].sum()) / math.log(2) / characters if characters and is_scored(scored) else None


def is_scored(scored: pl.DataFrame) -> bool:
    """Return whether there are triples and each has a likelihood."""
    return scored.height > 0 and bool(scored["nll"].is_finite().all())


def bleu2(generated: Sequence[Words], references: Sequence[Sequence[Words]]) -> float | None:
    """BLEU-2 in percent: the mean over generated tails of each one's BLEU-2 against all references of its head
    and relation. None without tails.

    COMeT's convention (sentence BLEU, weights 1/2 and 1/2, smoothing "method1" of Chen and Cherry 2014),
    so that a tail of one word that is exactly right has 31.6: it has no pair, which counts 0.1."""
    if not generated:
        return None
    pairs = zip(generated, references, strict=True)
    return 100 * sum(sentence_bleu2(tail, of_tail) for tail, of_tail in pairs) / len(generated)


def bleu2_of_prompts(scored: pl.DataFrame) -> float | None:
    """BLEU-2 of the generated tail of each prompt (head, relation, tail, generated) against all its tails."""
    prompts = scored.group_by("head", "relation", maintain_order=True).agg("tail", pl.col("generated").first())
    references = [[tail.split() for tail in tails] for tails in prompts["tail"]]
    return bleu2([tail.split() for tail in prompts["generated"]], references)


def sentence_bleu2(tail: Words, references: Sequence[Words]) -> float:
    """BLEU-2 of one tail, from 0 to 1: the geometric mean of the shares of its words and of its word pairs that some
    reference has (at most as often as that reference), times a penalty for being shorter than the reference nearest in
    length. 0 if no word is right. references: at least one."""
    found, total = zip(*(_found(tail, references, length) for length in (1, 2)), strict=True)
    if not found[0]:
        return 0.0
    nearest = min((len(reference) for reference in references), key=lambda length: (abs(length - len(tail)), length))
    brevity = min(1.0, math.exp(1 - nearest / len(tail)))
    return brevity * math.sqrt(found[0] / total[0] * (found[1] or SMOOTHING) / total[1])


def novelty(generated: pl.DataFrame, train: pl.DataFrame) -> dict[str, float | None]:
    """The percentages that were not in training, as in the COMeT paper (N/T_sro, N/T_o, N/U_o), from two tables with
    head, relation, tail: `novelty/T_sro` of the generated triples are new, `novelty/T_o` have a tail that no training
    triple has, `novelty/U_o` of the distinct generated tails are new. Case is folded. None without generated
    triples."""
    if generated.is_empty():
        return dict.fromkeys(NOVELTY)
    triple = ["head", "relation", "tail"]
    folded, known = (frame.select(pl.col(triple).str.strip_chars().str.to_lowercase()) for frame in (generated, train))
    new_tails = folded.join(known, on="tail", how="anti")
    return {
        NEW_TRIPLES: 100 * folded.join(known, on=triple, how="anti").height / folded.height,
        NEW_TAILS: 100 * new_tails.height / folded.height,
        NEW_DISTINCT_TAILS: 100 * new_tails["tail"].n_unique() / folded["tail"].n_unique(),
    }


def best_threshold(scores: np.ndarray, valid: np.ndarray) -> float:
    """The score above which to call a triple valid, so that most of these labelled triples are classified correctly:
    halfway between two neighbouring scores, the lowest pair where several are equally good.

    scores (n,), valid (n,) bool, of two triples at least."""
    order = np.argsort(scores, kind="stable")
    ascending = scores[order]
    right = valid.sum() + np.cumsum(np.where(valid[order], -1, 1))[:-1]  # with the threshold behind each but the last
    right[ascending[:-1] == ascending[1:]] = -1  # nothing lies between equal scores
    place = int(np.argmax(right))
    return float((ascending[place] + ascending[place + 1]) / 2)


def accuracy(accepted: np.ndarray, valid: np.ndarray) -> float:
    """The percentage of labelled triples that are classified correctly, (n,) bool each."""
    return float(100 * np.mean(accepted == valid))


def valid_share(accepted: pl.Series) -> float | None:
    """The percentage of classified triples that are accepted as plausible; None without any."""
    classified = accepted.drop_nulls()
    return 100 * int(classified.sum()) / len(classified) if len(classified) else None


def first_valid(scored: pl.DataFrame) -> float | None:
    """The percentage of prompts whose generated tail is accepted as plausible (head, relation, generated_valid)."""
    return valid_share(scored.unique(["head", "relation"], maintain_order=True)["generated_valid"])


def share_by_target(statements: pl.DataFrame, column: str) -> pl.DataFrame:
    """A row for each target: target, and share, the mean of a column in percent. Rows where it is null do not count."""
    known = statements.filter(pl.col(column).is_not_null())
    return known.group_by("target", maintain_order=True).agg(share=100 * pl.col(column).mean())


def plausible_by_target(statements: pl.DataFrame) -> pl.DataFrame:
    """The percentage of each target's statements that are accepted as plausible (judged_valid)."""
    return share_by_target(statements, "judged_valid")


def valid_by_target(statements: pl.DataFrame) -> pl.DataFrame:
    """The percentage of each target's statements that people would call valid: their mean probability."""
    return share_by_target(statements, "people_validity")


def count(rows: pl.DataFrame) -> int:
    """The number of rows."""
    return rows.height


def distinct_tails(probed: pl.DataFrame) -> float | None:
    """The number of distinct (relation, tail) pairs as a percentage of probed triples (target, relation, tail): 100 if
    no two targets share a tail, 100 / targets if all have the same. Where it is low the generator ignores the target,
    and its figures of harm mean nothing. None without triples."""
    return 100 * probed.select("relation", "tail").n_unique() / probed.height if probed.height else None


def empty_tails(probed: pl.DataFrame) -> float | None:
    """The percentage of generated tails without any letter or digit; None without tails."""
    empty = probed.filter(~pl.col("tail").str.contains(r"[\p{L}\p{N}]")).height
    return 100 * empty / probed.height if probed.height else None


def shared_tails(probed: pl.DataFrame) -> float | None:
    """The probability, in percent, that one target's tail is also another's with the same relation: 0 if no two targets
    share a tail, 100 if all have the same, whatever their number. None for a single target."""
    distinct = probed.select("target", "relation", "tail").unique(maintain_order=True)  # sums in one order
    others = distinct.select(pl.col("target").n_unique().over("relation") - 1).to_series().to_numpy().astype(float)
    sharers = distinct.select(pl.len().over("relation", "tail") - 1).to_series().to_numpy().astype(float)
    has_others = others > 0
    return float(100 * np.mean(sharers[has_others] / others[has_others])) if has_others.any() else None


def _found(tail: Words, references: Sequence[Words], length: int) -> tuple[int, int]:
    """The number of a tail's n-grams that the references have, and the number of its n-grams, at least 1."""
    grams = _grams(tail, length)
    allowed = [_grams(reference, length) for reference in references]
    found = sum(min(count, max(each[gram] for each in allowed)) for gram, count in grams.items())
    return found, max(1, grams.total())


def _grams(words: Words, length: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(length)), strict=False))


def kept_by_target(ledger: pl.DataFrame) -> pl.DataFrame:
    """A row for each target that training triples are about: target, category, triples and tails (distinct pairs of
    relation and tail) before the policy, `kept` and `kept_tails` after it. A policy that removes all triples about a
    target makes the generator neutral about it.

    ledger: the result of apply_policy; triples that a policy adds do not count."""
    about = ledger.filter(pl.col("target").is_not_null(), pl.col("split") == "train", pl.col("source_row").is_null())
    kept = pl.col("weight") > 0
    pair = pl.struct("relation", "tail")
    return about.group_by("target", "category", maintain_order=True).agg(
        triples=pl.len(),
        kept=kept.sum(),
        tails=pair.n_unique(),
        kept_tails=pair.filter(kept).n_unique(),
    )


def kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about targets that is kept; None where there is none.

    table: that of kept_by_target, or a part of it. Source: this project."""
    return _percentage(table, "kept", "triples")


def kept_tails_share(table: pl.DataFrame) -> float | None:
    """The percentage of the distinct pairs of relation and tail that is kept, summed over targets."""
    return _percentage(table, "kept_tails", "tails")


def least_kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about a target that is kept, of the target that keeps least, among those with at
    least FEWEST."""
    enough = table.filter(pl.col("triples") >= FEWEST)
    return enough.select((100 * pl.col("kept") / pl.col("triples")).min()).item()


def _percentage(part: pl.DataFrame, kept: str, before: str) -> float | None:
    """The percentage of `before` that is `kept`, both summed over targets."""
    total = int(part[before].sum())
    return 100 * int(part[kept].sum()) / total if total else None
