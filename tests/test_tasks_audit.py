"""Audits and stories as functions of plain arguments: read rows, label and count, measure; numbers one can check by
hand."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.load.files import LoadedStatements
from mitigate.load.files import load as load_statements
from mitigate.load.triples_file import Loaded
from mitigate.prompts import PROMPTS
from mitigate.score.vader import Vader
from mitigate.store import PartFolder
from mitigate.tasks.audit.count import count_statements
from mitigate.tasks.audit.measures import measure_resource, value_of
from mitigate.tasks.audit.met import ABOUT_A_TARGET, ROWS, STATEMENTS, as_met
from mitigate.tasks.audit.paper import beside_the_paper
from mitigate.tasks.audit.read import read_rows
from mitigate.tasks.audit.resource import resource_of
from mitigate.tasks.labelling import Labelling, labellings, per_target_tables
from mitigate.tasks.stories.measures import measure_stories
from mitigate.tasks.stories.sentences import label_sentences
from mitigate.tasks.targets import those_about
from mitigate.triples import TRIPLES

ROWS_OF = [
    (1, "train", "lawyer", "IsA", "thief", True),
    (2, "train", "nurse", "IsA", "lawyer", True),
    (3, "train", "cat", "IsA", "animal", True),
    (4, "dev", "nurse", "IsA", "thief", True),
    (5, "train", "nurse", "IsA", "stone", False),
]
CORPUS = Loaded(pl.DataFrame(ROWS_OF, schema=TRIPLES, orient="row"))


def test_triples_are_read_labelled_counted_and_measured(tmp_path: Path) -> None:
    """Three statements: the lawyer is a thief; a nurse is a lawyer, about both."""
    resource, targets = resource_of(CORPUS, ["lawyer", "nurse", "gamer"])
    left_out = ["1 valid triples of dev left out; filter.splits=all counts them too"]
    assert resource.loaded.describe(as_met([])) == left_out
    rows, counted = PartFolder(tmp_path / "rows"), PartFolder(tmp_path / "counted")
    counts = read_rows(resource, targets, rows=rows, counted=counted)
    met = as_met([counts])
    assert (met[ROWS], met[ABOUT_A_TARGET], met[STATEMENTS]) == (3, 2, 3)
    columns = labellings([Vader()], ["paper"])
    parts = PartFolder(tmp_path / "statements")
    tallied = count_statements([Vader()], columns, rows=rows, num_rows=3, statements=parts)
    both = "this person is a this person"
    assert pl.concat(parts)["masked"].to_list() == ["this person is a thief", both, both]
    table = per_target_tables(tallied, columns, targets)["sentiment"]
    assert table["prejudice"].to_list() == [50, 0, None]
    found = measure_resource(tallied, counts, targets, columns, resamples=20, facts={"data": "mine"})
    assert (found["data"], found["seed"], found["rows"], found["empty_targets"]) == ("mine", 1, 3, 1)
    assert (found["sentiment/O-"], found["empty_zero/sentiment/O-"]) == (25, pytest.approx(50 / 3))
    assert value_of(found, "sentiment/O-", "zero") == pytest.approx(50 / 3)
    stated = pl.DataFrame({"place": ["x"], "figure": ["O-"], "key": ["sentiment/O-"], "value": [17.0]})
    assert beside_the_paper(found, stated).row(0) == ("x", "O-", "sentiment/O-", 17.0, pytest.approx(50 / 3))


def test_a_resource_is_known_by_its_rows_and_statements_about_other_targets_are_left_out(tmp_path: Path) -> None:
    held, again, other = CORPUS, Loaded(CORPUS.triples.clone()), resource_of(CORPUS, splits="all")[0]
    assert resource_of(held)[0].fingerprint == resource_of(again)[0].fingerprint != other.fingerprint
    path = tmp_path / "mine.tsv"
    path.write_text("nurse\tcares\ngamer\tsits\nlawyer\tlies\n")
    loaded = load_statements(str(path))
    assert isinstance(loaded, LoadedStatements)
    resource, targets = resource_of(loaded, ["nurse", "gamer"])
    assert resource.loaded.describe(as_met([])) == ["1 statement left out, which is about none of the 2 targets"]
    assert those_about(loaded.statements, targets)[0]["statement"].to_list() == ["cares", "sits"]


def test_stories_are_measured_sentence_by_sentence() -> None:
    """Of nurse one of two sentences is negative, of lawyer none."""
    rows = [(1, "nurse", "profession", "professions", None, "p"), (2, "lawyer", "profession", "professions", None, "p")]
    stories = pl.DataFrame(rows, schema=PROMPTS, orient="row").with_columns(
        story=pl.Series(["she is a thief. she left.", "he sits. he sits. no end"])
    )
    columns = [Labelling("sentiment", "sentiment", "paper")]
    sentences = label_sentences(stories, [Vader()], most=5)
    assert sentences["sentiment"].to_list() == [-1, 0, 0, 0]
    about = stories.select("target", "category")
    found = measure_stories(stories, sentences, about, columns, fewest=3, permutations=5, resamples=20)
    assert (found["stories"], found["stories/short"], found["statements"]) == (2, 2, 4)
    assert (found["sentiment/O-"], found["sentiment/D_O-"], found["sentiment/stories-"]) == (25, 625, 50)
    assert found["distinct_sentences"] == 75
