"""The scorers that the configuration names."""

from functools import partial

from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError, one_of
from mitigate.recipes.job import build, plain
from mitigate.score.workers import OnWorkers
from mitigate.triples import ROLES, Scorer

ENGINES = ("local", "ray")  # that label: this process, or the workers of Ray


def build_scorers(score: DictConfig) -> list[Scorer]:
    """Sentiment, regard, and those of score.extra; a role that is null is left out. Raises MitigateError when nothing
    is left."""
    roles = [build_scorer(score, role) for role in ROLES if score[role] is not None]
    scorers = roles + build_extras(score)
    if not scorers:
        raise MitigateError("score.sentiment, score.regard and score.extra name no scorer; at least one must label")
    return scorers


def build_extras(score: DictConfig) -> list[Scorer]:
    """The scorers of score.extra, each called in tables as it is there: ngram beside minilm has columns of its own."""
    extras = []
    for name in dict.fromkeys(score.extra):
        scorer = _named(score, "score.extra", name)
        scorer.name = name
        extras.append(scorer)
    return extras


def build_scorer(score: DictConfig, role: str) -> Scorer:
    """The scorer that score.sentiment or score.regard names. Raises MitigateError for one that is not in the list."""
    return _named(score, f"score.{role}", score[role])


def _named(score: DictConfig, setting: str, name: str) -> Scorer:
    if name not in score.scorers:
        raise one_of(setting, name, score.scorers)
    if score.engine not in ENGINES:
        raise one_of("score.engine", score.engine, ENGINES)
    here = build(score.scorers[name])
    if score.engine == "local" or name not in score.networks:
        return here
    load = partial(build, OmegaConf.create(plain(score.scorers[name])))
    return OnWorkers(here, load, score.workers, score.address)
