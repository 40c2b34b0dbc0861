"""What the command says of names it does not know, of values it cannot read and of classes it cannot build: a sentence
each, with what may have been meant."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from command import ROOT, here
from hydra import compose, initialize_config_dir
from hydra._internal.utils import get_args_parser
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException, OverrideParseException
from omegaconf import OmegaConf

from mitigate.cli import hydra_errors
from mitigate.cli.arguments import WITH_A_VALUE, WITHOUT, named_folders, readable
from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.metrics import parse
from mitigate.package_data import rows_of
from mitigate.recipes.job import build
from mitigate.settings import settings

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
        status, _, error = ran(*arguments, f"paths.outputs={outputs}", "tracking=none")
        assert status in (1, 2)
        assert not list(outputs.glob("[!.]*"))
        assert "Traceback" not in error
        assert "Error executing job" not in error
        return error

    return run


def test_the_nearest_name_is_offered_whatever_its_case_and_none_that_is_far() -> None:
    assert did_you_mean("laywer", ["nurse", "lawyer"]) == "; did you mean lawyer?"
    assert did_you_mean("capableof", ["IsA", "CapableOf"]) == "; did you mean CapableOf?"
    assert did_you_mean("feeling", ["sentiment", "regard"]) == ""
    error = one_of("policy", "bohth", ["none", "both"])
    assert str(error) == "unknown policy 'bohth'; allowed: none, both; did you mean both?"
    with pytest.raises(MitigateError) as caught:
        parse("quality/perplexty/all")
    nearest = "unknown metric 'quality/perplexty/all'; did you mean quality/perplexity/all? A key is"
    assert str(caught.value).startswith(nearest)


COMET = "models.comet.Comet"


@pytest.mark.parametrize(
    ("command", "messages"),
    [
        ("policy=both_neutrl", ["unknown policy 'both_neutrl'; allowed: balance, both,", "did you mean both_neutral?"]),
        ("recipe=labls", ["share, stories; did you mean labels?"]),
        ("recipe=labels data=statments", ["unknown data 'statments'; allowed: atomic, "]),
        ("experiment=papr", ["'papr'; allowed: cn100k_cpu, cn100k_lm, paper, policies; did you mean paper?"]),
        ("policy=", ["policy= is empty; allowed: balance, both"]),
        ("policy", ["'policy' is not a setting; write it as KEY=VALUE"]),
        ("polcy", ["KEY=VALUE, and a value with blanks in quotes; did you mean policy?"]),
        (
            "polcy=both",
            ["unknown setting 'polcy'; allowed: seed, train, ", "experiment, hydra; did you mean policy?"],
        ),
        (
            "probe.relatoins=[IsA]",
            ["allowed in probe: probe.targets, probe.fewest, ", "; did you mean probe.relations?"],
        ),
        ("policy.xyz=2", ["policy.splits, policy.seed. To add a key of your own, write +policy.xyz=2"]),
        ("relations=[IsA]", ["or humans.relations?"]),
        (
            "data.path=x.tsv",
            ["data.path (file of the data) is a setting of other options of data; choose"],
        ),
        ("texts=[a]", [") is a setting of another recipe; set recipe=labels"]),
        ("measure.match=contains", ["is a setting of another recipe; set recipe=audit"]),
        ("hydra.foo=1", ["unknown setting of Hydra 'hydra.foo'; see --hydra-help"]),
        ("~policy", ["the configuration has no policy, which is required; remove the argument ~policy"]),
        (
            "probe.relations=[CapabelOf]",
            ["unknown relation 'CapabelOf'; allowed: AtLocation, ", "did you mean CapableOf?"],
        ),
        ("probe.relations=CapabelOf", ["; did you mean CapableOf?"]),
        ("probe.relations=[]", ["probe.relations is empty; list at least one relation, or set null for all"]),
        ("probe.targets=everyone", ["unknown probe.targets 'everyone'; allowed: all, data, "]),
        ("probe.targets=absent.csv", ["no such file: absent.csv; give a CSV file with a column 'target'"]),
        ("probe.max_length=498", ["probe.max_length=498 must be at most 497: "]),
        ("probe.top=20", ["probe.top=20 must be at least 1 and at most probe.beams=10"]),
        ("measure.masking=some", ["unknown measure.masking 'some'; allowed: token, paper"]),
        ("data=cn100k data.root=/absent", ["data.root=/absent: no such folder"]),
        ("model=hf", ["mitigate: model.base must be set: model.base=... (pretrained model: a folder, or a name on"]),
        ("recipe=compare", ["mitigate: compare.runs must be set: compare.runs=... (run folders to compare)"]),
        ("trainer.strategy=dp", ["unknown trainer.strategy 'dp'; allowed: auto, ddp, fsdp"]),
        ("--confg-dir x policy=none", ["unknown flag '--confg-dir'; allowed: --help, "]),
        ("--confg-dir=x", ["; did you mean --config-dir?"]),
        ("-x policy=none", ["unknown flag '-x'; allowed: --help, "]),
        ("-m seed=choice()", ["seed=choice() has no values, so the sweep has no jobs; give values"]),
        ("optimized_metric=mine/neutral_mean", ["is a figure of mine, and these jobs are labelled by sentiment and"]),
        ("score.regard=minlm", ["unknown score.regard 'minlm'; allowed: vader, minilm, "]),
        ("score.sentiment=null score.regard=null", ["score.sentiment and score.regard are both null, and this recipe"]),
        ("score.extra=[keywrd]", ["; did you mean keyword?"]),
        ("policy.scorers=[sentimnt]", ["unknown scorer in policy.scorers 'sentimnt'; ", "did you mean sentiment?"]),
        ("policy.template=own", ["unknown policy.template 'own'; allowed: paper, neutral"]),
        ("policy.scope=targts", ["allowed: all, person_heads, targets; did you mean targets?"]),
        ("optimized_metric=neutral_template/NVM", ["optimized_metric 'neutral_template/NVM'; did you mean neutral_t"]),
        ("policy=none policy.scorers=[regard]", ["policy.name=none is reserved for the baseline, which keeps every"]),
        ("model.load._target_=absent.load", ["_target_=absent.load cannot be imported (ModuleNotFoundError: "]),
        (f"model.load._target_={COMET}.laod", [f"model.load._target_={COMET}.laod cannot be imported"]),
        ("model.load._target_=math.pi", ["model.load._target_=math.pi is neither a class nor a function"]),
        ("+model.load.dropuot=0.2", [f"model.load: {COMET}.from_encoder takes no argument 'dropuot'; it takes: "]),
        ("~model.load._target_", ["is not set; set it to MODULE.FUNCTION, MODULE.CLASS or a method of a class"]),
        ("policy._target_=builtins.dict", ["policy._target_=builtins.dict makes a dict, not a policy; derive"]),
        ("+policy.wrods=1", ["policy: mitigate.filter.Policy takes no argument 'wrods'; it takes: name, scorers, "]),
        ("+score.scorers.mine=5 score.extra=[mine]", ["score.scorers.mine must be a class and its arguments, such as"]),
        (
            "policy=[both",
            ["policy=[both is a list without its closing bracket: the shell split it at a space. Put the"],
        ),
        ("-m policy=", ["policy= is empty; allowed: balance, both"]),
        ("-m policy=glob(zz*)", ["policy=glob(zz*) has no values, so the sweep has no jobs; give values"]),
        ("-m seed=range(0,0)", ["seed=range(0,0) has no values, so the sweep has no jobs; give values"]),
        ("-m hydra/launcher=slrm", ["submitit_local, submitit_slurm; did you mean slurm?"]),
        ("-m hydra/sweeper=search score.regard=vader", ["optimized_metric=neutral_template/NRM is a figure of regard"]),
        ("--config-dir /absent policy=mine", ["Additional config directory '/absent' not found"]),
    ],
)
def test_wrong_words_are_named_before_anything_is_run(command: str, messages: list[str], told) -> None:
    error = told(*command.split())
    assert [message for message in messages if message not in error] == [], error


def test_a_single_word_is_a_list_of_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[object] = []
    monkeypatch.setattr("mitigate.recipes.main._recipe", lambda name: lambda config: seen.append(config))
    words = ("probe.relations=CapableOf", "score.extra=keyword", "probe.targets=own.csv", f"paths.outputs={tmp_path}")
    assert here(monkeypatch, *words, "tracking=none") == 0
    (config,) = seen
    assert (config.probe.relations, config.score.extra) == (["CapableOf"], ["keyword"])
    assert config.probe.targets == "own.csv"  # may be a text


def test_a_job_on_a_cluster_takes_a_cluster_and_its_rehearsal_none(told, ran, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("mitigate.recipes.failures.shutil.which", lambda name: None)
    error = told("-m", "hydra/launcher=slurm")
    assert "this machine has no srun; run the command on a node" in error
    started: list[str] = []
    monkeypatch.setattr("mitigate.recipes.main._recipe", lambda name: lambda config: started.append(config.policy.name))
    said = ran("-m", "hydra/launcher=slurm", "policy=none,both", "dry_run=true", f"paths.outputs={tmp_path}").done
    assert started == ["none", "both"]
    assert "dry_run=true submits no job: all are rehearsed here, one after the other" in said


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("absent.Words", {}, "mine._target_=absent.Words cannot be imported (ModuleNotFoundError: No module"),
        (
            "own.Wrods",
            {},
            "; did you mean Words? Set it to MODULE.CLASS of a module that is installed or is in the",
        ),
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
    found = {}
    for path in sorted((ROOT / "conf" / "recipe").glob("*.yaml")):
        text = path.read_text()
        if text.startswith("# @package _global_"):
            groups = {name: part for name, part in yaml.safe_load(text).items() if name not in ("recipe", "defaults")}
            groups.pop("hydra", None)
            for group, part in groups.items():
                found |= dict.fromkeys(
                    [f"{group}.{key}" for key in part if key != "_target_"] if isinstance(part, dict) else [group],
                    path.stem,
                )
    assert len(found) > 50
    for key, recipe in found.items():
        keys = [key] if key in settings() else [name for name in settings() if name.startswith(f"{key}.")]
        for name in keys:
            error = ConfigCompositionException(f"Could not override '{name}'.")
            assert hydra_errors.in_words(error).endswith(f"is a setting of another recipe; set recipe={recipe}")


@pytest.mark.parametrize("row", rows_of("gone.csv"), ids=lambda row: row["name"])
def test_what_is_gone_is_refused_in_a_sentence(row: dict[str, str]) -> None:
    name, instead = row["name"], row["instead"] or "version 0.2.0 (git tag v0.2.0)"
    for argument in [name, f"+{name}"] if "=" in name else [f"{name}=3", f"{name}.weight=3", f"~{name}"]:
        with pytest.raises(MitigateError, match=rf"^{re.escape(f'{name} is not in version 1.0; use {instead}')}$"):
            hydra_errors.check_gone(["-m", "seed=1", argument])


@pytest.mark.parametrize("argument", ["recipe=mitigate,profile", "tokens.create=ann"])
def test_a_command_with_what_is_gone_ends_with_status_2(
    argument: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here(monkeypatch, "-m", argument) == 2
    assert "is not in version 1.0; use " in capsys.readouterr().err


def test_a_name_that_only_begins_like_one_that_is_gone_is_not_refused() -> None:
    hydra_errors.check_gone(["recipe=profiles", "tokens_of=3", "texts=[recipe=profile]", "data.path=profile"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["recipe=classifier"],
            "classifier must be given: classifier=NAME; allowed: crowd, people,",
        ),
        (["classifier=crowd"], "classifier is a setting of another recipe; set recipe=classifier"),
    ],
)
def test_a_classifier_goes_with_its_recipe(arguments: list[str], message: str) -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base=None), pytest.raises(HydraException) as error:
        compose("config", arguments)
    assert hydra_errors.in_words(error.value).startswith(message)


def test_an_error_of_the_projects_own_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("mitigate.filter.policy.Policy.__post_init__", fail)
    with pytest.raises(Exception, match="a bug") as error:
        build(OmegaConf.create({"_target_": "mitigate.filter.Policy", "name": "mine"}))
    assert not isinstance(error.value, MitigateError)


def missing(where: str, what: str, *allowed: str) -> MissingConfigException:
    return MissingConfigException(f"In '{where}': Could not find '{what}'", what, list(allowed))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            missing("config", "policy/mine", "both", "none"),
            "unknown policy 'mine'; allowed: both, none; own/conf/policy/mine.yaml does not exist",
        ),
        (
            missing("policy/mine", "policy/non", "both", "none"),
            "policy/mine.yaml: unknown policy 'non'; allowed: both, none; did you mean none?",
        ),
        (
            missing("hydra/launcher/slurm", "hydra/launcher/submitit_slurm", "basic"),
            "hydra/launcher/slurm.yaml: this needs more packages: pip install 'mitigate[slurm]'",
        ),
        (
            MissingConfigException("In 'hydra/sweeper/search': Could not load", "hydra/sweeper/optuna", None),
            "hydra/sweeper/search.yaml: this needs more packages: pip install 'mitigate[optuna]'",
        ),
        (
            missing("config", "hydra/launcher/joblib", "basic"),
            "hydra/launcher=joblib: this needs more packages: pip install 'mitigate[joblib]'",
        ),
        (
            OverrideParseException("data.columns={a:", "no viable alternative at input '{a:'\nSee https"),
            "'data.columns={a:' cannot be parsed (no viable alternative at input '{a:'). Put a value with "
            "commas, brackets, braces, quotes or = in two kinds of quotes, as in "
            "'data.columns=\"a, b\"'",
        ),
        (
            yaml.YAMLError("mapping values are not\n  allowed here"),
            "is not valid YAML: mapping values are not al",
        ),
    ],
)
def test_errors_of_hydra_are_a_sentence(error: Exception, message: str) -> None:
    assert message in hydra_errors.in_words(error, ["own/conf"] if "own/conf" in message else [])


@pytest.mark.parametrize(
    ("argument", "read"),
    [
        ("seed=1,2", "seed=1,2"),
        ("data.columns={a: b}", "data.columns={a: b}"),
        ("policy=glob(n*)", "policy=glob(n*)"),
        ("data.path=/tmp/my (1).csv", "data.path='/tmp/my (1).csv'"),
        ("data.path=/home/josé/x", "data.path='/home/josé/x'"),
        ("probe.targets=[café owner,nurse]", "probe.targets=['café owner','nurse']"),
        ("texts=[this is it]", "texts=['this is it']"),
        ("texts=[it's]", "texts=['it\\'s']"),
        ("texts=['one, two', \"it's\", three]", "texts=['one, two','it\\'s','three']"),
        ("texts=[Nan is kind, 5, true]", "texts=['Nan is kind','5','true']"),
        ('texts=["say \\"hi\\"", x]', "texts=['say \"hi\"','x']"),
        ("texts=[a,\nb,'two\nlines']", "texts=['a','b','two\nlines']"),
        ("texts=[${oc.env:HOME}]", "texts=['\\${oc.env:HOME}']"),
        ("texts=it's me, she said", "texts='it\\'s me, she said'"),
        ("texts=[]", "texts=[]"),
        ("texts=-", "texts='-'"),
        ("-m", "-m"),
    ],
)
def test_an_argument_that_hydra_cannot_read_is_quoted(argument: str, read: str) -> None:
    assert readable([argument]) == [read]


def test_flags_and_the_folder_of_config_dir_are_no_settings() -> None:
    assert readable(["--multi", "--config-d=x", "-m", "--cfg", "job"])[0] == "--multi"  # a long flag may be cut short
    assert readable(["--config-dir", "é=1", "seed=1"]) == ["--config-dir", "é=1", "seed=1"]
    assert named_folders(["x", "--config-dir", "a", "seed=1"]) == named_folders(["--config-dir=a"]) == ["a"]


def test_the_flags_are_those_of_hydra_and_two_of_the_project() -> None:
    names = [option for action in get_args_parser()._actions for option in action.option_strings]
    flags = {**WITHOUT, **WITH_A_VALUE}
    assert {*flags, *filter(None, flags.values())} == {*names, "--list"}
