"""The end of a sweep (`-m`): its runs side by side in one table, and compared on a page."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from mitigate.recipes import notes
from mitigate.recipes.compare.sweep import compare
from mitigate.recipes.job import say
from mitigate.store import read_json


class SideBySide(Callback):
    """A Hydra callback that prints the measures of all runs of a sweep, and has them compared."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        runs = {folder: read_json(folder / "metrics.json") for folder in notes.runs(config)}
        finished = {folder: metrics for folder, metrics in runs.items() if metrics}
        if len(finished) > 1:
            from mitigate.report.tables import console

            named = short_names({folder.name: metrics for folder, metrics in finished.items()})
            say("\nside by side\n\n" + console(named))
            compare(config, finished)


def short_names(runs: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The runs by their policy; where that is not enough to tell them apart, with seed, then with the folder's hash."""
    names: list[str] = []
    for name_of in (
        lambda folder, metrics: metrics.get("policy", folder),
        lambda folder, metrics: f"{metrics.get('policy', folder)}, seed {metrics.get('seed')}",
        lambda folder, metrics: f"{metrics.get('policy', folder)}, {folder[-8:]}",
    ):
        names = [name_of(folder, metrics) for folder, metrics in runs.items()]
        if max(Counter(names).values()) == 1:
            break
    return dict(zip(names, runs.values(), strict=True))
