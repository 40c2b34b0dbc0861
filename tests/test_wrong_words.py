"""What the command says of names it does not know, of values it cannot read and of classes it cannot build: a sentence
each, with what may have been meant."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import recipe_is
from hydra.errors import MissingConfigException
from omegaconf import OmegaConf

from mitigate.cli import check_gone, in_words, readable
from mitigate.errors import MitigateError
from mitigate.files import rows_of
from mitigate.recipes.config import Config, build

OWN = """
class Words:
    def __init__(self, words, least=1):
        if not words:
            raise KeyError("no words")
        self.words = words
"""


@pytest.fixture
def told(tmp_path: Path, ran) -> Callable[..., str]:
    """What the command writes to standard error, once it is done without having begun a run."""

    def run(*arguments: str) -> str:
        outputs = tmp_path / "out"
        ended = ran(*arguments, f"paths.outputs={outputs}", "tracking=none")
        assert not list(outputs.glob("[!.]*"))
        assert "Error executing job" not in ended.stderr
        return ended.refused

    return run


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("recipe=labels data=statments", "unknown data 'statments' (did you mean statements?); allowed: atomic, "),
        ("policy", "'policy' cannot be read; write KEY=VALUE, with blanks, commas and braces in quotes"),
        ("polcy=both", "unknown setting 'polcy' (did you mean policy?); allowed: seed, train, "),
        ("data.path=x.tsv", "data.path (file of the data) needs data=atomic or "),
        ("recipe=labels texts=[one, two", "texts=[one, is a list without its closing bracket: the shell split it"),
        ("probe.relations=CapabelOf", "unknown relation 'CapabelOf' (did you mean CapableOf?); allowed: AtLocation, "),
        ("probe.targets=[Germens]", "germens: did you mean german? probe.new_targets=true keeps it"),
        ("model=hf", "model.base must be set: model.base=... (pretrained model: a folder, a name on"),
        ("optimized_metric=neutral_template/NVM", "optimized_metric 'neutral_template/NVM'; did you mean neutral_t"),
        ("score.regard=minlm", "unknown score.regard 'minlm' (did you mean minilm?); allowed: vader, minilm, "),
        ("+model.load.dropuot=0.2", "model.load: got an unexpected keyword argument 'dropuot'"),
        ("+score.scorers.mine=5 score.extra=[mine]", "score.scorers.mine must be a class and its arguments, such as"),
        ("-m recipe=mitigate,profile", "recipe=profile is not in version 1.0; use recipe=ask"),
    ],
)
def test_wrong_words_are_named_before_anything_is_run(command: str, message: str, told) -> None:
    assert message in told(*command.split())


def test_a_single_word_is_a_list_of_one_and_new_targets_are_kept(monkeypatch, tmp_path: Path, ran) -> None:
    seen: list[Config] = []
    recipe_is(monkeypatch, seen.append)
    words = ("probe.relations=CapableOf", "score.extra=keyword", "probe.targets=own.csv", f"paths.outputs={tmp_path}")
    assert ran(*words, "tracking=none").done == ""
    (config,) = seen
    assert (config.probe.relations, config.score.extra) == (["CapableOf"], ["keyword"])
    assert config.probe.targets == "own.csv"  # may be a text
    own = ran("probe.targets=[Germens]", "probe.new_targets=true", f"paths.outputs={tmp_path}", "tracking=none")
    assert (own.done, seen[1].probed_targets()) == ("", ["Germens"])


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("absent.Words", {}, "mine._target_=absent.Words cannot be imported (ModuleNotFoundError: No module"),
        ("own.Words", {}, "mine: own.Words fails with TypeError: Words.__init__() missing 1 req"),
        ("own.Words", {"words": []}, "mine: own.Words fails with KeyError: 'no words' (own.py, line 5)"),
    ],
)
def test_a_class_of_ones_own_that_cannot_be_built(
    name: str, more: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    with pytest.raises(MitigateError) as error:
        build(OmegaConf.create({"_target_": name, **more}), "mine")
    assert message in str(error.value)
    assert capfd.readouterr().err == ""
    assert build(OmegaConf.create({"_target_": "own.Words", "words": ["a"], "measures": "regard"})).words == ["a"]


@pytest.mark.parametrize("row", rows_of("gone.csv"), ids=lambda row: row["name"])
def test_what_is_gone_is_refused_in_a_sentence(row: dict[str, str]) -> None:
    name, instead = row["name"], row["instead"] or "version 0.2.0 (git commit 368c7b80)"
    for argument in [name, f"+{name}"] if "=" in name else [f"{name}=3", f"{name}.weight=3", f"~{name}"]:
        with pytest.raises(MitigateError, match=rf"^{re.escape(f'{name} is not in version 1.0; use {instead}')}$"):
            check_gone(["-m", "seed=1", argument])
    check_gone(["recipe=profiles", "tokens_of=3", "texts=[recipe=profile]", "data.path=profile"])


LAUNCHER = "hydra/launcher"
MISSING = [
    ("policy/mine", "policy/non", "none", "policy/mine.yaml: unknown policy 'non' (did you mean none?); allowed: none"),
    (f"{LAUNCHER}/slurm", f"{LAUNCHER}/submitit_slurm", "basic", "needs more packages: pip install 'mitigate[slurm]'"),
    ("config", f"{LAUNCHER}/joblib", "basic", "this needs more packages: pip install 'mitigate[joblib]'"),
]


def test_errors_of_hydra_and_yaml_are_a_sentence() -> None:
    for where, missing, allowed, message in MISSING:
        error = MissingConfigException(f"In '{where}': Could not find '{missing}'", missing, [allowed])
        assert message in str(in_words(error))


@pytest.mark.parametrize(
    ("argument", "read"),
    [
        ("data.path=/tmp/my (1).csv", "data.path='/tmp/my (1).csv'"),
        ("probe.targets=[café owner, nurse]", "probe.targets=['café owner','nurse']"),
        ("texts=['one, two', \"it's\", it's]", "texts=['one, two','it\\'s','it\\'s']"),
        ("texts=[Nan is kind,5,true,'']", "texts=['Nan is kind','5','true','']"),
        ("texts=[a,\nb,'two\nlines']", "texts=['a','b','two\nlines']"),
    ],
)
def test_an_argument_that_hydra_cannot_read_is_quoted(argument: str, read: str) -> None:
    assert readable(argument) == read


FILES = {
    "statements": "target\tstatement\tregard\nlawyer\tthe lawyer is kind\t-1\nnurse\tthe nurse is late\t0\n",
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
        ("data=graph", "data=graph is for recipe=kge, and recipe=mitigate reads triples"),
        ("recipe=labels data=statements data.label_column=Regard", "the table already has a column 'regard'"),
    ],
)
def test_data_of_another_recipe_is_refused(command: str, fault: str, ran, tmp_path: Path) -> None:
    given = command.split()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
        given += [f"data.path={tmp_path / name}"] * (f"data={name}" in given)
    assert fault in ran(*given, f"paths.outputs={tmp_path}/out", "tracking=none").refused
    assert not (tmp_path / "out").exists()
