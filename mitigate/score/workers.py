"""A scorer whose texts several workers label, on this machine or on a cluster, with Ray Data.

Each worker loads the same scorer once, and labels a piece of the texts at a time. The fingerprint shows that a worker's
scorer is the same."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, check_installed
from mitigate.score.labels import checked
from mitigate.triples import Labels, Scorer


class OnWorkers:
    """The scorer. A single piece of texts is labelled here, since no worker would be faster.

    load: makes the scorer in a worker. Ray is the cluster of the variable RAY_ADDRESS, else this machine's cores, in a
    Ray that ends with this process. Raises MitigateError when Ray is not installed."""

    def __init__(self, here: Scorer, load: Callable[[], Scorer], workers: int) -> None:
        check_installed("score.engine=ray", "ray", "ray")
        self.name, self.fingerprint = here.name, here.fingerprint
        for attribute in ("reads", "explain"):  # explanations come from the scorer in this process
            if hasattr(here, attribute):
                setattr(self, attribute, getattr(here, attribute))
        self._here, self._load, self._workers = here, load, workers

    def __call__(self, texts: Sequence[str]) -> Labels:
        return self._here(texts)

    def each(self, pieces: Sequence[Sequence[str]]) -> Iterator[tuple[int, Labels]]:
        """Yield the number of each piece with its labels, in the order of completion."""
        if len(pieces) == 1:
            yield 0, self(pieces[0])
            return
        data = connected(self._workers).data
        blocks = [pl.DataFrame({"piece": number, "text": texts}).to_arrow() for number, texts in enumerate(pieces)]
        labelled = data.from_arrow(blocks).map_batches(
            Worker,
            fn_constructor_args=(self._load, self.fingerprint),
            compute=data.ActorPoolStrategy(size=self._workers),
            num_cpus=1,
            batch_size=None,  # a piece at a time, as without workers: a text's label may depend on its batch
        )
        try:
            for batch in labelled.iter_batches(batch_size=None):
                for number in np.unique(batch["piece"]):  # Ray may have joined small ones
                    rows = batch["piece"] == number
                    yield int(number), Labels(batch["label"][rows], batch["strength"][rows])
        except Exception as error:
            cause: BaseException = error  # a worker's own error is among the causes
            while cause.__cause__ is not None and not isinstance(cause, MitigateError):
                cause = cause.__cause__
            raise cause from error


class Worker:
    """The part in a process of Ray: one scorer, and batches of texts."""

    def __init__(self, load: Callable[[], Scorer], fingerprint: str) -> None:
        self.scorer = load()
        if self.scorer.fingerprint != fingerprint:
            raise MitigateError(
                f"the scorer {self.scorer.name} of a worker has the fingerprint {self.scorer.fingerprint[:16]}, "
                f"expected {fingerprint[:16]}, that of this machine. All machines need the same version of mitigate "
                "and the same weights"
            )

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        said = checked(self.scorer, self.scorer(texts := batch["text"].tolist()), texts)
        return {"piece": batch["piece"], "label": said.label, "strength": said.strength}


def connected(workers: int) -> Any:
    """The module `ray`, connected. Raises MitigateError where there are too few cores for the workers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray reports its use to its makers
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors are exceptions too
    import ray
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False  # the project's own shows progress
    if not ray.is_initialized():
        place = os.environ.get("RAY_ADDRESS") or "local"
        modules = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # workers find the modules of this process
        own = {"num_cpus": workers, "include_dashboard": False, "runtime_env": {"env_vars": modules}}
        options: dict[str, Any] = own if place == "local" else {}
        try:
            ray.init(place, log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # Ray has no class of its own for these
            ray.shutdown()
            raise MitigateError(f"Ray cannot be reached at {place} (docs/scorers.md): {error}") from error
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < workers:
        raise MitigateError(f"score.workers={workers}, but Ray has {cores} cores; each worker takes one")
    return ray
