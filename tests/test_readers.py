"""Data that a recipe does not read."""

import pytest
from command import here

FILES = {
    "statements": "target\tstatement\nlawyer\tthe lawyer is kind\nnurse\tthe nurse is late\n",
    "stories": "the nurse|||The nurse walked home. She was kind.\n",
    "triples": "head\trelation\ttail\tsplit\nlawyer\tIsA\tperson\ttest\n",
}
TRAINING = "recipe=stories recipe.post_train=true policy=none"


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("recipe=labels data=stories", "data=stories is for recipe=stories, and recipe=labels reads"),
        (f"{TRAINING} data=statements", "the data has no triples, and this recipe trains on triples"),
        (f"{TRAINING} data=triples", "the data has no training triples (by split: test 1)"),
        ("recipe=labels data=graph", "data=graph is for recipe=kge, and recipe="),
        ("data=graph", "data=graph is for recipe=kge, and recipe=mitigate reads triples"),
        ("recipe=labels data=statements data.label_column=Regard", "the table already has a column 'regard'"),
    ],
)
def test_data_of_another_recipe_is_refused(command: str, fault: str, tmp_path, monkeypatch, capsys) -> None:
    """Before anything is labelled or trained."""
    arguments = [f"paths.outputs={tmp_path}/runs", f"paths.cache={tmp_path}/cache", *command.split()]
    for name, text in FILES.items():
        path = tmp_path / f"{name}.tsv"
        path.write_text("target\tstatement\tregard\nnurse\tshe cares\t-1\n" if "label_column" in command else text)
        arguments += [f"data.path={path}"] * (f"data={name}" in arguments)
    assert here(monkeypatch, *arguments) == 2
    assert fault in capsys.readouterr().err
