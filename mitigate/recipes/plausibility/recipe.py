"""The judges of triples, trained from scratch on ConceptNet train100k: load > train > measure > card.

What is called valid is settled on dev1; dev2 and test have no say in anything."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import relations as relation_room
from mitigate import targets as target_room
from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError
from mitigate.label_cache import LabelStore
from mitigate.load import conceptnet
from mitigate.measure import quality
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.plausibility import card
from mitigate.recipes.plausibility import figures as plausibility_figures
from mitigate.recipes.scorers import build_scorer
from mitigate.score import labels as labelling
from mitigate.store import as_parquet, digest_of, write
from mitigate.train import batches, checkpoints, harness, memory, module
from mitigate.train import plausibility as training
from mitigate.triples import ROLES, Scorer
from models.minilm import locate
from models.plausibility import average, bilinear, low_rank, phrases, pieces
from models.plausibility.average import MEMBERS, Average, load_judge
from models.plausibility.bilinear import Bilinear
from models.regard import batching

NETWORKS = ("words", "minilm")
JUDGES = (*NETWORKS, "average")
STAGES = (*JUDGES, "metrics")
READING = (bilinear, low_rank, phrases, pieces, batching)
CODE = (training, batches, checkpoints, harness, memory, module, quality, *READING)
MEASURING = (plausibility_figures, quality, relation_room, target_room, verbalising, labelling, average, *READING)


def run(config: DictConfig) -> float | None:
    """Train two networks, and measure them and their average; returns its accuracy on the test triples."""
    for network in NETWORKS:
        settings_of(config, network)  # faults are told before anything is read
    loaded = conceptnet.load(config.data.root, config.paths.cache, config.data.on_bad_line)
    for notice in loaded.notices:
        say(f"  note: {notice}")
    triples = loaded.triples.with_columns(pl.col("head", "tail").str.to_lowercase())
    probes = {Path(folder).name: read_probe(Path(folder)) for folder in config.recipe.probes}
    scorers = [build_scorer(config.score, role) for role in ROLES]
    sources = [as_parquet(table) for table in (triples, *probes.values())]
    digest = digest_of(b"".join(sources))
    name = f"{config.recipe.name}-seed{config.seed}"
    told = ["the judge"]
    metrics = perform(config, name, digest, STAGES, lambda job: pipeline(job, triples, probes, scorers), uploads=told)
    return metrics["average/test/accuracy"] if metrics else None


def pipeline(job: Job, triples: pl.DataFrame, probes: dict[str, pl.DataFrame], scorers: list[Scorer]) -> dict[str, Any]:
    """The stages in their order; the judges are left in the folders words/, minilm/ and average/ of the run."""
    learnt = digest_of(as_parquet(triples))
    made = {
        name: job.old_stage(
            name,
            partial(train, job, name, triples),
            needs=[learnt],
            settings=[job.config.seed, plain(job.config.recipe[name])],
            code=CODE,
            leaves=[f"{name}/model.safetensors", f"{name}/config.json"],
        )
        for name in NETWORKS
    }
    seconds = sum(result.facts()["seconds"] for result in made.values())
    made["average"] = job.old_stage(
        "average",
        lambda _: {"seconds": seconds} | average_networks(job, triples),
        needs=[learnt, *(result.digest for result in made.values())],
        code=(average, quality, *READING),
        leaves=["average"],
    )
    facts = {name: result.facts() for name, result in made.items()}

    def measure(_: str) -> dict[str, Any]:
        cache = LabelStore(Path(job.config.paths.cache) / "labels")
        found: dict[str, Any] = {}
        for name in JUDGES:
            judge = load_judge(job.folder / name, locate())
            figures = plausibility_figures.figures(judge, triples, probes, scorers, cache)
            found |= {f"{name}/{key}": value for key, value in (facts[name] | figures).items()}
        return found

    metrics = job.old_stage(
        "metrics",
        measure,
        needs=[learnt, *(result.digest for result in made.values())],
        settings=[[scorer.fingerprint for scorer in scorers], [digest_of(as_parquet(p)) for p in probes.values()]],
        code=MEASURING,
    ).facts()
    if not job.run.dry:
        job.tracking.summarise(metrics)
        for name in JUDGES:
            write(job.folder / name / "README.md", card.render(name, metrics, job.config.seed))
        job.tracking.artifact("plausibility", "model", job.folder / "average", metrics)
        say(plausibility_figures.table(metrics, JUDGES))
    return metrics


def train(job: Job, name: str, triples: pl.DataFrame, fingerprint: str) -> dict[str, Any]:
    """Train on the training triples, settle on dev1 what is called valid, and save; returns what came of it."""
    shape, settings = settings_of(job.config, name)
    learnt = triples.filter(split="train")
    training.seed(job.config.seed)
    network = Bilinear(locate(), sorted(learnt["relation"].unique()), name, **shape)
    fitted = training.fit(
        network,
        training.Known(learnt, network.relations),
        settings,
        job.folder / "checkpoints" / name,
        fingerprint=fingerprint,
        log=partial(job.tracking.log, stage=name),
    )
    settle(network, triples)
    network.save(job.folder / name)
    shutil.rmtree(job.folder / "checkpoints" / name, ignore_errors=True)  # a short training leaves none
    return fitted._asdict()


def average_networks(job: Job, triples: pl.DataFrame) -> dict[str, Any]:
    """Average what the two networks say, and save that as a judge of its own; returns its size."""
    judge = Average([Bilinear.load(job.folder / name, locate()) for name in MEMBERS])
    settle(judge, triples)
    folder = job.folder / "average"
    shutil.rmtree(folder, ignore_errors=True)
    judge.save(folder, made_of=job.folder)
    return {"bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())}


def settle(judge: Average | Bilinear, triples: pl.DataFrame) -> None:
    """Shift a judge's logits so that 0 is the threshold that is best on dev1."""
    dev = triples.filter(split="dev")
    scores = judge.logits(*plausibility_figures.parts(dev))
    judge.shift(-quality.best_threshold(scores, dev["valid"].to_numpy()))


def settings_of(config: DictConfig, name: str) -> tuple[dict[str, Any], training.Settings]:
    """The shape of a network, and how it is trained. Raises MitigateError for settings that cannot be."""
    settings = plain(config.recipe[name])
    shape = {key: settings.pop(key) for key in ("rank", "width", "dropout") if key in settings}
    return shape, training.Settings(**settings, seed=config.seed)


def read_probe(folder: Path) -> pl.DataFrame:
    """The probed triples of a run folder. Raises MitigateError when it has none."""
    path = folder / "probe.parquet"
    if not path.is_file():
        raise MitigateError(f"recipe.probes names {folder}, which has no probe.parquet; name folders of finished runs")
    return pl.read_parquet(path).select(pl.col("target").alias("head"), "relation", "tail")
