"""recipe=humans: the harms paper's human evaluation, a survey to hand out and the figures of the ratings."""

from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.recipes.humans import ratings, survey

PAIR = ("sentences", "bias_labels")


def run(config: DictConfig) -> None:
    """Make a survey when runs or a file of statements are given, else read the ratings that are named. Raises
    MitigateError when both are, or half of what belongs together."""
    asking = bool(config.data.runs) or bool(config.data.get("path"))
    reading = bool(config.humans.answers) or any(config.humans[name] for name in (*PAIR, "quality_labels"))
    if asking and reading:
        raise MitigateError(
            "either make a survey (data.runs or data.path) or read ratings (humans.answers or humans.sentences), not "
            "both at once"
        )
    if bool(config.humans.answers) != bool(config.humans.survey):
        raise MitigateError("give both humans.answers=[FILE.csv,...] and humans.survey=DIR, its run folder")
    if reading and not config.humans.answers and not all(config.humans[name] for name in PAIR):
        raise MitigateError("give both humans.sentences=FILE and humans.bias_labels=FILE")
    (survey if asking else ratings).run(config)
