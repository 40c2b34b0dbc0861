"""recipe=ask: questions about heads and relations to finished runs, by a command, on a terminal, or through a pipe.
Answers are tables, or JSON for scripts. It leaves no run folder and records nothing."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.finished import read_runs, short_names
from mitigate.measure.agreement import CLASSES
from mitigate.probe.answers import Answers, find_relation, shared_relations
from mitigate.progress import complain, say
from mitigate.recipes.config import Config
from mitigate.triples import OTHER, TEMPLATES, label_columns

WORDS = {**CLASSES, OTHER: "other"}
MISSING = "–"
LONGEST_TAIL = 40
TWO_WORDINGS = "a/b: labelled a with the paper's phrase of the relation, b with the neutral one"
UNMASKED = "is not a target of the run, so the word is not masked in labelled sentences"

HOW = "write a head and a relation, such as: lawyer CapableOf; an empty line ends"
EXAMPLE = "head=lawyer relation=CapableOf"


class Question(NamedTuple):
    """A head as in prompts, and the name of a relation."""

    head: str
    relation: str


def run(config: Config) -> None:
    """Answer the question of head= and relation=; without a head, questions of the terminal or of standard input."""
    runs = open_answers(config)
    show = as_json if config.ask.format == "json" else as_text
    if config.head is not None:
        if config.relation is None:
            names = ", ".join(shared_relations(runs))
            raise MitigateError(f"head={config.head} needs a relation, as in {EXAMPLE}; allowed: {names}")
        say(show(read_question(config.head, config.relation, runs), runs))
    elif config.relation is not None:
        raise MitigateError(
            f"relation={config.relation} needs a head, as in {EXAMPLE}; without both, questions are read from the "
            "terminal or from standard input"
        )
    elif sys.stdin is not None and sys.stdin.isatty():
        converse(runs, show)
    else:
        answer_lines(sys.stdin or (), runs, show)


def open_answers(config: Config) -> list[Answers]:
    """The run of ask.run, and that of ask.against. Raises MitigateError where both are the same."""
    trusted = [str(node.get("_target_")) for node in config.score.scorers.values()]
    found = []
    for setting in ("run", "against"):
        if folder := getattr(config.ask, setting):
            (opened,) = read_runs([folder], "mitigate", f"ask.{setting}")
            found.append(Answers(opened, trusted=trusted))
    if len({answers.run.folder for answers in found}) < len(found):
        raise MitigateError(
            f"ask.against={config.ask.against} is the same run as ask.run; set it to another run, or leave it out"
        )
    return found


def converse(runs: list[Answers], show: Callable[[Question, list[Answers]], str]) -> None:
    """Answer questions of a terminal until an empty line, Ctrl-D or Ctrl-C."""
    complain(HOW)
    with suppress(KeyboardInterrupt, EOFError):
        while line := input().strip():
            try:
                say(show(read_line(line, runs), runs))
            except MitigateError as error:
                complain(str(error))


def answer_lines(lines: Iterable[str], runs: list[Answers], show: Callable[[Question, list[Answers]], str]) -> None:
    """Answer questions, a line each, without blank lines. Raises MitigateError at the end where any has no answer."""
    num_questions, failed = 0, 0
    try:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                num_questions += 1
                try:
                    say(show(read_line(line, runs), runs))
                except MitigateError as error:
                    failed += 1
                    complain(f"line {number}: {error}")
    except UnicodeDecodeError as error:
        raise MitigateError(
            f"standard input is not UTF-8 ({error.reason}); write lines such as: lawyer CapableOf"
        ) from error
    if not num_questions:
        raise MitigateError(
            f"standard input is empty; write lines such as: lawyer CapableOf, or ask one question with {EXAMPLE}"
        )
    if failed:
        raise MitigateError(f"{failed} of {num_questions} questions failed, for the reasons above")


def read_line(line: str, runs: list[Answers]) -> Question:
    """The question of a line: the last word is the relation, the words before are the head."""
    head, _, relation = " ".join(line.split()).rpartition(" ")
    if not head:
        raise MitigateError(f"{relation!r} is not a question; write a head and a relation, such as: lawyer CapableOf")
    return read_question(head, relation, runs)


def read_question(head: str, relation: str, runs: Sequence[Answers]) -> Question:
    """Read a question as a user wrote it. Raises MitigateError for an empty head, and for a relation that some run does
    not have."""
    return Question(runs[0].index.head(head), find_relation(relation, shared_relations(runs)))


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
    """A table of each run, one below the other."""
    by_folder = {str(one.run.folder): {"policy": one.run.policy, "seed": one.run.seed} for one in runs}
    named = zip(short_names(by_folder), runs, strict=True)
    lines = [line.rstrip() for name, one in named for line in _block(name, one, one.tails(*question))]
    if any(" / " in line for line in lines):
        lines.append(TWO_WORDINGS)
    if question.head not in runs[0].index.target_list.forms:
        lines.append(f"{question.head} {UNMASKED}")
    return "\n".join([f"{question.head} {question.relation}", *lines])


def _block(name: str, run: Answers, tails: pl.DataFrame) -> list[str]:
    scorers = list(run.index.scorers)
    plausible = ["plausible"] if "plausibility" in tails.columns else []
    rows = [["", name, "score", *scorers, *plausible]]
    rows += [_cells(row, scorers, bool(plausible)) for row in tails.iter_rows(named=True)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    sides = [">", "<", ">", *("<" for _ in scorers), *(">" for _ in plausible)]
    return ["  ".join(map("{:{}{}}".format, row, sides, widths)) for row in rows]


def _cells(row: Mapping[str, Any], scorers: Sequence[str], plausible: bool) -> list[str]:
    tail = row["tail"] if len(row["tail"]) <= LONGEST_TAIL else f"{row['tail'][: LONGEST_TAIL - 1]}…"
    found = [str(row["rank"]), tail, _number(row["score"])]
    for name in scorers:
        labels = (WORDS[row[label_columns(name, template)[0]]] for template in TEMPLATES)
        found.append(" / ".join(dict.fromkeys(labels)))
    return [*found, *([_number(row["plausibility"])] if plausible else [])]


def _number(value: float | None) -> str:
    return MISSING if value is None or math.isnan(value) else f"{value:.2f}"
