"""The generator that tells the stories: as it is, or after it has read a resource as sentences, all of it or what a
policy keeps, as CSG read ConceptNet (Guan et al. 2020)."""

import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from mitigate import filter as filtering
from mitigate.recipes.job import Job
from mitigate.recipes.mitigate import recipe as main_job
from mitigate.recipes.mitigate.plan import Plan, training_settings
from mitigate.recipes.stories.plan import StoryPlan
from mitigate.store import Result
from mitigate.train import batches, checkpoints, harness, module
from mitigate.train import comet as comet_training
from mitigate.train import stories as training
from mitigate.train.stories import Texts
from models import language_model, reading
from models.language_model import LanguageModel

SENTENCES = 5  # of a text that is read: as many as of a story


def train(job: Job, plan: StoryPlan) -> tuple[Result, Result | None]:
    """How the generator came about, and the ledger of what it read, with its weights in the run folder as model/."""
    start, resource = plan.start, plan.resource
    assert start is not None
    if resource is None:
        facts = {"trained": False, "weights": start.weights}
        return job.old_stage("train", lambda _: facts, settings=start.identity, code=(start.code, language_model)), None
    ledger = _ledger(job, resource)
    how, where = training_settings(plan.config)

    def compute(fingerprint: str) -> dict[str, Any]:
        rows = ledger.table().filter(pl.col("weight") > 0, "valid")
        generator = as_language_model(start.load())
        fitted = training.fit(
            generator,
            paragraphs(rows.filter(split="train")),
            how,
            job.folder / "checkpoints",
            fingerprint=fingerprint,
            dev=paragraphs(rows.filter(split="dev")),
            accelerator=where["accelerator"],
            log=lambda values, step: job.tracking.log(values, step, "train"),
        )
        shutil.rmtree(job.folder / "model", ignore_errors=True)
        generator.save(job.folder / "model")
        shutil.rmtree(job.folder / "checkpoints", ignore_errors=True)  # a short training leaves none
        return fitted._asdict()

    settings = {**asdict(how), "checkpoint_every": None, "model": start.identity, "sentences": SENTENCES}
    code = (training, comet_training, batches, checkpoints, harness, module, reading, language_model, start.code)
    result = job.old_stage("train", compute, needs=[ledger.digest], settings=settings, code=code, leaves=["model"])
    return result, ledger


def generator(job: Job, plan: StoryPlan) -> LanguageModel:
    """The one that tells: trained here, or the one at hand."""
    assert plan.start is not None
    return as_language_model(plan.start.load()) if plan.resource is None else LanguageModel.load(job.folder / "model")


def as_language_model(loaded: Any) -> LanguageModel:
    """What a model's folder gave, as what can go on with any text: a COMeT's decoder is a language model like others,
    once it is saved as one."""
    if isinstance(loaded, LanguageModel):
        return loaded
    with tempfile.TemporaryDirectory(prefix="mitigate-") as folder:
        loaded.save(Path(folder))
        return LanguageModel.load(Path(folder))


def paragraphs(rows: pl.DataFrame) -> Texts:
    """Rows of a ledger as texts to read: what is said of one head, up to SENTENCES statements a text, which weighs what
    they weigh on average."""
    place = (pl.int_range(pl.len()).over("head") // SENTENCES).alias("place")
    texts = rows.group_by("head", place, maintain_order=True).agg(
        text=pl.col("statement").str.join(". ") + ".", weight=pl.col("weight").cast(pl.Float64).mean()
    )
    return Texts(texts["text"].to_list(), texts["weight"].to_numpy())


def _ledger(job: Job, resource: Plan) -> Result:
    """What the policy keeps of the resource, as in the main job."""
    corpus = main_job.score(job, resource, "corpus", resource.source, resource.corpus.triples)

    def compute(_: str) -> pl.DataFrame:
        return filtering.apply(resource.policy, corpus.table())

    return job.old_stage("ledger", compute, needs=[corpus.digest], settings=resource.config.policy, code=[filtering])
