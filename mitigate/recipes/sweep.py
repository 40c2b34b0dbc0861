"""The end of a sweep (`-m`): its runs side by side in one table, and compared on a page."""

from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from mitigate.recipes import notes
from mitigate.recipes.compare.sweep import compare
from mitigate.recipes.job import say
from mitigate.store import read_json
from mitigate.tasks.runs import short_names


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
