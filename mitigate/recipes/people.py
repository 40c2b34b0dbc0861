"""recipe=people: the measures that learn from people's ratings alone, crowd2 and people_valid, and with recipe.base
crowd_lm: load > train > measure > card. With a half of the ratings of validity there is no crowd2, which would be the
same."""

from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.root import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.report import people_card
from mitigate.runs.files import write
from mitigate.runs.fingerprints import digest_of_values
from mitigate.tasks.caveats import WHOLE
from mitigate.tasks.crowd.accuracy import FILE
from mitigate.tasks.crowd.texts import Texts, read_texts
from mitigate.tasks.people.figures import measure_polarity, measure_validity
from mitigate.tasks.people.training import train_harm, train_validity
from mitigate.tasks.rated import read_with_quality
from models import hub, states

MEASURES = VALIDITY, CROWD2, CROWD_LM = "people_valid", "crowd2", "crowd_lm"


def run(config: DictConfig) -> float | None:
    """Train the measures and say how well they agree with people; returns the AUC of people_valid."""
    root = root_with(config.data.root, ["humans", "sbic"])
    texts, rated = read_texts(root), read_with_quality(root)
    base, of_validity = (
        None if named is None else digest_of_model(named) for named in (config.recipe.base, config.recipe.validity.base)
    )
    learnt = {CROWD2: config.recipe.validity.half == WHOLE, CROWD_LM: base is not None}
    names = [name for name in MEASURES if learnt.get(name, True)]
    say(f"people: {rated.height:,} statements rated for validity, {texts.rated.height:,} for polarity")
    found = perform(
        config,
        config.recipe.name,
        digest_of_values(texts.digest(), rated, base, of_validity),
        lambda job: pipeline(job, texts, rated, names),
        lambda job: record(job, names),
        uploads=["the heads"],
    )
    if found is None:
        return None
    return people_card.figures(VALIDITY, found[f"{VALIDITY}_figures"].facts())["people_valid/all/all/auc"]


def digest_of_model(base: str) -> str:
    """The hash of a causal language model. Raises MitigateError where there is none of that name."""
    try:
        return states.digest_of(hub.locate(base, seq2seq=False))
    except (FileNotFoundError, ValueError) as error:
        raise MitigateError(f"recipe.base: {error}") from error


def pipeline(job: Job, texts: Texts, rated: pl.DataFrame, names: list[str]) -> None:
    """Train and measure each; its heads are left in a folder of its name in the run folder."""
    for name in names:
        if name == VALIDITY:
            _validity(job, rated)
        else:
            _polarity(job, texts, name)


def record(job: Job, names: list[str]) -> None:
    """The figures; and of each measure accuracy.csv and the card, beside its heads."""
    metrics: dict[str, Any] = {}
    for name in names:
        tables = job.results[f"{name}_figures"].facts()
        write(job.folder / name / "README.md", people_card.render(name, tables, settings_of(job.config, name)))
        if "accuracy" in tables:
            write(job.folder / name / FILE, pl.DataFrame(tables["accuracy"], infer_schema_length=None).write_csv())
        metrics |= people_card.figures(name, tables)
        job.tracking.artifact(name, "model", job.folder / name, metrics)
    job.tracking.summarise(metrics)


def settings_of(config: DictConfig, name: str) -> dict[str, Any]:
    """The settings of a measure; crowd_lm has those of crowd2 but for what differs."""
    recipe = plain(config.recipe)
    if name == VALIDITY and recipe["validity"]["base"] is not None:
        return {**recipe["validity"], "layers": None, "depth": recipe["lm"]["depth"]}
    if name == CROWD_LM:
        return {**recipe["harm"], "layers": None, **recipe["lm"]}
    return recipe["harm" if name == CROWD2 else "validity"]


def _validity(job: Job, rated: pl.DataFrame) -> None:
    using, settings = {"folder": job.folder}, settings_of(job.config, VALIDITY)
    base = settings["base"]
    trained = job.stage(VALIDITY, train_validity, rated, settings, base=base, using=using, **_left(VALIDITY))
    job.stage(f"{VALIDITY}_figures", measure_validity, rated, base=base, after=[trained], using=using)


def _polarity(job: Job, texts: Texts, name: str) -> None:
    using, settings, seed = {"folder": job.folder}, settings_of(job.config, name), job.config.seed
    read = {"scorer": name, "base": job.config.recipe.base if name == CROWD_LM else None}
    given = (texts.rated, texts.implied, settings, seed)
    trained = job.stage(name, train_harm, *given, **read, using=using, **_left(name))
    intervals = Bootstrap(resamples=job.config.measure.resamples, seed=seed)
    job.stage(f"{name}_figures", measure_polarity, texts.rated, intervals, **read, after=[trained], using=using)


def _left(name: str) -> dict[str, Any]:
    return {"leaves": [f"{name}/model.safetensors", f"{name}/config.json"], "may_be_kept": True}
