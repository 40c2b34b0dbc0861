"""Cards and datasheets: metadata that the hub reads, tables, names that stay names, known licences, and commands that
say which files they need."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import report_example
import yaml
from markdown_it import MarkdownIt

from mitigate.policies import Drop
from mitigate.recipes.filter import write_data_set
from mitigate.report import cards

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = "]<img src=x>`| [a](b)"
CARD = cards.Generator(
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
        **{"NSM": 61.2, "NSM_low": 59.8, "NSM_high": 62.7, "neutral_template/NSM": 70.0},
        **{"quality/perplexity/neutral": 9.1, "quality/valid/polar": 66.4},  # the second is no headline
    },
)
STORIES = replace(CARD, prompt="", metrics={"regard/O-": 8.25})


def ledger(number: int, **columns: pl.Expr) -> pl.DataFrame:
    return report_example.ledger(number).with_columns(split=pl.lit("train")).with_columns(**columns)


def written(labelled: pl.DataFrame, folder: Path, format: str) -> dict[str, int]:
    policy = Drop(name="both", scorers=["sentiment", "regard"])
    return write_data_set(
        labelled,
        policy,
        format,
        origin={"source": "mine", "licence": "CC-BY-SA-4.0", "demonstration": True, "notices": []},
        scorers={"sentiment": "vader", "regard": "minilm"},
        fingerprints={"sentiment": "a", "regard": "b"},
        folder=folder,
        command="python -m mitigate recipe=filter",
        facts={"seed": "1"},
        name="mine",
    )


@pytest.mark.parametrize(
    ("card", "has", "lacks"),
    [
        (CARD, "# mitigate-both\n", "**Demonstration.**"),
        (CARD, "| neutral by sentiment (NSM) ↑ | 70.00 | 61.20 [59.80, 62.70] |", "66.4"),
        (CARD, 'tokenizer("lawyer is capable of", return_tensors="pt")', "do_sample"),
        (STORIES, "| prejudice by regard ↓ | 8.25 |", "neutral template |"),
        (replace(CARD, ledger=ledger(500)), "| sentiment +1, regard -1 | 4 | 0 | 4 | 0 | 0.0 |", "None"),
        (replace(CARD, targets=["non-binary person"]), "1 target not in the paper's list", "such as non-binary"),
        (replace(CARD, data="data of \x1b[31mmine"), r"trained on data of \[31mmine", "\x1b"),
        (replace(CARD, ledger=ledger(20, reason=pl.lit("a|b <i>\nx"))), r"| a\|b \<i\> x | 20 |", "<i>"),
    ],
)
def test_what_a_card_says(card: cards.Generator, has: str, lacks: str) -> None:
    text = cards.generator(card)
    assert has in text
    assert lacks not in text
    assert text.endswith("    python -m mitigate policy=both\n")


def datasheet(**known: Any) -> str:
    hostile = dict.fromkeys(("name", "data", "licence", "command"), HOSTILE)
    hostile |= {"policy": {"name": HOSTILE, "scorers": [HOSTILE], "action": "drop"}, "notices": [HOSTILE]}
    hostile |= {one: {HOSTILE: HOSTILE} for one in ("scorers", "fingerprints", "facts")}
    files = {"kept": "kept.tsv", "dropped": "dropped.tsv"}
    of_targets = pl.DataFrame({"category": [HOSTILE], "triples": [2], "kept": [1]})
    return cards.datasheet(known["ledger"], of_targets, files=files, demonstration=False, **hostile)


@pytest.mark.parametrize("which", ["card", "stories", "datasheet"])
def test_cards_have_no_markup_of_a_name(which: str) -> None:
    rows = ledger(20, reason=pl.lit(HOSTILE), relation=pl.lit(HOSTILE))
    hostile: dict[str, Any] = {"data": HOSTILE, "policy": HOSTILE, "license": HOSTILE}
    hostile |= dict.fromkeys(("name", "base_model", "base_license"), HOSTILE)
    hostile |= {"command": f"{HOSTILE}\n```\n# x", "notices": [HOSTILE], "ledger": rows}
    hostile |= {"metrics": {f"{HOSTILE}/O-": 1.0}, "scorers": [HOSTILE], "verdict": HOSTILE}
    hostile |= {"prompt": HOSTILE if which == "card" else ""}
    text = datasheet(ledger=rows) if which == "datasheet" else cards.generator(replace(CARD, **hostile))
    front, body = text.split("---\n", 2)[1:]
    assert isinstance(yaml.safe_load(front), dict)
    tokens = [child for token in MARKDOWN.parse(body) for child in (token, *(token.children or []))]
    assert not {token.type for token in tokens} & {"html_inline", "html_block", "link_open", "image"}, text
    code = [token for token in tokens if token.type in ("code_inline", "code_block", "fence")]
    assert body.count(HOSTILE) == sum(token.content.count(HOSTILE) for token in code)  # as it is in code alone


@pytest.mark.parametrize(
    ("data", "base", "licence"),
    [
        ("MIT", "other", "unknown"),
        ("MIT", None, "unknown"),
        ("mit", " Other ", "unknown"),
        (None, "MIT", "unknown"),
        ("CC-BY-SA-4.0", "Apache-2.0", "cc-by-sa-4.0"),
        ("MIT", "Apache-2.0", "mit"),
        ("MIT", "CC-BY-NC-4.0", "cc-by-nc-4.0"),
        ("CC-BY-SA-4.0", "CC-BY-NC-4.0", "other"),
        ("GPL-3.0", "gpl-3.0", "gpl-3.0"),
    ],
)
def test_the_licence_of_a_model_is_that_of_data_and_base(data: str | None, base: str | None, licence: str) -> None:
    text = cards.generator(replace(CARD, license=data, base_license=base))
    matter = yaml.safe_load(text.split("---\n", 2)[1])
    assert matter["license"] == licence
    assert (matter.get("license_name") == f"{data} and {base}") == (licence == "other")
    assert ("It is not known whether this model may be given to others" in text) == (licence == "unknown")
