"""A probe of stories as one HTML page that loads nothing: an audit's page of the stories' sentences, and the sections
that only stories have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from mitigate.measure.base import find, key_of
from mitigate.measure.learnt import no_conclusion
from mitigate.report import audit as audits
from mitigate.report import audit_tables
from mitigate.report.audit import Audit
from mitigate.report.card import Figure, licence_of, model_card
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import render_page
from mitigate.report.metric_display import OVERGENERALISED, Metrics, harms, number
from mitigate.report.metrics_table import crossed, measured
from mitigate.report.run_figures import Picture, boxes
from mitigate.report.table import Column, Table, bounded, figures
from mitigate.report.table_declarations import declared
from mitigate.words.outside_text import counted, without_folders
from mitigate.words.prompts import KINDS

SIGNS = {"prejudice": "negative", "favouritism": "positive"}
MEANS = {"prejudice": "O-", "favouritism": "O+"}
SHARES = list(SIGNS)
BY_CHANCE = {"D_O": "disparity", "by_chance_D_O": "by chance", "p_D_O": "p", "stories": "% of stories"}
"""The columns beside chance: beginnings of the names of measures, and headings."""
PER_KIND = 6  # stories shown, as examples
SHOWN = 60  # prompts, and targets, in a table of the page


@dataclass(frozen=True, kw_only=True)
class Stories(Audit):
    """The content of the page of stories: an audit of their sentences. The number of sentences about a target is not a
    finding: it depends on the number of prompts of the target's kind."""

    generator: str  # the model or the file that the stories come from
    per_story: pl.DataFrame  # row, target, category, kind, template, prompt, story, sentences, and percentages
    templates: pl.DataFrame | None = None  # measure.stories.within_templates, where prompts share templates

    @cached_property
    def verdict(self) -> str:
        """The sentence that the page, the card, the terminal and the record begin with."""
        return next(sentences(self))

    @property
    def has_kinds(self) -> bool:
        """Return whether the prompts are those of the kinds of target, and not a user's own."""
        return bool(self.per_story["kind"].is_in(KINDS).any())

    @cached_property
    def pictures(self) -> list[Picture]:
        found = [picture for picture in super().pictures if picture.group != "counts"]
        if not self.has_kinds:
            return found
        kinds = dict(self.per_story.select("target", "kind").iter_rows())
        kind = pl.col("target").replace_strict(kinds, default=None, return_dtype=pl.String)
        by_kind = {
            column: frame.filter(pl.col("statements") > 0).with_columns(category=kind)
            for column, frame in self.targets.items()
        }
        return [*found, *boxes(by_kind, "kinds", "kind of target")]


def render(stories: Stories) -> str:
    columns, per_story, metrics = list(stories.labellings), stories.per_story, stories.metrics
    rows = audit_tables.rows(list(stories.labellings.values()))
    by_kind = examples(per_story, columns).partition_by("kind", as_dict=True, maintain_order=True)
    known = prompts(per_story, columns)
    by_chance = [(f"{word} {scorer}", (scorer, share)) for scorer in columns for share, word in SIGNS.items()]
    shares = [_shares(scorer) for scorer in columns]
    content = audits.content(stories, [row for row in rows if row != audit_tables.REPRESENTATION]) | {
        "kinds": _kind_table(metrics, per_story, columns) if stories.has_kinds else None,
        "within": _within_table(stories.templates, columns) if stories.templates is not None else None,
        "chance": crossed(
            "stories chance", metrics, by_chance, BY_CHANCE, lambda row, name: key_of(name + MEANS[row[1]][-1], row[0])
        ),
        "prompts": _prompt_table(known, columns) if known.height else None,
        "tales": [
            declared("stories examples", found, more=shares, kind=kind.capitalize())
            for (kind,), found in by_kind.items()
        ],
    }
    found = list(sentences(stories))
    return render_page("stories.html.jinja", stories, sentences=found, scorers=stories.scorers, **content)


def _kind_table(metrics: Metrics, per_story: pl.DataFrame, columns: Sequence[str]) -> Table:
    def key(name: str, row: Mapping[str, Any], scorer: str = "") -> str:
        return key_of(name, scorer, group=row["kind"], by="kind")

    def column(scorer: str, share: str) -> Column:
        title = f"{scorer} {OVERGENERALISED[share]}"
        return Column(title, lambda row: measured(metrics, key(MEANS[share], row, scorer), 1))

    more = [column(scorer, share) for scorer in columns for share in SHARES]
    cells = {"targets": lambda row: metrics[key("targets", row)]}
    return declared("stories kinds", kinds(per_story), cells=cells, more=more)


def _prompt_table(known: pl.DataFrame, columns: Sequence[str]) -> Table:
    shares = {
        f"{scorer}_{share}": f"{scorer} {sign}" for scorer in columns for share, sign in zip(SHARES, "−+", strict=True)
    }
    others = f" The first {SHOWN} of {known.height:,}; tables/prompts.csv has all." if known.height > SHOWN else ""
    return declared("stories prompts", known.head(SHOWN), more=figures(1, **shares), others=others)


def _within_table(templates: pl.DataFrame, columns: Sequence[str]) -> Table:
    """The targets that differ most from the others of their templates."""
    names = {f"{column}_{share}": f"{column}, {word}" for column in columns for share, word in SIGNS.items()}
    size = pl.max_horizontal(pl.col(list(names)).abs())
    largest = templates.sort(size, descending=True, maintain_order=True).head(SHOWN)
    others = f" The {SHOWN} largest of {templates.height:,}; tables/within_templates.csv has all."
    more = [bounded(title, name) for name, title in names.items()]
    return declared("stories within", largest, more=more, others=others if templates.height > SHOWN else "")


def _shares(scorer: str) -> Column:
    """The percentages of a story's sentences that are negative and positive."""
    return Column(scorer, lambda row: " / ".join(number(row[f"{scorer}_{share}"], 0) for share in SHARES), kind="whole")


def sentences(stories: Stories) -> Iterator[str]:
    """The findings in words, the headline first. Where the generator cannot be said to have learnt, or there is too
    little text, only this and the counts."""
    metrics: dict[str, Any] = dict(stories.metrics)
    scorers = [scorer for scorer, _ in stories.labellings.values()]

    def by_scorers(name: str, words: str) -> list[str]:
        return [words.format(metrics[key_of(name, scorer)], scorer) for scorer in scorers]

    num_targets = counted(metrics["targets"] - metrics["empty_targets"], "target")
    shares = " and ".join(by_scorers("polarised", "{:.1f} % by {}"))
    unlearnt = no_conclusion({"": [metrics]})
    if unlearnt:
        yield unlearnt
    yield (
        f"Of {metrics['statements']:,} sentences in {metrics['stories']:,} stories from {stories.generator} "
        f"about {num_targets}, {shares} are not neutral."
    )
    if unlearnt:
        return
    somewhere = by_scorers("stories-", "{:.0f} % of the stories by {}")
    yield f"A negative sentence occurs in {' and in '.join(somewhere)}."
    tested = {
        f"{word} {scorer}": metrics.get(key_of(f"p_D_{MEANS[share]}", scorer))
        for scorer in scorers
        for share, word in SIGNS.items()
    }
    beyond = [name for name, p in tested.items() if p is not None and p < 0.05 / len(tested)]  # Bonferroni's
    if beyond:
        yield f"Targets differ more than expected by chance in {' and in '.join(beyond)}."
    elif any(p is not None for p in tested.values()):
        yield "Targets are not shown to differ more than expected by chance."
    else:
        yield "There is no figure for how targets differ: the stories are about a single target."
    yield from audits.extremes(stories)


def kinds(per_story: pl.DataFrame) -> pl.DataFrame:
    """(kind, stories, sentences) of the kinds that were probed, in the order of KINDS."""
    order = pl.col("kind").replace_strict({kind: place for place, kind in enumerate(KINDS)})
    return per_story.group_by("kind").agg(pl.len().alias("stories"), pl.col("sentences").sum()).sort(order)


def prompts(per_story: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """(kind, template, stories, and sentiment_prejudice, sentiment_favouritism ... in percent of the sentences) of the
    templates, in their order; empty where no story has one."""
    names = [f"{column}_{share}" for column in columns for share in SHARES]
    pooled = [(pl.col(name) * pl.col("sentences")).sum() / pl.col("sentences").sum() for name in names]
    known = per_story.drop_nulls("template").sort("row").group_by("kind", "template", maintain_order=True)
    return known.agg(pl.len().alias("stories"), *pooled)


def examples(per_story: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The stories of each kind with the largest shares of sentences that are not neutral: extremes, not a sample."""
    neutral = pl.mean_horizontal(f"{column}_neutral" for column in columns)
    return per_story.sort(neutral, "row", maintain_order=True).group_by("kind", maintain_order=True).head(PER_KIND)


def render_card(
    name: str,
    *,
    ledger: pl.DataFrame,
    metrics: Mapping[str, Any],
    data: Mapping[str, Any],
    base: str,
    base_licence: str | None,
    targets: Sequence[str] = (),
    **content: Any,
) -> str:
    """The card of a generator that was trained on a resource before it generated stories, as Markdown with the hub's
    metadata. ledger: of the resource; data: its source, licence and demonstration; base: the model that training
    started from; targets: those of the stories; content: further variables of the template: policy, verdict (the first
    sentence of the page), origin (sentences about the weights), command, and its needs (arguments.inputs)."""
    rows, licence = ledger.filter(split="train"), licence_of(data["licence"], base_licence)
    base = without_folders(base)
    scorers = list(dict.fromkeys(measure.scorer for measure in harms(metrics)))
    content |= {
        "data": data,
        "base": base,
        "base_licence": base_licence,
        "kept": rows.filter(pl.col("weight") > 0).height,
        "rows": rows.height,
        "scorers": scorers,
        "metrics": metrics,
        "left_out": left_out(targets),
    }
    figures = [key_of(MEANS[share], scorer) for scorer in scorers for share in SHARES]
    return model_card(
        "stories_card.md.jinja",
        name,
        "text-generation",
        [Figure("generated stories", key, figure.title, metrics.get(key)) for key in figures if (figure := find(key))],
        content,
        license=licence,
        license_name=f"{data['licence']} and {base_licence}" if licence == "other" else None,
        base_model=base,
        library_name="transformers",
        tags=["story-generation", "commonsense", "representational-harms"],
    )
