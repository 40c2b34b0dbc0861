"""dry_run=true before a download: what would be downloaded, and the stages that follow."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from mitigate.recipes.job import Job, say, say_stage
from mitigate.runs.store import NotComputedError, Run
from mitigate.tracking.record import Tracking


class Unread:
    """A stand-in for what is read from a download: each attribute, call and item of it is another, but for those that
    are given."""

    fingerprint = "unread"  # as fingerprints.plain reads it

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unread()

    def __call__(self, *values: Any, **named: Any) -> Any:
        return Unread()

    def __getitem__(self, key: Any) -> Any:
        return Unread()

    def __iter__(self) -> Iterator[Any]:
        return iter([Unread()])

    def keys(self) -> tuple[str, ...]:
        return ()  # as a mapping it is empty


def say_downloads(config: DictConfig, downloads: Sequence[str]) -> None:
    """A line for each download, before it."""
    for download in downloads:
        say(f"  {'would be' if config.dry_run else 'to be'} downloaded: {download}")


def outline(config: DictConfig, pipeline: Callable[[Job], None]) -> None:
    """Say the stages of a pipeline, all to be run. pipeline: takes Unread for what it has not read."""
    job = Job(config, Run(Path(config.paths.outputs) / Unread.fingerprint, dry=True), Tracking())
    with suppress(NotComputedError):
        pipeline(job)
    say("  stages after the download:")
    for result in job.run.results:
        say_stage(result)
