"""Where data that nothing downloads is looked for: in the folder that data.root names, else the variable MITIGATE_DATA
of the environment."""

import os
from collections.abc import Sequence
from pathlib import Path

from mitigate.errors import MitigateError

LISTED = "the sources that docs/resources.md lists"


def find_root(given: str | None) -> Path | None:
    """The folder, or None where neither names one."""
    place = given or os.environ.get("MITIGATE_DATA")
    return Path(place) if place else None


def root_with(given: str | None, needed: Sequence[str], source: str = LISTED) -> Path:
    """The folder that holds these files and folders. source: where they come from. Raises MitigateError where no
    folder is named, and for the first of them that is not there."""
    root = find_root(given)
    holding = f"the folder that holds {', '.join(needed)}, from {source}"
    if root is None:
        raise MitigateError(f"data.root is not given: name with data.root=DIR, or with MITIGATE_DATA, {holding}")
    if missing := [name for name in needed if not (root / name).exists()]:
        raise MitigateError(f"there is no {root / missing[0]}; data.root (or MITIGATE_DATA) must name {holding}")
    return root
