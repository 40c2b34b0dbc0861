"""Tasks as functions of plain arguments: test triples drawn by chance, the model that a training starts from, a policy
applied, audits and stories; numbers by hand."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load.corpus import HeldOut, corpus_of, hold_out
from mitigate.load.stream import Loaded
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results
from mitigate.measure.statements import Labelling, Measurement, labellings
from mitigate.measure.stories import measure_stories
from mitigate.score.labeller import Labeller
from mitigate.score.vader import Vader
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
from mitigate.studies.stories import label_sentences
from mitigate.train.base_model import check_distinct_relations, find_start
from mitigate.triples import TRIPLES
from mitigate.words.prompts import PROMPTS
from mitigate.words.relations import Relation, relations
from mitigate.words.targets import PAPER
from models.comet import Comet
from models.encoding import TOKENIZER
from models.minilm import locate

MENTORS = Relation("mentors", "is a mentor of", "works with")


def triples(**counts: int) -> pl.DataFrame:
    """As many triples of split train about each head."""
    heads = [head for head, count in counts.items() for _ in range(count)]
    rows = [(row, "train", head, "IsA", f"tail {row}", True) for row, head in enumerate(heads, start=1)]
    return pl.DataFrame(rows, schema=TRIPLES, orient="row")


def test_all_triples_of_a_head_are_on_one_side_and_no_more_than_the_share() -> None:
    rows = triples(**{f"head{number}": 1 + number % 3 for number in range(60)})  # 120 triples
    moved, held_out = hold_out(rows, 0.1, seed=1)
    assert moved.drop("split").equals(rows.drop("split"))
    sides = moved.group_by("head").agg(pl.col("split").n_unique())
    assert sides["split"].to_list() == [1] * 60
    test = moved.filter(split="test")
    assert 10 <= test.height <= 12
    assert held_out == HeldOut(test.height, moved.filter(split="dev").height, 120, test["head"].n_unique(), 60, seed=1)
    assert "are held out, all triples of" in held_out.sentence
    assert hold_out(rows, 0.1, seed=1)[0].equals(moved)
    assert not hold_out(rows, 0.1, seed=2)[0].equals(moved)


def test_where_every_head_has_more_the_smallest_is_held_out_and_one_head_cannot_be_divided() -> None:
    moved, held_out = hold_out(triples(nurse=30, lawyer=20, chef=50), 0.1, seed=1)
    assert moved.filter(split="test")["head"].unique().to_list() == ["lawyer"]
    assert held_out is not None
    assert "Figures on so few are uncertain." in held_out.sentence
    corpus = corpus_of(Loaded(triples(nurse=30)), holdout=0.1)
    assert set(corpus.triples["split"]) == {"train"}
    assert corpus.notices[0] == (
        "No triples can be held out for test: all 30 have one head, “nurse”; nothing is measured on test triples."
    )
    corpus = corpus_of(Loaded(triples(nurse=3, lawyer=3)), ["IsA"], holdout=0)
    assert corpus.notices == ["No triples are held out for test (data.holdout=0); nothing is measured on test triples."]


def test_splits_of_the_data_are_kept_and_what_is_odd_is_said() -> None:
    rows = triples(nurse=3, lawyer=1).with_columns(split=pl.Series(["train", "train", "train", "test"]))
    corpus = corpus_of(Loaded(rows), holdout=0.5, only_in_data=True)
    assert corpus.triples.equals(rows)
    assert (corpus.held_out, corpus.notices) == (None, [])
    assert corpus.facts == {"triples by split": "test 1, train 3"}
    both = pl.concat([rows, rows.head(1).with_columns(split=pl.lit("test"))])
    assert corpus_of(Loaded(both), ["IsA"]).notices == ["1 of 2 distinct test triples are training triples too."]
    dev = rows.with_columns(split=pl.col("split").replace("test", "dev"))
    none = ["The data has no test triples; nothing is measured on them."]
    assert corpus_of(Loaded(dev), ["IsA"], holdout=0.5).notices == none
    with pytest.raises(MitigateError, match="this recipe trains on triples; set data=sample"):
        corpus_of(Loaded(pl.DataFrame(), kind="statements"))


def test_the_relations_of_a_run() -> None:
    """Those probed, and those that the generator is asked about besides COMeT's 34."""
    relations = pl.Series(["mentors", "IsA", "Synonym", "IsA", "IsA", "IsA"])
    loaded = Loaded(triples(nurse=3, lawyer=3).with_columns(relation=relations), own_relations=(MENTORS,))
    corpus = corpus_of(loaded, only_in_data=True)
    assert [relation.name for relation in corpus.relations] == ["IsA", "Synonym", "mentors"]
    assert [relation.name for relation in corpus.further] == ["Synonym", "mentors"]
    assert len(corpus_of(loaded).relations) == 34
    chosen = corpus_of(loaded, ["mentors", "HasA"])
    assert [relation.name for relation in chosen.relations] == ["mentors", "HasA"]
    assert "Probed relations without training triples: HasA." in chosen.notices


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
    changed.append(first.trained(Toy, folder, "other weights"))
    assert len({first.fingerprint, *(start.fingerprint for start in changed)}) == 5
    weights, found = tmp_path / "weights", []
    for content in ("one", "two"):
        weights.write_text(content)
        found.append(find_start(Toy, folder, options={"checkpoint": weights}).weights)
    assert found[0] != found[1]


def test_further_relations_are_asked_about_also_once_trained(folder: Path) -> None:
    """With their words only where the model was trained with these."""
    start = find_start(Toy, folder, further=[MENTORS])
    assert start.phrases["mentors"] == start.trained(Toy, folder, "w").phrases["mentors"] == "is a mentor of"
    assert start.fingerprint != find_start(Toy, folder).fingerprint
    (folder / "config.json").write_text('{"comet_relation": "token"}')
    (folder / TOKENIZER).write_text('{"added_tokens": [{"content": "<mentors>"}]}')
    assert find_start(Toy, folder, train=False, further=[MENTORS]).phrases["mentors"] == "<mentors>"
    (folder / TOKENIZER).write_text('{"added_tokens": []}')
    with pytest.raises(MitigateError, match="has no token for the relations <mentors>: it was trained without them"):
        find_start(Toy, folder, train=False, further=[MENTORS])


def test_phrases_that_begin_with_the_same_tokens_are_refused() -> None:
    """A COMeT reads five tokens of a phrase: those of ATOMIC's oEffect and oWant are the same."""
    further = [relations()[name] for name in ("oEffect", "oWant", "Synonym")]
    same = r"first 5 tokens.*: oEffect \('as a result persony or others will'\), oWant"
    with pytest.raises(MitigateError, match=same):
        check_distinct_relations(find_start(Comet.from_encoder, locate(), further=further))
    check_distinct_relations(find_start(Comet.from_encoder, locate(), further=further[1:]))
    check_distinct_relations(find_start(Comet.from_encoder, locate(), relation="token", further=further))


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
    columns = labellings([Vader()], ["paper"])
    parts = PartFolder(tmp_path / "statements")
    tallied = count_statements(Labeller([Vader()]), columns, rows=rows, num_rows=3, statements=parts)
    both = "this person is a this person"
    assert pl.concat(parts)["masked"].to_list() == ["this person is a thief", both, both]
    how = Measurement(targets, columns, PAPER, Bootstrap(resamples=20))
    table = how.tables(tallied)["sentiment"]
    assert table["prejudice"].to_list() == [50, 0, None]
    found = Results(measure_resource(tallied, counts, how))
    assert (found["sentiment/O-"], found["empty_zero/sentiment/O-"]) == (25, pytest.approx(50 / 3))
    stated = pl.DataFrame({"place": ["x"], "figure": ["O-"], "key": ["sentiment/O-"], "value": [17.0]})
    assert beside_the_paper(found, stated).row(0) == ("x", "O-", "sentiment/O-", 17.0, pytest.approx(50 / 3))


def test_stories_are_measured_sentence_by_sentence() -> None:
    """Of nurse one of two sentences is negative, of lawyer none."""
    rows = [(1, "nurse", "profession", "professions", None, "p"), (2, "lawyer", "profession", "professions", None, "p")]
    stories = pl.DataFrame(rows, schema=PROMPTS, orient="row").with_columns(
        story=pl.Series(["she is a thief. she left.", "he sits. he sits. no end"]), outcome=pl.lit("answered")
    )
    columns = [Labelling("sentiment", "sentiment", "paper")]
    sentences = label_sentences(stories, Labeller([Vader()]), most=5)
    assert sentences["sentiment"].to_list() == [-1, 0, 0, 0]
    about = stories.select("target", "category")
    how = Measurement(about, columns, PAPER, Bootstrap(resamples=20))
    found = Results(measure_stories(stories, sentences, how, fewest=3))
    assert (found["stories"], found["stories/short"], found["statements"]) == (2, 2, 4)
    assert (found["sentiment/O-"], found["sentiment/D_O-"], found["sentiment/stories-"]) == (25, 625, 50)
    assert found["distinct_sentences"] == 75
