"""Answers that need no Hydra, from the files of the configuration: lists of what a group offers, help, and the help of
one recipe. All else is left to Hydra."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from mitigate.errors import one_of
from mitigate.settings import all_settings, settings

LIST, HELP = "--list", ("--help", "-h")
LISTED = ("policy", "data", "model")  # by --list alone
NO_GROUPS = ("hydra", "sweep")
BUILT_ON = re.compile(r"^ +- /(\w+/\w+)$", re.MULTILINE)  # the file that has all settings of a recipe
COMMAND = "python -m mitigate"
WIDTH = 120  # characters of a line
WIDEST = 48  # of a setting with its value, beyond which its meaning stands below
OVERVIEW = """\
Find, filter and measure representational harms in commonsense resources and the generators trained on them.

Usage:
  python -m mitigate                                             the demonstration, on the sample corpus
  python -m mitigate -m policy=none,both                         the same for two policies, side by side
  python -m mitigate experiment=cn100k_cpu data.root=DIR         all of ConceptNet train100k, on a CPU
  python -m mitigate recipe=ask ask.run=DIR head=lawyer relation=CapableOf    what a finished run generates
  python -m mitigate experiment=paper                            the paper's setting (a network; 40 hours without a GPU)

Groups (group=name):
{groups}

Everything is a key=value. Good to know:
  dry_run=true                what would run, and stop
  verbose=true                every figure on the terminal, not only a verdict
  recipe=ask --help           one recipe: what it does, an example, its settings
  --list policy               what a group offers; --list alone: policies, data, models
  --version                   the version
  --cfg job                   the whole configuration that would be used
  -m policy=none,both seed=1,2   a sweep; ends with the policies side by side"""


def answer(arguments: Sequence[str], conf: Sequence[Path]) -> str | None:
    """The text that the arguments ask for, or None where they ask for none of this. conf: the folders of the
    configuration. Raises MitigateError for a group or a recipe that there is not."""
    if LIST in arguments:
        given = [word for word in arguments[arguments.index(LIST) + 1 :] if not word.startswith("-")]
        return "\n\n".join(listed(group, conf) for group in given or LISTED)
    if not set(arguments) & set(HELP):
        return None
    chosen = dict(word.split("=", 1) for word in arguments if "=" in word)
    if "recipe" in chosen:
        return help_of(chosen["recipe"], conf, chosen.get("classifier"))
    lines = [f"  {group}: {', '.join(sorted(options(group, conf)))}" for group in groups(conf)]
    return OVERVIEW.format(groups="\n".join(lines))


def listed(group: str, conf: Sequence[Path]) -> str:
    """The options of a group of settings: the name and the first sentence of each."""
    found = options(group, conf)
    if not found:
        raise one_of("group", group, groups(conf))
    rows = {name: _first_sentence(" ".join(comment(path))) for name, path in sorted(found.items())}
    return f"{group}=NAME\n{_columns(rows)}"


def help_of(recipe: str, conf: Sequence[Path], classifier: str | None = None) -> str:
    """A recipe's purpose, with an example, and its own settings with their meaning; of recipe=classifier those of the
    classifier."""
    chosen = {"recipe": recipe} | ({"classifier": classifier} if recipe == "classifier" and classifier else {})
    for group, name in chosen.items():
        if name not in options(group, conf):
            raise one_of(group, name, sorted(options(group, conf)))
    path = options(group, conf)[name]
    told = [f"  {line}" if line.lstrip().startswith(COMMAND) else line for line in comment(path)]
    title = " ".join(f"{group}={name}" for group, name in chosen.items())
    parts = ["\n".join([title, *(f"  {line}" for line in told)])]
    if base := BUILT_ON.search(path.read_text(encoding="utf-8")):
        path = path.parents[1] / f"{base[1]}.yaml"
    meanings = {key: setting.meaning for key, setting in settings().items()}
    if own := {f"{key}={_shown(value)}": meanings.get(key, "") for key, value in _own_settings(path)}:
        parts.append(f"Settings and defaults (???: required):\n{_columns(own)}")
    if reads := [name for name in _content(path).get("recipe", {}).get("reads") or () if name != recipe]:
        parts.append(
            f"Its results also depend on {', '.join(reads)}.\n`{COMMAND} --list policy` lists the options of a group, "
            f"`{COMMAND} {title} --cfg job` prints all settings."
        )
    return "\n\n".join(parts)


def options(group: str, conf: Sequence[Path]) -> dict[str, Path]:
    """The files of a group of settings, by name."""
    if group in NO_GROUPS or not re.fullmatch(r"\w+", group):
        return {}
    return {path.stem: path for folder in reversed(conf) for path in sorted((folder / group).glob("*.yaml"))}


def groups(conf: Sequence[Path]) -> list[str]:
    """The groups of settings that there are."""
    return sorted(
        {part.name for folder in conf if folder.is_dir() for part in folder.iterdir() if options(part.name, conf)}
    )


def comment(path: Path) -> list[str]:
    """The lines of the comment that a file of the configuration opens with."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            lines.append(line.removeprefix("#").strip())
    return lines


def _own_settings(path: Path) -> Iterator[tuple[str, Any]]:
    """The settings that a recipe's file sets, by dotted key, as they are written there."""
    for key, value in _flat(_content(path)):
        is_fact = key in all_settings() and all_settings()[key].fact
        if not is_fact and not key.startswith("defaults") and "_target_" not in key:
            yield key, value


def _content(path: Path) -> dict[str, Any]:
    """A recipe's file as plain settings, from the root."""
    found: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    is_global = "# @package _global_" in path.read_text(encoding="utf-8").splitlines()[:1]
    return found if is_global else {"recipe": found}


def _flat(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in settings():
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _shown(value: Any) -> str:
    """A value as one writes it on the command line."""
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}: {_shown(part)}' for key, part in value.items())}}}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _first_sentence(text: str) -> str:
    """The text up to its first full stop, except that of "et al.", without the command that may follow."""
    told = text.partition(COMMAND)[0].removesuffix(", for ").strip()
    return re.split(r"(?<!et al)\.\s", told, maxsplit=1)[0].rstrip(".:,")


def _columns(rows: Mapping[str, str]) -> str:
    """The lines of names with their descriptions beside them, or below a long name."""
    width = min(max(map(len, rows)), WIDEST)
    margin = " " * (width + 4)
    lines: list[str] = []
    for name, text in rows.items():
        told = textwrap.wrap(text, WIDTH - len(margin)) or [""]
        beside = [f"  {name:<{width}}  {told[0]}"] if len(name) <= width else [f"  {name}", margin + told[0]]
        lines += [*beside, *(margin + line for line in told[1:])]
    return "\n".join(line.rstrip() for line in lines)
