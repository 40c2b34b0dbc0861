"""The plausibility classifiers, trained from scratch on ConceptNet train100k: load > train > measure > card."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load import conceptnet
from mitigate.recipes.job import Job, perform, plain, say, say_notes
from mitigate.recipes.scorers import Scorers, label_cache
from mitigate.report import classifier_cards
from mitigate.runs.files import write
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.finished import open_run
from mitigate.tasks.plausibility.figures import measure_plausibility, table
from mitigate.tasks.plausibility.training import average_networks, check_dev, train_plausibility
from mitigate.train.plausibility import Settings
from mitigate.triples import LabelCache, Scorer

NETWORKS = ("words", "minilm")
CLASSIFIERS = (*NETWORKS, "average")


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    triples: pl.DataFrame  # of train100k, in lower case
    probes: dict[str, pl.DataFrame]  # generated triples of finished runs, by their folders' names
    networks: dict[str, tuple[dict[str, Any], Settings]]  # by name the shape, and how it is trained
    scorers: list[Scorer]
    seed: int
    cache: LabelCache


def run(config: DictConfig) -> float | None:
    """Train two networks, and measure them and their average; returns its accuracy on the test triples."""
    plan = make_plan(config)
    name, source = f"{config.recipe.name}-seed{config.seed}", digest_of_values(plan.triples, plan.probes)
    phases = partial(pipeline, plan=plan), partial(record, plan=plan)
    found = perform(config, name, source, *phases, uploads=["the classifier"])
    return found["metrics"].facts()["average/test/accuracy"] if found else None


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    networks = {name: settings_of(config, name) for name in NETWORKS}  # checked before anything is read
    loaded = conceptnet.load(config.data.root, config.paths.cache, config.data.on_bad_line)
    say_notes(loaded.notices)
    triples = loaded.rows.with_columns(pl.col("head", "tail").str.to_lowercase())
    check_dev(triples)
    probes, scorers = read_probes(config.recipe.probes), Scorers(config.score).of_roles
    return Plan(triples, probes, networks, scorers, config.seed, label_cache(config))


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order; classifiers are left in the folders words/, minilm/ and average/ of the run."""
    triples, folder = plan.triples, {"folder": job.folder}
    made = {
        name: job.stage(
            name,
            train_plausibility,
            triples,
            name,
            *settings,
            using=job.training(name),
            leaves=[f"{name}/model.safetensors", f"{name}/config.json"],
            scratch=[f"checkpoints/{name}"],
            may_be_kept=True,
        )
        for name, settings in plan.networks.items()
    }
    made["average"] = job.stage("average", average_networks, triples, dict(made), using=folder, leaves=["average"])
    cached = folder | {"cache": plan.cache}
    job.stage("metrics", measure_plausibility, triples, plan.probes, plan.scorers, made, using=cached)


def record(job: Job, plan: Plan) -> None:
    """Record the figures, and the classifiers with their cards."""
    metrics = job.results["metrics"].facts()
    job.tracking.summarise(metrics)
    for name in CLASSIFIERS:
        write(job.folder / name / "README.md", classifier_cards.plausibility(name, metrics, plan.seed))
    job.tracking.artifact("plausibility", "model", job.folder / "average", metrics)
    say(table(metrics, CLASSIFIERS))


def settings_of(config: DictConfig, name: str) -> tuple[dict[str, Any], Settings]:
    """The shape of a network, and how it is trained. Raises MitigateError for settings that are not allowed."""
    settings = plain(config.recipe[name])
    shape = {key: settings.pop(key) for key in ("width", "dropout") if key in settings}
    return shape, Settings(**settings, seed=config.seed)


def read_probes(folders: Iterable[str]) -> dict[str, pl.DataFrame]:
    """The generated triples of finished runs, by the names of their folders, which stand in names of figures. Raises
    MitigateError for two folders of one name."""
    found: dict[str, pl.DataFrame] = {}
    for folder in folders:
        name = Path(folder).resolve().name
        if name in found:
            raise MitigateError(f"recipe.probes names two folders called {name}; name one, or rename a copy")
        found[name] = read_probe(folder)
    return found


def read_probe(folder: str) -> pl.DataFrame:
    """The generated triples of a finished run's folder. Raises MitigateError when it has none."""
    probed = open_run(folder, needs=["probe.parquet"]).table("probe.parquet", ["target", "relation", "tail"])
    # Earlier versions had no events: the target itself was the head, and there was no column `head`.
    head = pl.col("head" if "head" in probed.columns else "target").alias("head")
    return probed.select(head, "relation", "tail")
