"""The arms of the experiment (experiment_arms.csv), the order of its runs, and how long each arm trains: as many epochs
as `none` of full length, or as many steps as another arm."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from mitigate.recipes.mitigate.plan import make_plan
from mitigate.recipes.scorers import Scorers
from mitigate.recipes.start import training_settings
from mitigate.tasks.policy import apply_policy

ROOT = Path(__file__).parents[1]
ARMS = Path(__file__).with_name("experiment_arms.csv")
PARTS = ("primary", "other", "robustness")
SETTINGS = (
    "experiment=cn100k_cpu",
    "trainer.precision=32-true",
    "probe.heads=2000",
    "score.extra=[crowd,ngram,keyword]",
    "tracking=none",
)
"""Of all runs. Trained and probed in float32, so that no run differs by what its processor computes in. Quality is
measured on all heads of test triples that are no targets: of 250 of them it would be known less well."""

FULL = "none"
"""The arm of full length."""


@dataclass(frozen=True)
class Arm:
    """A row of experiment_arms.csv."""

    name: str
    part: str  # of PARTS
    settings: tuple[str, ...]
    steps_of: str  # arm: by its share of the triples this one's steps are counted
    seeds: int
    control: str | None  # arm that it is compared with
    base: str | None  # arm whose trained model it acts on, in place of a training of its own


@dataclass(frozen=True)
class Job:
    """One run."""

    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm.name}-seed{self.seed}"


def arms(path: Path = ARMS) -> dict[str, Arm]:
    """The arms by name, in the order of the file."""
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {
        row["arm"]: Arm(
            row["arm"],
            row["part"],
            tuple(row["settings"].split()),
            row["steps_of"],
            int(row["seeds"]),
            row["control"] or None,
            row["base"] or None,
        )
        for row in rows
    }


def jobs(known: Mapping[str, Arm], parts: Sequence[str] = PARTS) -> list[Job]:
    """The runs in their order: part by part, and in each seed by seed over its arms, so that a stopped experiment has
    as many seeds of one arm as of another."""
    return [
        Job(arm, seed)
        for part in parts
        for seed in range(1, max((arm.seeds for arm in known.values() if arm.part == part), default=0) + 1)
        for arm in known.values()
        if arm.part == part and seed <= arm.seeds
    ]


def numbers_of_steps(wanted: Mapping[str, Arm], known: Mapping[str, Arm], settings: Sequence[str]) -> dict[str, int]:
    """Arm -> training steps, of the wanted ones among those known. Those of FULL are what the configuration gives; an
    arm that keeps a share of the triples has the same share of the steps, and so sees each of its triples as often.
    Labels the triples, unless the cache has their labels already."""
    counted = {FULL} | {arm.steps_of for arm in wanted.values()}
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        configs = {name: compose("config", [*settings, *known[name].settings]) for name in sorted(counted)}
    kept = {name: kept_triples(config) for name, config in configs.items()}
    full = training_settings(configs[FULL])[0].num_steps(kept[FULL])
    return {name: math.ceil(full * kept[arm.steps_of] / kept[FULL]) for name, arm in wanted.items()}


def kept_triples(config: DictConfig) -> int:
    """How many training triples the policy of a configuration keeps."""
    plan = make_plan(config, Scorers(config.score))
    labelled = plan.labeller.label(plan.corpus.triples)
    ledger = apply_policy(plan.policy, labelled, plan.target_list)
    train = ledger.filter(split="train")
    return train.filter(train["weight"] > 0, train["valid"]).height


def command(job: Job, steps: int, more: Sequence[str], base: Path | None = None) -> list[str]:
    """The settings of a run. base: the folder of the run whose model it acts on, for an arm that has a base."""
    model = [] if base is None else ["train=false", "model=comet", f"model.base={base / 'model'}"]
    length = ["trainer.max_epochs=1000", f"trainer.max_steps={steps}"]
    return [*SETTINGS, *more, *job.arm.settings, *length, *model, f"seed={job.seed}"]


def ready(waiting: Sequence[Job], done: Mapping[tuple[str, int], Path]) -> Iterator[Job]:
    """Of the waiting runs those whose base is done, in their order."""
    return (job for job in waiting if job.arm.base is None or (job.arm.base, job.seed) in done)
