"""recipe=people: measures that learn from people's ratings alone: crowd2, people_valid and, with recipe.base, crowd_lm:
load > train > measure > card. With a half of the ratings of validity crowd2 is left out, since it would not differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.files import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.report import classifier_cards
from mitigate.runs.files import write
from mitigate.runs.fingerprints import digest_of_values
from mitigate.tasks.caveats import WHOLE
from mitigate.tasks.crowd.accuracy import FILE
from mitigate.tasks.crowd.training import Texts, read_texts
from mitigate.tasks.people.figures import measure_polarity, measure_validity
from mitigate.tasks.people.training import train_harm, train_validity
from mitigate.tasks.ratings.paper_statements import read_with_quality
from models import hub, states

MEASURES = VALIDITY, CROWD2, CROWD_LM = "people_valid", "crowd2", "crowd_lm"


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    texts: Texts
    rated: pl.DataFrame  # statements rated for validity
    base: str | None  # of crowd_lm
    settings: Mapping[str, Mapping[str, Any]]  # by measure, of those that are trained
    seed: int
    intervals: Bootstrap


def run(config: DictConfig) -> float | None:
    """Train the measures and measure how well they agree with people; returns the AUC of people_valid."""
    root = root_with(config.data.root, ["humans", "sbic"])
    base, of_validity = map(digest_of_model, (config.recipe.base, config.recipe.validity.base))
    learnt = {CROWD2: config.recipe.validity.half == WHOLE, CROWD_LM: base is not None}
    names = [name for name in MEASURES if learnt.get(name, True)]
    plan = Plan(
        texts=read_texts(root),
        rated=read_with_quality(root),
        base=config.recipe.base,
        settings={name: settings_of(config, name) for name in names},
        seed=config.seed,
        intervals=Bootstrap(resamples=config.measure.resamples, seed=config.seed),
    )
    say(f"people: {plan.rated.height:,} statements rated for validity, {plan.texts.rated.height:,} for polarity")
    source = digest_of_values(plan.texts.digest(), plan.rated, base, of_validity)
    phases = partial(pipeline, plan=plan), partial(record, plan=plan)
    found = perform(config, config.recipe.name, source, *phases, uploads=["the heads"])
    if found is None:
        return None
    return classifier_cards.figures(VALIDITY, found[f"{VALIDITY}_figures"].facts())["people_valid/all/all/auc"]


def digest_of_model(base: str | None) -> str | None:
    """The hash of a causal language model, if one is named. Raises MitigateError where there is none of that name."""
    try:
        return None if base is None else states.digest_of(hub.locate(base, seq2seq=False))
    except (FileNotFoundError, ValueError) as error:
        raise MitigateError(f"recipe.base: {error}") from error


def pipeline(job: Job, plan: Plan) -> None:
    """Train and measure each; its heads are left in a folder of its name in the run folder."""
    using, texts = {"folder": job.folder}, plan.texts
    for name, settings in plan.settings.items():
        kept: dict[str, Any] = {
            "using": using,
            "leaves": [f"{name}/model.safetensors", f"{name}/config.json"],
            "may_be_kept": True,
        }
        if name == VALIDITY:
            base = settings["base"]
            trained = job.stage(name, train_validity, plan.rated, settings, base=base, **kept)
            job.stage(f"{name}_figures", measure_validity, plan.rated, base=base, after=[trained], using=using)
        else:
            read: dict[str, Any] = {"scorer": name, "base": plan.base if name == CROWD_LM else None}
            trained = job.stage(name, train_harm, texts.rated, texts.implied, settings, plan.seed, **read, **kept)
            values = measure_polarity, texts.rated, plan.intervals
            job.stage(f"{name}_figures", *values, **read, after=[trained], using=using)


def record(job: Job, plan: Plan) -> None:
    """Record the figures, and write accuracy.csv and the card of each measure beside its heads."""
    metrics: dict[str, Any] = {}
    for name, settings in plan.settings.items():
        tables = job.results[f"{name}_figures"].facts()
        write(job.folder / name / "README.md", classifier_cards.people(name, tables, settings))
        if "accuracy" in tables:
            write(job.folder / name / FILE, pl.DataFrame(tables["accuracy"], infer_schema_length=None).write_csv())
        metrics |= classifier_cards.figures(name, tables)
        job.tracking.artifact(name, "model", job.folder / name, metrics)
    job.tracking.summarise(metrics)


def settings_of(config: DictConfig, name: str) -> dict[str, Any]:
    """The settings of a measure; crowd_lm has those of crowd2 but for its own ones."""
    recipe = plain(config.recipe)
    if name == VALIDITY and recipe["validity"]["base"] is not None:
        return {**recipe["validity"], "layers": None, "depth": recipe["lm"]["depth"]}
    if name == CROWD_LM:
        return {**recipe["harm"], "layers": None, **recipe["lm"]}
    return recipe["harm" if name == CROWD2 else "validity"]
