"""The figures that W&B shows first, and their names there.

A name is group/what_unit, such as "harm/neutral_by_regard_percent": W&B makes a section of each group, and sorts and
filters only by names of letters, digits and underscores. A measure is a headline where its declaration says so, and
every measure of a user's own is."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mitigate.measure.base import Figure, Measure, find, measures, own_measures

LONGEST = 60
UNITS = {"%": "percent", "%²": "variance", "points": "points"}


class Headline(NamedTuple):
    """A figure that is shown first."""

    place: int  # of its measure among all
    figure: Figure

    @property
    def key(self) -> str:
        return self.figure.key

    @property
    def metric(self) -> Measure:
        return self.figure.declared

    @property
    def group(self) -> str:
        """harm, disparity, quality, cost, size, or own."""
        return self.metric.headline or "own"

    @property
    def charted(self) -> bool:
        """Return whether it is drawn: sizes are not, and of figures of labels those with the paper's wording."""
        return self.group != "size" and self.figure.template != "paper"

    @property
    def what(self) -> str:
        """The figure in words: "neutral by regard"."""
        wording = ", the paper's wording" if self.figure.template == "paper" else ""
        of = f", {self.figure.group}" if self.figure.group else ""
        return f"{self.metric.title.replace('{k}', str(self.figure.k))}{of}{wording}"

    @property
    def label(self) -> str:
        """The figure with its unit: "neutral by regard, %"."""
        return f"{self.what}, {self.metric.unit}" if self.metric.unit in UNITS else self.what

    @property
    def name(self) -> str:
        """In W&B: "harm/neutral_by_regard_percent". W&B refuses charts with long names."""
        words = [self.what.replace(", the paper's wording", " paper"), UNITS.get(self.metric.unit, "")]
        return f"{self.group}/{re.sub(r'[^a-zA-Z0-9]+', '_', ' '.join(filter(None, words))).strip('_')}"[:LONGEST]

    @property
    def said_better(self) -> str:
        """The better direction: " (higher is better)"; "" where there is none."""
        return f" ({self.metric.said_better})" if self.metric.said_better else ""

    @property
    def caption(self) -> str:
        """The figure, its unit and the better direction: "Neutral by regard, % (higher is better)"."""
        return f"{self.label[0].upper()}{self.label[1:]}{self.said_better}"


def headline(key: str) -> Headline | None:
    """The headline of a key of metrics.json; None for any other key."""
    figure = find(key)
    return None if figure is None else _of(figure)


def _of(figure: Figure) -> Headline | None:
    declared = figure.declared
    is_shown = declared.headline or declared.name in [one.name for one in own_measures()]
    if figure.variant or not is_shown or figure.by not in ("all", "subset") or figure.k not in (None, 10):
        return None
    names = [one.name for one in measures()]
    return Headline(names.index(declared.name), figure) if figure.group == declared.headline_group else None


def headlines(metrics: Mapping[str, Any]) -> dict[Headline, float]:
    """The headlines among a run's metrics, with their numbers, in the order of declaration."""
    found = {row: value for key, value in metrics.items() if isinstance(value, int | float) and (row := headline(key))}
    return dict(sorted(found.items(), key=lambda item: (item[0].place, item[0].name)))
