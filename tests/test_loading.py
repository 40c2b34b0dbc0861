"""Data that a recipe does not read is told in a sentence, before anything is labelled or trained."""

from pathlib import Path

import pytest
from command import here

STATEMENTS = "target\tstatement\nlawyer\tthe lawyer is kind\nnurse\tthe nurse is late\n"
STORIES = "the nurse|||The nurse walked home. She was kind.\n"
TRIPLES = "head\trelation\ttail\tsplit\nlawyer\tIsA\tperson\ttest\n"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """What a command that is refused says."""
    for name, text in (("said.tsv", STATEMENTS), ("stories.txt", STORIES), ("triples.tsv", TRIPLES)):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("FILES", str(tmp_path))

    def tell(*command: str) -> str:
        assert here(monkeypatch, *command, f"paths.outputs={tmp_path}/runs", f"paths.cache={tmp_path}/cache") == 2
        return capsys.readouterr().err

    return tell


SAID, WRITTEN, HELD_OUT = (
    ("data=statements", "data.path=${oc.env:FILES}/said.tsv"),
    ("data=stories", "data.path=${oc.env:FILES}/stories.txt"),
    ("data=triples", "data.path=${oc.env:FILES}/triples.tsv"),
)
LEARNING = ("recipe=stories", "recipe.post_train=true", "policy=none")


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (("recipe=labels", *WRITTEN), "data=stories has stories, which recipe=stories is for; recipe=labels reads"),
        (("recipe=audit", *WRITTEN), "data=stories has stories"),
        (("recipe=template", *WRITTEN), "data=stories has stories"),
        (("recipe=template", *SAID), "this recipe needs triples to train on"),
        ((*LEARNING, *SAID), "this recipe needs triples to train on"),
        ((*LEARNING, *HELD_OUT), "the data has no training triples (by split: test 1)"),
        (("recipe=labels", "data=graph"), "data=graph is a knowledge graph, which recipe=kge is for"),
        (("recipe=audit", "data=fb15k237"), "data=fb15k237 is a knowledge graph"),
        (("recipe=filter", "data=graph"), "data=graph is a knowledge graph"),
        (("data=graph",), "data=graph is a knowledge graph, which recipe=kge is for; recipe=mitigate reads triples"),
    ],
)
def test_what_another_recipe_reads(told, command: tuple[str, ...], fault: str) -> None:
    assert fault in told(*command)


def test_labels_of_the_file_are_not_lost_beside_a_scorer_s(told, tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.tsv"
    labelled.write_text("target\tstatement\tregard\nnurse\tthe nurse cares\t-1\n")
    said = told("recipe=labels", "data=statements", f"data.path={labelled}", "data.label_column=Regard")
    assert "the data has a column regard already" in said


@pytest.mark.parametrize("texts", ["[she is kind]", "${oc.env:FILES}/said.tsv"])
def test_texts_have_no_target_that_is_masked_as_in_the_paper(told, texts: str) -> None:
    assert "texts= names none" in told("recipe=labels", f"texts={texts}", "measure.masking=paper")
