"""Cards and datasheets: names stay names, only known licences are given, and the command says what it needs."""

import hashlib
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import report_example
import yaml
from markdown_it import MarkdownIt
from test_report_card import CARD

from mitigate.recipes.job import inputs
from mitigate.report import card, datasheet, stories
from mitigate.words.outside_text import portable

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


HOSTILE = "]<img src=x>`| [a](b)"


@pytest.mark.parametrize("which", ["card", "stories", "datasheet"])
def test_cards_have_no_markup_of_a_name(which: str) -> None:
    ledger = report_example.ledger(20).with_columns(
        reason=pl.lit(HOSTILE), relation=pl.lit(HOSTILE), split=pl.lit("train")
    )
    if which == "card":
        hostile = dict.fromkeys(("name", "base_model", "base_license", "data", "prompt", "policy"), HOSTILE)
        text = card.render(
            replace(CARD, **hostile, command=f"{HOSTILE}\n```\n# x", notices=[HOSTILE], ledger=ledger, license=HOSTILE)
        )
    elif which == "stories":
        text = stories.render_card(
            HOSTILE,
            command=HOSTILE,
            needs={HOSTILE: ""},
            data={"licence": HOSTILE, "source": HOSTILE, "demonstration": True},
            base=HOSTILE,
            base_licence=HOSTILE,
            policy=HOSTILE,
            ledger=ledger,
            metrics={"statements": 1, "stories": 1, "targets": 1, f"{HOSTILE}/O-": 1.0, f"{HOSTILE}/O+": 1.0},
        )
    else:
        policy = {"name": HOSTILE, "scorers": [HOSTILE], "template": "paper", "scope": "all", "action": "drop"}
        sheet = datasheet.Datasheet(
            name=HOSTILE,
            policy=policy,
            data=HOSTILE,
            licence=HOSTILE,
            demonstration=False,
            files={"kept": "kept.tsv", "dropped": "dropped.tsv"},
            scorers={HOSTILE: HOSTILE},
            fingerprints={HOSTILE: HOSTILE},
            facts={HOSTILE: HOSTILE},
            command=HOSTILE,
            notices=[HOSTILE],
            needs={HOSTILE: "ab"},
        )
        of_targets = pl.DataFrame({"category": [HOSTILE], "triples": [2], "kept": [1]})
        text = datasheet.render(sheet, ledger, of_targets)
    front, body = text.split("---\n", 2)[1:] if text.startswith("---\n") else ("", text)
    assert isinstance(yaml.safe_load(front), dict | None)
    tokens = [child for token in MARKDOWN.parse(body) for child in (token, *(token.children or []))]
    kinds = {token.type for token in tokens}
    assert not kinds & {"html_inline", "html_block", "link_open", "image"}, text
    assert body.count(HOSTILE) == sum(token.content.count(HOSTILE) for token in _code(body))  # as it is in code alone


def _code(source: str) -> list:
    inner = [child for token in MARKDOWN.parse(source) for child in token.children or [token]]
    return [token for token in inner if token.type in ("code_inline", "fence")]


@pytest.mark.parametrize(
    ("data", "base", "licence"),
    [
        ("MIT", "other", "unknown"),
        ("MIT", None, "unknown"),
        ("MIT", "unknown", "unknown"),
        ("mit", " Other ", "unknown"),
        (None, "MIT", "unknown"),
        ("CC-BY-SA-4.0", "other", "unknown"),
        ("CC-BY-SA-4.0", "Apache-2.0", "cc-by-sa-4.0"),
        ("MIT", "Apache-2.0", "mit"),
        ("MIT", "CC-BY-NC-4.0", "cc-by-nc-4.0"),
        ("CC-BY-SA-4.0", "CC-BY-NC-4.0", "other"),
        ("GPL-3.0", "gpl-3.0", "gpl-3.0"),
    ],
)
def test_the_licence_of_a_model_is_that_of_data_and_base(data: str | None, base: str | None, licence: str) -> None:
    text = card.render(replace(CARD, license=data, base_license=base))
    matter = yaml.safe_load(text.split("---\n", 2)[1])
    assert matter["license"] == licence
    assert (matter.get("license_name") == f"{data} and {base}") == (licence == "other")
    assert ("is not known: both licences must be" in text) == (licence == "unknown")
    metrics = {"statements": 1, "stories": 1, "targets": 1}
    told = stories.render_card(
        "run",
        command="python -m mitigate",
        needs={},
        data={"licence": data, "source": "mine", "demonstration": False},
        base="/home/me/base",
        base_licence=base,
        policy="both",
        ledger=report_example.ledger(20).with_columns(split=pl.lit("train")),
        metrics=metrics,
    )
    front = yaml.safe_load(told.split("---\n", 2)[1])
    assert (front["license"], front["base_model"]) == (licence, "base")


def test_a_command_says_which_files_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.tsv").write_text("head\trelation\ttail\n")
    (tmp_path / "conf" / "score").mkdir(parents=True)
    (tmp_path / "model").mkdir()
    (tmp_path / "both").mkdir()  # a folder that has the name of a policy is no input
    digest = hashlib.sha256(b"head\trelation\ttail\n").hexdigest()
    arguments = ["--config-dir", f"{tmp_path}/conf", "policy=both", "head=a/b", "seed=1"]
    arguments += [f"data.path={tmp_path}/mine.tsv", f"model.base='{tmp_path}/model'", f"paths.outputs={tmp_path}/conf"]
    found = inputs(arguments)
    assert found == {"conf": "", "mine.tsv": digest, "model": ""}
    assert inputs(["data.path=mine.tsv", f"compare.runs=[{tmp_path}/model,no/such]"]) == {
        "mine.tsv": digest,
        "model": "",
    }
    assert inputs([f"data.columns={{a: {tmp_path}/mine.tsv}}", "texts=@mine.tsv"]) == {"mine.tsv": digest}
    text = card.render(replace(CARD, command=portable(f"python -m mitigate {arguments[-2]}"), needs=found))
    assert f"- `mine.tsv`, SHA-256 `{digest}`" in text
    assert str(tmp_path) not in text
