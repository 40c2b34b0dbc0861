"""The page of a probe of stories: the harms of their sentences, and whether targets differ by more than chance."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.measure.base import key_of
from mitigate.measure.learnt import no_conclusion
from mitigate.measure.results import Results
from mitigate.report import audit, sections
from mitigate.report.numbers import number, p_value
from mitigate.report.page import OPEN, Fold, Number, Page, Part, Section
from mitigate.report.sections import crossed, figure
from mitigate.report.table import Table, figures, grouped, text
from mitigate.words.outside_text import counted

SIGNS = {"prejudice": "negative", "favouritism": "positive"}
MEANS = {"prejudice": "O-", "favouritism": "O+"}
SHARES = list(SIGNS)
BY_CHANCE = {"D_O": "disparity", "by_chance_D_O": "by chance", "p_D_O": "p", "stories": "% of stories"}
PER_KIND, SHOWN = 6, 60  # stories of a kind that are examples; prompts, and targets, in a table of the page
MORE = "Probe with more prompts or longer stories (recipe.max_tokens), or train the generator longer."
LIMIT = "Sentences are labelled one by one, without meaning across them. Those not about the target count too."


def page(
    results: Results,
    generator: str,
    *,
    scorers: Sequence[str],
    frames: Mapping[str, pl.DataFrame],
    statements: pl.DataFrame,
    per_story: pl.DataFrame,
    prompts: pl.DataFrame,
    templates: pl.DataFrame | None,
    chosen: Sequence[str],
    **about: Any,
) -> Page:
    """generator: the model or file of the stories; scorers, frames, statements, chosen: as audit.page has them;
    per_story, prompts: measure.stories.shares of each story, with its text, and of each template; templates:
    within_templates, where prompts share templates; about: further fields of Page."""
    rows, first = results.table, scorers[0]
    state, hedge = verdict(results, generator, scorers)
    naming, distinct = (number(results[name], 0) for name in ("naming_target", "distinct_sentences"))
    repeats = f"{naming} % of the stories name their target again. {distinct} % of the sentences are distinct."
    return Page(
        state=state,
        hedge=hedge,
        picture=sections.shares_picture(rows, first),
        numbers=[*audit.numbers(rows, first, frames[first])[:1], *numbers(rows, first)],
        sections=[
            audit.measures(rows),
            Section("Differences between targets", _differences(rows, templates, prompts, scorers)),
            sections.gallery(frames, scorers, chosen),
            sections.target_section(frames, statements, scorers, scorers),
            Section("Stories", [_examples(per_story, scorers)]),
        ],
        limits=[repeats, LIMIT, *audit.LIMITS, *sections.left_out(frames[first]["target"].to_list())],
        **about,
    )


def verdict(results: Results, generator: str, scorers: Sequence[str]) -> tuple[str, str]:
    """The state: whether targets differ by more than chance; and its hedge: in what (Bonferroni), and of how many."""
    shares = " and ".join(f"{results[key_of('polarised', scorer)]:.1f} % by {scorer}" for scorer in scorers)
    about = counted(results["targets"] - results["empty_targets"], "target")
    said = f"Of {results['statements']:,} sentences in {results['stories']:,} stories from {generator} about {about}, "
    said += f"{shares} are not neutral."
    if reason := no_conclusion({"": [results]}):
        return OPEN, f"{reason.partition(': ')[2].capitalize()} {MORE} {said}"
    pairs = [(f"{word} {scorer}", f"p_D_{MEANS[share]}", scorer) for scorer in scorers for share, word in SIGNS.items()]
    tested = {name: row["value"] for name, key, scorer in pairs if (row := figure(results.table, key, scorer))}
    if beyond := [name for name, p in tested.items() if p < 0.05 / len(tested)]:
        return "Targets differ by more than chance", f"In {', '.join(beyond)}. {said}"
    return "Targets not shown to differ beyond chance" if tested else "Stories about a single target", said


def numbers(rows: pl.DataFrame, scorer: str) -> list[Number]:
    """The share of stories with a negative sentence, and the disparity beside that by chance."""
    measures = ("stories-", "D_O-", "by_chance_D_O-", "p_D_O-")
    share, *compared = ((figure(rows, name, scorer) or {"value": None})["value"] for name in measures)
    found = [Number("negative stories ↓", f"{number(share, 1)} %", f"with a negative sentence by {scorer}")]
    if None not in compared:
        spread, chance = (number(value**0.5, 1) for value in compared[:2])
        note = f"points, standard deviation of O−; {chance} by chance, p {p_value(compared[2])}"
        found.append(Number("spread over targets ↓", spread, note))
    return found


def _differences(
    rows: pl.DataFrame, templates: pl.DataFrame | None, prompts: pl.DataFrame, scorers: Sequence[str]
) -> list[Part]:
    """Disparity beside chance, harms by kind of target, differences within templates, and prompts."""
    caption = "Disparity over targets, beside that of stories permuted among the targets of their prompt (p: how many "
    caption += "of these are as large)."
    signs = {MEANS[share][-1]: word for share, word in SIGNS.items()}
    whole = rows.filter(pl.col("measure").is_in([name + sign for name in BY_CHANCE for sign in signs]), by="all")
    line, across = lambda row: f"{signs[row['measure'][-1]]} {row['scorer']}", lambda row: row["measure"][:-1]
    chance = crossed(caption, whole, BY_CHANCE, down=line, across=across, first="sentences")
    caption = "By kind of target, which has prompts of its own: percent of a target's sentences, mean over targets."
    columns = {"targets ": "targets", "statements ": "sentences"}
    columns |= {f"{mean} {name}": f"{name} {mean}".replace("-", "−") for name in scorers for mean in MEANS.values()}
    line, across = lambda row: row["group"], "{measure} {scorer}".format_map
    kinds = crossed(caption, rows.filter(by="kind"), columns, down=line, across=across, first="kind", decimals=1)
    words = {f"{scorer}_{share}": f"{scorer}, {word}" for scorer in scorers for share, word in SIGNS.items()}
    size = pl.max_horizontal(pl.col(list(words)).abs())
    caption = "Prompts that differ in their target alone: percent of a target's sentences minus the mean of the others."
    largest = None if templates is None else templates.sort(size, descending=True, maintain_order=True).head(SHOWN)
    within = None if largest is None else Table(caption, [text("target"), *figures(1, "templates", **words)], largest)
    caption = "Percent of the sentences of each prompt; XYZ, or a slot in braces, stands for the target."
    columns_of = [text("prompt", "template", "sentence"), text("kind"), *figures(1, "stories", **words)]
    table = Table(caption, columns_of, prompts.head(SHOWN))
    return [chance, kinds, within, Fold("Prompts", [table]) if table.height else None]


def _examples(per_story: pl.DataFrame, scorers: Sequence[str]) -> Fold:
    """The stories of each kind with the largest shares of sentences that are not neutral."""
    neutral = pl.mean_horizontal(f"{scorer}_neutral" for scorer in scorers)
    most = per_story.sort(neutral, "row", maintain_order=True).group_by("kind", maintain_order=True).head(PER_KIND)
    shares = figures(0, **{f"{scorer}_neutral": f"neutral by {scorer}, %" for scorer in scorers})
    columns = [text("prompt", kind="sentence"), text("story", kind="sentence"), *shares]
    kinds = grouped(most.rows(named=True), lambda row: row["kind"])
    table = Table("Extremes, not a sample; stories.txt has all stories.", columns, kinds, headed=False)
    return Fold("The stories of each kind with the fewest neutral sentences", [table], warning=True)
