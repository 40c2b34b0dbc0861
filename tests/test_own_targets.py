"""A study of targets of one's own through the recipes: the same text gets the same label wherever it is asked, and own
targets count in every table."""

from pathlib import Path

import polars as pl
import pytest
from command import UNDRAWN, here, metrics_of

from mitigate.finished import open_run
from mitigate.load.targets import list_of_runs
from mitigate.words.targets import choose_targets, list_of

TARGETS = """target,category,forms,kind
deaf person,disability,the deaf; signer,people
non-binary person,gender,enby,people
roma,origin,,
lawyer,,,
laywer,,,
"""
NAMES = ("deaf person", "non-binary person", "roma", "lawyer", "laywer")
FORMS = {
    "deaf person": "deaf person",
    "Deaf people": "deaf person",
    "the deaf": "deaf person",
    "nonbinary people": "non-binary person",
    "enbies": "non-binary person",
    "a roma": "roma",
}
TRIPLES = [(form, "CapableOf", "fail .") for form in (*FORMS, "dog")] + [("nurse", "IsA", "person")]
SAID = [f"{form} is capable of fail ." for form in FORMS]
MASKED = ["this person is capable of fail ."] * 5 + ["a this person is capable of fail ."]
SMALL = [
    *("probe.new_targets=true", "probe.relations=[CapableOf]", "probe.max_length=4", "probe.beams=2", "probe.top=2"),
    *("score.regard=ngram", "score.plausibility=null", "measure.resamples=20", "tracking=none"),
    *("trainer.max_steps=2", "trainer.batch_size=4"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the targets, and a tiny ConceptNet."""
    place = tmp_path_factory.mktemp("study")
    (place / "own.csv").write_text(TARGETS)
    (place / "train100k.txt").write_text("".join(f"{relation}\t{head}\t{tail}\n" for head, relation, tail in TRIPLES))
    for name in ("dev1.txt", "dev2.txt", "test.txt"):
        (place / name).write_text("IsA\tjudge\tperson\t1\nIsA\tdeaf person\tperson\t1\n")
    (place / "statements.tsv").write_text("".join(f"{form}\t{said}\n" for form, said in zip(FORMS, SAID, strict=True)))
    (place / "sentences.txt").write_text("".join(f"{said}\n" for said in SAID))
    lines = ["head\trelation\ttail\n", *("\t".join(triple) + "\n" for triple in TRIPLES[:7])]
    (place / "triples.tsv").write_text("".join(lines))
    return place


@pytest.fixture(scope="module")
def run(place: Path):
    """Runs a recipe about the own targets; returns what was printed, and the run folder."""

    def run(*overrides: str, name: str) -> Path:
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(*UNDRAWN)
            paths = (f"paths.outputs={place}/{name}", f"paths.cache={place}/cache", f"probe.targets={place}/own.csv")
            assert here(monkeypatch, *SMALL, *paths, *overrides) == 0
        (folder,) = (place / name).glob("[!.]*")
        return folder

    return run


@pytest.fixture(scope="module")
def main_job(run, place: Path) -> Path:
    return run("policy=both_targets", "data=cn100k", f"data.root={place}", name="main")


def labels(table: pl.DataFrame) -> list[tuple]:
    """Masked text and labels, of the texts in SAID."""
    rows = table.filter(pl.col("statement").str.to_lowercase().is_in([said.lower() for said in SAID]))
    return rows.select("masked", "sentiment", "sentiment_strength", "regard", "regard_strength").rows()


def test_a_text_gets_the_same_label_in_every_recipe(main_job, run, place) -> None:
    """Recipes run as wholes, which takes seconds, since each reads and masks in its own place."""
    expected = labels(pl.read_parquet(main_job / "score.parquet"))
    assert [row[0] for row in expected] == MASKED
    of_statements = ("data=statements", f"data.path={place}/statements.tsv")
    of_sentences = ("data=sentences", f"data.path={place}/sentences.txt", "measure.match=contains")
    of_triples = ("data=triples", f"data.path={place}/triples.tsv")
    jobs = [("labels", of_statements), ("audit", of_statements), ("audit", of_sentences)]
    jobs += [("labels", of_triples), ("audit", of_triples)]
    for number, (recipe, data) in enumerate(jobs):
        folder = run(f"recipe={recipe}", *data, name=f"{recipe}{number}")
        table = pl.read_parquet(folder / ("labels.parquet" if recipe == "labels" else "statements/*.parquet"))
        assert labels(table) == expected, (recipe, data)
    assert table["target"].to_list() == list(FORMS.values())


def test_own_targets_are_in_scope_in_every_table_and_in_a_file_that_can_be_read_again(main_job, place) -> None:
    ledger = pl.read_parquet(main_job / "ledger.parquet").filter(split="train")
    expected = [*FORMS.values(), None, "nurse"]
    assert ledger["target"].to_list() == expected
    assert ledger["reason"].str.contains("outside the scope").to_list() == [target is None for target in expected]
    tables = main_job / "tables"
    assert set(pl.read_csv(tables / "ledger_by_target.csv")["target"]) == {*FORMS.values(), "nurse"}
    about = pl.read_csv(tables / "targets_sentiment.csv")
    categories = ["disability", "gender", "origin", "profession", "own"]
    assert dict(about.select("target", "category").iter_rows()) == dict(zip(NAMES, categories, strict=True))
    assert about["statements"].to_list() == [2] * 5
    metrics = metrics_of(main_job)
    assert {"NSM/disability", "NSM/gender", "NSM/origin", "NSM/profession", "NSM/own"} <= set(metrics)
    assert choose_targets(main_job / "tables" / "targets.csv").equals(choose_targets(place / "own.csv"))
    assert list_of_runs([open_run(main_job)]) == list_of(place / "own.csv")
