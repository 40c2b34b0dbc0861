"""Finished run folders, read as data and checked. A run folder may come from anybody: its config.yaml is read without
resolving anything, and every file that is used must be the one whose hash the manifest holds."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from mitigate.errors import MitigateError
from mitigate.files import digest_of, digest_of_file, is_intact, read_json
from mitigate.settings import deciding, find

NOT_GIVEN = "not given"
Named = str | Sequence[str] | None
"""The folders that a setting names, as a list or as one path."""
REWRITE = "run the command that made it again"
NOT_THE_MODEL = ("recipe.name", "measure.resamples", "model.folder.", "model.missing.")
"""Settings, or beginnings of such, that like the seed do not separate groups of runs: the places of a model's files
follow from model.base."""
NEEDED = {  # recipe -> the settings and figures without which its runs are refused
    "mitigate": (("seed", "policy.name", "data.name", "model.name"), ("fingerprint",)),
    "audit": (("data.name",), ("fingerprint", "statements")),
    "kge": (("seed", "data.name", "model.name"), ("fingerprint",)),
}


class _Data(yaml.SafeLoader):
    """Plain YAML without aliases, with which a file of a few lines could fill the memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A finished run: settings, metrics and manifest as plain data, and tables that are read when first used.

    config: as written; an interpolation such as ${oc.env:HOME} stays text."""

    folder: Path
    recipe: str
    config: dict[str, Any]
    metrics: dict[str, Any]
    manifest: dict[str, Any]
    _tables: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False)

    def setting(self, name: str, default: Any = None) -> Any:
        """A setting by its dotted name, such as "data.name"; `default` where the run has none."""
        value = find(self.config, name)
        return default if value is None else value

    def text(self, name: str) -> str | None:
        """A setting as a text; None where the run does not have it."""
        value = self.setting(name)
        return None if value is None else str(value)

    @property
    def policy(self) -> str:
        """The name of its policy."""
        return str(self.setting("policy.name"))

    @property
    def seed(self) -> int:
        return int(self.setting("seed"))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings that affect results, by dotted names: "trainer.lr" -> 0.0005."""
        return _flat(deciding(self.config))

    @cached_property
    def digest(self) -> str:
        """Hash of all results of the run: its metrics and the hashes of its tables."""
        tables = {name: self.files[name] for name in sorted(self.files) if name.endswith((".parquet", ".csv"))}
        return digest_of(json.dumps([self.recipe, self.metrics, tables], sort_keys=True))

    @property
    def files(self) -> dict[str, str]:
        """The hash of each of its files, by the path within the folder."""
        return self.manifest["files"]

    def below(self, folder: str) -> list[str]:
        """The names of its files in one of its folders."""
        return [name for name in self.files if name.startswith(f"{folder}/")]

    def table(self, name: str, columns: Iterable[str] = ()) -> pl.DataFrame:
        """One of its Parquet or CSV files, read once. Raises MitigateError for a file that differs from the manifest or
        lacks one of the columns."""
        if name not in self._tables:
            if fault := self.fault(name):
                raise MitigateError(f"{fault}.")
            read = pl.read_csv if name.endswith(".csv") else pl.read_parquet
            self._tables[name] = read(self.folder / name, glob=False)
        if lacking := [column for column in columns if column not in self._tables[name].columns]:
            raise MitigateError(f"{self.folder / name} has no column {' and '.join(lacking)}; {REWRITE}.")
        return self._tables[name]

    def fault(self, name: str) -> str | None:
        """The fault of a file, or None. A name that ends in "/" stands for all files of that folder."""
        if name.endswith("/"):
            found = [self.fault(part) for part in self.below(name[:-1])]
            return next(filter(None, found), None) if found else f"{self.folder} lacks {name}: {REWRITE}"
        try:
            digest = digest_of_file(self.folder / name)
        except OSError as error:
            return f"{self.folder / name} cannot be read ({error.strerror}); check its permissions"
        if digest is None:
            return f"{self.folder} lacks {name}: {REWRITE}"
        if self.files.get(name) == digest:
            return None
        return f"{self.folder / name} is damaged: its content is not that in manifest.json; {REWRITE}"


def open_run(
    folder: str | Path, recipe: str | None = None, needs: Sequence[str] = (), figures: str = "metrics.json"
) -> FinishedRun:
    """Open the finished run in a folder. Raises MitigateError for a folder that is not a run folder, is of another
    recipe than `recipe`, is not finished, or has a damaged file among config.yaml, `figures` and `needs`."""
    run = _read(Path(folder).resolve(), recipe, needs, (), figures)
    if isinstance(run, str):
        raise MitigateError(f"{run}.")
    return run


def read_runs(
    folders: Iterable[str | Path],
    recipe: str,
    setting: str,
    needs: Sequence[str] = (),
    if_any: Sequence[str] = (),
    figures: str = "metrics.json",
) -> list[FinishedRun]:
    """Open the finished runs of a recipe in these folders. Raises MitigateError that names all other folders.

    setting: the setting that names them. needs: files that each must have, undamaged ("statements/" for those of a
    folder). if_any: files that are checked in the runs that have them."""
    found = [_read(Path(folder).resolve(), recipe, needs, if_any, figures) for folder in folders]
    if faults := [fault for fault in found if isinstance(fault, str)]:
        raise MitigateError(f"{setting}: {'; '.join(faults)}. Set it to folders of finished runs of recipe={recipe}.")
    return [run for run in found if isinstance(run, FinishedRun)]


def folders(named: Named) -> list[Path]:
    """The folders that a setting names, as a list or as one path."""
    return [Path(str(folder)).resolve() for folder in ([named] if isinstance(named, str) else named or ())]


def recipe_of(folder: str | Path) -> str | None:
    """The recipe of a run folder, finished or not; None for another folder."""
    name = find(_settings(Path(folder)), "recipe.name")
    return name if isinstance(name, str) else None


def source_of(data: Mapping[str, Any]) -> str:
    """A resource with its attribution and licence, from the settings of its group."""
    parts = [data["name"], data["attribution"], f"licence {data['licence'] or NOT_GIVEN}"]
    return ", ".join(filter(None, parts))


def short_names(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Metrics of runs under short names: the policy; if several runs share it, with the seed, else with the folder's
    hash, else (for a run and its copy) with the whole folder."""
    names: list[str] = []
    for form in ("{policy}", "{policy}, seed {seed}", "{policy}, {short}", "{policy}, {folder}"):
        names = [
            form.format_map({"policy": folder, "seed": None, **metrics, "short": folder[-8:], "folder": folder})
            for folder, metrics in runs.items()
        ]
        if len(set(names)) == len(runs):
            break
    return dict(zip(names, runs.values(), strict=True))


def model_settings(run: FinishedRun) -> dict[str, Any]:
    """Settings that decide the result, without the seed: "trainer.lr" -> 0.0005."""
    flat = run.settings.items()
    return {name: value for name, value in flat if not name.startswith(NOT_THE_MODEL) and name.split(".")[-1] != "seed"}


def differing(runs: Sequence[FinishedRun]) -> list[str]:
    """The settings, without policy and seed, that differ between the runs that have them."""
    every = [model_settings(run) for run in runs]
    names = dict.fromkeys(name for settings in every for name in settings if not name.startswith("policy."))
    return [name for name in names if len({str(settings[name]) for settings in every if name in settings}) > 1]


def find_beside(outputs: Path, settings: Mapping[str, Any], fingerprint: str) -> dict[str, FinishedRun]:
    """The latest finished runs of policy none and of the policy's control that differ from a run of the main job by
    their policy alone: same data, targets, seed and settings. By their policies' names; empty where the folder has no
    such run.

    settings: those of the run, as a plain dict. fingerprint: of its data and targets, as in its metrics."""
    mine = FinishedRun(outputs, str(settings["recipe"]["name"]), dict(settings), {}, {})
    found = {}
    for policy in ("none", f"{mine.policy}-control"):
        name = f"{mine.recipe}-{policy}-{mine.text('data.name')}-{mine.text('model.name')}-seed{mine.seed}-*"
        finished = outputs.glob(f"{name}/manifest.json")
        for manifest in sorted(finished, key=lambda path: path.stat().st_mtime):
            try:
                other = open_run(manifest.parent, mine.recipe)
            except MitigateError:  # a damaged folder is not compared, and no reason to stop
                continue
            same = other.seed == mine.seed and other.metrics["fingerprint"] == fingerprint
            if same and mine.policy != other.policy == policy and not differing([other, mine]):
                found[policy] = other
    return found


def _read(
    folder: Path, recipe: str | None, needs: Sequence[str], if_any: Sequence[str], figures: str
) -> FinishedRun | str:
    """The run, or the fault of the folder."""
    if not folder.is_dir():
        return f"{folder} is not a folder"
    config = _settings(folder)
    whose = find(config, "recipe.name")
    if not isinstance(whose, str):
        return f"{folder} is not a run folder: it has no config.yaml that names a recipe"
    if recipe not in (None, whose):
        return f"{folder} is a run of recipe={whose}"
    contents = []
    for name in ("manifest.json", figures):
        if not (folder / name).is_file():
            return f"{folder} is not finished (it has no {name}); run its command again to resume"
        if (content := read_json(folder / name)) is None:
            return f"{folder / name} is damaged: it is not a JSON object; {REWRITE}"
        contents.append(content)
    manifest, metrics = contents
    if not isinstance(manifest.get("files"), dict) or not is_intact(manifest):
        return f"{folder / 'manifest.json'} is damaged: its content changed after it was written; {REWRITE}"
    run = FinishedRun(folder, whose, config, metrics, manifest)
    used = ["config.yaml", figures, *needs, *(name for name in if_any if name in run.files)]
    if faults := [fault for name in used if (fault := run.fault(name))]:
        return "; ".join(faults)
    given, computed = NEEDED.get(whose, ((), ())) if figures == "metrics.json" else ((), ())
    missing = [name for name in given if not isinstance(run.setting(name), str | int | float)]
    if missing := [*missing, *(name for name in computed if metrics.get(name) is None)]:
        return f"{folder} has no value of {' and '.join(missing)}; {REWRITE}"
    return run


def _settings(folder: Path) -> dict[str, Any]:
    """The settings in config.yaml as plain data with texts as keys; empty where there are none."""
    try:
        config = yaml.load((folder / "config.yaml").read_text(encoding="utf-8"), _Data)
        config = json.loads(json.dumps(config, default=str))
    except (OSError, yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError):  # of bad tags
        return {}
    return config if isinstance(config, dict) else {}


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return found
