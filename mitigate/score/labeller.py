"""Statements of triples or sentences, masked and labelled by scorers: verbalise > score."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.score.base import ENDINGS, IDENTITY
from mitigate.score.labels import LONG, NOTHING_CACHED, label_column, text_for, with_explanations, with_labels
from mitigate.triples import FAVOURITISM, PREJUDICE, LabelCache, Labels, Scorer, fold_other, label_columns
from mitigate.verbalise import MASK, Masking, check, mask_column, verbalise
from mitigate.words.identity_terms import identity_forms
from mitigate.words.relations import Relation, with_own
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import pattern

MOST = 1000  # texts whose words are left out one at a time
SHOWN = 3  # words of a text that drove its label
SHARE = 0.1  # of the strongest word's effect; weaker words are not shown


@dataclass(frozen=True)
class Labeller:
    """Scorers, masking, demographic words and relations that triples and sentences are labelled with. The cache decides
    no label."""

    surroundings: ClassVar = ("cache",)
    scorers: Sequence[Scorer]
    masking: Masking = "token"
    target_list: TargetList = PAPER
    own_relations: Sequence[Relation] = ()
    cache: LabelCache = NOTHING_CACHED

    def by(self, scorers: Sequence[Scorer]) -> "Labeller":
        """Copy with other scorers."""
        return replace(self, scorers=list(scorers))

    def label(self, table: pl.DataFrame, *, explain: bool = False) -> pl.DataFrame:
        """Call label_statements with this labeller's scorers and masking."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return label_statements(table, explain=explain, **settings)


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

    table: triples (head, relation, tail), which are labelled in both wordings, or sentences (statement; for
    masking="paper" also target). target_list: the demographic words that are masked. own_relations: relations that are
    not the project's. explain: also the words that drove each label ({scorer}_words), and the identity words that it
    depends on ({scorer}_identity). Raises MitigateError for an unknown masking or relation, a table without these
    columns, and scorers of one name or of a column's name."""
    check(masking)
    are_triples = {"relation", "tail"} <= {*table.columns}
    texts = ["head", "relation", "tail"] if are_triples else ["statement"]
    needed = [*texts, "target"] if masking == "paper" and not are_triples else texts
    if lacking := [name for name in needed if name not in table.columns]:
        raise MitigateError(
            f"the table has no column {lacking[0]!r}; it has {', '.join(table.columns) or 'none'}. It needs head, "
            "relation and tail, or statement (with target for measure.masking=paper)"
        )
    for name in texts:
        if table[name].dtype not in (pl.String, pl.Null) or table[name].null_count():
            raise MitigateError(f"the column {name!r} must hold a text in each row")
    table = table.cast(dict.fromkeys(texts, pl.String))  # an empty column has the type Null
    known = with_own(own_relations)
    for relation in table["relation"].unique(maintain_order=True) if are_triples else ():
        if relation not in known:
            raise MitigateError(
                f"the relation {relation!r} has no phrase: correct its name, or give the phrase in own_relations "
                f"(mitigate.read_relations){did_you_mean(relation, known)}"
            )
    masked = mask(table, masking, target_list, own_relations)
    labels = label_masked(masked, scorers, explain=explain, cache=cache)
    return with_identity_words(labels, scorers, target_list, cache=cache) if explain else labels


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


def label_masked(
    statements: pl.DataFrame, scorers: Sequence[Scorer], *, explain: bool = False, cache: LabelCache = NOTHING_CACHED
) -> pl.DataFrame:
    """Label statements that are masked already (masked; of triples also masked_neutral): each scorer's columns, and
    {scorer}_why of a scorer that explains its labels. Raises MitigateError where a column would be lost."""
    names = [*statements.columns]
    for scorer in scorers:
        added = (scorer.name, *(scorer.name + ending for ending in ENDINGS), label_columns(scorer.name, "neutral")[1])
        if lost := [name for name in added if name in names]:
            raise MitigateError(
                f"invalid scorer name {scorer.name!r}: the table already has a column {lost[0]!r}; rename the scorer, "
                "or leave the column out"
            )
        names += added
    for scorer in scorers:
        statements = with_explanations(with_labels(statements, scorer, cache), scorer)
        if explain:
            label, strength = label_columns(scorer.name, "paper")
            labels = Labels(statements[label].to_numpy(), statements[strength].to_numpy())
            words = pl.Series([None] * statements.height, dtype=pl.String)
            if not hasattr(scorer, "asks"):  # else a language model would be asked once for each word
                words = driving_words(text_for(scorer, statements), labels, scorer, cache, passed_over=MASK.split())
            statements = statements.with_columns(words.alias(f"{label}_words"))
    return statements


def driving_words(
    texts: pl.Series, labels: Labels, scorer: Scorer, cache: LabelCache, passed_over: Collection[str] = ()
) -> pl.Series:
    """The words that drove the label of each text, with the part of the strength that is lost without each, such as
    "thief -0.55, liar -0.10"; null where none did (occlusion: Li et al. 2016, Understanding Neural Networks through
    Representation Erasure).

    Only texts of at most LONG words with a label that is not neutral are examined, at most the MOST of largest
    strength; words of `passed_over` are never removed."""
    examined = (
        pl.DataFrame({"text": texts, "label": labels.label, "strength": labels.strength})
        .filter(pl.col("label").is_in([PREJUDICE, FAVOURITISM]), pl.col("text").str.count_matches(r"\S+") <= LONG)
        .unique("text", maintain_order=True)
        .sort(pl.col("strength").abs(), descending=True, maintain_order=True)
        .head(MOST)
    )
    words_of = [text.split() for text in examined["text"]]
    places = [(row, at) for row, words in enumerate(words_of) for at in range(len(words))]
    without = [" ".join([*words_of[row][:at], *words_of[row][at + 1 :]]) for row, at in places]
    strength = label_column(pl.Series(without, dtype=pl.String), scorer, cache).strength
    rows = examined[[row for row, _ in places]].with_columns(
        word=pl.Series([words_of[row][at] for row, at in places], dtype=pl.String),
        effect=pl.col("strength") - pl.Series(strength),
    )
    size = pl.col("effect").abs()
    driving = rows.filter(pl.col("effect") * pl.col("label") > 0, ~pl.col("word").is_in(list(passed_over)))
    largest = driving.filter(size >= SHARE * size.max().over("text")).sort(size, descending=True, maintain_order=True)
    shown = {
        text: ", ".join(f"{word} {effect:+.2g}" for word, effect in part.select("word", "effect").head(SHOWN).rows())
        for (text,), part in largest.group_by("text", maintain_order=True)
    }
    return pl.Series([shown.get(text) for text in texts], dtype=pl.String)


def with_identity_words(
    statements: pl.DataFrame,
    scorers: Sequence[Scorer],
    target_list: TargetList = PAPER,
    *,
    cache: LabelCache = NOTHING_CACHED,
) -> pl.DataFrame:
    """Add {scorer}_identity to labelled statements (masked, and each scorer's labels): the identity words that a label
    depends on, in lower case; null where the label stays the same once all of them are masked.

    The words are the identity terms of data/identity and the targets of the list, in the text that the scorer reads."""
    words = pattern(identity_forms() | target_list.forms).removeprefix("(?i)")
    for scorer in scorers:
        texts = text_for(scorer, statements)
        rows = texts.str.contains(f"(?i){words}").arg_true()
        texts = texts.gather(rows)
        named = texts.str.to_lowercase().str.extract_all(words).list.unique(maintain_order=True).list.join(", ")
        without = texts.str.replace_all(rf"(?i)(?:\b(?:an?|the) )?(?:{words})(?: {MASK})?", MASK)
        before = fold_other(statements[scorer.name].gather(rows).to_numpy())
        after = fold_other(label_column(without, scorer, cache).label)
        depends = np.full(statements.height, None, dtype=object)
        depends[rows.to_numpy()[before != after]] = named.filter(before != after).to_list()
        statements = statements.with_columns(pl.Series(scorer.name + IDENTITY, depends.tolist(), dtype=pl.String))
    return statements
