"""One reader of fields: a quote, a null, a number and a list mean the same in triples, statements, labels and texts."""

import gzip
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load import statements as files
from mitigate.load import triples as any_triples
from mitigate.load.sentences import load_texts as texts
from mitigate.load.triples import read_relations
from mitigate.tasks.audit.read import repeats
from mitigate.words.english import not_english

QUOTED = [
    ('"nurse"', "nurse"),
    ('"win the ""big"" case"', 'win the "big" case'),
    ('so-called "holy"', 'so-called "holy"'),
    ('"Lawyer" is a word', '"Lawyer" is a word'),
    ("it's", "it's"),
]


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
@pytest.mark.parametrize(("written", "read"), [*QUOTED, ('"a\nb"', "a\nb"), ('"x{0}y"', "x{0}y")])
def test_quotes_mean_the_same_everywhere(written: str, read: str, separator: str, tmp_path: Path) -> None:
    written, read = written.format(separator), read.format(separator)
    ending = "tsv" if separator == "\t" else "csv"

    def saved(*rows: tuple[str, ...]) -> str:
        path = tmp_path / f"a.{ending}"
        path.write_text("".join(separator.join(row) + "\n" for row in rows))
        return str(path)

    triples = any_triples.load(saved(("head", "relation", "tail"), ("x", "IsA", written), ("y", "IsA", "z"))).rows
    assert triples["tail"].to_list() == [read.lower(), "z"]
    assert triples["row"].to_list() == [2, 3 + read.count("\n")]
    given = files.load(saved(("target", "statement", "mine"), ("nurse", written, '"-1"')), label_column="mine")
    assert given.rows.select("statement", "mine").rows() == [(read, -1)]
    assert texts(saved(("id", "text"), ("1", written))).rows["statement"].to_list() == [read]
    (relation,) = read_relations(Path(saved(("relation", "phrase"), ("a", written))))
    assert relation.phrase == " ".join(read.split())


GOOD = '{"head": "nurse", "relation": "IsA", "tail": "x"}'
BAD = {
    "NaN": '{"head": "nurse", "relation": "IsA", "tail": NaN}',
    "a list": '{"head": "nurse", "relation": "IsA", "tail": ["x"]}',
    "null": '{"head": "nurse", "relation": "IsA", "tail": null}',
    "nothing": '{"head": "nurse", "relation": "IsA"}',
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_what_is_no_text_is_a_bad_line_of_json(line: str, tmp_path: Path) -> None:
    for name, content in (("a.jsonl", f"{GOOD}\n{line}\n"), ("a.json", f"[{GOOD},\n{line}]")):
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(MitigateError, match=f"1 bad line:\n  .*{name}:2: "):
            _ = any_triples.load(str(path)).rows
        assert any_triples.load(str(path), "skip").rows.height == 1


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pl.Series([float("nan"), 1.5, 2.0]), ":1: a blank field"),
        (pl.Series([["a"], None, []]), r"the column tail is List\(String\), expected texts"),
        (pl.Series(["2024-01-01", None, None]).str.to_date(), "tail is Date, expected texts"),
    ],
)
def test_what_is_no_text_is_a_bad_row_of_parquet(column: pl.Series, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"head": "nurse", "relation": "IsA", "tail": column}).write_parquet(path)
    with pytest.raises(MitigateError, match=rf"a.parquet.*{told}"):
        _ = any_triples.load(str(path)).rows


def test_numbers_and_categories_are_texts(tmp_path: Path) -> None:
    frame = pl.DataFrame({"head": ["nurse"], "relation": ["HasA"], "tail": [2]})
    frame.cast({"head": pl.Categorical}).write_parquet(tmp_path / "a.parquet")
    frame.write_ndjson(tmp_path / "a.jsonl")
    for name in ("a.parquet", "a.jsonl"):
        assert any_triples.load(str(tmp_path / name)).rows["tail"].to_list() == ["2"]


def test_repeated_statements_are_counted() -> None:
    rows = {"row": [1, 2, 3, 4], "target": ["nurse", "nurse", None, "lawyer"], "statement": ["a", "a", "a", "a"]}
    frame = pl.DataFrame(rows)
    assert repeats([frame]) == 1
    assert repeats([frame, frame.with_columns(row=pl.col("row") + 4)]) == 4
    assert repeats([]) == 0


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_the_encoding_is_named_with_the_command_that_converts_also_where_lines_may_be_left_out(name, tmp_path) -> None:
    """Leaving such lines out would leave out those with accents."""
    path, content = tmp_path / name, "head,relation,tail\nnurse,IsA,person\ncafé owner,AtLocation,café\n"
    packed = gzip.compress if name.endswith("gz") else bytes
    path.write_bytes(packed(content.encode("cp1252")))
    for on_bad_line in ("error", "skip"):
        with pytest.raises(MitigateError) as error:
            _ = any_triples.load(str(path), on_bad_line).rows
        assert f"{name}:3: not UTF-8; the file seems to be in CP1252. Convert it: " in str(error.value)
        assert " iconv -f CP1252 -t UTF-8 " in str(error.value)
        assert "> a-utf8.csv, look at" in str(error.value)
    path.write_bytes(packed(content.encode()))
    assert any_triples.load(str(path)).rows.height == 2


ENGLISH = ["Nurses die young.", "She walks to work.", "lawyer lies", "a café", "No, los angeles is in the west."]
OTHER = ["Die Krankenschwester ist dumm und faul.", "L'avocat est un voleur et un menteur.", "护士很懒。"]


def test_texts_in_other_languages_are_announced() -> None:
    assert not_english(pl.Series(ENGLISH)) == not_english(pl.Series([], dtype=pl.String)) == []
    assert not_english(pl.Series(ENGLISH * 20 + OTHER)) == []  # a few
    (said,) = not_english(pl.Series(ENGLISH + OTHER))
    assert said.startswith(
        "3 of the first 8 texts do not look English, such as 'Die Krankenschwester ist dumm und faul.'"
    )
