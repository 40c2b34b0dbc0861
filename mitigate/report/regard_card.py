"""The model cards of the regard classifiers that come with the project."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mitigate.report.identity import ERRORS
from mitigate.report.markdown import environment

TITLES = {"minilm": "all-MiniLM-L6-v2", "ngram": "n-grams"}
WHAT = {
    "minilm": "Layers of the encoder all-MiniLM-L6-v2 (config.json says which) with a low-rank change and a linear "
    "head, and before them a gate that passes what is plainly neutral; the encoder (Apache-2.0) is apart.",
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
    "ConceptNet/unseen": "crowd on ConceptNet, majority, unseen targets",
    "GenericsKB/majority": "crowd on GenericsKB, majority",
    "GenericsKB/vote": "crowd on GenericsKB, each vote",
    "GenericsKB/unseen": "crowd on GenericsKB, majority, unseen targets",
    "COMeT/majority": "crowd on COMeT, majority",
    "COMeT/vote": "crowd on COMeT, each vote",
    "COMeT/unseen": "crowd on COMeT, majority, unseen targets",
}
CELLS = {  # part and number of measure.identity: what it is
    ("unseen", "both"): "unseen terms, unseen frames",
    ("unseen", "singular"): "the same, singular",
    ("unseen", "plural"): "the same, plural",
    ("unseen_terms", "both"): "unseen terms, frames to train with",
    ("unseen_frames", "both"): "terms to train with, unseen frames",
    ("seen", "both"): "terms and frames to train with",
    ("all", "both"): "all",
}
TEST_FRAMES = ("unseen", "unseen_frames")  # parts; of unseen terms, and of those to train with


def render(
    name: str,
    metrics: Mapping[str, float],
    seed: int,
    terms: pl.DataFrame,
    summed: pl.DataFrame,
    checked: pl.DataFrame,
) -> str:
    """The card of "minilm" or "ngram" as Markdown with the hub's front matter. terms, summed: its errors on identity
    terms (measure.identity.by_term, summary). checked: what the gate loses (tasks.regard.figures.GATE)."""
    return (
        environment(Path(__file__).parent)
        .get_template("regard_card.md.jinja")
        .render(
            name=name,
            title=TITLES[name],
            what=WHAT[name],
            learnt=LEARNT[name],
            parts={part: said for part, said in PARTS.items() if f"{name}/{part}/kappa" in metrics},
            of=lambda part, key: metrics[f"{name}/{part}/{key}"],
            teacher=lambda key: metrics[f"teacher/test/{key}"],
            seed=seed,
            checked=checked.rows(named=True),
            identity=identity_section(terms, summed),
        )
    )


def identity_section(terms: pl.DataFrame, summed: pl.DataFrame) -> str:
    """The part of the card about identity terms."""
    on_test_frames = terms.filter(pl.col("part").is_in(TEST_FRAMES), pl.col("number") == "both")
    named = on_test_frames.filter(pl.col("axis").is_not_null() | (pl.col("part") == TEST_FRAMES[0]))
    return (
        environment(Path(__file__).parent)
        .get_template("regard_identity.md.jinja")
        .render(
            cells=[
                (title, said, row)
                for cell, title in CELLS.items()
                for error, said in ERRORS.items()
                for row in summed.filter(part=cell[0], number=cell[1], error=error).rows(named=True)
            ],
            terms=named.sort("axis", "part", nulls_last=True, maintain_order=True).rows(named=True),
        )
    )
