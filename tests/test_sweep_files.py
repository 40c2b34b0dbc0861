"""The sweeps that come ready: each composes to what the programs that read it expect."""

from itertools import chain

import pytest
import yaml
from hydra import compose, initialize_config_dir

from mitigate.__main__ import CONF
from mitigate.filter.policy import SCOPES
from mitigate.headlines import headline
from mitigate.triples import TEMPLATES

WANDB = CONF / "sweep" / "wandb.yaml"


def composed(*overrides: str):
    with initialize_config_dir(config_dir=str(CONF), version_base=None):
        return compose("config", overrides=list(overrides), return_hydra_config=True)


def test_each_job_that_wandb_hands_out_is_a_command_of_ours() -> None:
    """As `wandb agent` makes the command of the sweep's file and a job's parameters."""
    from wandb.sdk.launch.sweeps import utils

    sweep = yaml.safe_load(WANDB.read_text())
    assert set(sweep) == {"project", "program", "command", "method", "metric", "parameters"}
    assert (sweep["method"], sweep["metric"]["goal"]) == ("grid", "maximize")
    assert sweep["metric"]["name"] == headline(composed().optimized_metric).name
    values = {name: parameter["values"] for name, parameter in sweep["parameters"].items()}
    job = {"args": {name: {"value": choices[-1]} for name, choices in values.items()}}
    filled = utils.create_sweep_command_args(job) | {
        "env": ["/usr/bin/env"],
        "interpreter": ["python"],
        "program": [sweep["program"]],
    }
    parts = [filled.get(part[2:-1], [part]) for part in utils.create_sweep_command(sweep["command"])]
    assert " ".join(chain(*parts)) == "/usr/bin/env python -m mitigate policy=both seed=3"
    assert all((CONF / "policy" / f"{policy}.yaml").is_file() for policy in values["policy"])


def test_the_search_asks_for_policies_that_there_are() -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs pip install -e '.[optuna]'")
    sweeper = composed("hydra/sweeper=search").hydra.sweeper
    assert sweeper.direction == "maximize"
    assert (sweeper.storage, sweeper.sampler.seed) == (None, 1)
    assert set(sweeper.params) == {"policy", "policy.template", "policy.scope"}
    choices = {name: choice[len("choice(") : -1].split(", ") for name, choice in sweeper.params.items()}
    for policy in choices.pop("policy"):
        assert (CONF / "policy" / f"{policy}.yaml").is_file()
    assert set(choices["policy.template"]) <= set(TEMPLATES)
    assert set(choices["policy.scope"]) <= set(SCOPES)


def test_a_job_on_slurm_that_runs_out_of_time_is_queued_again() -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs pip install -e '.[slurm]'")
    launcher = composed("hydra/launcher=slurm").hydra.launcher
    assert launcher._target_.endswith("SlurmLauncher")
    assert launcher.max_num_timeout == 2
