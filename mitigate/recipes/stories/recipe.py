"""A story generator probed as in the harms paper (Section 4.2): probe > score > measure > report. Where it is to learn
from a resource first, load > verbalise > score > filter > train come before."""

import shutil
import sys
from dataclasses import asdict
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import sentences as sentence_room
from mitigate.errors import MitigateError
from mitigate.probe import stories as probing
from mitigate.probe.comet import find_devices
from mitigate.recipes.audit import recipe as audit
from mitigate.recipes.job import Job, perform, say
from mitigate.recipes.stories import measures, reporting
from mitigate.recipes.stories.plan import StoryPlan, is_file, make_plan, to_download
from mitigate.recipes.stories.training import generator, train
from mitigate.sentences import whole_sentences
from mitigate.store import PartFolder, Result, as_parquet, digest_of
from models import language_model, sampling

STAGES = ("corpus", "ledger", "train", "probe", "score", "metrics", "report")


def run(config: DictConfig) -> float | None:
    """Have stories told, or read them, and measure; returns the metric that `optimized_metric` names."""
    addresses = to_download(config)
    for address in addresses:
        say(f"  {'would be' if config.dry_run else 'to be'} downloaded: {address}")
    if config.dry_run and addresses:
        return None
    plan = make_plan(config)
    for notice in plan.notices:
        say(f"  note: {notice}")
    say(
        f"  {plan.asked['row'].n_unique():,} prompts about {plan.audit.targets.height:,} targets; told by {plan.teller}"
    )
    told = reporting.uploads(plan)
    metrics = perform(
        config, _name(plan), plan.audit.source, _stages(plan), lambda job: pipeline(job, plan), uploads=told
    )
    return metrics.get(config.optimized_metric) if metrics else None


def pipeline(job: Job, plan: StoryPlan) -> dict[str, Any]:
    """The stages in their order; returns the metrics."""
    stories, ledger = probe(job, plan)
    said = score(job, plan, stories)
    metrics = job.old_stage(
        "metrics",
        lambda _: measures.measure(plan, stories.table(), said.table()),
        needs=[stories.digest, said.digest],
        settings=[plan.config.measure, plan.how.fewest, plan.config.recipe.permutations],
        code=measures.CODE,
    )
    reporting.report(job, plan, stories, said, ledger, metrics.facts())
    return metrics.facts()


def probe(job: Job, plan: StoryPlan) -> tuple[Result, Result | None]:
    """The stories, a row each, and the ledger of what their generator read."""
    if plan.start is None:
        return job.old_stage("probe", lambda _: plan.asked, needs=[plan.audit.source]), None
    trained, ledger = train(job, plan)

    def compute(fingerprint: str) -> pl.DataFrame:
        parts = PartFolder(job.folder / "parts" / fingerprint[:16])
        (device,) = find_devices(plan.config.probe.device, 1)
        told = probing.tell(generator(job, plan), plan.asked, plan.how, parts=parts, device=device)
        shutil.rmtree(job.folder / "parts")
        return told

    result = job.old_stage(
        "probe",
        compute,
        needs=[trained.digest, digest_of(as_parquet(plan.asked))],
        settings=asdict(plan.how),
        code=(probing, sentence_room, sampling, language_model),
    )
    return result, ledger


def score(job: Job, plan: StoryPlan, stories: Result) -> Result:
    """The stories' sentences, masked and labelled: what an audit does with statements of a file."""

    def compute(_: str) -> pl.DataFrame:
        said = sentences(stories.table(), plan.how.most)
        if said.is_empty():
            raise MitigateError(
                f"none of the {plan.asked.height:,} stories has a whole sentence, so nothing can be measured; allow "
                "longer ones with recipe.max_tokens, or have another model tell them"
            )
        return audit.label(plan.audit, said)

    settings = [plan.config.measure.masking, plan.how.most, [scorer.fingerprint for scorer in plan.audit.scorers]]
    return job.old_stage(
        "score",
        compute,
        needs=[stories.digest],
        settings=settings,
        code=(*audit.WORDING, sentence_room, sys.modules[__name__]),
    )


def sentences(stories: pl.DataFrame, most: int) -> pl.DataFrame:
    """The first `most` whole sentences of each story, a row each: its columns, with `sentence`, from 1, and
    `statement`, what it says. A story without one has no row."""
    whole = pl.col("story").map_elements(lambda story: whole_sentences(story)[:most], return_dtype=pl.List(pl.String))
    said = stories.with_columns(statement=whole).filter(pl.col("statement").list.len() > 0).drop("story")
    return said.explode("statement").with_columns(sentence=pl.int_range(1, pl.len() + 1).over("row", "target"))


def _name(plan: StoryPlan) -> str:
    """What the run is, as the beginning of its folder's name."""
    config = plan.config
    if plan.start is None:
        return f"stories-{config.data.name}-{config.score.regard or config.score.sentiment}"
    learnt = f"{config.policy.name}-{config.data.name}-" if plan.resource else ""
    return f"stories-{learnt}{config.model.name}-seed{config.seed}"


def _stages(plan: StoryPlan) -> list[str]:
    """The stages that the settings ask for."""
    absent = {"corpus", "ledger"} if plan.resource is None else set()
    return [stage for stage in STAGES if stage not in absent | ({"train"} if is_file(plan.config) else set())]
