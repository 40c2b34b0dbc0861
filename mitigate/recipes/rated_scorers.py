"""Agreement of scorers with people, and the effect of identity terms on their labels, as tables for the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import OmegaConf

from mitigate.filter import Policy
from mitigate.metrics import bounds
from mitigate.recipes.job import build
from mitigate.recipes.scorers import Scorers
from mitigate.score import crowd, people
from mitigate.tasks.crowd.accuracy import Accuracies, known_accuracy
from mitigate.tasks.identity import farthest
from mitigate.tasks.policies.drop_rules import is_drop_rule
from mitigate.tasks.ratings.agreement import FIGURES
from mitigate.triples import TEMPLATES, Scorer

CLASSES = {
    "mitigate.score.crowd.Crowd": crowd.SHIPPED,
    "mitigate.score.people.Crowd2": people.SHIPPED["crowd2"],
    "mitigate.score.people.CrowdLM": None,
}
"""The scorers whose accuracy lies beside their weights, and the folder of those that come with the project."""
FRAMES = "frames"


def format_agreement(frame: pl.DataFrame) -> str:
    """The table of agreement for the terminal."""
    width = max(map(len, frame["resource"]))
    lines = [" " * (width + 27) + "".join(f"{heading:>9}" for heading in FIGURES.values())]
    for row in frame.rows(named=True):
        cells = "".join(f"{'' if row[name] is None else format(row[name], '.3f'):>9}" for name in FIGURES)
        lines.append(f"{row['resource']:<{width}}  {row['scorer']:<15}{row['against']:<10}{cells}")
    return "\n".join(lines)


def format_intervals(frame: pl.DataFrame) -> str:
    """Agreement with the majority of raters for the terminal, with 95 % intervals over targets and texts."""
    figures = frame["figure"].unique(maintain_order=True).to_list()
    width = max(map(len, frame["resource"])) + 2
    lines = [f"{'against the majority of raters':<{width + 20}}" + "".join(f"{name:>22}" for name in figures)]
    for (resource, scorer), rows in frame.group_by("resource", "scorer", maintain_order=True):
        found = {name: (value, low, high) for _, _, name, value, low, high in rows.iter_rows()}
        cells = "".join(f"{_with_interval(*found.get(name, (None, None, None)), decimals=3):>22}" for name in figures)
        lines.append(f"{resource:<{width}}{scorer:<20}{cells}")
    return "\n".join(lines)


def format_drops(frame: pl.DataFrame) -> str:
    """The rated statements that each policy drops for the terminal, %, with intervals over targets and texts."""
    headings = {"precision": "precision", "recall": "recall", "before": "polarised before", "after": "after"}
    lines = [f"{'% of rated statements':<28}{'dropped':>8}" + "".join(f"{name:>22}" for name in headings.values())]
    for row in frame.rows(named=True):
        ends = {name: bounds(name) for name in headings}
        cells = (_with_interval(row[name], row[low], row[high], decimals=1) for name, (low, high) in ends.items())
        start = f"{row['resource']:<12}{row['policy']:<16}{row['dropped']:>8.1f}"
        lines.append(start + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines)


def format_identity(terms: pl.DataFrame, summed: pl.DataFrame) -> str:
    """Errors on unseen identity terms and frames for the terminal: the mean over terms, the term that is farthest from
    it with its 95 % interval over frames, and the share of the three farthest and of masked frames."""
    headings = f"{'mean':>7}{'farthest from the mean':>27}{'beyond 5':>10}{'masked':>8}  farthest terms"
    lines = [f"{'% of unseen identity terms':<31}{headings}"]
    for row in summed.filter(pl.col("part") == "unseen", pl.col("number") == "both").rows(named=True):
        low, high = (row[bound] for bound in bounds("largest"))
        gap = f"{row['largest']:+.1f} [{low:+.1f}, {high:+.1f}]"
        named = ", ".join(f"{term} {share:.1f}" for term, share in farthest(terms, row["scorer"], row["error"]))
        start = f"{row['scorer']:<14}{row['error'].replace('_', ' '):<17}{row['mean']:>7.1f}{gap:>27}"
        lines.append(f"{start}{row['beyond']:>4} of {row['terms']:<3}{row['masked']:>7.1f}  {named}")
    return "\n".join(lines)


def _with_interval(value: float | None, low: float | None, high: float | None, decimals: int) -> str:
    if value is None:
        return "–"
    ends = "" if low is None or high is None else f" [{low:.{decimals}f}, {high:.{decimals}f}]"
    return f"{value:.{decimals}f}{ends}"


def accuracies(nodes: Mapping[str, Any], scorers: Sequence[Scorer], source: str) -> Accuracies:
    """The sensitivity and specificity of scorers on rated statements of a source, with each template, by category; of
    the scorers whose accuracy was measured. nodes: the configured scorers (scorers.Scorers)."""
    found: dict[tuple[str, str], Any] = {}
    for scorer in scorers:
        node = nodes.get(scorer.name) or {}
        if (target := node.get("_target_")) in CLASSES and (folder := node.get("folder") or CLASSES[target]):
            found |= {(scorer.name, template): known_accuracy(source, Path(folder), template) for template in TEMPLATES}
    return {column: accuracy for column, accuracy in found.items() if accuracy}


def drop_policies(scorers: Scorers) -> list[Policy]:
    """All configured policies whose action is to drop, `none` first, with the names that their scorers have in
    tables."""
    loader, found = GlobalHydra.instance().config_loader(), []
    for name in loader.get_group_options("policy"):
        config = loader.load_configuration("config", [f"policy={name}"], RunMode.RUN)
        OmegaConf.set_struct(config, False)
        found.append(scorers.in_tables(build(config.policy)))
    found = [policy for policy in found if is_drop_rule(policy)]
    if scorers.score.frames.run is None:  # then the scorer `frames` cannot label
        found = [policy for policy in found if FRAMES not in policy.scorers]
    return sorted(found, key=lambda policy: (len(policy.scorers), policy.name))
