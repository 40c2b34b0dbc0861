"""The plausibility classifiers, trained from scratch on ConceptNet train100k: load > train > measure > card."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load import conceptnet
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.scorers import Scorers
from mitigate.report import classifier_cards
from mitigate.runs.files import write
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.finished import open_run
from mitigate.runs.label_cache import LabelStore
from mitigate.tasks.plausibility.average import average_networks
from mitigate.tasks.plausibility.figures import measure_plausibility, table
from mitigate.tasks.plausibility.threshold import check_dev
from mitigate.tasks.plausibility.training import train_plausibility
from mitigate.train.plausibility import Settings
from mitigate.triples import Scorer

NETWORKS = ("words", "minilm")
CLASSIFIERS = (*NETWORKS, "average")


def run(config: DictConfig) -> float | None:
    """Train two networks, and measure them and their average; returns its accuracy on the test triples."""
    for network in NETWORKS:
        settings_of(config, network)  # faults are told before anything is read
    loaded = conceptnet.load(config.data.root, config.paths.cache, config.data.on_bad_line)
    for notice in loaded.notices:
        say(f"  note: {notice}")
    triples = loaded.triples.with_columns(pl.col("head", "tail").str.to_lowercase())
    check_dev(triples)
    probes = read_probes(config.recipe.probes)
    scorers = Scorers(config.score).of_roles
    name, source = f"{config.recipe.name}-seed{config.seed}", digest_of_values(triples, probes)
    uploads = ["the classifier"]
    found = perform(config, name, source, lambda job: pipeline(job, triples, probes, scorers), record, uploads=uploads)
    return found["metrics"].facts()["average/test/accuracy"] if found else None


def pipeline(job: Job, triples: pl.DataFrame, probes: dict[str, pl.DataFrame], scorers: list[Scorer]) -> None:
    """The stages in their order; the classifiers are left in the folders words/, minilm/ and average/ of the run."""
    folder = {"folder": job.folder}
    made = {}
    for name in NETWORKS:
        log = partial(job.tracking.log, stage=name)
        made[name] = job.stage(
            name,
            train_plausibility,
            triples,
            name,
            *settings_of(job.config, name),
            using=lambda work, log=log: {"folder": work.folder, "fingerprint": work.fingerprint, "log": log},
            leaves=[f"{name}/model.safetensors", f"{name}/config.json"],
            scratch=[f"checkpoints/{name}"],
            may_be_kept=True,
        )
    made["average"] = job.stage("average", average_networks, triples, dict(made), using=folder, leaves=["average"])
    cache = LabelStore(Path(job.config.paths.cache) / "labels")
    job.stage("metrics", measure_plausibility, triples, probes, scorers, made, using=folder | {"cache": cache})


def record(job: Job) -> None:
    """The figures, and the classifiers with their cards."""
    metrics = job.results["metrics"].facts()
    job.tracking.summarise(metrics)
    for name in CLASSIFIERS:
        write(job.folder / name / "README.md", classifier_cards.plausibility(name, metrics, job.config.seed))
    job.tracking.artifact("plausibility", "model", job.folder / "average", metrics)
    say(table(metrics, CLASSIFIERS))


def settings_of(config: DictConfig, name: str) -> tuple[dict[str, Any], Settings]:
    """The shape of a network, and how it is trained. Raises MitigateError for settings that cannot be."""
    settings = plain(config.recipe[name])
    shape = {key: settings.pop(key) for key in ("width", "dropout") if key in settings}
    return shape, Settings(**settings, seed=config.seed)


def read_probes(folders: Iterable[str]) -> dict[str, pl.DataFrame]:
    """The generated triples of finished runs by the names of their folders, which figures are called by. Raises
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
    # Before targets were asked about in events, the target itself was the head, and no column said so.
    head = pl.col("head" if "head" in probed.columns else "target").alias("head")
    return probed.select(head, "relation", "tail")
