"""Settings of the measures."""

from typing import Literal

from mitigate.settings import group, setting


@group("measure")
class Measure:
    masking: Literal["token", "paper"] = setting(
        "how targets are masked; paper: the probed target only, as a substring", serve="value"
    )
    empty_targets: Literal["exclude", "zero"] = setting(
        "how a target without statements counts; zero: as 0 %, as in the paper", serve="value"
    )
    resamples: int = setting("resamples of the bootstrap", ge=1, le=100_000, serve="value")


@group("measure")
class AuditMeasure(Measure):
    """With the settings of recipe=audit."""

    match: Literal["exact", "contains"] = setting(
        "how a target is found in a triple: as the whole head or tail, or within it", serve="value"
    )
    template: Literal["paper", "neutral"] | None = setting(
        "wording that is measured; null: all there are", serve="value"
    )
    texts: Literal["targets", "all"] = setting(
        "statements that are labelled; all: also those about no target", serve="value"
    )
