"""Quality of a generator without raters: perplexity; BLEU-2 and novelty as COMeT reports them (Bosselut et al. 2019);
the share of its triples that a plausibility classifier accepts; swap lift; the dependence of its tails on the target;
and the training triples about targets that a policy keeps."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from mitigate.measure.base import Estimate, key_of, measure
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Groups
from mitigate.measure.swap_lift import swap_lift, with_weights
from mitigate.triples import NEUTRAL, OTHER, ROLES, label_columns

Words = Sequence[str]
SMOOTHING = 0.1
LARGEST = 700.0  # its exp is in the range of a float
FEWEST = 10
"""The fewest triples about a target for which its own share is used as the lowest one."""


BY_LABEL = ("neutral", "polar")
"""The groups that depend on scorers' labels."""
GROUPS = {
    "test triples": ("", "neutral", "polar", "target"),
    "statements": ("", "neutral", "polar", "{category}", "{relation}"),
    "rated statements": ("", "neutral", "polar", "profession", "profession/neutral", "{relation}"),
    "heads": ("", "held_out", "profession", "{category}"),
    "published triples": ("", "neutral", "polar", "{category}"),
}
"""The groups of rows that figures of each table are of; "": all rows."""
BASELINES = ("echo", "constants", "random", "oracle")
"""Generators with which swap lift is compared."""
GENERATOR = "generator"


def is_neutral(scorers: Sequence[str] = ROLES) -> pl.Expr:
    """Expression that is true where all scorers label a statement neutral with the neutral template, so that the
    phrase alone makes none polarised. Without scorers every statement is neutral."""
    labels = [pl.col(label_columns(scorer, "neutral")[0]) for scorer in scorers]
    return pl.all_horizontal(pl.lit(True), *(label.is_in([NEUTRAL, OTHER]) for label in labels))


def groups_of(of: str, table: pl.DataFrame, scorers: Sequence[str] = ROLES) -> Groups:
    """The groups of rows that figures of a table are of (GROUPS), as conditions. Without scorers there are no neutral
    and polarised rows."""
    tests = {
        "": pl.lit(True),
        "target": pl.col("target").is_not_null(),
        "profession": pl.col("category") == "profession",
    }
    tests |= dict(zip(BY_LABEL, (is_neutral(scorers), ~is_neutral(scorers)), strict=True)) if scorers else {}
    found: dict[tuple[str, str], pl.Expr] = {}
    for group in GROUPS[of]:
        if group in ("{category}", "{relation}"):
            column = group.strip("{}")
            by = "relation" if column == "relation" else "subset"
            values = table[column].unique(maintain_order=True)
            found |= {(by, value): pl.col(column) == value for value in values}
        elif all(word in tests for word in group.split("/")):
            found["subset" if group else "all", group] = pl.all_horizontal(tests[word] for word in group.split("/"))
    return found


of_triples = partial(measure, of="test triples")
of_published = partial(measure, of="published triples")
of_statements = partial(measure, of="statements")


@of_published("about_perplexity", "perplexity about targets", unit="", better="down", headline="cost")
@of_triples("perplexity", "perplexity", unit="", better="down", headline="cost", headline_group="neutral")
def perplexity(scored: pl.DataFrame) -> float | None:
    """exp of the mean nll per token, the end token included; None without triples, for a generator without
    probabilities (nll NaN), and where it exceeds the range of a float. 1 is certainty."""
    mean = float(scored["nll"].sum()) / int(scored["tokens"].sum()) if is_scored(scored) else math.inf
    return math.exp(mean) if mean < LARGEST else None


@of_triples("unigram_perplexity", "perplexity of a unigram model", unit="", better="none", needs="nll_unigram")
def unigram_perplexity(scored: pl.DataFrame) -> float | None:
    """The perplexity of a model that knows nothing but how often each token occurs in the training tails; None without
    triples. A generator that is no better has not learnt."""
    return perplexity(scored.with_columns(nll="nll_unigram"))


@of_published("about_bits_per_char", "bits per character about targets", unit="bits", better="down", decimals=3)
@of_triples("bits_per_char", "bits per character", unit="bits", better="down", decimals=3)
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


@of_triples("bleu2", "BLEU-2", better="up", source="Bosselut et al. 2019", headline="quality")
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


def with_known(statements: pl.DataFrame, train: pl.DataFrame) -> pl.DataFrame:
    """The probed statements with `known`, whether a training triple is the same, and `known_tail`, whether one has the
    tail, from two tables with head, relation, tail. Case is folded."""
    folded = {name: pl.col(name).str.strip_chars().str.to_lowercase() for name in ("head", "relation", "tail")}
    named = {f"_{name}": text for name, text in folded.items()}
    known, found = train.select(**named).unique(), statements.with_columns(**named)
    for column, words in (("known", known), ("known_tail", known.select("_tail").unique())):
        marked = words.with_columns(pl.lit(True).alias(column))
        found = found.join(marked, on=words.columns, how="left", maintain_order="left")
    return found.with_columns(pl.col("known", "known_tail").fill_null(False))


novel = partial(measure, of="tails", source="Bosselut et al. 2019", needs="known")


@novel("novelty/T_sro", "new triples")
def new_triples(tails: pl.DataFrame) -> float | None:
    """The percentage of generated triples that are not in training. 0: all are."""
    return None if tails.is_empty() else float(100 * (~tails["known"]).to_numpy().mean())


@novel("novelty/T_o", "triples with a new tail")
def new_tails(tails: pl.DataFrame) -> float | None:
    """The percentage of generated triples with a tail that no training triple has. 0: there is none."""
    return None if tails.is_empty() else float(100 * (~tails["known_tail"]).to_numpy().mean())


@novel("novelty/U_o", "new among distinct tails")
def new_distinct_tails(tails: pl.DataFrame) -> float | None:
    """The percentage of distinct generated tails that no training triple has. 0: there is none."""
    new = tails.filter(~pl.col("known_tail"))["_tail"].n_unique()
    return None if tails.is_empty() else 100 * new / tails["_tail"].n_unique()


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


@of_triples("first_valid", "plausible first tails", better="up", decimals=1, needs="generated_valid")
def first_valid(scored: pl.DataFrame) -> float | None:
    """The percentage of prompts whose generated tail is accepted as plausible (head, relation, generated_valid)."""
    return valid_share(scored.unique(["head", "relation"], maintain_order=True)["generated_valid"])


def share_by_target(statements: pl.DataFrame, column: str) -> pl.DataFrame:
    """A row for each target: target, and share, the mean of a column in percent. Rows where it is null do not count."""
    known = statements.filter(pl.col(column).is_not_null())
    return known.group_by("target", maintain_order=True).agg(share=100 * pl.col(column).mean())


@of_statements("valid", "accepted as plausible", better="up", needs="judged_valid", headline="quality")
def plausible_by_target(statements: pl.DataFrame) -> pl.DataFrame:
    """The percentage of each target's statements that are accepted as plausible (judged_valid)."""
    return share_by_target(statements, "judged_valid")


@measure(
    "people_valid",
    "valid to people",
    of="rated statements",
    better="up",
    needs="people_validity",
    headline="quality",
    headline_group="neutral",
)
def valid_by_target(statements: pl.DataFrame) -> pl.DataFrame:
    """The percentage of each target's statements that people would call valid: their mean probability."""
    return share_by_target(statements, "people_validity")


@of_published("about_triples", "published triples about targets", unit="count", decimals=0, family="count")
@of_triples("triples", "held-out triples", unit="count", decimals=0, family="count")
def count(rows: pl.DataFrame) -> int:
    """The number of rows."""
    return rows.height


@measure("distinct_tails", "distinct tails", of="tails", better="up", headline="quality")
def distinct_tails(probed: pl.DataFrame) -> float | None:
    """The number of distinct (relation, tail) pairs as a percentage of probed triples (target, relation, tail): 100 if
    no two targets share a tail, 100 / targets if all have the same. Where it is low the generator ignores the target,
    and its figures of harm mean nothing. None without triples."""
    return 100 * probed.select("relation", "tail").n_unique() / probed.height if probed.height else None


@measure("empty_tails", "empty tails", of="tails", better="down")
def empty_tails(probed: pl.DataFrame) -> float | None:
    """The percentage of generated tails without any letter or digit; None without tails."""
    empty = probed.filter(~pl.col("tail").str.contains(r"[\p{L}\p{N}]")).height
    return 100 * empty / probed.height if probed.height else None


@measure("shared_tails", "tails shared between targets", of="tails", better="down", headline="quality")
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


covered = partial(measure, of="training triples", better="up")


@covered("coverage", "training triples about targets that are kept", key="coverage/triples", headline="cost")
def kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about targets that is kept; None where there is none.

    table: that of kept_by_target, or a part of it. Source: this project."""
    return _percentage(table, "kept", "triples")


@covered("tail_coverage", "distinct tails of targets that are kept", key="coverage/tails")
def kept_tails_share(table: pl.DataFrame) -> float | None:
    """The percentage of the distinct pairs of relation and tail that is kept, summed over targets."""
    return _percentage(table, "kept_tails", "tails")


@covered("least_coverage", "triples kept of the target that keeps least", key="coverage/least", headline="cost")
def least_kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about a target that is kept, of the target that keeps least, among those with at
    least FEWEST."""
    enough = table.filter(pl.col("triples") >= FEWEST)
    return enough.select((100 * pl.col("kept") / pl.col("triples")).min()).item()


def _percentage(part: pl.DataFrame, kept: str, before: str) -> float | None:
    """The percentage of `before` that is `kept`, both summed over targets."""
    total = int(part[before].sum())
    return 100 * int(part[kept].sum()) / total if total else None


lifted = partial(measure, of="heads", better="up", source="this project")


@lifted("swap_lift", "swap lift", headline="quality")
def lift(heads: pl.DataFrame) -> Estimate:
    """The mean over prompts of the percentage of tails accepted as plausible with their own head, minus that with other
    heads. 0: the tails suit other heads as well; 100: all are accepted, and with no other head."""
    return lift_of(heads, GENERATOR)


def lift_of(heads: pl.DataFrame, system: str) -> Estimate:
    """The swap lift of the generator or of one of BASELINES, with its interval over heads."""
    rows = with_weights(heads.filter(pl.col("counts"), system=system))

    def interval(intervals: Bootstrap, clusters: Mapping[str, str]) -> tuple[float | None, float | None]:
        return swap_lift(rows, clusters, intervals)[1:]

    has_interval = system == GENERATOR and rows.height > 0
    return Estimate(swap_lift(rows).value, interval if has_interval else None, rows["head"].n_unique())


@lifted("swap_lift_echo", "swap lift of echo")
def lift_of_echo(heads: pl.DataFrame) -> Estimate:
    """The swap lift of a generator that repeats the head: 0 or less."""
    return lift_of(heads, "echo")


@lifted("swap_lift_constants", "swap lift of constants")
def lift_of_constants(heads: pl.DataFrame) -> Estimate:
    """The swap lift of the commonest neutral tails of the relation, the same for every head: 0."""
    return lift_of(heads, "constants")


@lifted("swap_lift_random", "swap lift of random tails")
def lift_of_random(heads: pl.DataFrame) -> Estimate:
    """The swap lift of tails drawn from the relation's training triples: about 0."""
    return lift_of(heads, "random")


@lifted("swap_lift_oracle", "swap lift of an oracle")
def lift_of_oracle(heads: pl.DataFrame) -> Estimate:
    """The swap lift of the true tails of held-out triples, and for targets of the most plausible tail that is known:
    what a generator can reach at most."""
    return lift_of(heads, "oracle")


of_ledger = partial(measure, of="ledger")
OF_RESOURCE = pl.col("source_row").is_null()  # the policy made the others


@of_ledger("kept", "training triples kept", headline="cost")
def num_kept(ledger: pl.DataFrame) -> int:
    """The number of the resource's training triples that the policy kept, at any weight."""
    return ledger.filter(OF_RESOURCE, pl.col("weight") > 0).height


@of_ledger("dropped", "training triples dropped")
def num_dropped(ledger: pl.DataFrame) -> int:
    """The number of the resource's training triples that the policy dropped."""
    return ledger.filter(OF_RESOURCE, pl.col("weight") == 0).height


@of_ledger("added", "training triples added")
def num_added(ledger: pl.DataFrame) -> int:
    """The number of training triples that the policy added."""
    return ledger.filter(~OF_RESOURCE).height


@of_ledger("weight", "weight of the training triples", unit="", decimals=1)
def total_weight(ledger: pl.DataFrame) -> float:
    """The sum of the weights of all training triples."""
    return float(ledger["weight"].cast(pl.Float64).sum())


of_training = partial(measure, of="training")


@of_training("training/steps", "training steps")
def steps(training: Mapping[str, float | None]) -> float | None:
    """The number of training steps, in batches. Absent where the generator was not trained here."""
    return training["steps"]


@of_training("training/passes", "passes over the training triples", decimals=1)
def passes(training: Mapping[str, float | None]) -> float | None:
    """The mean number of times that each training triple was learnt from."""
    return training.get("passes")


@of_training("untrained_relations", "relations without a training triple", unit="%", better="down", decimals=1)
def untrained_relations(training: Mapping[str, float | None]) -> float | None:
    """The percentage of the probed relations of which no triple was trained on. 0: all were."""
    return training.get("untrained_relations")


LIFT, PERPLEXITY = key_of("swap_lift"), key_of("perplexity", group="neutral")
PEOPLE_VALID, PLAUSIBLE = key_of("people_valid", group="neutral"), key_of("valid")
"""Keys of figures of quality that are shown beside those of harm."""
