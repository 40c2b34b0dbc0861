"""Metadata of cards and data sets, read back by huggingface_hub."""

from pathlib import Path

import polars as pl
import pytest
import report_example
from huggingface_hub import DatasetCard, ModelCard
from test_report_card import CARD

from mitigate.policies import Drop
from mitigate.report import card
from mitigate.tasks.policies.filtered import write_data_set

DATA = Path(card.__file__).parents[1] / "data"
SHIPPED = [*(DATA / "regard").glob("*/README.md"), *(DATA / name / "README.md" for name in ("crowd", "crowd2"))]
SHIPPED += [DATA / "people_valid" / "README.md", DATA / "plausibility" / "average" / "README.md"]


def figures(text: str) -> dict[str, float]:
    """Metric -> value of a card's model-index."""
    return {f"{one.dataset_name}/{one.metric_type}": one.metric_value for one in ModelCard(text).data.eval_results}


def test_the_hub_reads_the_figures_of_a_generator() -> None:
    found = figures(card.render(CARD))
    data = CARD.data
    assert found == {
        f"{data}/neutral_template/NSM": 70.0,
        f"{data}/NSM": 61.2,
        f"{data}/quality/perplexity/all": 9.1,
    }
    read = ModelCard(card.render(CARD)).data
    assert (read.license, read.base_model, read.model_name) == ("cc-by-sa-4.0", CARD.base_model, CARD.name)


@pytest.fixture(scope="module")
def ledger() -> pl.DataFrame:
    rows = report_example.ledger(60).with_columns(split=pl.lit("train"), head="target", valid=True)
    return rows.with_columns(head=pl.col("head").fill_null("tea"), masked="statement")


def written(ledger: pl.DataFrame, folder: Path, format: str) -> dict[str, int]:
    policy = Drop(name="both", scorers=["sentiment", "regard"])
    return write_data_set(
        ledger,
        policy,
        format,
        origin={"source": "mine", "licence": "CC-BY-SA-4.0", "demonstration": True, "notices": []},
        scorers={"sentiment": "vader", "regard": "minilm"},
        fingerprints={"sentiment": "a", "regard": "b"},
        folder=folder,
        command="python -m mitigate recipe=filter",
        facts={"seed": "1"},
        needs={},
        name="mine",
    )


def test_the_hub_reads_the_card_of_a_filtered_data_set(ledger: pl.DataFrame, tmp_path: Path) -> None:
    written(ledger, tmp_path, "csv")
    data = DatasetCard((tmp_path / "README.md").read_text()).data
    assert (data.license, data.language) == ("cc-by-sa-4.0", ["en"])
    assert [one["data_files"] for one in data.configs] == ["kept.csv", "dropped.csv"]
