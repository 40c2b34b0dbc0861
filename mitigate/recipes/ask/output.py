"""Answers as a table, with two runs side by side, or as JSON for scripts; and the prompt of the terminal."""

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import polars as pl

from mitigate.cli.output import say
from mitigate.measure.agreement import CLASSES
from mitigate.runs.finished import short_names
from mitigate.tasks.ask.answers import Answers
from mitigate.tasks.ask.questions import Question, all_targets, shared_relations
from mitigate.triples import OTHER, TEMPLATES, label_columns

WORDS = {**CLASSES, OTHER: "other"}
MISSING = "–"
LONGEST_TAIL = 40
GAP = "   "
WIDE = (200, 24)  # columns and lines, where there is no terminal
TWO_WORDINGS = "a/b: labelled a with the paper's phrase of the relation, b with the neutral one"
UNMASKED = "is not a target of the run, so the word is not masked in labelled sentences"
PROMPT = "> "
HOW = "A head and a relation, such as: lawyer CapableOf. Tab completes; an empty line ends."


def as_json(question: Question, runs: Sequence[Answers]) -> str:
    """One object on a line: head, relation and, for each run, its folder's name, policy, seed and tails, with the
    columns of the library. NaN, which JSON lacks, is null."""
    found = []
    for answers in runs:
        run, tails = answers.run, answers.tails(*question).drop("head", "relation").fill_nan(None)
        found.append({"run": run.folder.name, "policy": run.policy, "seed": run.seed, "tails": tails.to_dicts()})
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
    if question.head not in runs[0].index.target_list.forms:
        lines.append(f"{question.head} {UNMASKED}")
    return "\n".join([f"{question.head} {question.relation}", *lines])


def named(runs: Sequence[Answers]) -> dict[str, Answers]:
    """The runs by the names of their policies; where these are the same, with seeds."""
    by_folder = {str(run.run.folder): {"policy": run.run.policy, "seed": run.run.seed} for run in runs}
    return dict(zip(short_names(by_folder), runs, strict=True))


def _block(name: str, run: Answers, tails: pl.DataFrame) -> list[str]:
    scorers = list(run.index.scorers)
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
    for name in scorers:
        labels = (WORDS[row[label_columns(name, template)[0]]] for template in TEMPLATES)
        found.append(" / ".join(dict.fromkeys(labels)))
    return [*found, *([_number(row["plausibility"])] if plausible else [])]


def _number(value: float | None) -> str:
    return MISSING if value is None or math.isnan(value) else f"{value:.2f}"


def lines_of_terminal(runs: Sequence[Answers], *, quiet: bool) -> Iterator[str]:
    """The typed lines up to an empty one or the end of input. quiet: nothing is written to standard output, which holds
    the answers alone."""
    complete_with(all_targets(runs), shared_relations(runs))
    if not quiet:
        say(HOW)
    while True:
        try:
            line = input("" if quiet else PROMPT)
        except (EOFError, KeyboardInterrupt):
            sys.stderr.write("\n")
            return
        if not line.strip():
            return
        yield line


def complete_with(heads: Sequence[str], relations: Sequence[str]) -> None:
    """Let the Tab key complete lines, where Python has readline."""
    try:
        import readline
    except ImportError:
        return
    readline.set_completer_delims("")  # the whole line is completed, since a head may have blanks
    readline.set_completer(completer(heads, relations))
    readline.parse_and_bind("tab: complete")


def completer(heads: Sequence[str], relations: Sequence[str]) -> Callable[[str, int], str | None]:
    """The function that readline calls with a line and 0, 1, 2 ...; it returns the completions one by one."""

    def complete(line: str, place: int) -> str | None:
        return dict(enumerate(completions(line, heads, relations))).get(place)

    return complete


def completions(line: str, heads: Sequence[str], relations: Sequence[str]) -> list[str]:
    """Heads that begin with the line, and behind a head the relations that begin with the last word."""
    head, _, last = line.rpartition(" ")
    matching = [f"{name} " for name in heads if name.startswith(line.lower())]
    return matching + [f"{head} {name}" for name in relations if head and name.lower().startswith(last.lower())]
