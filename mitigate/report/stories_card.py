"""The model card of a generator that was trained on a resource before it generated stories."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.metrics import scorers
from mitigate.report.left_out import left_out
from mitigate.report.markdown import environment


def render(
    name: str,
    command: str,
    *,
    data: Mapping[str, Any],
    base: str,
    policy: str,
    ledger: pl.DataFrame,
    metrics: Mapping[str, Any],
    verdict: str = "",
    targets: Sequence[str] = (),
) -> str:
    """The card as Markdown with the hub's front matter. data: source, licence and demonstration of the resource;
    base: the model that training started from; ledger: of the resource; verdict: the sentence that
    the page begins with; targets: that stories were generated about."""
    rows = ledger.filter(split="train")
    template = environment(Path(__file__).parent).get_template("stories_card.md.jinja")
    return template.render(
        name=name,
        data=data,
        base=base,
        policy=policy,
        command=command,
        kept=rows.filter(pl.col("weight") > 0).height,
        rows=rows.height,
        scorers=scorers(metrics),
        metrics=metrics,
        verdict=verdict,
        left_out=left_out(targets),
    )
