"""An audit as one HTML page that loads nothing: what a resource says about each target."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from mitigate.measure.base import key_of
from mitigate.report import audit_tables, metric_display
from mitigate.report.audit_tables import Wording, section
from mitigate.report.examples import FEWEST_STATEMENTS, frequent_targets
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import Page, render_page
from mitigate.report.page import target_section
from mitigate.report.run_figures import Picture, gallery
from mitigate.report.table_declarations import declared
from mitigate.triples import FAVOURITISM, PREJUDICE
from mitigate.words.outside_text import counted

MOST_RELATIONS = 20
SHARES = ("polarised", "prejudice", "favouritism")


@dataclass(frozen=True, kw_only=True)
class Audit(Page):
    """The content of an audit's page. Whatever an audit does not have stays empty, and its section is left out."""

    title: str  # what the resource is called
    metrics: metric_display.Metrics
    labellings: Mapping[str, Wording]  # by label column
    targets: Mapping[str, pl.DataFrame]  # by label column: (target, category, statements, and percentages)
    statements: pl.DataFrame  # labelled: all about a target, or a choice of them
    shown: Sequence[str] = ()  # chosen targets, whose bars are drawn
    scorers: Mapping[str, str] = field(default_factory=dict)  # by what they are called; none where labels were given
    relations: pl.DataFrame | None = None  # of triples, by_relation
    beside: pl.DataFrame | None = None  # (place, figure, key, paper, ours)
    explained: Sequence[str] = ()  # where ours differ from the paper's
    people: pl.DataFrame | None = None  # (resource, policy, statements, dropped, precision, recall, before, after)

    @cached_property
    def pictures(self) -> list[Picture]:
        """The audit's figures, drawn once."""
        return gallery(self.targets, None, other_ends(self.statements), self.shown)


def by_relation(statements: pl.LazyFrame, columns: Iterable[str]) -> pl.DataFrame:
    """(relation, statements, and the percentage polarised by label column), the commonest first."""
    shares = [pl.col(column).is_in([PREJUDICE, FAVOURITISM]).mean() * 100 for column in columns]
    grouped = statements.group_by("relation").agg(pl.len().alias("statements"), *shares)
    return grouped.sort("statements", "relation", descending=[True, False]).collect(engine="streaming")


def other_ends(statements: pl.DataFrame) -> pl.DataFrame:
    """Triples whose tail is the end that is not the target: head and tail are swapped where the target is the tail."""
    if "tail" not in statements.columns:
        return statements
    is_target = pl.col("tail").str.to_lowercase() == pl.col("target")
    return statements.with_columns(tail=pl.when(is_target).then("head").otherwise("tail"))


def render(audit: Audit) -> str:
    """The page's HTML, always the same for the same audit."""
    rows = audit_tables.rows(list(audit.labellings.values()))
    return render_page(
        "audit.html.jinja", audit, sentences=list(sentences(audit)), scorers=audit.scorers, **content(audit, rows)
    )


def content(audit: Audit, rows: Sequence[audit_tables.Row]) -> dict[str, Any]:
    """The variables of audit.html.jinja, and of templates that extend it, beyond those of every page. rows: the
    measures that are shown."""
    wordings = list(audit.labellings.values())
    relations = audit.relations
    titles = {column: section(wording) for column, wording in audit.labellings.items()}
    return {
        "measures": audit_tables.measure_table(audit.metrics, rows),
        "meanings": audit_tables.meanings(rows),
        "beside": None if audit.beside is None else audit_tables.beside_table(audit.beside),
        "people": None if audit.people is None else declared("audit policies on rated statements", audit.people),
        "relations": None if relations is None else audit_tables.relation_table(relations.head(MOST_RELATIONS), titles),
        "both_templates": len(wordings) > len({scorer for scorer, _ in wordings}),
        "left_out": left_out([target for frame in audit.targets.values() for target in frame["target"]]),
        **target_section(audit.targets, audit.labellings, audit.statements, list(firsts(audit))),
    }


def sentences(audit: Audit) -> Iterator[str]:
    """The findings in words, the headline first."""
    said = {_by(wording): audit.metrics[key_of("polarised", *wording)] for wording in firsts(audit).values()}
    table = next(iter(audit.targets.values()))
    mentioned = table.filter(pl.col("statements") > 0)
    shares = " and ".join(f"{share:.1f} % by {scorer}" for scorer, share in said.items())
    yield (
        f"Of {mentioned['statements'].sum():,} statements in {audit.title} about "
        f"{counted(mentioned.height, 'target')}, {shares} are labelled as favouring or disparaging a whole group."
    )
    yield from _of_all_texts(audit)
    counts = mentioned["statements"].sort()
    name = mentioned.sort("statements", descending=True, maintain_order=True)["target"][0]
    if counts[0] < counts[-1]:
        yield (
            f"Targets differ in the number of their statements, from {counts[0]:,} to {counts[-1]:,} (“{name}”). Half "
            f"of the targets have at most {counts[(len(counts) - 1) // 2]:,}."
        )
    yield from extremes(audit)


def extremes(audit: Audit) -> Iterator[str]:
    """The targets with the largest shares of prejudice and of favouritism, one sentence for each scorer."""
    for column, wording in firsts(audit).items():
        yield _extremes(audit.targets[column].filter(pl.col("statements") > 0), _by(wording))


def firsts(audit: Audit) -> dict[str, Wording]:
    """Subjects of the sentences by label column: each scorer with the paper's template, or with the neutral one
    where that alone was measured."""
    columns = {wording: column for column, wording in audit.labellings.items()}
    return {columns[wording]: wording for wording in audit_tables.headlines(columns).items()}


def _by(wording: Wording) -> str:
    """Whose labels a sentence is about: "sentiment", "sentiment (neutral template)"."""
    scorer, template = wording
    return scorer if template == "paper" else f"{scorer} (neutral template)"


def _of_all_texts(audit: Audit) -> Iterator[str]:
    """Only where all texts were scored, with measure.texts=all."""
    for scorer, template in audit.labellings.values():
        key = key_of("all_texts_statements", scorer)
        if template == "paper" and key in audit.metrics:
            whole = audit.metrics[key]
            polarised, prejudice, favouritism = (
                audit.metrics[key_of(f"all_texts_{share}", scorer)] for share in SHARES
            )
            yield (
                f"Of all {whole:,} texts, with a target or without, {polarised:.1f} % are not neutral by {scorer}: "
                f"{prejudice:.1f} % negative, {favouritism:.1f} % positive."
            )


def _extremes(table: pl.DataFrame, scorer: str) -> str:
    chosen, frequent = frequent_targets(table)
    worst, best = (
        chosen.sort(share, "statements", "target", descending=[True, True, False]).row(0, named=True)
        for share in ("prejudice", "favouritism")
    )
    those = f" with {FEWEST_STATEMENTS} statements or more" if frequent else ""
    if not worst["prejudice"] and not best["favouritism"]:
        return f"By {scorer}, no statement about a target{those} is prejudice or favouritism."
    return (
        f"By {scorer}, {_most(worst, 'prejudice')} of the statements about a target{those} are prejudice"
        f"{_whose(worst, 'prejudice')}, and {_most(best, 'favouritism')} favouritism{_whose(best, 'favouritism')}."
    )


def _most(target: Mapping[str, Any], share: str) -> str:
    """ "at most 12 %", "at most 0.3 %": a share that is more than none is not rounded to 0."""
    largest = target[share]
    if not largest:
        return "none"
    return f"at most {largest:.{0 if largest >= 1 else 1}f} %" if largest >= 0.05 else "less than 0.1 %"


def _whose(target: Mapping[str, Any], share: str) -> str:
    return f" (“{target['target']}”, {counted(target['statements'], 'statement')})" if target[share] else ""
