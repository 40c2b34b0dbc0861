"""recipe=ask: questions about heads and relations to a finished run, by a command, on a terminal, or through a pipe.
It leaves no run folder and records nothing."""

import math
import sys

from mitigate.errors import MitigateError
from mitigate.finished import read_runs
from mitigate.measure.agreement import CLASSES
from mitigate.probe.answers import Answers
from mitigate.progress import complain, say
from mitigate.recipes.config import Config
from mitigate.triples import OTHER, TEMPLATES, label_columns

WORDS = {**CLASSES, OTHER: "other"}
TWO_WORDINGS = "a/b: labelled a with the paper's phrase of the relation, b with the neutral one"
UNMASKED = "is not a target of the run, so the scorers saw the word itself"
HOW = "write a head and a relation, such as: lawyer CapableOf"


def run(config: Config) -> None:
    """Answer the question of head= and relation=; without a head, a question in each line of standard input, up to an
    empty one on a terminal. Raises MitigateError at the end where any has no answer."""
    if config.head is None and config.relation is not None:
        raise MitigateError(f"relation={config.relation} needs a head, as in head=lawyer relation=CapableOf")
    (finished,) = read_runs([config.ask.run], "mitigate", "ask.run")
    nodes = config.score.scorers.values()
    answers = Answers(finished, trusted=[str(node.get(key)) for node in nodes for key in ("_target_", "url")])
    if config.head is not None:
        if config.relation is None:
            raise MitigateError(
                f"head={config.head} needs a relation, as in head=lawyer relation=CapableOf; allowed: "
                f"{', '.join(answers.relations)}"
            )
        say(as_text(answers, config.head, config.relation))
        return
    asked, failed, is_terminal = 0, 0, sys.stdin.isatty()
    if is_terminal:
        complain(f"{HOW}; an empty line ends")
    for number, line in enumerate(iter(sys.stdin.readline, ""), start=1):
        head, _, relation = " ".join(line.split()).rpartition(" ")
        if not relation and is_terminal:
            return
        try:
            if relation:
                asked += 1
                say(as_text(answers, head, relation))
        except MitigateError as error:
            failed += 1
            complain(f"line {number}: {error}")
    if not is_terminal and (failed or not asked):
        problem = f"{failed} of {asked} questions failed" if asked else "standard input has no question"
        raise MitigateError(f"{problem}; {HOW}")


def as_text(answers: Answers, head: str, relation: str) -> str:
    """The answer as a table. Raises MitigateError as Answers.tails, and for an empty head."""
    if not head.strip():
        raise MitigateError(f"the head is empty; {HOW}")
    tails, scorers = answers.tails(head, relation), list(answers.scorers)
    plausible = ["plausible"] if "plausibility" in tails.columns else []
    rows = [["", answers.run.policy, "score", *scorers, *plausible]]
    for row in tails.iter_rows(named=True):
        labels = [
            " / ".join(dict.fromkeys(WORDS[row[label_columns(name, template)[0]]] for template in TEMPLATES))
            for name in scorers
        ]
        numbers = [row["score"], *(row["plausibility"] for _ in plausible)]
        score, *probability = ["–" if one is None or math.isnan(one) else f"{one:.2f}" for one in numbers]
        rows.append([str(row["rank"]), row["tail"], score, *labels, *probability])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    sides = [">", "<", ">", *("<" for _ in scorers), *(">" for _ in plausible)]
    lines = ["  ".join(map("{:{}{}}".format, row, sides, widths)).rstrip() for row in rows]
    lines += [TWO_WORDINGS] if any(" / " in line for line in lines) else []
    head, relation = tails.row(0)[:2] if tails.height else (head, relation)
    lines += [] if head in answers.target_list.forms else [f"{head} {UNMASKED}"]
    return "\n".join([f"{head} {relation}", *lines])
