"""The end of a search (`hydra/sweeper=search`): the best settings."""

from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from mitigate.recipes.job import plain, say

RESULTS = "optimization_results.yaml"  # of Hydra's Optuna sweeper


class BestFound(Callback):
    """A Hydra callback that prints the settings that an optimiser found best."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        if "n_trials" in config.hydra.sweeper:
            found = plain(OmegaConf.load(Path(config.hydra.sweep.dir) / RESULTS))
            settings = " ".join(f"{name}={value}" for name, value in found["best_params"].items())
            best = f"{config.optimized_metric} {found['best_value']:.2f}"
            say(f"\nbest of {config.hydra.sweeper.n_trials} jobs: {best} with {settings}")
