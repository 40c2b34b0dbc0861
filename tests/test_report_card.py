"""The model card: front matter a hub can read, and the numbers."""

from dataclasses import replace

import polars as pl
import report_example
import yaml

from mitigate.report import card

CARD = card.Card(
    name="mitigate-both",
    license="CC-BY-SA-4.0",
    base_model="sentence-transformers/all-MiniLM-L6-v2",
    base_license="Apache-2.0",
    data='ConceptNet "train100k", by its contributors',
    prompt="lawyer is capable of",
    policy="both",
    command="python -m mitigate policy=both",
    demonstration=False,
    metrics={
        **{"NSM": 61.2, "NSM_low": 59.8, "NSM_high": 62.7, "neutral_template/NSM": 70.0, "quality/perplexity/all": 9.1},
        **{"quality/valid/all": 71.5, "quality/valid/all_low": 70.0, "quality/valid/all_high": 73.0},
        "quality/valid/polar": 66.4,
    },
)


def test_front_matter_is_yaml() -> None:
    """A licence that is not given is said."""
    _, front, body = card.render(CARD).split("---\n", 2)
    matter = yaml.safe_load(front)
    assert matter["license"] == "cc-by-sa-4.0"
    assert matter["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert matter["language"] == ["en"]
    assert "comet" in matter["tags"]
    assert body.lstrip().startswith("# mitigate-both")
    text = card.render(replace(CARD, license=None))
    assert yaml.safe_load(text.split("---\n", 2)[1])["license"] == "unknown"  # as the hub has it
    assert "by its contributors (licence: not given), from" in text
    assert 'tokenizer("lawyer is capable of", return_tensors="pt")' in text


def test_a_text_from_outside_stays_in_its_cell_and_steers_nothing() -> None:
    ledger = report_example.ledger(20).with_columns(reason=pl.lit("a|b <img src=x>\nmine -1"))
    text = card.render(replace(CARD, ledger=ledger, data="data of \x1b[31mmine"))
    assert r"| a\|b \<img src=x\> mine -1 | 20 |" in text
    assert r"Trained on data of \[31mmine" in text
    assert text.endswith("```\n")


def test_numbers_stand_in_tables() -> None:
    text = card.render(CARD)
    assert "| neutral by sentiment (NSM) ↑ | 70.00 | 61.20 [59.80, 62.70] |" in text
    assert "| perplexity ↓ | all | 9.10 |" in text
    assert "| all probed statements | 71.50 [70.00, 73.00] |\n| those with a polarised label | 66.40 |\n" in text
    assert 'trained on ConceptNet "train100k", by its contributors after the filter policy `both`' in text
    assert 'Trained on ConceptNet "train100k", by its contributors (licence: CC-BY-SA-4.0)' in text


def test_triples_that_were_left_out_and_a_demonstration_are_said() -> None:
    text = card.render(replace(CARD, ledger=report_example.ledger(500)))
    assert "| sentiment +1, regard -1 | 4 | 4 | 0 | 0.0 |" in text
    assert "What the policy did" not in card.render(CARD)
    for demonstration in (True, False):
        text = card.render(replace(CARD, demonstration=demonstration))
        assert ("> **Demonstration.**" in text) == demonstration
