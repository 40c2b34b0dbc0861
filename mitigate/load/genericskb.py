"""GenericsKB as published: GenericsKB-Best.tsv and its like, whose first line names SOURCE, TERM, QUANTIFIER, GENERIC
SENTENCE and SCORE; the same under the names of the Hugging Face hub; its JSON lines, of which context is not read; or
the plain form of one sentence a line."""

from mitigate.load import sentences
from mitigate.load.columns import Column
from mitigate.load.file_format import layout_of
from mitigate.load.lines import OnBadLine, check
from mitigate.load.stream import Streamed, path_of
from mitigate.load.table import open_lines, open_table

STATEMENT = ("generic sentence", "generic_sentence", "knowledge.sentence", "sentence")
TERM = ("term", "knowledge.key_concept", "concept_name")
COLUMNS = {"statement": Column(STATEMENT), "term": Column(TERM, optional=True)}
REMEDY = (
    f"; GenericsKB has {' or '.join(STATEMENT)}. For another table, set data=sentences data.path=FILE "
    f"{sentences.NAME_IT}"
)


def load(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The sentences of a file, case folded as in the harms paper's release, with the term of each where the file has
    it. Raises MitigateError for a file that cannot be read, or is another table."""
    check(on_bad_line)
    place = path_of(path, "genericskb")
    layout = layout_of(place)
    if layout.form == "lines":
        return sentences.streamed(place, open_lines(place), on_bad_line)
    table = open_table(place, COLUMNS, layout=layout, remedy=REMEDY, stray_quotes=True)
    return sentences.streamed(place, table, on_bad_line)
