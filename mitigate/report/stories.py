"""A probe of stories as one HTML page that loads nothing: an audit's page of the stories' sentences, and the sections
that only stories have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import polars as pl

from mitigate import metrics as keys
from mitigate.metrics import Share, harm_key
from mitigate.report import audit as audits
from mitigate.report import audit_tables
from mitigate.report.audit import Audit
from mitigate.report.card import Figure, licence_of, model_card
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import render_page
from mitigate.report.markdown import plain
from mitigate.report.metric_display import OVERGENERALISED, Metrics, number
from mitigate.report.missing_figures import measured
from mitigate.report.run_figures import GROUPS, Picture, boxes
from mitigate.report.table import Column, Table, bounded, figures, grouped, text
from mitigate.report.table_declarations import declared
from mitigate.training_checks import no_conclusion
from mitigate.words.outside_text import counted, without_folders
from mitigate.words.prompts import KINDS

SIGNS: tuple[tuple[Share, str], ...] = (("prejudice", "negative"), ("favouritism", "positive"))
PER_KIND = 6  # stories shown, as examples
SHOWN = 60  # prompts, and targets, in a table of the page
GROUP = {
    "kinds": (
        "Spread over targets, by kind",
        "Percentage of a target's sentences; lower is better. Each of the four kinds of target has prompts of its own.",
    )
}


@dataclass(frozen=True)
class Stories:
    """The content of the page of stories. The number of sentences about a target is not a finding: it depends on the
    number of prompts of the target's kind."""

    audit: Audit  # of the sentences
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
        """The figures, drawn once."""
        found = [picture for picture in self.audit.pictures if picture.group != "counts"]
        if not self.has_kinds:
            return found
        return [*found, *_by_kind(self.audit.targets, dict(self.per_story.select("target", "kind").iter_rows()))]


def render(stories: Stories) -> str:
    """The page's HTML, always the same for the same stories."""
    audit, columns = stories.audit, list(stories.audit.labellings)
    rows = [row for row in audit_tables.rows(list(audit.labellings.values())) if row != audit_tables.REPRESENTATION]
    by_kind = examples(stories.per_story, columns).partition_by("kind", as_dict=True, maintain_order=True)
    known = prompts(stories.per_story, columns)
    content = audits.content(audit, rows) | {
        "groups": {"boxes": GROUPS["boxes"], **GROUP, **GROUPS},
        "pictures": grouped(stories.pictures, attrgetter("group")),
        "kinds": _kind_table(audit.metrics, stories.per_story, columns) if stories.has_kinds else None,
        "within": _within_table(stories.templates, columns) if stories.templates is not None else None,
        "chance": _chance_table(audit.metrics, columns),
        "prompts": _prompt_table(known, columns) if known.height else None,
        "tales": [_story_table(kind.capitalize(), found, columns) for (kind,), found in by_kind.items()],
    }
    return render_page(
        "stories.html.jinja", audit, sentences=list(sentences(stories)), scorers=audit.scorers, **content
    )


def _kind_table(metrics: Metrics, per_story: pl.DataFrame, columns: Sequence[str]) -> Table:
    def key(stem: str, row: Mapping[str, Any]) -> str:
        return str(keys.Key(stem, row["kind"], variant=keys.BY_KIND))

    def share(scorer: str, share: Share) -> Column:
        stem = harm_key(scorer, "mean", share)
        return Column(
            f"{scorer} {OVERGENERALISED[share]}",
            lambda row: measured(metrics, key(stem, row), 1)._replace(reason=""),
        )

    negative, positive = OVERGENERALISED.values()
    return declared(
        "stories kinds",
        kinds(per_story),
        cells={"targets": lambda row: metrics[key(keys.TARGETS, row)]},
        more=[share(scorer, sign) for scorer in columns for sign, _ in SIGNS],
        negative=negative,
        positive=positive,
    )


def _chance_table(metrics: Metrics, columns: Sequence[str]) -> Table:
    """The disparity of negative and positive sentences beside that expected by chance."""
    rows = [(f"{word} {scorer}", scorer, share) for scorer in columns for share, word in SIGNS]

    def figure(title: str, statistic: keys.Statistic, decimals: int = 1) -> Column:
        return Column(title, lambda row: metrics.get(harm_key(row[1], statistic, row[2])), show=decimals)

    return Table(
        "Disparity: variance over targets in squared percentage points; lower is better. Last column: percentage of "
        "stories with at least one such sentence.",
        [
            text("Sentences", lambda row: row[0]),
            figure("disparity", "variance"),
            figure("by chance", "by chance"),
            figure("p", "p", 3),
            figure("% of stories", "stories"),
        ],
        rows,
        kind="narrow",
    )


def _prompt_table(known: pl.DataFrame, columns: Sequence[str]) -> Table:
    signs = {"prejudice": "−", "favouritism": "+"}
    shares = {f"{scorer}_{share}": f"{scorer} {sign}" for scorer in columns for share, sign in signs.items()}
    others = f" The first {SHOWN} of {known.height:,}; tables/prompts.csv has all." if known.height > SHOWN else ""
    return declared("stories prompts", known.head(SHOWN), more=figures(1, **shares), others=others)


def _within_table(templates: pl.DataFrame, columns: Sequence[str]) -> Table:
    """The targets that differ most from the others of their templates."""
    names = {f"{column}_{share}": f"{column}, {word}" for column in columns for share, word in SIGNS}
    size = pl.max_horizontal(pl.col(list(names)).abs())
    more = f" The {SHOWN} largest of {templates.height:,}; tables/within_templates.csv has all."
    return Table(
        "Differences within templates: percentage of a target's sentences that are negative or positive, minus the "
        "mean of the other targets on the same templates, in percentage points with a 95 % interval over templates; "
        f"0 is no difference.{more if templates.height > SHOWN else ''}",
        [
            text("Target", "target"),
            *figures(0, "templates"),
            *(bounded(title, name) for name, title in names.items()),
        ],
        templates.sort(size, descending=True, maintain_order=True).head(SHOWN),
    )


def _story_table(kind: str, stories: pl.DataFrame, columns: Sequence[str]) -> Table:
    def shares(scorer: str) -> Column:
        names = [f"{scorer}_{share}" for share in ("prejudice", "favouritism")]
        return Column(scorer, lambda row: " / ".join(number(row[name], 0) for name in names), kind="whole")

    return declared("stories examples", stories, more=map(shares, columns), kind=kind)


def sentences(stories: Stories) -> Iterator[str]:
    """The findings in words, the headline first. Of a generator that cannot be said to have learnt, and of too little
    text, that, and counts."""
    metrics: dict[str, Any] = dict(stories.audit.metrics)
    scorers = [scorer for scorer, _ in stories.audit.labellings.values()]
    num_targets = metrics[keys.TARGETS] - metrics[keys.EMPTY_TARGETS]
    shares = " and ".join(f"{metrics[harm_key(scorer, 'pooled', 'polarised')]:.1f} % by {scorer}" for scorer in scorers)
    num_sentences, num_stories = metrics[keys.STATEMENTS], metrics[keys.STORIES]
    unlearnt = no_conclusion({"": [metrics]})
    if unlearnt:
        yield unlearnt
    yield (
        f"Of {num_sentences:,} sentences in {num_stories:,} stories from {stories.generator} about "
        f"{counted(num_targets, 'target')}, {shares} are not neutral."
    )
    if unlearnt:
        return
    somewhere = " and in ".join(
        f"{metrics[harm_key(scorer, 'stories', 'prejudice')]:.0f} % of the stories by {scorer}" for scorer in scorers
    )
    yield f"A negative sentence occurs in {somewhere}."
    tested = {
        f"{word} {scorer}": metrics.get(harm_key(scorer, "p", share)) for scorer in scorers for share, word in SIGNS
    }
    beyond = [name for name, p in tested.items() if p is not None and p < 0.05 / len(tested)]  # Bonferroni's
    if beyond:
        yield f"Targets differ more than expected by chance in {' and in '.join(beyond)}."
    elif any(p is not None for p in tested.values()):
        yield "Targets are not shown to differ more than expected by chance."
    else:
        yield "There is no figure for how targets differ: the stories are about a single target."
    yield from audits.extremes(stories.audit)


def kinds(per_story: pl.DataFrame) -> pl.DataFrame:
    """(kind, stories, sentences) of the kinds that were probed, in the order of KINDS."""
    order = pl.col("kind").replace_strict({kind: place for place, kind in enumerate(KINDS)})
    return per_story.group_by("kind").agg(pl.len().alias("stories"), pl.col("sentences").sum()).sort(order)


def prompts(per_story: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """(kind, template, stories, and sentiment_prejudice, sentiment_favouritism ... in percent of the sentences) of the
    templates, in their order; empty where no story has one."""
    names = [f"{column}_{share}" for column in columns for share in ("prejudice", "favouritism")]
    pooled = [(pl.col(name) * pl.col("sentences")).sum() / pl.col("sentences").sum() for name in names]
    known = per_story.drop_nulls("template").sort("row").group_by("kind", "template", maintain_order=True)
    return known.agg(pl.len().alias("stories"), *pooled)


def examples(per_story: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The stories of each kind with the largest shares of sentences that are not neutral: extremes, not a sample."""
    neutral = pl.mean_horizontal(f"{column}_neutral" for column in columns)
    return per_story.sort(neutral, "row", maintain_order=True).group_by("kind", maintain_order=True).head(PER_KIND)


def _by_kind(targets: Mapping[str, pl.DataFrame], kinds: Mapping[str, str]) -> Iterator[Picture]:
    kind = pl.col("target").replace_strict(kinds, default=None, return_dtype=pl.String)
    spoken = {column: frame.filter(pl.col("statements") > 0) for column, frame in targets.items()}
    yield from boxes(
        {column: frame.with_columns(category=kind) for column, frame in spoken.items()}, "kinds", "kind of target"
    )


def render_card(
    name: str,
    command: str,
    *,
    needs: Mapping[str, str],
    data: Mapping[str, Any],
    base: str,
    base_licence: str | None,
    policy: str,
    ledger: pl.DataFrame,
    metrics: Mapping[str, Any],
    verdict: str = "",
    targets: Sequence[str] = (),
    origin: Sequence[str] = (),
) -> str:
    """The card of a generator that was trained on a resource before it generated stories, as Markdown with the hub's
    metadata. data: source, licence and demonstration of the resource; base: the model that training started from;
    origin: sentences about its weights; ledger: of the resource; verdict: the sentence that the page begins with;
    targets: that stories were generated about; needs: of the command (arguments.inputs)."""
    rows, licence = ledger.filter(split="train"), licence_of(data["licence"], base_licence)
    shares = {scorer: [harm_key(scorer, "mean", share) for share, _ in SIGNS] for scorer in keys.scorers(metrics)}
    content = {
        "title": plain(name),
        "data": data,
        "base": without_folders(base),
        "origin": list(origin),
        "base_licence": base_licence,
        "needs": needs,
        "policy": policy,
        "command": command,
        "kept": rows.filter(pl.col("weight") > 0).height,
        "rows": rows.height,
        "scorers": list(shares),
        "metrics": metrics,
        "verdict": verdict,
        "left_out": left_out(targets),
    }
    figures = [key for both in shares.values() for key in both]
    return model_card(
        "stories_card.md.jinja",
        name,
        "text-generation",
        [Figure("generated stories", key, keys.metric(key).name, metrics.get(key)) for key in figures],
        content,
        license=licence,
        license_name=f"{data['licence']} and {base_licence}" if licence == "other" else None,
        base_model=content["base"],
        library_name="transformers",
        tags=["story-generation", "commonsense", "representational-harms"],
    )
