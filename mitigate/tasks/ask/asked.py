"""What is read of a finished run to answer questions about it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import polars as pl


class AskedRun(Protocol):
    """What `Answers` needs of a run. A Protocol, because `FinishedRun`, which has it all, itself answers questions:
    its module imports `Answers`, and imports go one way."""

    @property
    def folder(self) -> Path: ...

    @property
    def policy(self) -> str: ...

    @property
    def seed(self) -> int: ...

    @property
    def files(self) -> Mapping[str, str]:
        """The hash of each of its files, by the path within the folder."""
        ...

    def below(self, folder: str) -> list[str]:
        """The names of its files in one of its folders."""
        ...

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting by its dotted name; `default` where the run has none."""
        ...

    def table(self, name: str, columns: Iterable[str] = ()) -> pl.DataFrame:
        """One of its tables. Raises MitigateError for a damaged one, or one that lacks a column."""
        ...

    def fault(self, name: str) -> str | None:
        """What is wrong with a file, or with all of a folder, whose name ends in "/"; None where nothing is."""
        ...
