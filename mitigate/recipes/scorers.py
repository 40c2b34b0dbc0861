"""The scorers that the configuration names."""

from omegaconf import DictConfig

from mitigate.errors import one_of
from mitigate.recipes.job import build
from mitigate.triples import Scorer

ROLES = ("sentiment", "regard")  # what every recipe labels


def build_scorers(score: DictConfig) -> list[Scorer]:
    """Sentiment, regard, and those of score.extra."""
    return [build_scorer(score, role) for role in ROLES] + build_extras(score)


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
    return build(score.scorers[name])
