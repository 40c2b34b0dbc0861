"""What two of Ray's workers say, as JSON; in a process of its own, which Ray must end with.

python tests/two_workers.py FOLDER"""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from mitigate.cache import LabelStore
from mitigate.errors import MitigateError
from mitigate.score import labels as labelling
from mitigate.score.labels import label_column
from mitigate.score.regard import MiniLMRegard
from mitigate.score.workers import OnWorkers, connected
from mitigate.triples import Scorer

TEXTS = [f"this person is able to {what} {number} times" for number in range(40) for what in ("care", "steal", "win")]


def loaded(noted: Path) -> MiniLMRegard:
    """The scorer, with a note of the process that loaded it."""
    with noted.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return MiniLMRegard()


def main(folder: Path) -> dict[str, Any]:
    """All that the tests look at, by one Ray, as it takes seconds to start."""
    try:
        connected(2)
    except MitigateError as error:
        return {"not started": str(error)}
    labelling.PIECE = 10
    scorer, load = MiniLMRegard(), partial(loaded, folder / "loaded")
    return {
        "here": os.getpid(),
        "alone": label(scorer, folder / "alone"),
        "shared": label(OnWorkers(scorer, load, 2), folder / "shared"),
        "loaded": [int(line) for line in (folder / "loaded").read_text().splitlines()],
        "too many": label(OnWorkers(scorer, load, 3), folder / "too_many"),
    }


def label(scorer: Scorer, cache: Path) -> Any:
    """Labels and strengths of TEXTS, or the message of a fault."""
    try:
        said = label_column(pl.Series(TEXTS), scorer, LabelStore(cache))
    except MitigateError as error:
        return str(error)
    return [said.label.tolist(), said.strength.tolist()]


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
