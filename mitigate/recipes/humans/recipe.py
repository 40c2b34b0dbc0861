"""recipe=humans: the harms paper's human evaluation: a survey for raters, and the figures of their ratings."""

from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.recipes.humans import ratings, survey

PAIR = ("sentences", "bias_labels")


def run(config: DictConfig) -> None:
    """Make a survey of runs or of a file of statements, else read the ratings that the settings name. Raises
    MitigateError for both at once, for two sources of one kind, and for half of what belongs together."""
    runs, path = bool(config.data.runs), bool(config.data.get("path"))
    answers, labels = bool(config.humans.answers), any(config.humans[name] for name in (*PAIR, "quality_labels"))
    asking, reading = runs or path, answers or labels
    if asking and reading:
        raise MitigateError(
            "settings that make a survey (data.runs, data.path) and that read ratings (humans.answers, "
            "humans.sentences) are both set; set only one kind"
        )
    if (runs and path) or (answers and labels):
        one, other = ("data.runs", "data.path") if runs and path else ("humans.answers", "humans.sentences")
        raise MitigateError(f"{one} and {other} are both set, but only one is read; leave one out")
    if answers != bool(config.humans.survey):
        raise MitigateError(
            "humans.answers and humans.survey need each other; set humans.answers=[FILE.csv,...] and "
            "humans.survey=DIR, the run folder of the survey"
        )
    if labels and not all(config.humans[name] for name in PAIR):
        raise MitigateError(
            "humans.sentences and humans.bias_labels need each other; set humans.sentences=FILE and "
            "humans.bias_labels=FILE"
        )
    (survey if asking else ratings).run(config)
