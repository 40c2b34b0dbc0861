"""The model card of a generator that read a resource before it told stories."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.report import legend
from mitigate.report.markdown import environment


def render(name: str, config: DictConfig, command: str, read: pl.DataFrame, metrics: Mapping[str, Any]) -> str:
    """The card as Markdown with the hub's front matter. read: the ledger's training triples."""
    templates = environment(Path(__file__).parent)
    templates.filters["number"] = legend.number
    return templates.get_template("card.md.jinja").render(
        name=name,
        data=config.data,
        base=config.model.base,
        policy=config.policy.name,
        command=command,
        kept=read.filter(pl.col("weight") > 0).height,
        rows=read.height,
        scorers=[key.partition("/")[0] for key in metrics if key.endswith("/O-")],
        metrics=metrics,
    )
