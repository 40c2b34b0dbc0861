"""The command: answer a request for help, or compose the configuration, check it, and call the recipe that it names.
An error that a user can correct is a sentence with exit status 2; Ctrl-C ends with 130."""

import argparse
import os
import re
import signal
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mitigate.errors import MitigateError, literal, nearest, one_of, spelt, with_texts
from mitigate.files import VERSION, disk_fault, interrupted, rows_of
from mitigate.progress import complain, prepare_output, say, show_lines
from mitigate.settings import CONF, all_settings, check, left_open, settings, with_lists

COMMAND = "python -m mitigate"
WIDTH, WIDEST = 120, 48  # characters of a line; of a name, beyond which its meaning stands below
FIRST = ("mitigate", "audit", "labels", "filter", "compare")  # recipes of the help
LISTED = ("policy", "data", "model")  # by --list alone
NOT_OVERRIDDEN = re.compile(r"Could not override '([^']+)'")
EXTRAS = {"submitit": "slurm", "joblib": "joblib", "optuna": "optuna"}  # by the first word of Hydra's options
MOST_MEANT = 4  # settings of the same name that are offered
SEPARATORS = re.compile(r"""[\[\],\s'"]+""")  # between the values of a list or a sweep
FREE_TEXT = ("texts", "head")  # settings whose values are never numbers or words of Hydra's
ITEM = re.compile(r"""\s*(?:(["'])((?:\\.|(?!\1).)*)\1|([^,]*?))\s*(?:,|$)""", re.DOTALL)
"""An item of a list: a text in quotes, in which a backslash may stand before a quote; or all up to the next comma."""
OVERVIEW = """\
Find, filter and measure representational harms in commonsense resources and the generators trained on them.

  python -m mitigate                                        the demonstration, on the sample corpus
  python -m mitigate -m policy=none,both                    the same for two policies, side by side
  python -m mitigate policy=both data=triples data.path=FILE     triples of your own
  python -m mitigate experiment=cn100k_cpu data.root=DIR    all of ConceptNet train100k, on a CPU

Recipes (recipe=NAME; the first is the default):
{recipes}
  more: --list recipe

Everything is a key=value. Good to know:
  dry_run=true           what would run, and stop
  verbose=true           every figure on the terminal, not only a verdict
  recipe=audit --help    one recipe: what it does, an example, its settings
  --list policy          what a group offers; --list alone: policies, data, models
  --cfg job              the whole configuration that would be used
  --version              the version"""


def cli() -> None:
    """Run the command with errors reported in a sentence."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # Hydra passes exceptions on, and in_words words them
    # Threads that wait for each other do not spin: beside another program that makes training 4 to 9 times as slow.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    prepare_output()
    show_lines()
    try:
        run(sys.argv[1:])
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # a second Ctrl-C, while Python ends, needs no traceback
        complain("Interrupted. Finished stages are saved; run the same command to resume.")
        sys.exit(130)
    except Exception as error:
        if not (sentence := in_words(error)):
            raise
        complain(sentence)
        sys.exit(2)


def run(arguments: Sequence[str]) -> None:
    """Answer a request for help, or run the job or the sweep. Raises the job's error unchanged."""
    check_gone(arguments)
    if text := answer(arguments):
        say(text)
        return
    sys.argv[1:] = map(readable, arguments)
    from mitigate.recipes import sweep  # loads polars, which help does without
    from mitigate.recipes.config import use_folders
    from mitigate.recipes.job import call_of

    errors: list[Exception] = []  # raised when Hydra has ended, which would print all arguments before one

    def job(config: DictConfig) -> float | None:
        of_hydra = HydraConfig.get()
        call = call_of(of_hydra)
        try:
            use_folders(of_hydra, CONF)
            value = start(config, call)
            sweep.note(call, folder=config.call.get("folder"))
        except Exception as error:
            if interrupted(error):  # a library has replaced Ctrl-C by an error of its own
                raise KeyboardInterrupt from error
            if call["sweep"] is None:
                errors.append(error)
            else:  # whose other jobs continue
                sweep.fail(call, error, in_words(error))
            return None
        return value

    try:
        hydra.main(version_base=None, config_path=str(CONF), config_name="config")(job)()
    except HydraException:
        raise
    except Exception as error:
        sweep.stop(error)
        raise
    if errors:
        raise errors[0]


def start(config: DictConfig, call: Mapping[str, Any]) -> float | None:
    """Check a composed configuration and call its recipe, whose value is the number that a search optimises.

    call: as call_of returns it. Raises MitigateError for settings that are left open, of a wrong type or out of
    range."""
    from mitigate.measure.base import find, unknown, use_measures
    from mitigate.recipes.config import Config, imported, plain

    show_lines()  # also in the processes of a sweep
    written: Any = OmegaConf.to_container(config, resolve=False)
    if missing := list(left_open(written)):
        known = settings()
        described = [f"{key}=... ({known[key].meaning})" if key in known else f"{key}=..." for key in missing]
        raise MitigateError(f"{' and '.join(missing)} must be set: {' '.join(described)}")
    OmegaConf.set_struct(config, False)
    for key, value in with_lists(plain(config)).items():
        OmegaConf.update(config, key, value)
    made = Config(config, check(plain(config), written))
    use_measures(config.measures)
    if find(config.optimized_metric) is None:
        raise unknown(config.optimized_metric, "optimized_metric")
    if config.policy.get("control"):
        config.policy.name = f"{config.policy.name}-control"
    config.call = with_texts(call, literal)
    return imported({"_target_": config.recipe.run}, "recipe.run")(made)


def check_gone(arguments: Sequence[str]) -> None:
    """Raise MitigateError for a setting, an option or a group that version 0.2 had, with what took its place."""
    for argument in arguments:
        key, _, value = argument.lstrip("+~").partition("=")
        given = {key, *(f"{key}={option}" for option in SEPARATORS.split(value))}
        for row in sorted(rows_of("gone.csv"), key=lambda row: -len(row["name"])):  # a setting before its group
            if row["name"] in given or key.startswith(f"{row['name']}."):
                instead = row["instead"] or "version 0.2.0 (git commit 368c7b80)"
                raise MitigateError(f"{row['name']} is not in version 1.0; use {instead}")


def readable(argument: str) -> str:
    """The argument with quotes where Hydra cannot read it as it is typed: a path with a bracket, a word with an accent,
    a text. Raises MitigateError for a list that the shell took apart."""
    key, sign, value = argument.partition("=")
    if argument.startswith("-") or not sign or value.startswith("{"):
        return argument
    if key.lstrip("+") not in FREE_TEXT:
        try:
            OverridesParser.create().parse_override(argument)
            return argument
        except HydraException as error:
            if "ConfigLoader" in str(error):  # a glob, which Hydra reads later
                return argument
    if not value.startswith("["):
        return f"{key}={spelt(value)}"
    if not value.rstrip().endswith("]"):
        raise MitigateError(
            f"{argument} is a list without its closing bracket: the shell split it at a space. Put the whole setting "
            f"""in quotes, as in '{key}=[one text,"another, with a comma"]'"""
        )
    content = value.strip()[1:-1]
    items = [item for item in ITEM.finditer(content) if item.start() < len(content)]
    texts = (re.sub(r"\\(.)", r"\1", item[2], flags=re.DOTALL) if item[1] else item[3] for item in items)
    return f"{key}=[{','.join(map(spelt, texts))}]"


def in_words(error: Exception) -> str | None:
    """The sentence about an error that a user can correct; None for any other."""
    match error:
        case MitigateError():
            return str(error)
        case MissingConfigException() if error.options and error.missing_cfg_file:
            return _no_option(error)
        case OverrideParseException():
            return f"{error.override!r} cannot be read; write KEY=VALUE, with blanks, commas and braces in quotes"
        case ConfigCompositionException() if key := NOT_OVERRIDDEN.match(str(error)):
            return _no_setting(key[1])
        case HydraException() if "--multirun" in str(error):
            return "several values of a setting need -m: python -m mitigate -m policy=none,both"
        case HydraException() | OmegaConfBaseException() | yaml.YAMLError():
            why = f"{error} {error.__cause__ or ''}".partition("Config search path")[0]
            return " ".join(why.split())
        case OSError():
            reason = error.strerror if isinstance(error, PermissionError) else disk_fault(error)
            where = f"{error.filename}: {reason}" if error.filename else reason
            return reason and f"{where}; free space, or choose other folders with paths.outputs=DIR and paths.cache=DIR"
    return None


def _no_option(error: MissingConfigException) -> str:
    """The sentence about an option that a group lacks, and that the command or a file of the configuration names."""
    group, _, name = str(error.missing_cfg_file).rpartition("/")
    file = re.match(r"In '([^']+)': ", str(error))
    where = f"{file[1]}.yaml: " if file and file[1] not in ("config", "hydra/config") else ""
    extra = EXTRAS.get(name.partition("_")[0])
    if extra and group.startswith("hydra/"):  # an absent launcher or sweeper
        return f"{where or f'{group}={name}: '}this needs more packages: pip install 'mitigate[{extra}]'"
    return f"{where}{one_of(group, name, error.options or ())}"


def _no_setting(name: str) -> str:
    """The sentence about a key that the configuration lacks: it belongs to another option, or is unknown."""
    places = [
        f"{group}={option}"
        for group in groups([CONF])
        for option, path in options(group, [CONF]).items()
        if any(f"{key}.".startswith(f"{name}.") for key, _ in _flat(_content(path)))
    ]
    if name in groups([CONF]):  # one that a recipe brings along
        places = [f"recipe={name}"]
    if places:
        return f"{name}{f' ({settings()[name].meaning})' if name in settings() else ''} needs {' or '.join(places)}"
    known = [*settings(), *groups([CONF])]
    same = [key for key in settings() if key.rpartition(".")[2] == name.rpartition(".")[2]]
    meant = " or ".join(same[:MOST_MEANT]) or nearest(name, known)
    inside = [key for key in known if key.startswith(f"{name.partition('.')[0]}.")]
    allowed = ", ".join(inside or dict.fromkeys(key.split(".")[0] for key in known))
    return f"unknown setting {name!r}{f' (did you mean {meant}?)' if meant else ''}; allowed: {allowed}"


def answer(arguments: Sequence[str], conf: Sequence[Path] = (CONF,)) -> str | None:
    """The text that the arguments ask for; None where they ask for no version, list or help of ours. Raises
    MitigateError for an unknown group or recipe. conf: the folders of the configuration."""
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    flags.add_argument("--version", action="store_true")
    flags.add_argument("--help", "-h", action="store_true")
    flags.add_argument("--list", nargs="*")
    flags.add_argument("--config-dir", "-cd", action="append", type=Path, default=[])
    asked, others = flags.parse_known_args(arguments)
    conf = [*asked.config_dir, *conf]
    chosen = dict(word.split("=", 1) for word in others if "=" in word)
    if asked.version:
        return f"mitigate {VERSION}"
    if asked.list is not None:
        return "\n\n".join(listed(group, conf) for group in asked.list or LISTED)
    if not asked.help:
        return None
    if "recipe" not in chosen:
        return OVERVIEW.format(
            recipes=_columns({name: _first_sentence(options("recipe", conf)[name]) for name in FIRST})
        )
    name, files = chosen["recipe"], options("recipe", conf)
    if name not in files:
        raise one_of("recipe", name, sorted(files))
    parts = [f"recipe={name}", *(f"  {'  ' * line.startswith(COMMAND)}{line}" for line in comment(files[name]))]
    defaults = {}
    for key, value in _flat(_content(files[name])):
        if "_target_" not in key and not (key in all_settings() and all_settings()[key].fact):
            shown = yaml.safe_dump(value, default_flow_style=True, width=10**6).splitlines()[0]
            defaults[f"{key}={shown}"] = settings()[key].meaning if key in settings() else ""
    parts += ["", "Settings and defaults (???: required):", _columns(defaults)] if defaults else []
    return "\n".join([*parts, "", f"`{COMMAND} recipe={name} --cfg job` prints all settings."])


def listed(group: str, conf: Sequence[Path]) -> str:
    """The options of a group of settings: the name and the first sentence of each."""
    rows = {name: _first_sentence(path) for name, path in sorted(options(group, conf).items())}
    if not rows:
        raise one_of("group", group, groups(conf))
    return f"{group}=NAME\n{_columns(rows)}"


def options(group: str, conf: Sequence[Path]) -> dict[str, Path]:
    """The files of a group of settings, by name."""
    return {path.stem: path for folder in reversed(conf) for path in sorted((folder / group).glob("*.yaml"))}


def groups(conf: Sequence[Path]) -> list[str]:
    """The names of all groups of settings."""
    return sorted({part.name for folder in conf for part in folder.glob("*") if options(part.name, conf)} - {"sweep"})


def comment(path: Path) -> list[str]:
    """The lines of the comment that a file of the configuration opens with."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    return [line.removeprefix("#").strip() for line in lines if not line.startswith("# @package")]


def _content(path: Path) -> dict[str, Any]:
    """A file of the configuration as plain settings, from the root."""
    text = path.read_text(encoding="utf-8")
    content: Any = OmegaConf.to_container(OmegaConf.create(text))
    content.pop("defaults", None)
    package = header[1] if (header := re.match(r"# @package (\w+)", text)) else path.parent.name
    return content if package == "_global_" else {package: content}


def _flat(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in settings():
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _first_sentence(path: Path) -> str:
    """A file's comment up to its first full stop, except that of "et al.", without the command before or after it."""
    text = " ".join(dropwhile(lambda line: line.startswith(COMMAND), comment(path))).partition(COMMAND)[0]
    return re.split(r"(?<!et al)\.\s", text.removesuffix(", for ").strip(), maxsplit=1)[0].rstrip(".:,")


def _columns(rows: Mapping[str, str]) -> str:
    """The lines of names with their descriptions beside them."""
    width = min(max(map(len, rows)), WIDEST)
    lines = (f"  {name:<{width}}  {text}" for name, text in rows.items())
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent=" " * (width + 4)).rstrip() for line in lines)
