"""recipe=labels from the command line: a file of one's own, the sample's triples, and texts given outright."""

from pathlib import Path

import polars as pl
import pytest
from command import here

from mitigate.label_cache import LabelStore
from mitigate.score.vader import Vader
from mitigate.tasks.counts import count_labels
from mitigate.tasks.label import label_statements

STATEMENTS = [
    ("lawyer", "the lawyer is a thief"),
    ("nurse", "this nurse is not capable of kill"),
    ("lawyer", "the lawyer is a thief"),
    ("gamer", "a gamer is located at house"),
]


@pytest.fixture
def labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe; returns the exit status and what was printed."""

    def run(*overrides: str) -> tuple[int, str, str]:
        places = (f"paths.outputs={tmp_path}/outputs", f"paths.cache={tmp_path}/cache", "tracking=none")
        status = here(monkeypatch, "recipe=labels", *places, *overrides)
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"{target}\t{statement}\n" for target, statement in STATEMENTS))
    return path


def test_a_file_of_statements_is_labelled_in_its_order(labels, mine: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    status, said, _ = labels("data=statements", f"data.path={mine}", f"data.output={output}", "score.extra=[keyword]")
    assert status == 0
    table = pl.read_parquet(output)
    assert table.select("target", "statement").rows() == STATEMENTS
    assert table["masked"].to_list()[:2] == ["the this person is a thief", "this this person is not capable of kill"]
    assert table.columns == [
        *("row", "target", "category", "statement", "masked"),
        *(f"{scorer}{part}" for scorer in ("sentiment", "regard", "keyword") for part in ("", "_strength", "_words")),
    ]
    assert table["sentiment"].to_list() == [-1, 1, -1, 0]  # "not" turns "kill", and "capable" praises
    assert table["sentiment_words"].to_list() == ["thief -2.4", "capable +1.6, kill -3.7", "thief -2.4", None]
    assert table["regard"][0] == table["regard"][2] == -1
    assert table["regard_words"][0].startswith("thief -")
    assert table["regard"][3] == 0
    assert table["regard_words"][3] is None
    assert "4 rows, 3 distinct texts once masked" in said


def test_the_output_is_written_again_from_a_finished_run_and_never_by_a_dry_one(labels, mine, tmp_path: Path) -> None:
    arguments = ("data=statements", f"data.path={mine}", f"data.output={tmp_path / 'out.parquet'}")
    assert labels(*arguments)[0] == 0
    (tmp_path / "out.parquet").unlink()
    labels(*arguments, "dry_run=true")
    assert not (tmp_path / "out.parquet").exists()
    _, said, _ = labels(*arguments)
    assert "nothing is left to do" in said
    assert pl.read_parquet(tmp_path / "out.parquet").height == 4
    assert len(list((tmp_path / "outputs").iterdir())) == 1


def test_triples_are_labelled_in_both_wordings(tmp_path: Path) -> None:
    triples = pl.DataFrame({"head": ["lawyer", "lawyer"], "relation": ["CapableOf", "IsA"], "tail": ["read", "thief"]})
    table = label_statements(triples, [Vader()], explain=True, cache=LabelStore(tmp_path))
    assert table["masked_neutral"].to_list() == ["this person is able to read", "this person is a thief"]
    assert table.select("sentiment", "sentiment_neutral").rows() == [(1, 0), (-1, -1)]
    assert table["sentiment_words"].to_list() == ["capable +1.6", "thief -2.4"]  # of the paper's wording
    assert count_labels(table) == {
        **{"rows": 2, "distinct": 2},
        **{"sentiment/prejudice": 1, "sentiment/neutral": 0, "sentiment/favouritism": 1},
        **{"sentiment_neutral/prejudice": 1, "sentiment_neutral/neutral": 1, "sentiment_neutral/favouritism": 0},
    }


def test_texts_given_outright_are_printed_and_leave_no_run(labels, tmp_path: Path) -> None:
    status, said, _ = labels('texts=["the lawyer is a thief", "a house"]')
    assert status == 0
    lines = said.splitlines()
    assert lines[0] == "the lawyer is a thief  (the this person is a thief)"
    assert lines[1].split() == ["sentiment", "prejudice", "-0.53", "thief", "-2.4"]
    assert lines[2].split()[:2] == ["regard", "prejudice"]
    assert lines[3:5] == ["a house", "  sentiment neutral      +0.00"]
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data=statements"], "data=statements needs a file: give data.path=FILE.tsv"),
        (["data=statements", "data.path=absent.tsv"], "there is no file absent.tsv"),
        (["data.output=out.csv"], "data.output=out.csv: labels are written as Parquet"),
        (["score.extra=[keywords]"], "unknown score.extra 'keywords'; allowed: vader, minilm, ngram, bert, keyword"),
        (["score.regard=berd"], "unknown score.regard 'berd'; allowed: vader, minilm"),
        (["score.extra=[keyword]", "score.keyword.dic=no.dic"], "score.keyword.dic=no.dic cannot be read"),
        (["measure.masking=words"], "unknown measure.masking 'words'; allowed: token, paper"),
    ],
)
def test_faults_are_told_in_a_sentence(labels, overrides: list[str], message: str) -> None:
    status, _, complaint = labels(*overrides)
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
