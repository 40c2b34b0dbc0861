"""The attempts of faults.py, kept in benchmarks/faults.csv, and the tables of RESULTS.md that are drawn from them.

Nothing here starts a thread, as polars would: faults.py forks afterwards, and a fork with threads missing waits for
them for ever."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import write_section
from mitigate.runs.files import write

CSV = Path(__file__).parents[1] / "benchmarks" / "faults.csv"
MENDED = (  # what earlier attempts found
    "Six defects were found and mended, and all attempts of their recipe and kind made again: a half-written file of "
    "a killed job stayed, since the system still kept the id of its process (ec4b027); an unfinished file of "
    "safetensors in the folder of a plausibility classifier (4d5bfa1); a half-written status in the folder of a run "
    "that was killed at its very end (561bb15); a damaged table beside the files of the stages, at which a complete "
    "run did not look (9204a08); a comparison of two embeddings that named the old places of runs that had moved "
    "(671bf28); a record of a stage in which a bit of the name of its hash was changed (77ad46b). Attempts that a "
    "fault of the harness itself spoilt were made again, or are left out."
)
SAME, TOLD, LOST = "same figures", "told", "lost"
OUTCOMES = (SAME, TOLD, LOST)


class Attempt(NamedTuple):
    """A fault and what became of it."""

    recipe: str
    fault: str  # its kind
    where: str  # the stage that a kill met, or the file
    outcome: str  # of OUTCOMES
    told: str  # the end of what the command said, where it is not SAME
    commit: str = ""  # of the code that it was made with


def read(path: Path = CSV) -> list[Attempt]:
    """The attempts of a file, none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Attempt(*row) for row in list(csv.reader(file))[1:]]


def add(attempts: Sequence[Attempt], path: Path = CSV) -> None:
    """Writes attempts in the place of earlier ones of the same recipes and kinds."""
    new = {(attempt.recipe, attempt.fault) for attempt in attempts}
    kept = [attempt for attempt in read(path) if (attempt.recipe, attempt.fault) not in new]
    rows = io.StringIO(newline="")
    csv.writer(rows, lineterminator="\n").writerows([Attempt._fields, *kept, *attempts])
    write(path, rows.getvalue())


def write_tables() -> None:
    """The section of RESULTS.md."""
    found = read()
    about = (
        f"By `python tests/faults.py --write`: {len(found):,} attempts on small commands of recipes, on two cores. "
        "After each fault the same command was given again. 'Same figures': it ended with the files and the figures of "
        "the run that nothing happened to, and, in attempts since a3dd0fc, each file as its manifest lists it. "
        "'Told': it ended with a sentence that names the file or folder. 'Lost': "
        f"anything else. Every attempt is in `benchmarks/faults.csv`, with the commit of its code. {MENDED}"
    )
    write_section(
        "faults", f"## Kills, jobs at once, damaged files, full disks and denied folders\n\n{about}\n\n{tables(found)}"
    )


def tables(attempts: Sequence[Attempt]) -> str:
    """By recipe; kills by the stage they met; damage by the kind of file."""
    of_kills = [attempt for attempt in attempts if attempt.fault == "killed"]
    of_damage = [attempt for attempt in attempts if attempt.fault == "damaged"]
    kills = outcomes("killed in stage", of_kills, lambda attempt: attempt.where) if of_kills else ""
    damage = outcomes("damaged file", of_damage, lambda attempt: kind_of_file(attempt.where)) if of_damage else ""
    return "\n\n".join(filter(None, (by_recipe(attempts), kills, damage)))


def by_recipe(attempts: Sequence[Attempt]) -> str:
    """Recipe x kind of fault: how many attempts came to each outcome, and the sums."""
    kinds = list(dict.fromkeys(attempt.fault for attempt in attempts))
    lines = [f"| recipe | {' | '.join(kinds)} |", "|---|" + "---|" * len(kinds)]
    for name in [*dict.fromkeys(attempt.recipe for attempt in attempts), None]:
        cells = []
        for kind in kinds:
            found = Counter(one.outcome for one in attempts if one.fault == kind and name in (one.recipe, None))
            cells.append(", ".join(f"{found[outcome]} {outcome}" for outcome in OUTCOMES if found[outcome]))
        lines.append(f"| {name or 'all'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def outcomes(title: str, attempts: Sequence[Attempt], key: Callable[[Attempt], str]) -> str:
    """A row for every value of the key, the most frequent one first."""
    lines = [f"| {title} | attempts | {' | '.join(OUTCOMES)} |", "|---|" + "---|" * (1 + len(OUTCOMES))]
    for value, count in Counter(map(key, attempts)).most_common():
        found = Counter(attempt.outcome for attempt in attempts if key(attempt) == value)
        lines.append(f"| {value} | {count} | {' | '.join(str(found[outcome]) for outcome in OUTCOMES)} |")
    return "\n".join(lines)


def kind_of_file(where: str) -> str:
    """Which kind a damaged file is of: "cache, .parquet"."""
    path = Path(re.split(r",| of a killed run", where)[0])
    folder = {"out": "run folder", "cache": "cache", "compared": "run that is compared"}[path.parts[0]]
    return f"{folder}, {path.suffix or path.name}"
