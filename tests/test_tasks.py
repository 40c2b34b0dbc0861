"""Tasks as functions of plain arguments: test triples drawn by chance, the model that a training starts from, a policy
applied, audits and stories; numbers by hand."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load.corpus import hold_out
from mitigate.load.stream import Loaded
from mitigate.measure.harms import Measurement, wordings
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results
from mitigate.models.comet import Comet
from mitigate.models.stored_tensors import minilm_folder
from mitigate.score.labeller import Labeller
from mitigate.score.lexicon import Vader
from mitigate.stages import PartFolder
from mitigate.studies.audit import (
    ABOUT_A_TARGET,
    ROWS,
    STATEMENTS,
    Search,
    beside_the_paper,
    count_statements,
    measure_resource,
    read_rows,
    resource_of,
    sum_counts,
)
from mitigate.train.base_model import check_distinct_relations, find_start
from mitigate.triples import TRIPLES
from mitigate.words.relations import relations
from mitigate.words.targets import PAPER


def triples(**counts: int) -> pl.DataFrame:
    """As many triples of split train about each head."""
    heads = [head for head, count in counts.items() for _ in range(count)]
    rows = [(row, "train", head, "IsA", f"tail {row}", True) for row, head in enumerate(heads, start=1)]
    return pl.DataFrame(rows, schema=TRIPLES, orient="row")


def test_all_triples_of_a_head_are_on_one_side_and_no_more_than_the_share() -> None:
    rows = triples(**{f"head{number}": 1 + number % 3 for number in range(60)})  # 120 triples
    moved, held_out = hold_out(rows, 0.1)
    assert moved.drop("split").equals(rows.drop("split"))
    sides = moved.group_by("head").agg(pl.col("split").n_unique())
    assert sides["split"].to_list() == [1] * 60
    test = moved.filter(split="test")
    assert 10 <= test.height <= 12
    assert f"{test.height} of 120 triples" in held_out


class Toy:
    """A model whose file is one word."""

    def __init__(self, folder: Path, times: int = 1, checkpoint: Path | None = None) -> None:
        self.says = (folder / "word.txt").read_text() * times
        if times < 1:
            raise ValueError("times must be at least 1")


def saved(folder: Path, word: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "word.txt").write_text(word)
    (folder / "notes.md").write_text(str(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "a", "a")


def test_a_start_is_known_by_its_files_and_options_wherever_they_are(folder: Path, tmp_path: Path) -> None:
    """A checkpoint beside the folder counts by its content."""
    there, other = saved(tmp_path / "ab", "a"), saved(tmp_path / "b", "b")
    first = find_start(Toy, folder, options={"times": 2})
    assert first.load().says == "aa"
    assert find_start(Toy, there, options={"times": 2}).fingerprint == first.fingerprint
    changed = [find_start(Toy, folder), find_start(Toy, other, options={"times": 2})]
    changed.append(find_start(Toy, folder, relation="words", options={"times": 2}))
    changed.append(replace(first, weights="other weights"))
    assert len({first.fingerprint, *(start.fingerprint for start in changed)}) == 5


def test_phrases_that_begin_with_the_same_tokens_are_refused() -> None:
    """A COMeT reads five tokens of a phrase: those of ATOMIC's oEffect and oWant are the same."""
    further = [relations()[name] for name in ("oEffect", "oWant", "Synonym")]
    same = r"first 5 tokens.*: oEffect \('as a result persony or others will'\), oWant"
    with pytest.raises(MitigateError, match=same):
        check_distinct_relations(find_start(Comet.from_encoder, minilm_folder(), further=further))
    check_distinct_relations(find_start(Comet.from_encoder, minilm_folder(), further=further[1:]))
    check_distinct_relations(find_start(Comet.from_encoder, minilm_folder(), relation="token", further=further))


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
    rows, counted = PartFolder(tmp_path / "rows"), PartFolder(tmp_path / "counted")
    counts = read_rows(resource, Search(targets), rows=rows, counted=counted)
    met = sum_counts([counts])
    left_out = "1 row left out: valid triples of other splits; filter.splits=all counts them too"
    assert left_out in resource.loaded.describe(met)
    assert (met[ROWS], met[ABOUT_A_TARGET], met[STATEMENTS]) == (3, 2, 3)
    columns = wordings(["sentiment"], ["paper"])
    parts = PartFolder(tmp_path / "statements")
    tallied = count_statements(Labeller([Vader()]), columns, rows=rows, num_rows=3, statements=parts)
    both = "this person is a this person"
    assert pl.concat(parts)["masked"].to_list() == ["this person is a thief", both, both]
    how = Measurement(targets, columns, PAPER, Bootstrap(resamples=20))
    table = how.tables(tallied)["sentiment"]
    assert table["prejudice"].to_list() == [50, 0, None]
    found = Results(measure_resource(tallied, counts, how))
    assert found["sentiment/O-"] == 25
    stated = pl.DataFrame({"place": ["x"], "figure": ["O-"], "key": ["sentiment/O-"], "value": [17.0]})
    assert beside_the_paper(found, stated).row(0) == ("x", "O-", "sentiment/O-", 17.0, 25)
