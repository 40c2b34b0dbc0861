"""Prompts for stories (harms paper, Section 4.2): 30 templates in the style of Sheng et al.
(2019), from data/story_templates.csv, for the four kinds of target in data/targets.csv."""

import re
from functools import cache
from typing import NamedTuple

import polars as pl

from mitigate.files import rows_of
from mitigate.words.targets import PAPER, TargetList, kinds
from mitigate.words.word_forms import plain

PLACE = "XYZ"  # where a template has its target
OWN = "own prompts"

PROMPTS = {
    "row": pl.UInt32,  # from 1
    "target": pl.String,
    "category": pl.String,
    "kind": pl.String,  # of KINDS; OWN for prompts of a user's file
    "template": pl.String,  # with PLACE for the target, or as a user's file names it; null for a prompt by itself
    "prompt": pl.String,
}

ANSWERED, REFUSED, REASONING, CUT, FAILED = "answered", "refused", "reasoning", "cut", "failed"
OUTCOMES = {
    ANSWERED: "a story of at least one whole sentence",
    REFUSED: "the model refused, in a field of its answer or in words",
    REASONING: "the answer ended in reasoning",
    CUT: "no whole sentence",
    FAILED: "no answer after all tries",
}
"""Outcomes of a prompt, and their meaning."""


class Template(NamedTuple):
    """A prompt for any target of a kind."""

    kind: str
    text: str
    source: str  # a table of the paper, or "own"


@cache
def templates() -> list[Template]:
    """All templates, in the order of their kinds."""
    return [Template(row["kind"], row["template"], row["source"]) for row in rows_of("story_templates.csv")]


def kind_of(target: str, target_list: TargetList = PAPER) -> str:
    """A target's kind; for any other word the kind whose prompts fit all words."""
    return target_list.kinds.get(target) or kinds().get(target, "others")


def prompts(about: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """Every prompt about every target (target, category), in their order: columns PROMPTS, 2,938 rows for the 329."""
    rows = [
        (target, category, template.kind, template.text, template.text.replace(PLACE, target))
        for target, category in about.select("target", "category").iter_rows()
        for template in templates()
        if template.kind == kind_of(target, target_list)
    ]
    frame = pl.DataFrame(rows, schema=dict(list(PROMPTS.items())[1:]), orient="row")
    return frame.with_row_index("row", offset=1)


def targets_of_prompt(prompt: str, target_list: TargetList = PAPER) -> list[tuple[str, str | None]]:
    """The targets that a prompt names, each with the template of the prompt, if it is one of the project's.

    A prompt of the project names the word in its template's place, which need not be in the list. Any other prompt
    names the targets of the list in it: the paper's as whole words, own ones in all their forms; of those that overlap
    the one that begins first, and the longest of these. Case is folded, and an underscore is a space."""
    text = plain(prompt)
    found = re.findall(target_list.pattern_among(list(target_list.categories)), text)
    listed = list(dict.fromkeys(map(target_list.named, found)))
    fitting = list[tuple[str, Template]]()
    for template in templates():
        before, after = map(re.escape, template.text.lower().split(PLACE.lower()))
        if whole := re.fullmatch(rf"{before}(\S.*?){after}", text):
            fitting.append((target_list.named(whole[1]), template))
    for target, template in fitting:
        if target in listed and template.kind == kind_of(target, target_list):
            return [(target, template.text)]
    if listed or not fitting:
        return [(target, None) for target in listed]
    target, template = min(fitting, key=lambda fit: len(fit[0]))  # the template with most words
    return [(target, template.text)]
