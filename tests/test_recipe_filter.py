"""recipe=filter: what each policy drops, of the sample and of a file with odd characters; and
phrases before any tail."""

from pathlib import Path

import polars as pl
import pytest
from command import here

from mitigate.load.triples import load
from mitigate.score.lexicon import Vader
from mitigate.stages import FORMATS
from mitigate.words.relations import comet_relations


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


def test_the_files_and_the_datasheet_are_what_the_ledger_says(both: Path) -> None:
    everything, sheet = pl.read_parquet(both / "ledger.parquet"), (both / "README.md").read_text()
    ledger, is_dropped = everything.filter("valid"), pl.col("weight") == 0
    kept, dropped = (_table(both / f"{name}.tsv") for name in ("kept", "dropped"))
    assert kept.columns == ["row", "split", "head", "relation", "tail", "weight"]
    assert kept["row"].to_list() == ledger.filter(~is_dropped)["row"].to_list()
    assert dropped["row"].to_list() == ledger.filter(is_dropped)["row"].to_list()
    labels = [f"{scorer}{part}" for scorer in ("sentiment", "regard") for part in ("", "_strength")]
    assert dropped.columns[5:] == ["reason", "statement", *labels]
    assert dropped.filter(pl.col("sentiment").abs() != 1, pl.col("regard").abs() != 1).is_empty()
    assert set(dropped["split"]) == {"train"}
    train = everything.filter(split="train")
    relation, about = train.filter(relation="AtLocation"), train.filter(category="religion")
    lost = relation.filter(is_dropped).height
    counts = f"{relation.height} | {relation.height - lost} | {lost} | 0 | {100 * lost / relation.height:.1f}"
    for line in (
        f"| train | {train.height:,} | {train.height - dropped.height:,} | {dropped.height:,} | 0 |",
        f"| AtLocation | {counts}",
        f"| religion | {about.height:,} | {about.filter(~is_dropped).height:,} |",
        "| regard | COMeT | 0.76 |",  # data/agreement_measured.csv
        "\n    python -m mitigate recipe=filter ",
        f"> {everything.height - ledger.height} triples marked as not valid by the resource: in neither file.",
        "**Demonstration.**",
    ):
        assert line in sheet


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
def test_a_file_is_filtered_whole_and_what_is_kept_can_be_read_again(placed, tmp_path: Path, format: str) -> None:
    """Also tails with quotation marks and tabs, which a TSV file cannot have. The main job holds a tenth of the triples
    out for test; a data set has no use for that."""
    rows = [("lawyer", "IsA", 'a "kind" person'), ("nurse", "IsA", "a person\twho walks"), ("tea", "IsA", "a, or b")]
    bad, mine = ("man", "IsA", "a terrible person"), tmp_path / "mine.jsonl"
    pl.DataFrame([*rows, bad], schema=["head", "relation", "tail"], orient="row").write_ndjson(mine)
    settings = ("recipe=filter", "data=triples", f"data.path={mine}", f"recipe.format={format}", "policy=regard")
    assert placed(*settings).done
    (folder,) = (tmp_path / "out").glob("filter-*")
    kept, dropped = (load(folder / f"{name}.{format}").rows for name in ("kept", "dropped"))
    expected = [(*rest, tail.replace("\t", " ") if format == "tsv" else tail) for *rest, tail in rows]
    assert kept.select("split", "head", "relation", "tail").rows() == [("train", *row) for row in expected]
    assert dropped.select("head", "relation", "tail").rows() == [bad]


def test_eight_phrases_have_a_sentiment_of_their_own_and_no_neutral_one_has() -> None:
    relations = comet_relations()
    paper = Vader()([f"this person {relation.phrase}" for relation in relations]).label
    polar = {relation.name for relation, label in zip(relations, paper, strict=True) if label}
    assert (len(relations), len(polar)) == (34, 8)
    assert {"CapableOf", "NotCapableOf", "MotivatedByGoal", "CausesDesire", "NotDesires", "CreatedBy"} < polar
    assert not Vader()([f"this person {relation.neutral_phrase}" for relation in relations]).strength.any()
