"""The model cards of the regard classifiers that come with the project."""

from collections.abc import Mapping
from pathlib import Path

from mitigate.report.markdown import environment

TITLES = {"minilm": "all-MiniLM-L6-v2", "ngram": "n-grams"}
WHAT = {
    "minilm": "A low-rank change of the encoder all-MiniLM-L6-v2 and a linear head; the encoder (Apache-2.0) is apart.",
    "ngram": "A linear model of hashed word and character n-grams, for tens of millions of texts.",
}
LEARNT = {
    "minilm": "eight of ten for training (one of these held out while settings were chosen), two for testing.",
    "ngram": "seven of ten for training, one to set the offsets of the logits, two for testing.",
}
PARTS = {
    "test": "BERT's labels, unseen targets",
    "people": "Sheng et al., test",
    "ConceptNet/majority": "crowd on ConceptNet, majority",
    "ConceptNet/vote": "crowd on ConceptNet, each vote",
    "GenericsKB/majority": "crowd on GenericsKB, majority",
    "GenericsKB/vote": "crowd on GenericsKB, each vote",
}


def render(name: str, metrics: Mapping[str, float], seed: int) -> str:
    """The card of "minilm" or "ngram" as Markdown with the hub's front matter."""
    return (
        environment(Path(__file__).parent)
        .get_template("regard_card.md.jinja")
        .render(
            name=name,
            title=TITLES[name],
            what=WHAT[name],
            learnt=LEARNT[name],
            parts=PARTS,
            of=lambda part, key: metrics[f"{name}/{part}/{key}"],
            teacher=lambda key: metrics[f"teacher/test/{key}"],
            seed=seed,
        )
    )
