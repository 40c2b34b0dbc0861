"""Settings with wrong values: whatever is given for a setting, the command goes on or says in a sentence what is wrong.

python tests/overrides.py [--seconds 600] [--seed 1] [NAME ...]"""

import contextlib
import io
import os
import random
import re
import shutil
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from compared_runs import make_run
from forked_commands import ROOT, call, share_imports
from hunting import Found, hunt
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from recipe_commands import COMMANDS, arguments_of

from mitigate.settings import has_key, settings
from mitigate.words.outside_text import escaped

CONF = ROOT / "conf"
# other commands of the same recipes
LEFT_OUT = ("stories_trained", "seq2seq", "language_model")
RECIPES = [name for name in COMMANDS if name not in LEFT_OUT]
KEPT = ("dry_run", "paths", "tracking")  # settings that say where the command may write
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


@cache
def command_of(name: str, place: Path) -> list[str]:
    """A command of a recipe that goes on, with its input, which is written to the place."""
    for number in range(2 if name == "compare" else 0):
        made = make_run(place / f"made-{number}", ("none", "both")[number])
        shutil.copytree(made, place / "compared" / str(number))
    return arguments_of(name, place)


@cache
def keys_of(name: str, place: Path) -> list[str]:
    """The settings that the command's configuration has."""
    groups = {path.name for path in CONF.iterdir() if path.is_dir()}
    chosen = [part for part in command_of(name, place) if part.partition("=")[0] in groups]
    with initialize_config_dir(str(CONF), version_base=None):
        config: Any = OmegaConf.to_container(compose("config", chosen), resolve=False)
    return [key for key in settings() if not key.startswith(KEPT) and has_key(config, key)]


def drawn(name: str, draw: random.Random, place: Path) -> list[str]:
    """The command with one to three settings of its configuration: half of the time with values of the right type, at
    the ends of their ranges, else with any."""
    keys = keys_of(name, place)
    fitting = draw.random() < 0.5
    if fitting:
        keys = [key for key in keys if _right(key)]
    chosen = draw.choices(keys, k=draw.choice((1, 1, 2, 3)))
    return [*command_of(name, place), *(f"{key}={draw.choice(_right(key) if fitting else VALUES)}" for key in chosen)]


def _right(key: str) -> list[str]:
    setting = settings()[key]
    told = setting.types.get("whole number") or setting.types.get("number") or ""
    return [*setting.words, *(bound.replace(",", "") for bound in re.findall(r"\d[\d,.]*", told))]


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


def attempt(name: str, draw: random.Random, place: Path) -> Found | None:
    """A recipe is given settings with any value."""
    arguments = drawn(name, draw, place / name)
    found = fault(arguments, place / "out")
    return None if found is None else Found(found.splitlines()[-1][:120], f"{arguments}\n{found}")


if __name__ == "__main__":
    os.environ |= {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}
    os.chdir(ROOT)
    share_imports()
    hunt(__doc__, RECIPES, attempt)
