"""recipe=ask: questions about heads and relations to finished runs, by a command, on a terminal, or through a pipe. It
leaves no run folder and records nothing."""

import sys
from collections.abc import Callable, Iterable

from omegaconf import DictConfig

from mitigate.cli.output import say
from mitigate.errors import MitigateError
from mitigate.recipes.ask.output import as_json, as_text, lines_of_terminal
from mitigate.runs.finished import read_runs
from mitigate.tasks.ask.answers import Answers
from mitigate.tasks.ask.questions import Question, read_question, shared_relations
from mitigate.words.outside_text import escaped

FORMATS: dict[str, Callable[[Question, list[Answers]], str]] = {"text": as_text, "json": as_json}
EXAMPLE = "head=lawyer relation=CapableOf"


def run(config: DictConfig) -> None:
    """Answer the question of head= and relation=; without a head, questions of the terminal or of standard input."""
    runs = open_answers(config)
    show = FORMATS[config.ask.format]
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
        converse(runs, show, quiet=config.ask.format == "json")
    else:
        answer_lines(sys.stdin or (), runs, show)


def open_answers(config: DictConfig) -> list[Answers]:
    """The run of ask.run, and that of ask.against. Raises MitigateError where both are the same."""
    trusted = [str(node.get("_target_")) for node in config.score.scorers.values()]
    found = []
    for setting in ("run", "against"):
        if folder := config.ask[setting]:
            (opened,) = read_runs([folder], "mitigate", f"ask.{setting}")
            found.append(Answers(opened, trusted=trusted))
    if len({answers.run.folder for answers in found}) < len(found):
        raise MitigateError(
            f"ask.against={config.ask.against} is the same run as ask.run; set it to another run, or leave it out"
        )
    return found


def converse(runs: list[Answers], show: Callable[[Question, list[Answers]], str], *, quiet: bool) -> None:
    """Answer questions of a terminal until an empty line, Ctrl-D or Ctrl-C. quiet: nothing but answers on standard
    output."""
    try:
        for line in lines_of_terminal(runs, quiet=quiet):
            try:
                say(show(read_line(line, runs), runs))
            except MitigateError as error:
                print_error(str(error))
    except KeyboardInterrupt:
        return


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
                    print_error(f"line {number}: {error}")
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


def print_error(fault: str) -> None:
    """Print what is wrong with a question, on standard error."""
    sys.stderr.write(f"mitigate: {escaped(fault)}\n")
    sys.stderr.flush()
