"""Settings with wrong values: whatever is given for a setting, the command goes on or says in a sentence what is wrong.

python tests/overrides.py [--seconds 600] [--seed 1] [NAME ...]"""

import contextlib
import io
import os
import random
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hunting import Found, hunt
from killing import ROOT, call, share_imports

from mitigate.settings import settings
from mitigate.texts import escaped

RECIPES = {
    "mitigate": ["policy=both"],
    "audit": ["recipe=audit", "data=sample"],
    "stories": ["recipe=stories", "policy=none"],
    "template": ["recipe=template"],
    "filter": ["recipe=filter", "policy=both"],
    "kge": ["recipe=kge", "model=transe", "data=fb15k237", "kge.sensitive=gender", "kge.values=[male,female]"],
    "compare": ["recipe=compare"],
    "humans": ["recipe=humans"],
    "labels": ["recipe=labels", "texts=[the nurse is kind]"],
    "profile": ["recipe=profile"],
    "frames": ["recipe=frames"],
    "workspace": ["recipe=workspace"],
}
VALUES = [
    *(
        "",
        "null",
        "nan",
        "inf",
        "-inf",
        "-1",
        "0",
        "1",
        "1.5",
        "1e400",
        "99999999999999999999",
        "true",
        "false",
        "none",
    ),
    *("[]", "{}", "[1]", "[a,b]", "[null]", "[[1]]", "{a:1}", "'${oc.env:HOME}'", "'${seed}'", "'${nothing}'", "'???'"),
    *("/nowhere", "/dev/null", "/", ".", "..", "nowhere.tsv", "lawyer", "[lawyer]", "é", "'a b'", "'<b>'", "x" * 300),
    *("'\\x1b[31m'", "'a\tb'", "auto", "all", "cpu", "both", "paper"),
]


def drawn(recipe: str, draw: random.Random) -> list[str]:
    """A command of a recipe with one to three settings that have any value."""
    keys = [key for key in settings() if not key.startswith(("dry_run", "paths", "tracking"))]
    given = [f"{draw.choice(keys)}={draw.choice(VALUES)}" for _ in range(draw.choice((1, 1, 2, 3)))]
    return [*RECIPES[recipe], *given]


def fault(arguments: list[str], outputs: Path) -> str | None:
    """What is wrong with the answer to a command, which is only rehearsed."""
    where = [f"paths.outputs={outputs}", f"paths.cache={outputs}", "tracking=none", "dry_run=true"]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = call([*where, *arguments])
    except BaseException:
        return traceback.format_exc(limit=-4)
    if status not in (0, 2):
        return f"status {status}: {said.getvalue()[-300:]}"
    told = [line for line in said.getvalue().splitlines() if line.startswith("mitigate: ")]
    if status == 2 and (not told or escaped(told[-1]) != told[-1]):
        return f"status 2 and no sentence: {said.getvalue()[-300:]!r}"
    return None


def attempt(recipe: str, draw: random.Random, outputs: Path) -> Found | None:
    """A recipe is given settings with any value."""
    arguments = drawn(recipe, draw)
    found = fault(arguments, outputs)
    return None if found is None else Found(found.splitlines()[-1][:120], f"{arguments}\n{found}")


if __name__ == "__main__":
    os.environ |= {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
    os.chdir(ROOT)
    share_imports()
    hunt(__doc__, RECIPES, attempt)
