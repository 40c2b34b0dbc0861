"""recipe=filter: what each policy drops, of the sample and of a file with odd characters; and
phrases before any tail."""

from pathlib import Path

import polars as pl
import pytest
from command import here

from mitigate.load.triples import load
from mitigate.report.scorer_reliability import measured
from mitigate.score.vader import Vader
from mitigate.tasks.labelled_statements import FORMATS
from mitigate.words.relations import comet_relations


@pytest.fixture
def filtered(tmp_path: Path, placed):
    """Runs the recipe; returns the exit status, what was printed, and the run folder."""

    def run(*overrides: str) -> tuple[int, str, Path | None]:
        status, said, told = placed("recipe=filter", *overrides)
        return status, said + told, next(iter(sorted((tmp_path / "out").glob("filter-*"))), None)

    return run


def _table(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, separator="\t", infer_schema_length=None)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of the sample filtered by policy=both."""
    outputs = tmp_path_factory.mktemp("both")
    with pytest.MonkeyPatch.context() as patch:
        assert here(patch, "recipe=filter", "policy=both", f"paths.outputs={outputs}", "tracking=none") == 0
    (folder,) = outputs.glob("filter-*")
    return folder


def test_kept_and_dropped_are_what_the_ledger_says(both: Path) -> None:
    ledger = pl.read_parquet(both / "ledger.parquet").filter("valid")
    kept, dropped = (_table(both / f"{name}.tsv") for name in ("kept", "dropped"))
    assert kept.columns == ["row", "split", "head", "relation", "tail", "weight"]
    assert kept["row"].to_list() == ledger.filter(pl.col("weight") > 0)["row"].to_list()
    assert dropped["row"].to_list() == ledger.filter(pl.col("weight") == 0)["row"].to_list()
    labels = [f"{scorer}{part}" for scorer in ("sentiment", "regard") for part in ("", "_strength")]
    assert dropped.columns[5:] == ["reason", "statement", *labels]
    assert dropped.filter(pl.col("sentiment").abs() != 1, pl.col("regard").abs() != 1).is_empty()
    assert set(dropped["split"]) == {"train"}


def test_the_datasheet_says_what_was_done(both: Path) -> None:
    sheet = (both / "README.md").read_text()
    ledger = pl.read_parquet(both / "ledger.parquet")
    train = ledger.filter(split="train")
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
    invalid = ledger.filter(~pl.col("valid")).height
    assert f"> {invalid} triples that the resource marks as not valid are in neither file." in sheet
    assert "**Demonstration.**" in sheet


def test_it_is_computed_once_and_a_damaged_file_anew(both: Path, ran) -> None:
    settings = ("recipe=filter", "policy=both", f"paths.outputs={both.parent}", "tracking=none")
    first = (both / "kept.tsv").read_bytes()
    status, said, _ = ran(*settings)
    assert (status, "nothing to do" in said) == (0, True)
    (both / "kept.tsv").write_bytes(first[:-100])
    said = ran(*settings).done
    assert (both / "kept.tsv").read_bytes() == first
    assert f"kept        {_table(both / 'kept.tsv').height:,} triples: {both / 'kept.tsv'}" in said


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_kept_can_be_read_again(filtered, tmp_path: Path, format: str) -> None:
    """Also tails with quotation marks and tabs, which a TSV file cannot have."""
    rows = [("lawyer", "IsA", 'a "kind" person'), ("nurse", "IsA", "a person\twho walks"), ("tea", "IsA", "a, or b")]
    mine = tmp_path / "mine.jsonl"
    pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").write_ndjson(mine)
    status, _, folder = filtered("policy=none", "data=triples", f"data.path={mine}", f"recipe.format={format}")
    assert status == 0
    found = load(folder / f"kept.{format}").rows
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
    assert _table(folder / "dropped.tsv").select("tail", "reason").rows() == [("a terrible person", "sentiment -1")] * 3


def test_triples_that_a_policy_adds_name_the_row_they_are_from(filtered) -> None:
    status, _, folder = filtered("policy=swap")
    assert status == 0
    kept, ledger = _table(folder / "kept.tsv"), pl.read_parquet(folder / "ledger.parquet")
    added = kept.filter(pl.col("row").is_null())
    assert added.height == ledger.filter(pl.col("row").is_null()).height > 100
    assert set(added["source_row"]) <= set(ledger["row"].drop_nulls())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["policy=rerank"],
            "policy=rerank acts after the training and drops",
        ),
        (["recipe.format=xlsx"], "unknown recipe.format 'xlsx'; allowed: "),
        (["data=sentences", "data.path=README.md"], "this recipe needs triples"),
    ],
)
def test_what_cannot_be_filtered(filtered, given: list[str], message: str) -> None:
    status, said, _ = filtered(*given)
    assert status == 2
    assert message in said


def test_eight_phrases_have_a_sentiment_of_their_own_and_no_neutral_one_has() -> None:
    relations = comet_relations()
    paper = Vader()([f"this person {relation.phrase}" for relation in relations]).label
    polar = {relation.name for relation, label in zip(relations, paper, strict=True) if label}
    assert (len(relations), len(polar)) == (34, 8)
    assert {"CapableOf", "NotCapableOf", "MotivatedByGoal", "CausesDesire", "NotDesires", "CreatedBy"} < polar
    assert not Vader()([f"this person {relation.neutral_phrase}" for relation in relations]).strength.any()
