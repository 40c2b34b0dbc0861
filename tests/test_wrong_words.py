"""What the command says of names it does not know, of values it cannot read and of classes it cannot build: a sentence
each, with what may have been meant."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from command import ROOT, recipe_is
from hydra.errors import ConfigCompositionException, MissingConfigException
from omegaconf import OmegaConf

from mitigate.cli import check_gone, in_words, readable
from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.package_data import rows_of
from mitigate.recipes.config import Config
from mitigate.recipes.instantiate import build

OWN = """
from mitigate import Labels

class Words:
    def __init__(self, words, least=1):
        if not words:
            raise KeyError("no words")
        self.words = words

number = 5
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


def test_the_nearest_name_is_offered_whatever_its_case_and_none_that_is_far() -> None:
    assert did_you_mean("laywer", ["nurse", "lawyer"]) == "; did you mean lawyer?"
    assert did_you_mean("capableof", ["IsA", "CapableOf"]) == "; did you mean CapableOf?"
    assert did_you_mean("feeling", ["sentiment", "regard"]) == ""
    error = one_of("policy", "bohth", ["none", "both"])
    assert str(error) == "unknown policy 'bohth' (did you mean both?); allowed: none, both"


COMET = "models.comet.Comet"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("recipe=labels data=statments", "unknown data 'statments' (did you mean statements?); allowed: atomic, "),
        ("policy=", "unknown policy ''; allowed: balance, both"),
        ("policy", "'policy' cannot be read; write KEY=VALUE, with blanks, commas and braces in quotes"),
        ("policy=none,both", "To sweep over it, add --multirun to your command line"),
        ("classifier=people", "classifier needs recipe=classifier"),
        ("polcy=both", "unknown setting 'polcy' (did you mean policy?); allowed: seed, train, "),
        ("probe.relatoins=[IsA]", "(did you mean probe.relations?); allowed: probe.targets, "),
        ("relations=[IsA]", " or probe.relations or humans.relations?)"),
        ("hydra.foo=1", "unknown setting 'hydra.foo'"),
        ("data.path=x.tsv", "data.path (file of the data) needs data=atomic or "),
        ("texts=[a]", ") needs recipe=labels"),
        ("recipe=labels texts=[one, two", "texts=[one, is a list without its closing bracket: the shell split it"),
        ("~policy", "Missing key policy"),
        ("probe.relations=CapabelOf", "unknown relation 'CapabelOf' (did you mean CapableOf?); allowed: AtLocation, "),
        ("probe.relations=[]", "probe.relations is empty; list at least one relation, or set null for all"),
        ("probe.targets=[Germens]", "germens: did you mean german? probe.new_targets=true keeps it"),
        ("recipe=labels texts=[a] probe.targets=[doctors]", "doctors: did you mean doctor? probe.new_targets=true"),
        ("probe.targets=absent.csv", "no such file: absent.csv; give a CSV file with a column 'target'"),
        ("probe.max_length=498", "probe.max_length=498 must be at most 497: "),
        ("data=cn100k data.root=/absent", "data.root=/absent: train100k.txt is neither in this folder nor in"),
        ("model=hf", "model.base must be set: model.base=... (pretrained model: a folder, a name on"),
        ("--confg-dir=x", "error: unrecognized arguments: --confg-dir=x"),
        ("--config-dir /absent policy=mine", "Additional config directory '/absent' not found"),
        ("optimized_metric=mine/neutral_mean", "is a figure of mine, and these jobs are labelled by sentiment and"),
        ("optimized_metric=neutral_template/NVM", "optimized_metric 'neutral_template/NVM'; did you mean neutral_t"),
        ("score.regard=minlm", "unknown score.regard 'minlm' (did you mean minilm?); allowed: vader, minilm, "),
        ("score.extra=[keywrd]", "(did you mean keyword?)"),
        ("policy.scorers=[sentimnt]", "unknown scorer in policy.scorers 'sentimnt' (did you mean sentiment?); "),
        (f"model.load._target_={COMET}.laod", f"model.load._target_={COMET}.laod cannot be imported"),
        ("+model.load.dropuot=0.2", f"model.load: {COMET}.from_encoder takes no argument 'dropuot'; it takes: "),
        ("~model.load._target_", "is not set; set it to MODULE.FUNCTION, MODULE.CLASS or a method of a class"),
        ("+score.scorers.mine=5 score.extra=[mine]", "score.scorers.mine must be a class and its arguments, such as"),
        ("recipe.run=absent.run", "recipe.run._target_=absent.run cannot be imported"),
        ("-m recipe=mitigate,profile", "recipe=profile is not in version 1.0; use recipe=ask"),
        ("-m hydra/launcher=slrm", "(did you mean slurm?)"),
    ],
)
def test_wrong_words_are_named_before_anything_is_run(command: str, message: str, told) -> None:
    assert message in told(*command.split())


def test_a_comma_that_may_be_part_of_a_text_is_asked_about(told) -> None:
    said = told("recipe=labels", "texts=[Hello, world]")
    assert """; write 'texts=["Hello, world"]' for one text, 'texts=[Hello,world]' for several""" in said


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
        ("own.Wrods", {}, "; did you mean Words? Set it to MODULE.CLASS of a module that is installed or is in"),
        ("broken.Words", {}, "cannot be imported (SyntaxError: "),
        ("own.number", {}, "mine._target_=own.number is neither a class nor a function"),
        ("own.Words", {"wrods": ["a"]}, "mine: own.Words takes no argument 'wrods'; it takes: words, least; did"),
        ("own.Words", {}, "mine: own.Words needs the argument 'words'; it takes: words, least"),
        ("own.Words", {"words": []}, "mine: own.Words fails with KeyError: 'no words' (own.py, line 7)"),
    ],
)
def test_a_class_of_ones_own_that_cannot_be_built(
    name: str, more: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("class Words(:")
    for module in ("own", "broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(MitigateError) as error:
        build(OmegaConf.create({"_target_": name, **more}), "mine")
    assert message in str(error.value)
    assert capfd.readouterr().err == ""
    assert build(OmegaConf.create({"_target_": "own.Words", "words": ["a"], "measures": "regard"})).words == ["a"]


def test_a_setting_that_a_recipe_brings_along_names_that_recipe() -> None:
    num_settings = 0
    for path in sorted((ROOT / "conf" / "recipe").glob("*.yaml")):
        parts = yaml.safe_load(path.read_text()) if path.read_text().startswith("# @package _global_") else {}
        for group in parts.keys() - {"recipe", "defaults", "hydra"}:
            part = parts[group]
            for key in part.keys() - {"_target_"} if isinstance(part, dict) else [""]:
                name = f"{group}.{key}" if key else group
                said = str(in_words(ConfigCompositionException(f"Could not override '{name}'.")))
                assert f" needs recipe={path.stem}" in said
                num_settings += 1
    assert num_settings > 50


@pytest.mark.parametrize("row", rows_of("gone.csv"), ids=lambda row: row["name"])
def test_what_is_gone_is_refused_in_a_sentence(row: dict[str, str]) -> None:
    name, instead = row["name"], row["instead"] or "version 0.2.0 (git tag v0.2.0)"
    for argument in [name, f"+{name}"] if "=" in name else [f"{name}=3", f"{name}.weight=3", f"~{name}"]:
        with pytest.raises(MitigateError, match=rf"^{re.escape(f'{name} is not in version 1.0; use {instead}')}$"):
            check_gone(["-m", "seed=1", argument])
    check_gone(["recipe=profiles", "tokens_of=3", "texts=[recipe=profile]", "data.path=profile"])


def test_an_error_of_the_projects_own_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("mitigate.policies.Choice.__post_init__", fail)
    with pytest.raises(Exception, match="a bug") as error:
        build(OmegaConf.create({"_target_": "mitigate.policies.Validity", "name": "mine"}))
    assert not isinstance(error.value, MitigateError)


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
    error = yaml.YAMLError("mapping values are not\n  allowed here")
    assert "mapping values are not allowed here" in str(in_words(error))


@pytest.mark.parametrize(
    ("argument", "read"),
    [
        ("seed=1,2", "seed=1,2"),
        ("data.columns={a: b}", "data.columns={a: b}"),
        ("policy=glob(n*)", "policy=glob(n*)"),
        ("data.path=/tmp/my (1).csv", "data.path='/tmp/my (1).csv'"),
        ("data.path=/home/josé/x", "data.path='/home/josé/x'"),
        ("probe.targets=[café owner, nurse]", "probe.targets=['café owner','nurse']"),
        ("texts=[this is it]", "texts=['this is it']"),
        ("texts=['one, two', \"it's\", it's]", "texts=['one, two','it\\'s','it\\'s']"),
        ("texts=[Nan is kind,5,true,'']", "texts=['Nan is kind','5','true','']"),
        ('texts=["say \\"hi\\"", x]', "texts=['say \"hi\"','x']"),
        ("texts=[a,\nb,'two\nlines']", "texts=['a','b','two\nlines']"),
        ("texts=[${oc.env:HOME}]", "texts=['\\${oc.env:HOME}']"),
        ("texts=it's me, she said", "texts='it\\'s me, she said'"),
        ("texts=[]", "texts=[]"),
        ("-m", "-m"),
    ],
)
def test_an_argument_that_hydra_cannot_read_is_quoted(argument: str, read: str) -> None:
    assert readable(argument) == read
