"""What the command says of names it does not know, of values it cannot read and of classes it cannot build: a sentence
each, with what may have been meant."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from command import ROOT, here
from hydra.errors import ConfigCompositionException, MissingConfigException, OverrideParseException
from omegaconf import OmegaConf

from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.metrics import parse
from mitigate.recipes import faults
from mitigate.recipes.arguments import named_folders, readable
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
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command writes to standard error, once it is done without having begun a run."""

    def run(*arguments: str) -> str:
        outputs = tmp_path / "out"
        assert here(monkeypatch, *arguments, f"paths.outputs={outputs}", "tracking=none") in (1, 2)
        assert not list(outputs.glob("[!.]*"))
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert "Error executing job" not in error
        return error

    return run


def test_the_nearest_name_is_offered_whatever_its_case_and_none_that_is_far() -> None:
    assert did_you_mean("laywer", ["nurse", "lawyer"]) == "; did you mean lawyer?"
    assert did_you_mean("capableof", ["IsA", "CapableOf"]) == "; did you mean CapableOf?"
    assert did_you_mean("feeling", ["sentiment", "regard"]) == ""
    assert (
        str(one_of("policy", "bohth", ["none", "both"]))
        == "unknown policy 'bohth'; allowed: none, both; did you mean both?"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("policy=both_neutrl", "random_both_neutral, regard, rerank, sentiment, swap; did you mean both_neutral?"),
        ("recipe=labls", "template, workspace; did you mean labels?"),
        ("recipe=labels data=statments", "unknown data 'statments'; allowed: atomic, "),
        ("experiment=papr", "unknown experiment 'papr'; allowed: cn100k_cpu, paper, policies; did you mean paper?"),
        ("policy=", "policy= names nothing; allowed: balance, both"),
        ("policy", "'policy' is no setting: write it as KEY=VALUE"),
        ("polcy", "'polcy' is no setting: write it as KEY=VALUE; did you mean policy?"),
        ("polcy=both", "compare, humans, kge, profile, frames, serve, experiment, hydra; did you mean policy?"),
        ("probe.relatoins=[IsA]", "probe has: probe.targets, probe.fewest, probe.relations, "),
        ("probe.relatoins=[IsA]", "; did you mean probe.relations?"),
        ("policy.strngth=2", "policy.splits, policy.seed. A key of your own is added with a plus: +policy.strngth=2"),
        ("relations=[IsA]", "or humans.relations?"),
        ("data.path=x.tsv", "data.path (file of the data) is a setting of others than the data that is chosen; choose"),
        ("texts=[a]", ") is a setting of another recipe; say recipe=labels"),
        ("profile.runs=[x]", "is a setting of another recipe; say recipe=profile"),
        ("measure.match=contains", "is a setting of another recipe; say recipe=audit"),
        ("hydra.foo=1", "unknown setting of Hydra 'hydra.foo'; --hydra-help says where its settings are described"),
        ("~policy", "the configuration has no policy, which is read; a ~policy takes it away"),
        ("probe.relations=[CapabelOf]", "; did you mean CapableOf?"),
        ("probe.relations=CapabelOf", "; did you mean CapableOf?"),
        ("--confg-dir x policy=none", "unknown flag '--confg-dir'; allowed: --help, "),
        ("--confg-dir=x", "; did you mean --config-dir?"),
        ("-x policy=none", "unknown flag '-x'; allowed: --help, "),
        ("-m seed=choice()", "seed=choice() names nothing to sweep over: there are no jobs; name values"),
        ("optimized_metric=mine/neutral_mean", "is a figure of mine, and these jobs are labelled by sentiment and"),
        (
            "score.regard=minlm",
            "unknown score.regard 'minlm'; allowed: vader, minilm, ",
        ),
        ("score.sentiment=null score.regard=null", "score.sentiment and score.regard are both null, and this recipe"),
        ("recipe=template score.sentiment=null score.regard=null", "name a scorer of one at least, such as score.sent"),
        ("score.extra=[keywrd]", "; did you mean keyword?"),
        ("policy.scorers=[sentimnt]", "; did you mean sentiment?"),
        (
            "policy.scope=targts",
            "unknown policy.scope 'targts'; allowed: all, people, person_heads, targets; did you mean targets?",
        ),
        (
            "optimized_metric=neutral_template/NVM",
            "unknown optimized_metric 'neutral_template/NVM'; did you mean neutral_t",
        ),
        (
            "policy=none policy.scorers=[regard]",
            "policy.name=none is the name of the baseline, which keeps every triple",
        ),
        (
            "model.load._target_=absent.load",
            "model.load._target_=absent.load cannot be imported (ModuleNotFoundError: ",
        ),
        (
            "model.load._target_=models.comet.Comet.laod",
            "model.load._target_=models.comet.Comet.laod cannot be imported",
        ),
        ("model.load._target_=math.pi", "model.load._target_=math.pi is no class and no function, so that it cannot"),
        (
            "+model.load.dropuot=0.2",
            "model.load: models.comet.Comet.from_encoder takes no argument 'dropuot'; it takes: ",
        ),
        (
            "~model.load._target_",
            "model.load._target_ is not given: it is MODULE.FUNCTION, or MODULE.CLASS and its method",
        ),
        ("policy._target_=builtins.dict", "policy._target_=builtins.dict makes a dict, which is no policy; derive"),
        ("+policy.wrods=1", "policy: mitigate.filter.Policy takes no argument 'wrods'; it takes: name, scorers, "),
        ("+score.scorers.mine=5 score.extra=[mine]", "score.scorers.mine must be a class and its arguments, such as"),
        ("policy=[both", "policy=[both is a list that does not end: the shell has taken it apart at a space. Put the"),
        ("-m policy=", "policy= names nothing; allowed: balance, both"),
        ("-m policy=glob(zz*)", "policy=glob(zz*) names nothing to sweep over: there are no jobs; name values"),
        ("-m seed=range(0,0)", "seed=range(0,0) names nothing to sweep over: there are no jobs; name values"),
        ("-m hydra/launcher=slrm", "submitit_local, submitit_slurm; did you mean slurm?"),
        (
            "-m hydra/sweeper=search score.regard=vader",
            "optimized_metric=neutral_template/NRM is a figure of regard, and",
        ),
        ("--config-dir /absent policy=mine", "Additional config directory '/absent' not found"),
    ],
)
def test_wrong_words_are_told_before_anything_is_run(command: str, message: str, told: Callable[..., str]) -> None:
    assert message in told(*command.split())


def test_a_single_word_is_a_list_of_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[object] = []
    monkeypatch.setattr("mitigate.__main__._recipe", lambda name: lambda config: seen.append(config))
    words = ("probe.relations=CapableOf", "score.extra=keyword", "probe.targets=own.csv", f"paths.outputs={tmp_path}")
    assert here(monkeypatch, *words, "tracking=none") == 0
    (config,) = seen
    assert config.probe.relations == ["CapableOf"]
    assert config.score.extra == ["keyword"]
    assert config.probe.targets == "own.csv"  # may be a text


def test_a_long_flag_may_be_cut_short() -> None:
    assert readable(["--multi", "--config-d=x", "-m", "--cfg", "job"])[0] == "--multi"


def test_a_job_on_a_cluster_takes_a_cluster_and_its_rehearsal_none(
    told: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mitigate.recipes.failures.shutil.which", lambda name: None)
    assert "this machine is in none (there is no srun); start the command on a node" in told(
        "-m", "hydra/launcher=slurm"
    )
    started: list[str] = []
    monkeypatch.setattr("mitigate.__main__._recipe", lambda name: lambda config: started.append(config.policy.name))
    slurm = ("-m", "hydra/launcher=slurm", "policy=none,both", "dry_run=true", f"paths.outputs={tmp_path}")
    assert here(monkeypatch, *slurm) == 0
    assert started == ["none", "both"]
    assert "dry_run=true submits no job: all are rehearsed here, one after the other" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"_target_": "absent.Words"}, "mine._target_=absent.Words cannot be imported (ModuleNotFoundError: No module"),
        (
            {"_target_": "own.Wrods"},
            "; did you mean Words? It is MODULE.CLASS of a module that is installed, or that lies",
        ),
        ({"_target_": "broken.Words"}, "cannot be imported (SyntaxError: "),
        (
            {"_target_": "own.number"},
            "mine._target_=own.number is no class and no function, so that it cannot be called",
        ),
        (
            {"_target_": "own.Words", "wrods": ["a"]},
            "mine: own.Words takes no argument 'wrods'; it takes: words, least; did",
        ),
        ({"_target_": "own.Words"}, "mine: own.Words needs the argument 'words'; it takes: words, least"),
        ({"_target_": "own.Words", "words": []}, "mine: own.Words fails with KeyError: 'no words' (own.py, line 7)"),
    ],
)
def test_a_class_of_ones_own_that_cannot_be_built(
    node: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("class Words(:")
    for name in ("own", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(MitigateError) as error:
        build(OmegaConf.create(node), "mine")
    assert message in str(error.value)
    assert capfd.readouterr().err == ""
    assert build(OmegaConf.create({"_target_": "own.Words", "words": ["a"], "measures": "regard"})).words == ["a"]


def test_a_setting_that_a_recipe_brings_along_names_that_recipe() -> None:
    groups = ("recipe", "defaults", "hydra")
    found = {}
    for path in sorted((ROOT / "conf" / "recipe").glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        if path.read_text().startswith("# @package _global_") and path.stem != "workspace":  # which is of compare's
            found |= {
                f"{group}.{key}" if isinstance(part, dict) else group: path.stem
                for group, part in content.items()
                if group not in groups
                for key in (part if isinstance(part, dict) else [group])
            }
    assert len(found) > 60
    for key, recipe in found.items():
        keys = [key] if key in settings() else [name for name in settings() if name.startswith(f"{key}.")]
        assert keys
        for name in keys:
            error = ConfigCompositionException(f"Could not override '{name}'.")
            assert faults.in_words(error).endswith(f"is a setting of another recipe; say recipe={recipe}")


def test_an_error_of_the_projects_own_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("mitigate.filter.policy.Policy.__post_init__", fail)
    with pytest.raises(Exception, match="a bug") as error:
        build(OmegaConf.create({"_target_": "mitigate.filter.Policy", "name": "mine"}))
    assert not isinstance(error.value, MitigateError)


@pytest.mark.parametrize(
    ("error", "folders", "message"),
    [
        (
            MissingConfigException("In 'config': Could not find 'policy/mine'", "policy/mine", ["both", "none"]),
            ["own/conf"],
            "unknown policy 'mine'; allowed: both, none; there is no own/conf/policy/mine.yaml",
        ),
        (
            MissingConfigException("In 'policy/mine': Could not find 'policy/non'", "policy/non", ["both", "none"]),
            [],
            "policy/mine.yaml: unknown policy 'non'; allowed: both, none; did you mean none?",
        ),
        (
            MissingConfigException(
                "In 'hydra/launcher/slurm': Could not find", "hydra/launcher/submitit_slurm", ["basic"]
            ),
            [],
            "hydra/launcher/slurm.yaml: this needs more packages: pip install -e '.[slurm]' in a clone of the project",
        ),
        (
            OverrideParseException("data.columns={a:", "no viable alternative at input '{a:'\nSee https"),
            [],
            "'data.columns={a:' cannot be read (no viable alternative at input '{a:'). Commas, brackets, braces, "
            "quotes and = have a meaning in a value; write one that holds them in two kinds of quotes, as in "
            "'data.columns=\"a, b\"'",
        ),
        (
            yaml.YAMLError("mapping values are not\n  allowed here"),
            [],
            "is no YAML that can be read: mapping values are not al",
        ),
    ],
)
def test_what_hydra_says_is_said_in_a_sentence(error: Exception, folders: list[str], message: str) -> None:
    assert message in faults.in_words(error, folders)


def test_an_unknown_metric_is_told_with_the_nearest() -> None:
    with pytest.raises(MitigateError) as error:
        parse("quality/perplexty/all")
    assert str(error.value).startswith(
        "unknown metric 'quality/perplexty/all'; did you mean quality/perplexity/all? A key is"
    )


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
def test_what_hydra_cannot_read_is_quoted(argument: str, read: str) -> None:
    assert readable([argument]) == [read]


def test_the_folder_of_config_dir_is_no_setting() -> None:
    assert readable(["--config-dir", "é=1", "seed=1"]) == ["--config-dir", "é=1", "seed=1"]
    assert named_folders(["x", "--config-dir", "a", "seed=1"]) == named_folders(["--config-dir=a"]) == ["a"]
