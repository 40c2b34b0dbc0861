"""GenericsKB as published: GenericsKB-Best.tsv and its like, whose first line names SOURCE, TERM, QUANTIFIER, GENERIC
SENTENCE and SCORE, or the plain form of one sentence a line."""

from mitigate.load import sentences
from mitigate.load.lines import OnBadLine, check
from mitigate.load.stream import Streamed, given, text_blocks
from mitigate.load.table import open_lines, open_table

COLUMNS = {"term": "term", "statement": "generic sentence"}


def load(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The sentences of a file, case folded as in the harms paper's release, with the term that each is about where the
    file says it. Raises MitigateError for a file that cannot be read."""
    check(on_bad_line)
    place = given(path, "genericskb")
    first = next(text_blocks(place)).content.partition(b"\n")[0].lower()
    table = open_table(place, COLUMNS, "\t") if b"\t" in first else open_lines(place, "statement")
    return sentences.streamed(place, table, on_bad_line)
