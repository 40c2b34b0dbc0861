"""The scorers that the configuration names."""

from omegaconf import DictConfig

from mitigate.errors import one_of
from mitigate.recipes.job import build
from mitigate.triples import Scorer


def build_scorers(score: DictConfig) -> list[Scorer]:
    """Sentiment, regard, and those of score.extra; a name twice is built once."""
    names = {"score.sentiment": [score.sentiment], "score.regard": [score.regard], "score.extra": score.extra}
    chosen = dict.fromkeys((setting, name) for setting, named in names.items() for name in named)
    return [build_scorer(score, *choice) for choice in chosen]


def build_scorer(score: DictConfig, setting: str, name: str) -> Scorer:
    """The scorer of that name. Raises MitigateError, naming the setting, for one that is not in the list."""
    if name not in score.scorers:
        raise one_of(setting, name, score.scorers)
    return build(score.scorers[name])
