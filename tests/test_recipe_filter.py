"""recipe=filter from the command line: the sample, and a file of one's own with odd characters."""

from pathlib import Path

import polars as pl
import pytest
from command import here

from mitigate import formats
from mitigate.load.any_triples import load
from mitigate.report.proxies import measured

HEADER = ["row", "split", "head", "relation", "tail", "weight"]


@pytest.fixture
def filtered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe; returns the exit status, what was printed, and the run folder."""

    def run(*overrides: str) -> tuple[int, str, Path | None]:
        places = (f"paths.outputs={tmp_path}/outputs", "tracking=none")
        status = here(monkeypatch, "recipe=filter", *places, *overrides)
        said = capsys.readouterr()
        folders = sorted((tmp_path / "outputs").glob("filter-*"))
        return status, said.out + said.err, folders[-1] if folders else None

    return run


def _table(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, separator="\t", infer_schema_length=None)


def test_kept_and_dropped_are_what_the_ledger_says(filtered) -> None:
    status, said, folder = filtered("policy=both")
    assert status == 0
    ledger = pl.read_parquet(folder / "ledger.parquet").filter("valid")
    kept, dropped = (_table(folder / f"{name}.tsv") for name in ("kept", "dropped"))
    assert kept.columns == HEADER
    assert kept["row"].to_list() == ledger.filter(pl.col("weight") > 0)["row"].to_list()
    assert dropped["row"].to_list() == ledger.filter(pl.col("weight") == 0)["row"].to_list()
    assert dropped.columns[5:] == [
        "reason",
        "statement",
        "sentiment",
        "sentiment_strength",
        "regard",
        "regard_strength",
    ]
    assert dropped.filter(pl.col("sentiment").abs() != 1, pl.col("regard").abs() != 1).is_empty()
    assert set(dropped["split"]) == {"train"}
    assert f"kept        {kept.height:,} triples: {folder / 'kept.tsv'}" in said


def test_the_datasheet_says_what_was_done(filtered) -> None:
    _, _, folder = filtered("policy=both")
    sheet = (folder / "README.md").read_text()
    train = pl.read_parquet(folder / "ledger.parquet").filter(split="train")
    dropped = train.filter(weight=0).height
    assert f"| train | {train.height:,} | {train.height - dropped:,} | {dropped:,} | 0 |" in sheet
    relation = train.filter(relation="AtLocation")
    share = 100 * relation.filter(weight=0).height / relation.height
    assert f"| AtLocation | {relation.height:,} | {relation.filter(weight=0).height:,} | {share:.1f} |" in sheet
    about = train.filter(category="religion")
    assert f"| religion | {about.height:,} | {about.filter(pl.col('weight') > 0).height:,} |" in sheet
    precision = measured()["COMeT", "minilm"]["prejudice/precision"]
    assert f"| regard | COMeT | {precision:.2f} |" in sheet
    assert "\npython -m mitigate recipe=filter " in sheet
    invalid = pl.read_parquet(folder / "ledger.parquet").filter(~pl.col("valid")).height
    assert f"> {invalid} triples that the resource marks as not valid are in neither file." in sheet
    assert "**Demonstration.**" in sheet


def test_it_is_computed_once_and_a_damaged_file_anew(filtered) -> None:
    _, _, folder = filtered("policy=both")
    first = (folder / "kept.tsv").read_bytes()
    status, said, _ = filtered("policy=both")
    assert (status, "nothing is left to do" in said) == (0, True)
    (folder / "kept.tsv").write_bytes(first[:-100])
    assert filtered("policy=both")[0] == 0
    assert (folder / "kept.tsv").read_bytes() == first


@pytest.mark.parametrize("format", formats.FORMATS)
def test_what_is_kept_can_be_read_again(filtered, tmp_path: Path, format: str) -> None:
    """Also tails with quotation marks and tabs, which a TSV file cannot have."""
    rows = [("lawyer", "IsA", 'a "kind" person'), ("nurse", "IsA", "a person\twho walks"), ("tea", "IsA", "a, or b")]
    mine = tmp_path / "mine.jsonl"
    pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").write_ndjson(mine)
    status, _, folder = filtered("policy=none", "data=triples", f"data.path={mine}", f"recipe.format={format}")
    assert status == 0
    found = load(folder / f"kept.{format}").triples
    expected = [(*rest, tail.replace("\t", " ") if format == "tsv" else tail) for *rest, tail in rows]
    assert found.select("head", "relation", "tail").rows() == expected
    assert found["split"].to_list() == ["train"] * 3


def test_every_triple_of_a_file_without_splits_is_filtered(filtered, tmp_path: Path) -> None:
    """The main job holds a tenth of them out for test; a data set has no use for that."""
    mine = tmp_path / "mine.tsv"
    lines = [f"{head}\tIsA\ta {word} person" for head in ("lawyer", "nurse", "man") for word in ("tall", "terrible")]
    mine.write_text("head\trelation\ttail\n" + "\n".join(lines) + "\n")
    status, _, folder = filtered("policy=sentiment", "data=triples", f"data.path={mine}")
    assert status == 0
    dropped = _table(folder / "dropped.tsv")
    assert dropped["tail"].to_list() == ["a terrible person"] * 3
    assert dropped["reason"].to_list() == ["sentiment -1"] * 3


def test_what_a_policy_adds_names_the_row_it_is_from(filtered) -> None:
    status, _, folder = filtered("policy=swap")
    assert status == 0
    kept, ledger = _table(folder / "kept.tsv"), pl.read_parquet(folder / "ledger.parquet")
    added = kept.filter(pl.col("row").is_null())
    assert added.height == ledger.filter(pl.col("row").is_null()).height > 100
    assert set(added["source_row"]) <= set(ledger["row"].drop_nulls())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["policy=rerank"], "policy=rerank acts when tails are generated (policy.action=rerank) and drops no triple"),
        (["recipe.format=xlsx"], "unknown recipe.format 'xlsx'; allowed: "),
        (["data=sentences", "data.path=README.md"], "this recipe needs triples"),
    ],
)
def test_what_cannot_be_filtered_is_said(filtered, given: list[str], told: str) -> None:
    status, said, _ = filtered(*given)
    assert status == 2
    assert told in said
