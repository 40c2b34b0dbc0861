"""The attempts of faults.py and the tables that are drawn from them."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

SAME, TOLD, LOST = "same figures", "told", "lost"
OUTCOMES = (SAME, TOLD, LOST)


class Attempt(NamedTuple):
    """A fault and what became of it."""

    recipe: str
    fault: str  # its kind
    where: str  # the stage that a kill met, or the file
    outcome: str  # of OUTCOMES
    told: str  # the end of what the command said, where it is not SAME


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
