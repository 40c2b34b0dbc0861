"""The arms of an experiment (experiment_arms.csv, plan2_arms.csv), the order of its runs, and how long each arm trains:
as many epochs as `none` of full length, or as many steps as another arm."""

import csv
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import compose, initialize_config_dir

from mitigate.policies import apply_policy
from mitigate.recipes.config import Config, Scorers, configured
from mitigate.recipes.mitigate import make_plan

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
BASE = "BASE"
"""In an arm's settings: the folder of the model of the run that it builds on."""
SETTINGS = (
    "experiment=cn100k_cpu",
    "trainer.precision=32-true",
    "probe.heads=2000",
    "score.extra=[crowd,ngram,keyword]",
    "tracking=none",
)
"""Of all runs. Trained and probed in float32, so that no run differs by what its processor computes in. Quality is
measured on all heads of test triples that are no targets: of 250 of them it would be known less well."""

LM = "halves/lm"
HEADS = "benchmarks/plan2_heads"
"""Of people's ratings of one half of the targets each, by the network that they read (plan2.md, "Before the first
run")."""
RELATIONS2 = (
    *("IsA", "AtLocation", "UsedFor", "CapableOf", "HasProperty", "HasSubevent", "HasPrerequisite", "Causes", "HasA"),
    *("ReceivesAction", "MotivatedByGoal", "DefinedAs"),
)
"""The twelve with most triples in train100k."""
SETTINGS2 = (
    *(
        "experiment=cn100k_cpu",
        "trainer.max_steps=743",
        "probe.heads=2000",
        f"probe.relations=[{','.join(RELATIONS2)}]",
        "score.extra=[crowd,crowd2,crowd_lm,ngram,keyword]",
        "tracking=none",
    ),
    *(f"score.crowd_lm.base={LM}", f"score.crowd_lm.folder={HEADS}/second_lm/crowd_lm"),
    *(f"score.people_valid.folder={HEADS}/second_lm/people_valid", f"score.people_valid.encoder_folder={LM}"),
    f"score.critic.folder={HEADS}/first/people_valid",
)
"""Of all runs of plan2.md with comet_minilm. Training computes in bf16 where the processor does."""

SETTINGS2_LM = (
    *("experiment=cn100k_lm", f"model.base={LM}", "trainer.max_steps=480", *SETTINGS2[2:8]),
    f"score.people_valid.folder={HEADS}/second/people_valid",
    *(f"score.critic.folder={HEADS}/first_lm/people_valid", f"score.critic.encoder_folder={LM}"),
)
"""Of all runs of plan2.md with SmolLM2. Probes, too, compute in bf16 where the processor does."""

FULL = "none"
"""The arm of full length."""


@dataclass(frozen=True)
class Experiment:
    """A plan that is to be run."""

    arms: Path
    table: Path  # of finished runs
    settings: tuple[str, ...]
    parts: tuple[str, ...] = ()  # of the file of arms; (): all

    def known(self) -> dict[str, "Arm"]:
        """The experiment's arms by name."""
        return {name: arm for name, arm in arms(self.arms).items() if not self.parts or arm.part in self.parts}


EXPERIMENTS = {
    "plan": Experiment(HERE / "experiment_arms.csv", HERE / "experiment.csv", SETTINGS),
    "plan2": Experiment(HERE / "plan2_arms.csv", HERE / "plan2.csv", SETTINGS2, ("screening", "test", "dose")),
    "plan2_lm": Experiment(HERE / "plan2_arms.csv", HERE / "plan2.csv", SETTINGS2_LM, ("lm_screening", "lm")),
}
"""By the name of the file that describes each; plan2.md has two generators."""


@dataclass(frozen=True)
class Arm:
    """A row of the file of arms."""

    name: str
    part: str
    settings: tuple[str, ...]
    steps_of: str  # arm: by its share of the triples this one's steps are counted
    fewer: int  # steps fewer than those
    seeds: range
    control: str | None  # arm that it is compared with
    base: str | None  # arm whose model of the same seed its settings name as BASE


@dataclass(frozen=True)
class Job:
    """One run."""

    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm.name}-seed{self.seed}"


def arms(path: Path = EXPERIMENTS["plan"].arms) -> dict[str, Arm]:
    """The arms by name, in the order of the file. `seeds` are a number, from 1 on, or a first and a last one, 11-13."""
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {
        row["arm"]: Arm(
            row["arm"],
            row["part"],
            tuple(row["settings"].split()),
            row["steps_of"],
            int(row.get("fewer") or 0),
            _seeds(row["seeds"]),
            row["control"] or None,
            row["base"] or None,
        )
        for row in rows
    }


def parts(known: Mapping[str, Arm]) -> list[str]:
    """The parts of the plan, in their order."""
    return list(dict.fromkeys(arm.part for arm in known.values()))


def jobs(known: Mapping[str, Arm], wanted: Sequence[str] | None = None) -> list[Job]:
    """The runs of the wanted parts, None for all, in their order: part by part, and in each seed by seed over its arms,
    so that a stopped experiment has as many seeds of one arm as of another."""
    return [
        Job(arm, seed)
        for part in (parts(known) if wanted is None else wanted)
        for seed in sorted({seed for arm in known.values() if arm.part == part for seed in arm.seeds})
        for arm in known.values()
        if arm.part == part and seed in arm.seeds
    ]


def third_of(name: str) -> int:
    """The part of plan2.md that a cluster of targets or a group of heads is in: 0 for screening, 1 and 2 for the
    endpoints."""
    return int.from_bytes(hashlib.sha256(f"plan2 {name}".encode()).digest()) % 3


def _seeds(written: str) -> range:
    first, _, last = written.rpartition("-")
    return range(int(first or 1), int(last) + 1)


def numbers_of_steps(wanted: Mapping[str, Arm], known: Mapping[str, Arm], settings: Sequence[str]) -> dict[str, int]:
    """Arm -> training steps, of the wanted ones among those known. Those of FULL are what the configuration gives; an
    arm that keeps a share of the triples has the same share of the steps, and so sees each of its triples as often.
    Labels the triples, unless the cache has their labels already."""
    counted = {FULL} | {arm.steps_of for arm in wanted.values()}
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        configs = {name: configured(compose("config", [*settings, *known[name].settings])) for name in sorted(counted)}
    kept = {name: kept_triples(config) for name, config in configs.items()}
    full = configs[FULL].training()[0].num_steps(kept[FULL])
    return {name: math.ceil(full * kept[arm.steps_of] / kept[FULL]) - arm.fewer for name, arm in wanted.items()}


def kept_triples(config: Config) -> int:
    """How many training triples the policy of a configuration keeps."""
    plan = make_plan(config, Scorers(config.score))
    labelled = plan.labeller.label(plan.corpus.triples)
    ledger = apply_policy(plan.policy, labelled, plan.target_list)
    train = ledger.filter(split="train")
    return train.filter(train["weight"] > 0, train["valid"]).height


def command(
    job: Job, steps: int, more: Sequence[str], base: Path | None = None, settings: Sequence[str] = SETTINGS
) -> list[str]:
    """The settings of a run. base: the folder of the run whose model it builds on, for an arm that has a base."""
    model = "" if base is None else str(base / "model")
    own = [setting.replace(BASE, model) for setting in job.arm.settings]
    return [*settings, *more, *own, "trainer.max_epochs=1000", f"trainer.max_steps={steps}", f"seed={job.seed}"]


def place(outputs: Path, arm: str, seed: int) -> Path:
    """The folder that a run's folder is in. Runs of one seed share a folder, and so the stages that they have in
    common; those of the first experiment and of the screening have a folder each."""
    own = outputs.resolve() / f"{arm}-seed{seed}"
    return own if own.is_dir() else outputs.resolve() / f"seed{seed}"


def ready(waiting: Sequence[Job], done: Mapping[tuple[str, int], Path]) -> Iterator[Job]:
    """Of the waiting runs those whose base is done, in their order."""
    return (job for job in waiting if job.arm.base is None or (job.arm.base, job.seed) in done)
