"""Questions typed on a terminal, with completion of heads and relations by the Tab key."""

import sys
from collections.abc import Callable, Iterator, Sequence

from mitigate.cli.output import say
from mitigate.tasks.ask.answers import Answers
from mitigate.tasks.ask.questions import known_heads, shared_relations

PROMPT = "> "
HOW = "A head and a relation, such as: lawyer CapableOf. Tab completes; an empty line ends."


def lines_of_terminal(runs: Sequence[Answers], *, quiet: bool) -> Iterator[str]:
    """The lines that are typed, up to an empty one or the end of input. quiet: nothing is written to standard output,
    which holds the answers alone."""
    complete_with(known_heads(runs), shared_relations(runs))
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
    """What readline calls with a line and 0, 1, 2 ...: the lines that it may become, one after the other."""

    def complete(line: str, place: int) -> str | None:
        return dict(enumerate(completions(line, heads, relations))).get(place)

    return complete


def completions(line: str, heads: Sequence[str], relations: Sequence[str]) -> list[str]:
    """Heads that begin with the line, and behind a head the relations that begin with its last word."""
    head, _, last = line.rpartition(" ")
    begun = [f"{known} " for known in heads if known.startswith(line.lower())]
    return begun + [f"{head} {name}" for name in relations if head and name.lower().startswith(last.lower())]
