"""What a profile leaves for people: the page, its tables and its pictures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.report.html import save
from mitigate.report.profile import Profile
from mitigate.report.profile import write as write_page


def profile_of(sides: Mapping[str, pl.DataFrame], shown: Mapping[str, Any], **page: Any) -> Profile:
    """What the page shows. sides: the tables that there are, by the page's names; shown: settings and words."""
    content: dict[str, Any] = {**sides, **shown, **page}
    return Profile(**content)


def write_report(
    sides: Mapping[str, pl.DataFrame], shown: Mapping[str, Any], *, folder: Path, about: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the page, its tables and its pictures."""
    profile = profile_of(sides, shown, name=folder.name, **about)
    write_page(folder / "profile.html", profile)
    save(folder, sides, profile.pictures, latex=False)
    return {"targets": profile.ordered}
