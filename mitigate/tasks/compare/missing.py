"""Figures of quality that a comparison lacks although a run was to measure them, and why."""

from collections.abc import Iterable, Sequence

from mitigate import metrics
from mitigate.metrics import ABOUT_BITS, ABOUT_PERPLEXITY, SWAP_LIFT
from mitigate.report.reasons import why
from mitigate.tasks.compare.quality import COSTS, OF_THE_PROBE
from mitigate.tasks.compare.run_groups import Contrast
from mitigate.tasks.quality import BY_LABEL

LISTED = {*COSTS, *OF_THE_PROBE, *(metrics.quality(name).key for name in (SWAP_LIFT, ABOUT_PERPLEXITY, ABOUT_BITS))}
NOT_MEASURED = "not measured"
OTHER_SCORERS = "the runs were labelled by different scorers"
OTHER_ITEMS = "the runs were not asked the same"


def missing(contrast: Contrast, compared: Iterable[str], scorers: Sequence[str]) -> dict[str, str]:
    """Key -> reason, of the figures in the metrics of any of the runs that are not compared.

    compared: keys that are. scorers: those by which triples and statements are neutral or polarised, in all runs."""
    runs, known = [*contrast.before, *contrast.after], set(compared)
    found = {}
    for key in dict.fromkeys(key for run in runs for key in run.metrics):
        parsed = metrics.find(key)
        if key in known or parsed is None or parsed.end or parsed.variant or parsed.stem not in LISTED:
            continue
        lacking = [run for run in runs if run.metrics.get(key) is None]
        reasons = dict.fromkeys(why(run.metrics, key) or NOT_MEASURED for run in lacking)
        some = f" (in {len(lacking)} of {len(runs)} runs)" if len(lacking) < len(runs) else ""
        by_labels = parsed.part.rpartition("/")[2] in BY_LABEL and not scorers
        otherwise = OTHER_SCORERS if by_labels else OTHER_ITEMS
        found[key] = " or ".join(reasons) + some if lacking else otherwise
    return found
