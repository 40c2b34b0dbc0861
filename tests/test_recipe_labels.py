"""recipe=labels from the command line: a file of one's own, the sample's triples, and texts given outright."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.measure.results import Results
from mitigate.recipes.labels import count_labels
from mitigate.score.labeller import label_statements
from mitigate.score.labels import LabelStore
from mitigate.score.lexicon import Vader

STATEMENTS = [
    ("lawyer", "the lawyer is a thief"),
    ("nurse", "this nurse is not capable of kill"),
    ("lawyer", "the lawyer is a thief"),
    ("gamer", "a gamer is located at house"),
]


@pytest.fixture
def labels(placed):
    return lambda *overrides: placed("recipe=labels", *overrides)


def test_a_file_of_statements_is_labelled_in_its_order(labels, tmp_path: Path) -> None:
    """The output is written again from a finished run, and never by a dry one."""
    mine, output = tmp_path / "mine.tsv", tmp_path / "out.parquet"
    mine.write_text("".join(f"{target}\t{statement}\n" for target, statement in STATEMENTS))
    settings = ("data=statements", f"data.path={mine}", f"data.output={output}", "score.extra=[keyword]")
    said = labels(*settings).done
    table = pl.read_parquet(output)
    assert table.select("target", "statement").rows() == STATEMENTS
    assert table["masked"].unique(maintain_order=True).to_list() == [
        "the this person is a thief",
        "this this person is not capable of kill",
        "a this person is located at house",  # a target that the file names, as in an audit of it
    ]
    assert "  note: 1 target not in the paper's list: gamer\n" in said
    assert table.columns == [
        *("row", "target", "category", "statement", "masked"),
        *(f"{scorer}{part}" for scorer in ("sentiment", "regard", "keyword") for part in ("", "_strength", "_words")),
        *(f"{scorer}_identity" for scorer in ("sentiment", "regard", "keyword")),
    ]
    assert table["sentiment"].to_list() == [-1, 1, -1, 0]  # "not" turns "kill", and "capable" praises
    assert table["sentiment_words"].to_list() == ["thief -0.53", "not +0.85, kill +0.66", "thief -0.53", None]
    assert table["regard"].gather([0, 2, 3]).to_list() == [-1, -1, 0]
    assert (table["regard_words"][0][:7], table["regard_words"][3]) == ("thief -", None)
    assert "  2 (50.0%)          1 (25.0%)          1 (25.0%)\n" in said
    assert "4 rows, 3 distinct texts once masked" in said
    assert "nothing to do" in labels(*settings).stdout
    assert pl.read_parquet(output).height == 4
    assert len(list((tmp_path / "out").glob("[!.]*"))) == 1


def test_triples_are_labelled_in_both_wordings(tmp_path: Path) -> None:
    triples = pl.DataFrame({"head": ["lawyer", "lawyer"], "relation": ["CapableOf", "IsA"], "tail": ["read", "thief"]})
    table = label_statements(triples, [Vader()], explain=True, cache=LabelStore(tmp_path))
    assert table["masked_neutral"].to_list() == ["this person is able to read", "this person is a thief"]
    assert table.select("sentiment", "sentiment_neutral").rows() == [(1, 0), (-1, -1)]
    assert table["sentiment_words"].to_list() == ["capable +0.38", "thief -0.53"]  # of the paper's wording
    assert Results(count_labels(table)).flat == {
        **{"rows": 2, "distinct": 2},
        **{"sentiment/prejudice": 1, "sentiment/neutral": 0, "sentiment/favouritism": 1},
        **{"sentiment_neutral/prejudice": 1, "sentiment_neutral/neutral": 1, "sentiment_neutral/favouritism": 0},
    }


def test_texts_given_outright_are_printed_and_leave_no_run(labels, tmp_path: Path) -> None:
    said = labels('texts=["the lawyer is a thief", "a house"]').done
    lines = said.splitlines()
    assert lines[0] == "the lawyer is a thief  (the this person is a thief)"
    assert lines[1].split() == ["sentiment", "prejudice", "-0.53", "thief", "-0.53"]
    assert lines[2].split()[:2] == ["regard", "prejudice"]
    assert lines[3:5] == ["a house", "  sentiment neutral      +0.00"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data=statements"], "data=statements needs data.path, which is not set; set data.path=FILE.tsv"),
        (["data.output=out.xls"], "out.xls: unknown file ending; allowed: .parquet, .csv, .tsv, .jsonl"),
        (["texts=@absent.txt"], "texts=@absent.txt: no such file: absent.txt; to label a text that begins with @"),
        (["texts=absent.csv"], "no such file: absent.csv"),
        (["texts=absent.cvs"], "texts=absent.cvs seems to be a file: write texts=@absent.cvs (a text a line)"),
        (["texts={file}"], "texts={file} seems to be a file"),
        (["score.extra=[keyword]", "score.scorers.keyword.dic=no.dic"], "score.scorers.keyword.dic=no.dic is not a LI"),
        (["texts=hello", "score.regard=null", "data.output={file}/out.csv"], "{file}/out.csv (File exists); choose"),
        (["texts="], "texts is empty; give texts=[one text,another]"),
        (["data=triples", "data.path=a.csv", "data.output=./a.csv"], "data.output=a.csv is the file that is labelled"),
        (["data=triples", "data.path=a.csv", "texts=hello"], "data.path=a.csv both name what is labelled; leave one"),
    ],
)
def test_each_fault_is_a_sentence(labels, overrides: list[str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert message.format(file=file) in labels(*(part.format(file=file) for part in overrides)).refused


def test_texts_of_a_file_leave_a_run(labels, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("it's a thief\n\na house, too\n")
    given = (f"texts=@{tmp_path / 'mine.txt'}", "score.regard=null")
    said = labels(*given, f"data.output={tmp_path / 'out.csv'}").done
    assert "it's a thief\n  sentiment prejudice" in said
    assert "1 empty text left out" in said
    assert pl.read_csv(tmp_path / "out.csv").select("row", "sentiment").rows() == [(1, -1), (3, 0)]
    assert "nothing to do" in labels(*given).stdout


def test_a_label_that_depends_on_an_identity_word_is_marked(labels, tmp_path) -> None:
    texts = tmp_path / "mine.txt"
    texts.write_text("an overweight person is reading\nthe house\n")
    settings = (f"texts={texts}", "score.regard=null")
    lines = labels(*settings).stdout.splitlines()
    at = lines.index("an overweight person is reading")
    assert lines[at + 1].split()[:3] == ["sentiment", "prejudice", "-0.36"]
    assert lines[at + 1].endswith("overweight -0.36  depends on: overweight person")
    assert "depends on:" not in labels(*settings, "probe.targets=[overweight person]").stdout
