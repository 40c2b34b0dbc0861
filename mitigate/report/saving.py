"""The tables and pictures of a page as files beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from mitigate.report import run_figures as gallery
from mitigate.report import tables
from mitigate.report.run_figures import Picture


def save(
    folder: Path, frames: Mapping[str, pl.DataFrame], pictures: Sequence[Picture] = (), *, latex: bool = True
) -> None:
    """Write the tables (tables/{name}.csv and, with latex, .tex) and the pictures (plots/, with captions.csv) of a run
    folder. Tables without rows are left out."""
    for name, frame in frames.items():
        if frame.height:
            tables.save_csv(frame, folder / "tables" / f"{name}.csv")
            if latex:
                path, shown = folder / "tables" / f"{name}.tex", tables.with_p_as_shown(frame)
                tables.save_latex(shown, path, caption=f"{name} ({folder.name})")
    if pictures:
        gallery.save(pictures, folder / "plots")
        tables.save_csv(gallery.captions(pictures), folder / "plots" / "captions.csv")
