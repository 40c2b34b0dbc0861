"""Settings of the measures."""

from typing import Literal

from mitigate.settings import group, served


@group("measure")
class Measure:
    masking: Literal["token", "paper"] = served("how targets are masked; paper: as a substring")
    empty_targets: Literal["exclude", "zero"] = served("how targets without statements count")
    resamples: int = served("resamples of the bootstrap", ge=1, le=100_000)


@group("measure")
class AuditMeasure(Measure):
    """With the settings of recipe=audit."""

    match: Literal["exact", "contains", "paper"] | None = served("how a target is a head or tail, or within it")
    template: Literal["paper", "neutral"] | None = served("wording that is measured; null: all there are")
    texts: Literal["targets", "all"] = served("statements that are labelled; all: also those about no target")
