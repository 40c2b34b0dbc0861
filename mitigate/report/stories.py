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
            sections.gallery(frames, scorers, None, chosen, has_counts=False),
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


