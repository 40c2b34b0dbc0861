"""Statements of triples or sentences, masked and labelled by scorers: verbalise > score."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.score.attributions import OCCLUSION, driving_words, occluded
from mitigate.score.base import ENDINGS, IDENTITY
from mitigate.score.labels import (
    NOTHING_CACHED,
    Asks,
    label_column,
    text_for,
    unlabelled,
    with_explanations,
    with_labels,
)
from mitigate.stages import SURROUNDING
from mitigate.triples import FAVOURITISM, PREJUDICE, TEMPLATES, LabelCache, Labels, Scorer, fold_other, label_columns
from mitigate.verbalise import MASK, Masking, check, mask_column, verbalise
from mitigate.words.identity_terms import identity_forms
from mitigate.words.relations import Relation
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import contains, extract_all, pattern, replace_all


@dataclass(frozen=True)
class Labeller:
    """Scorers, masking, demographic words and relations that triples and sentences are labelled with. The cache decides
    no label."""

    scorers: Sequence[Scorer]
    masking: Masking = "token"
    target_list: TargetList = PAPER
    own_relations: Sequence[Relation] = ()
    cache: LabelCache = field(default=NOTHING_CACHED, metadata=SURROUNDING)

    def by(self, scorers: Sequence[Scorer]) -> "Labeller":
        """Copy with other scorers."""
        return replace(self, scorers=list(scorers))

    def label(self, table: pl.DataFrame, *, explain: bool = False) -> pl.DataFrame:
        """Call label_statements with this labeller's scorers and masking."""
        return label_statements(table, explain=explain, **self._how)

    @property
    def _how(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}


def label_statements(
    table: pl.DataFrame,
    scorers: Sequence[Scorer],
    *,
    masking: Masking = "token",
    target_list: TargetList = PAPER,
    own_relations: Sequence[Relation] = (),
    explain: bool = False,
    cache: LabelCache = NOTHING_CACHED,
) -> pl.DataFrame:
    """Return the rows in their order, as statements (columns STATEMENTS) with the columns of each scorer's labels.

    table: triples (head, relation, tail) or sentences (statement; for masking="paper" also target). A triple is
    labelled with both wordings of its relation; a sentence, whose relation is not marked, has one wording. target_list:
    the demographic words that are masked (target_list.list_of). own_relations: relations that are not the project's,
    with their phrases. explain: also the words that drove each label, as column {scorer}_words, and the identity words
    that it depends on, as column {scorer}_identity (with_identity_words).
    Raises MitigateError for an unknown masking, for a table without these columns, and for scorers of one name or of a
    column's name."""
    check(masking)
    check_columns(table)
    masked = mask(table, masking, target_list, own_relations)
    labels = label_masked(masked, scorers, explain=explain, cache=cache)
    if not explain:
        return labels
    return with_identity_words(labels, scorers, target_list, cache=cache)


def check_columns(table: pl.DataFrame) -> None:
    """Raise MitigateError for a table that has neither triples nor statements."""
    triples = [name for name in ("head", "relation", "tail") if name in table.columns]
    needed = ["head", "relation", "tail"] if {"relation", "tail"} <= {*triples} else ["statement"]
    if lacking := [name for name in needed if name not in table.columns]:
        raise MitigateError(
            f"the table has no column {lacking[0]!r}; it has {', '.join(table.columns) or 'none'}. It needs head, "
            "relation and tail, or statement"
        )
    if wrong := [name for name in needed if table[name].dtype != pl.String]:
        raise MitigateError(f"the column {wrong[0]!r} must hold texts, not {table[wrong[0]].dtype}")
    if missing := [name for name in needed if table[name].null_count()]:
        raise MitigateError(f"the column {missing[0]!r} has rows without a text; remove these rows")


def check_names(statements: pl.DataFrame, scorers: Sequence[Scorer]) -> None:
    """Raise MitigateError where two scorers have one name, or where a scorer's labels or the columns beside them would
    replace a column of the statements."""
    names, taken = [scorer.name for scorer in scorers], [*statements.columns]
    for name in names:
        if not isinstance(name, str):
            raise MitigateError(f"scorer name {name!r} must be a text")
        if names.count(name) > 1:
            raise MitigateError(f"two scorers are named {name!r}; give one of them another name")
        added = (name, *(name + ending for ending in ENDINGS), label_columns(name, "neutral")[1])
        if lost := [column for column in added if column in taken]:
            raise MitigateError(
                f"invalid scorer name {name!r}: the table already has a column {lost[0]!r}; rename the scorer, or "
                "leave the column out"
            )
        taken += added


def occlude(labels: pl.DataFrame, scorers: Sequence[Scorer], *, cache: LabelCache = NOTHING_CACHED) -> pl.DataFrame:
    """Label masked statements (masked) with one word left out at a time, by each scorer: scorer, and the columns of
    score.attributions.OCCLUSION."""
    empty = pl.DataFrame(schema={"scorer": pl.String, **OCCLUSION})
    tables = [occluded(labels["masked"], scorer, cache).with_columns(scorer=pl.lit(scorer.name)) for scorer in scorers]
    return pl.concat([empty, *(table.select(empty.columns) for table in tables)])


def mask(
    table: pl.DataFrame,
    masking: Masking = "token",
    target_list: TargetList = PAPER,
    own_relations: Sequence[Relation] = (),
) -> pl.DataFrame:
    """Return the rows as statements with their demographic words replaced; triples in both wordings."""
    if "relation" in table.columns and "tail" in table.columns:
        return verbalise(table, masking, target_list, own_relations)
    return table.with_columns(mask_column("statement", masking, target_list).alias("masked"))


def with_identity_words(
    statements: pl.DataFrame,
    scorers: Sequence[Scorer],
    target_list: TargetList | None = PAPER,
    *,
    cache: LabelCache = NOTHING_CACHED,
) -> pl.DataFrame:
    """Add {scorer}_identity to labelled statements (masked, and each scorer's labels): the identity words that a label
    depends on, in lower case; null where the label stays the same without them, and for texts that have none.

    The words are the identity terms of data/identity and the targets of the list that the masking has left; without a
    list, the terms that are not targets of the paper. All words of a text are masked at once, with their article. Only
    texts that have such a word are labelled again."""
    forms = identity_forms() | target_list.forms if target_list else identity_forms() - PAPER.forms
    words, masked = pattern(forms).removeprefix("(?i)"), statements["masked"]
    rows = contains(masked, f"(?i){words}").arg_true()
    texts = masked.gather(rows)
    named = extract_all(texts.str.to_lowercase(), words).list.unique(maintain_order=True).list.join(", ")
    without = replace_all(texts, rf"(?i)(?:\b(?:an?|the) )?(?:{words})(?: {MASK})?", MASK)
    for scorer in scorers:
        before = fold_other(statements[scorer.name].gather(rows).to_numpy())
        after = fold_other(label_column(without, scorer, cache).label)
        depends = np.full(statements.height, None, dtype=object)
        depends[rows.to_numpy()[before != after]] = named.filter(before != after).to_list()
        statements = statements.with_columns(pl.Series(scorer.name + IDENTITY, depends.tolist(), dtype=pl.String))
    return statements


def label_masked(
    statements: pl.DataFrame, scorers: Sequence[Scorer], *, explain: bool = False, cache: LabelCache = NOTHING_CACHED
) -> pl.DataFrame:
    """Label statements that are masked already (masked; of triples also masked_neutral): each scorer's columns, and
    {scorer}_why of a scorer that explains its labels. Raises MitigateError where a column would be lost."""
    check_names(statements, scorers)
    for scorer in scorers:
        label, strength = label_columns(scorer.name, "paper")
        if "masked_neutral" in statements.columns:
            statements = with_labels(statements, scorer, cache)
        else:
            labels = label_column(text_for(scorer, statements), scorer, cache)
            statements = statements.with_columns(pl.Series(label, labels.label), pl.Series(strength, labels.strength))
        statements = with_explanations(statements, scorer)
        if explain:
            labels = Labels(statements[label].to_numpy(), statements[strength].to_numpy())
            drove = pl.Series([None] * statements.height, dtype=pl.String)
            if not isinstance(scorer, Asks):  # it would be asked once for each word
                drove = driving_words(text_for(scorer, statements), labels, scorer, cache, passed_over=MASK.split())
            statements = statements.with_columns(drove.alias(f"{label}_words"))
    return statements


def texts_to_ask(
    scorers: Sequence[Scorer], statements: pl.DataFrame, cache: LabelCache, others: Sequence[pl.Series] = ()
) -> Iterator[str]:
    """Yield a notice for each scorer that asks a language model: its texts without a cached label, of masked statements
    and other texts."""
    for scorer in scorers:
        if isinstance(scorer, Asks):
            uncached, number = unlabelled(_texts(scorer, statements, others), scorer, cache)
            yield f"{scorer.name} would ask {scorer.asks} about {uncached:,} of {number:,} texts; the others are cached"


def abstentions(scorers: Sequence[Scorer], statements: pl.DataFrame, others: Sequence[pl.Series] = ()) -> Iterator[str]:
    """Yield a notice for each scorer that asks a language model and abstained on some of these texts, by reason."""
    for scorer in scorers:
        if isinstance(scorer, Asks):
            texts = _texts(scorer, statements, others).unique(maintain_order=True)
            counts = {reason: count for reason, count in scorer.failures(texts.to_list()).items() if count}
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
            if counts:
                yield f"{scorer.name} abstains, which counts as neutral, on {reasons} of {len(texts):,} distinct texts"


def _texts(scorer: Scorer, statements: pl.DataFrame, others: Sequence[pl.Series]) -> pl.Series:
    """All texts that a scorer labels."""
    wordings = TEMPLATES if "masked_neutral" in statements.columns else TEMPLATES[:1]
    return pl.concat([*(text_for(scorer, statements, name) for name in wordings), *others])


def not_neutral(own: Sequence[Relation], scorers: Sequence[Scorer], cache: LabelCache = NOTHING_CACHED) -> list[str]:
    """A notice of a user's relations whose neutral phrase alone, behind "this person", is labelled as anything but
    neutral."""
    names = ("relation", "phrase", "neutral_phrase")
    rows = [(relation.name, relation.phrase, relation.neutral_phrase) for relation in own]
    masked = {"masked": pl.format(MASK + " {}", "phrase"), "masked_neutral": pl.format(MASK + " {}", "neutral_phrase")}
    phrases = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row").with_columns(**masked)
    labelled = label_masked(phrases, scorers, cache=cache)
    found = [
        f"{row['relation']} (“{row['neutral_phrase']}”, {scorer.name} {row[column]:+d})"
        for scorer in scorers
        for column in label_columns(scorer.name, "neutral")[:1]
        for row in labelled.filter(pl.col(column).is_in([PREJUDICE, FAVOURITISM])).iter_rows(named=True)
    ]
    if not found:
        return []
    return [
        f"Neutral phrases that are not neutral: {', '.join(found)}. What a policy or a measure finds with them may "
        "come from the phrase; give others in data.relations."
    ]
