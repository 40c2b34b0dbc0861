"""An answer as a table for people, two runs side by side, or as JSON for scripts."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import polars as pl

from mitigate.measure.agreement import CLASSES
from mitigate.runs.finished import short_names
from mitigate.tasks.ask.answers import Answers
from mitigate.tasks.ask.questions import Question
from mitigate.triples import OTHER, label_columns

WORDS = {**CLASSES, OTHER: "other"}
NOT_KNOWN = "–"
LONGEST_TAIL = 40
GAP = "   "
WIDE = (200, 24)  # columns and lines, where there is no terminal
TWO_WORDINGS = "a/b: labelled a with the paper's phrase of the relation, b with the neutral one"
UNMASKED = "is not a target of the run: the word is not masked where the sentence is labelled"


def as_json(question: Question, runs: Sequence[Answers]) -> str:
    """One object on a line: head, relation and, for each run, its folder's name, policy, seed and tails, with the
    columns that the library returns."""
    found = []
    for answers in runs:
        run, tails = answers.run, answers.tails(*question).drop("head", "relation")
        rows = [_plain(row) for row in tails.iter_rows(named=True)]
        found.append({"run": run.folder.name, "policy": run.policy, "seed": run.seed, "tails": rows})
    text = json.dumps({"head": question.head, "relation": question.relation, "runs": found}, allow_nan=False)
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON leaves as it is


def as_text(question: Question, runs: Sequence[Answers]) -> str:
    """A table of each run, side by side where they fit into the terminal."""
    blocks = [_block(name, run, run.tails(*question)) for name, run in named(runs).items()]
    widths = [max(map(len, block)) for block in blocks]
    if sum(widths) + len(GAP) * (len(blocks) - 1) <= shutil.get_terminal_size(WIDE).columns:
        rows = zip_longest(*blocks, fillvalue="")
        lines = [GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    else:
        lines = [line.rstrip() for block in blocks for line in block]
    if any(" / " in line for line in lines):
        lines.append(TWO_WORDINGS)
    if question.head not in runs[0].known.target_list.forms:
        lines.append(f"{question.head} {UNMASKED}")
    return "\n".join([f"{question.head} {question.relation}", *lines])


def named(runs: Sequence[Answers]) -> dict[str, Answers]:
    """The runs by their policies; where these are the same, by more."""
    by_folder = {str(run.run.folder): {"policy": run.run.policy, "seed": run.run.seed} for run in runs}
    return dict(zip(short_names(by_folder), runs, strict=True))


def _block(name: str, run: Answers, tails: pl.DataFrame) -> list[str]:
    scorers = list(run.known.scorers)
    plausible = ["plausible"] if "plausibility" in tails.columns else []
    rows = [["", name, "score", *scorers, *plausible]]
    rows += [_cells(row, scorers, bool(plausible)) for row in tails.iter_rows(named=True)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    numbers = (0, 2, len(rows[0]) - 1 if plausible else -1)
    return [
        "  ".join(
            f"{cell:>{width}}" if place in numbers else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _cells(row: Mapping[str, Any], scorers: Sequence[str], plausible: bool) -> list[str]:
    tail = row["tail"] if len(row["tail"]) <= LONGEST_TAIL else f"{row['tail'][: LONGEST_TAIL - 1]}…"
    found = [str(row["rank"]), tail, _number(row["score"])]
    found += [_label(*(row[label_columns(name, template)[0]] for template in ("paper", "neutral"))) for name in scorers]
    return [*found, *([_number(row["plausibility"])] if plausible else [])]


def _label(paper: int, neutral: int) -> str:
    return WORDS[paper] if paper == neutral else f"{WORDS[paper]} / {WORDS[neutral]}"


def _number(value: float | None) -> str:
    return NOT_KNOWN if value is None or math.isnan(value) else f"{value:.2f}"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON has it, which knows no NaN."""
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
