"""The model card of a generator that was trained on a resource before it generated stories."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.metrics import scorers
from mitigate.report.card import licence_of
from mitigate.report.excluded_targets import left_out
from mitigate.report.markdown import environment
from mitigate.words.texts import without_folders


def render(
    name: str,
    command: str,
    *,
    needs: Mapping[str, str],
    data: Mapping[str, Any],
    base: str,
    base_licence: str | None,
    policy: str,
    ledger: pl.DataFrame,
    metrics: Mapping[str, Any],
    verdict: str = "",
    targets: Sequence[str] = (),
    origin: Sequence[str] = (),
) -> str:
    """The card as Markdown with the hub's front matter. data: source, licence and demonstration of the resource;
    base: the model that training started from; origin: sentences about its weights; ledger: of the resource; verdict:
    the sentence that the page begins with; targets: that stories were generated about; needs: of the command
    (arguments.inputs)."""
    rows = ledger.filter(split="train")
    template = environment(Path(__file__).parent).get_template("stories_card.md.jinja")
    return template.render(
        name=name,
        data=data,
        base=without_folders(base),
        origin=list(origin),
        base_licence=base_licence,
        licence=licence_of(data["licence"], base_licence),
        needs=needs,
        policy=policy,
        command=command,
        kept=rows.filter(pl.col("weight") > 0).height,
        rows=rows.height,
        scorers=scorers(metrics),
        metrics=metrics,
        verdict=verdict,
        left_out=left_out(targets),
    )
