"""Run folders that finished jobs left, read and checked: what a comparison of any kind begins with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from mitigate.store import read_json


class Finished(NamedTuple):
    """What every finished run folder has."""

    folder: Path
    config: DictConfig
    metrics: dict[str, Any]
    manifest: dict[str, Any]


def folders(named: str | Sequence[str] | None) -> list[Path]:
    """The folders that a setting names: a single one needs no brackets."""
    return [Path(str(folder)).resolve() for folder in ([named] if isinstance(named, str) else named or ())]


def recipe_of(folder: Path) -> str | None:
    """The recipe whose run folder it is, finished or not; None for something else."""
    try:
        return OmegaConf.select(OmegaConf.load(folder / "config.yaml"), "recipe.name")
    except (OSError, UnicodeDecodeError, YAMLError, OmegaConfBaseException):
        return None


def read_finished(folder: Path, recipe: str) -> Finished | str:
    """What a finished run of this recipe left, or what is wrong with the folder."""
    if not folder.is_dir():
        return f"{folder} is no folder"
    try:
        config = OmegaConf.load(folder / "config.yaml")
        whose = OmegaConf.select(config, "recipe.name")
    except FileNotFoundError:
        return f"{folder} is no run folder: it has no config.yaml"
    except (OSError, UnicodeDecodeError, YAMLError, OmegaConfBaseException):
        return f"{folder} is no run folder: its config.yaml cannot be read"
    if whose is None:
        return f"{folder} is no run folder: its config.yaml names no recipe"
    if whose != recipe:
        return f"{folder} is a run of recipe={whose}"
    metrics, manifest = (read_json(folder / name) for name in ("metrics.json", "manifest.json"))
    if metrics is None or manifest is None:
        return f"{folder} is not finished: the command that began it goes on from there"
    return Finished(folder, DictConfig(config), metrics, manifest)


def lacking(folder: Path, files: Sequence[Path]) -> str | None:
    """What is to be said of files that a run left and that are gone."""
    gone = [file.name for file in files if not file.exists()]
    return f"{folder} lacks {' and '.join(gone)}: the command that made it makes them again" if gone else None
