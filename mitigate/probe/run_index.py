"""Index of a finished run: the relations with their phrases and the targets that it can be asked about, and the tails
that it has generated already. Reads tables only; no model is loaded."""

from collections.abc import Iterable
from functools import cached_property

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.finished import FinishedRun
from mitigate.triples import PROBED as COLUMNS
from mitigate.triples import TEMPLATES, label_columns, role_scorers
from mitigate.verbalise import MASK
from mitigate.words.relations import Relation, comet_relations, relations, spelt
from mitigate.words.targets import TargetList, as_targets, choose_targets, list_of

PROBED = ("validity.parquet", "statements.parquet")  # labelled tails of the probe; the first has more columns
TARGETS = "tables/targets.csv"
ANSWER = ("head", "relation", "rank", "tail", "score", "log_prob", "statement", "masked", "masked_neutral")
PLAUSIBLE = ("judged_valid", "plausibility")
WORDED = ("relation", "tail", "statement", "masked_neutral")


class Index:
    """Relations, targets and stored tails of a run, from its tables."""

    def __init__(self, run: FinishedRun) -> None:
        self.run = run

    @cached_property
    def probed(self) -> pl.DataFrame:
        """Tails of the probe with their labels. Raises MitigateError for a damaged table."""
        name = next((name for name in PROBED if name in self.run.files), PROBED[-1])
        table = self.run.table(name, ["target", "tail", "rank", *WORDED])
        table = table.with_columns(pl.col("rank").cast(COLUMNS["rank"]))  # runs of earlier code have a smaller type
        # Before targets were asked about in events, the target itself was the head, and no column said so.
        return table if "head" in table.columns else table.with_columns(head="target")

    @cached_property
    def targets(self) -> pl.DataFrame:
        """The targets of the run (columns words.targets.TARGETS). Raises MitigateError for a damaged table."""
        if TARGETS not in self.run.files:
            return as_targets(self.probed["target"].unique(maintain_order=True).to_list())
        if fault := self.run.fault(TARGETS):
            raise MitigateError(f"{fault}.")
        return choose_targets(self.run.folder / TARGETS)

    @cached_property
    def target_list(self) -> TargetList:
        """The paper's targets and the run's own, which masking replaces."""
        return list_of(self.targets)

    @cached_property
    def further(self) -> list[Relation]:
        """The relations that it was probed or trained with, without those of COMeT's 34 in their usual wording."""
        tables = [self.probed.select("head", *WORDED)]
        if self.run.setting("data.relations") is not None or self.run.setting("probe.relations") is not None:
            tables.append(self.run.table("score.parquet", ["head", *WORDED]).select("head", *WORDED))
        plain = {relation.name: relation for relation in comet_relations()} if self.has_comet_relations else {}
        return [found for found in _worded(pl.concat(tables)) if plain.get(found.name) != found]

    @property
    def has_comet_relations(self) -> bool:
        """Return whether it was trained with prompts for COMeT's 34 relations."""
        return self.run.setting("data.asked_relations") != "data"

    @property
    def relations(self) -> list[str]:
        """The names of the relations that it can be asked about."""
        comets = [relation.name for relation in comet_relations()] if self.has_comet_relations else []
        names = [*comets, *(relation.name for relation in self.further)]
        return list(dict.fromkeys(names))

    @property
    def scorers(self) -> dict[str, str]:
        """The configured scorers of the roles, by their names in tables."""
        return role_scorers(self.run.setting("score") or {})

    def columns(self, scorers: Iterable[str]) -> list[str]:
        """The columns of an answer with the labels of these scorers."""
        labels = [c for name in scorers for template in TEMPLATES for c in label_columns(name, template)]
        plausible = PLAUSIBLE if self.run.setting("score.plausibility") is not None else ()
        return [*ANSWER, *labels, *plausible]

    def head(self, given: str) -> str:
        """Return a head as in prompts: the target that it is a form of, else in lower case with single blanks. Raises
        MitigateError for an empty one."""
        if not given.strip():
            some = ", ".join(self.targets["target"][:3])
            raise MitigateError(f"the head is empty; give a word or a few, such as one of the run's targets: {some}")
        return self.target_list.named(given)

    def relation(self, given: str) -> str:
        """Find the relation of that name, or with that unique beginning. Raises MitigateError for another."""
        return find_relation(given, self.relations)

    def stored(self, head: str, relation: str) -> pl.DataFrame | None:
        """Tails of the probe for a prompt; None for a prompt that it did not have, or if its table lacks a column."""
        wanted = self.columns(self.scorers)
        if any(column not in self.probed.columns for column in wanted):
            return None
        found = self.probed.filter(pl.col("head") == head, pl.col("relation") == relation)
        return None if found.is_empty() else found.select(wanted).sort("rank")


def find_relation(given: str, relations: Iterable[str]) -> str:
    """Find the relation of that name, without regard to case, blanks and underscores, or with that unique beginning.
    Raises MitigateError that names the relations that may be meant."""
    names = {spelt(name): name for name in relations}
    if (wanted := spelt(given)) in names:
        return names[wanted]
    begun = [name for key, name in names.items() if key.startswith(wanted)] if wanted else []
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise MitigateError(f"ambiguous relation {given!r}: {', '.join(begun)}; write more of the name")
    raise one_of("relation", given, names.values())


def _worded(rows: pl.DataFrame) -> list[Relation]:
    """Read the relations of statements with their phrases. A relation of the project's in its usual wording is the
    project's own object."""
    head, tail = pl.col("head"), pl.col("tail")
    masked = pl.col("masked_neutral")
    start = pl.when(masked.str.starts_with(head)).then(head).when(masked.str.starts_with(MASK)).then(pl.lit(MASK))
    found = (
        rows.filter(tail != "")
        .with_columns(start=start)
        .with_columns(
            phrase=_between(pl.col("statement"), head, tail),
            neutral=pl.when(masked.str.ends_with(tail)).then(_between(masked, pl.col("start"), tail)),
        )
        .group_by("relation", maintain_order=True)
        .agg(pl.col("phrase").first(), pl.col("neutral").drop_nulls().first())
    )
    ours = relations()
    return [
        ours[name]
        if name in ours and ours[name].phrase == phrase and neutral in (None, ours[name].neutral_phrase)
        else Relation(name, phrase, neutral or phrase)
        for name, phrase, neutral in found.iter_rows()
    ]


def _between(text: pl.Expr, start: pl.Expr, end: pl.Expr) -> pl.Expr:
    length = text.str.len_chars().cast(pl.Int64) - start.str.len_chars() - end.str.len_chars() - 2
    return text.str.slice(start.str.len_chars() + 1, length.clip(lower_bound=0))
