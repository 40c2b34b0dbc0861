"""What each number is called, which direction is better, and what it means: the words that the console
table, the page and the model card share."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mitigate.targets import CATEGORIES
from mitigate.triples import TEMPLATE_PREFIX

Value = float | int | str | None
Metrics = Mapping[str, Value]
"""A run's metrics.json: flat, such as {"NSM": 61.2, "NSM_low": 59.8, "neutral_template/NRM/origin": 80.1}."""


class Measure(NamedTuple):
    key: str
    name: str
    better: str  # "up" or "down"
    decimals: int
    meaning: str

    @property
    def arrow(self) -> str:
        return {"up": "↑", "down": "↓"}[self.better]

    @property
    def title(self) -> str:
        """The paper's name, "NSM", or of a further scorer "ngram: neutral mean"."""
        scorer, _, name = self.key.rpartition("/")
        return f"{scorer}: {name.replace('_', ' ')}" if scorer else self.key


MEAN, VARIANCE = "/neutral_mean", "/neutral_variance"  # of a scorer whose measures the paper gives no name

HARMS = (
    Measure(
        "NSM",
        "neutral sentiment, mean",
        "up",
        2,
        "For each target, the percentage of its statements whose sentiment is neutral; then the mean over "
        "targets. Higher means less overgeneralisation: fewer statements praise or blame a whole group.",
    ),
    Measure(
        "NSV",
        "neutral sentiment, variance",
        "down",
        2,
        "The variance of that percentage over targets. Lower means less disparity: targets are spoken of more alike.",
    ),
    Measure(
        "NRM",
        "neutral regard, mean",
        "up",
        2,
        "As NSM, with regard in place of sentiment: not whether the words are pleasant, but whether the "
        "statement makes one think well or ill of the person.",
    ),
    Measure("NRV", "neutral regard, variance", "down", 2, "The variance of neutral regard over targets."),
)

QUALITY = (
    Measure(
        "perplexity",
        "perplexity",
        "down",
        2,
        "How surprised the generator is by the tails of held-out valid triples, for each token. Comparable "
        "only between models that cut text into tokens alike.",
    ),
    Measure(
        "bits_per_char",
        "bits per character",
        "down",
        3,
        "The same surprise for each character, so comparable between tokenizers.",
    ),
    Measure(
        "bleu2",
        "BLEU-2",
        "up",
        2,
        "How many words and word pairs of the generated tails the held-out tails share.",
    ),
    Measure(
        "first_valid",
        "first tails judged valid",
        "up",
        1,
        "Of what the generator says first for the held-out triples' heads and relations, the percentage that a network "
        "trained on ConceptNet judges to be valid.",
    ),
)

VALID = Measure(
    "valid",
    "judged valid",
    "up",
    2,
    "For each target, the percentage of what is said of it that a network trained on ConceptNet judges to be valid; "
    "then the mean over targets. Valid means what contributors to ConceptNet would say: neither truth nor fairness.",
)

SUBSETS = {
    "all": "all held-out triples",
    "neutral": "those with a neutral label",
    "polar": "those with a polarised label",
    "target": "those about a target",
}

PROBED = {
    "all": "all probed statements",
    "neutral": "those with a neutral label",
    "polar": "those with a polarised label",
}

TEMPLATE_NAMES = {"paper": "paper's template", "neutral": "phrase neutralised"}


def harms(keys: Iterable[str]) -> list[Measure]:
    """The measures of harm that metrics with these keys have, in both wordings or in one: the paper's, and those of
    further scorers."""
    present = {key.removeprefix(TEMPLATE_PREFIX["neutral"]): None for key in keys}
    found = [measure for measure in HARMS if measure.key in present]
    for scorer in [key.removesuffix(MEAN) for key in present if key.endswith(MEAN)]:
        found.append(Measure(scorer + MEAN, f"neutral by {scorer}, mean", "up", 2, ""))
        found.append(Measure(scorer + VARIANCE, f"neutral by {scorer}, variance", "down", 2, ""))
    return found


def harm_key(measure: Measure, template: str, category: str | None = None) -> str:
    """The key of a harm measure: ("NSM", "neutral", "origin") is "neutral_template/NSM/origin"."""
    return TEMPLATE_PREFIX[template] + measure.key + (f"/{category}" if category else "")


def quality_key(measure: Measure, subset: str) -> str:
    """The key of a quality measure: "quality/perplexity/neutral"."""
    return f"quality/{measure.key}/{subset}"


def ordered(categories: Iterable[str]) -> list[str]:
    """Each category once: the paper's four in its order, then a user's."""
    found = set(categories)
    return [name for name in CATEGORIES if name in found] + sorted(found - set(CATEGORIES))


def categories(keys: Iterable[str]) -> list[str]:
    """The categories that have measures of their own, in order."""
    names = {measure.key for measure in HARMS}
    parts = [key.removeprefix(TEMPLATE_PREFIX["neutral"]).split("/") for key in keys]
    found = [part[1] for part in parts if len(part) == 2 and part[0] in names]
    return ordered(name for name in found if not name.endswith(("_low", "_high")))


def probed_parts(metrics: Metrics) -> dict[str, str]:
    """The parts of the probed statements whose share of valid ones is known, and what each is called."""
    parts = PROBED | {category: category for category in categories(metrics)}
    return {part: name for part, name in parts.items() if quality_key(VALID, part) in metrics}


def number(value: Value, decimals: int = 2) -> str:
    """The number as shown: thousands apart, a true minus, and a dash where there is none."""
    if not isinstance(value, int | float) or value != value:
        return "–"
    return (f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}").replace("-", "−")


def interval(metrics: Metrics, key: str, decimals: int = 2) -> str:
    """The measure's interval as "[59.80, 62.70]", or "" where none was estimated."""
    low, high = metrics.get(f"{key}_low"), metrics.get(f"{key}_high")
    if low is None or high is None:
        return ""
    return f"[{number(low, decimals)}, {number(high, decimals)}]"
