"""The layers: who may import whom. Left may import right: __main__, library > cli > recipes > serve > stages, cache,
tracking > models > outside; the base layer imports only itself."""

import ast
import re
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOW = {"report", "tracking", "cli"}
"""The layers that show measures."""
RECORDS = {"cache", "tracking"}
BASE = {
    *("words", "package_data", "errors", "settings", "triples"),
    *("stages", "files", "progress", "finished", "child_processes"),
}
"""The base layer; RECORDS are a layer above."""
ORDER = ("load", "score", "policies", "train", "probe", "measure", "report")
"""The stages: each may import itself and those before it."""
STAGES = {*ORDER, "verbalise"}
SOURCES = sorted([*(ROOT / "mitigate").rglob("*.py"), *(ROOT / "models").rglob("*.py")])
OUTSIDE_ONLY_IN = {
    "hydra": {"recipes", "studies", "cli", "library", "serve"},  # which composes what is submitted
    "omegaconf": {"recipes", "studies", "cli", "library", "serve"},
    "fastapi": {"serve"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
    "wandb": {"tracking"},
    "ray": {"score"},
}


def layer(path: Path) -> str:
    """The layer a source file is in: mitigate/score/lexicon.py is in "score", models/beam.py in "models"."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "models" if parts[0] == "models" else layer_of(parts[1:])


def layer_of(parts: Sequence[str]) -> str:
    """The layer of a dotted name below mitigate: ["runs", "store", "Run"] is in "runs.store", of RECORDS."""
    module = ".".join(parts[:2])
    return module if module in RECORDS else parts[0]


@cache
def imported(path: Path) -> set[str]:
    """Dotted names of all that a file imports, at its top or inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer they reach into"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {re.sub(r"^mitigate\.models\b", "models", name) for name in names}  # a link in a checkout


def broken_rules(where: str, names: set[str]) -> list[str]:
    """What a file in the layer `where` imports and must not."""
    broken = []
    for name in sorted(names):
        top, _, rest = name.partition(".")
        target = layer_of(rest.split("."))
        if where in SHOW and target == "measure":
            continue
        if top in OUTSIDE_ONLY_IN and where not in OUTSIDE_ONLY_IN[top]:
            broken.append(f"{name}: only {', '.join(sorted(OUTSIDE_ONLY_IN[top]))} may import {top}")
        if where == "models" and top == "mitigate":
            broken.append(f"{name}: models know nothing of mitigate")
        if where in BASE and (top == "models" or (top == "mitigate" and target not in BASE)):
            broken.append(f"{name}: the base layer imports only itself")
        before = {"verbalise", *ORDER[: ORDER.index(where) + 1]} if where in ORDER else {where}
        if where in STAGES and top == "mitigate" and target not in BASE | before:
            broken.append(f"{name}: {where} imports only the stages before it, no store, no recipe")
        if where == "__init__" and top == "mitigate" and target not in BASE | STAGES | {"library", "cache"}:
            broken.append(f"{name}: the package offers the library, stages and the base layer")
        if where == "serve" and top in {"models", "torch", "transformers"}:
            broken.append(f"{name}: the service reaches models by tasks alone, when it is first asked")
        if where not in {"serve", "recipes"} and top == "mitigate" and target == "serve":
            broken.append(f"{name}: only recipes import the service: it starts them as processes of their own")
        if where == "measure" and top in {"models", "torch", "transformers"}:
            broken.append(f"{name}: measures import no model")
        if where in RECORDS and (top == "models" or (top == "mitigate" and target not in BASE)):
            broken.append(f"{name}: {where} imports only the base layer")
        if where == "cli" and top == "mitigate" and target not in BASE | {"recipes"}:
            broken.append(f"{name}: the command line imports the base layer and recipes")
        if where not in {"__main__", "library"} and top == "mitigate" and target == "cli":
            broken.append(f"{name}: only __main__ and the library import the command line")
        if where not in {"cli", "library", "recipes", "studies"} and top == "mitigate" and target == "recipes":
            broken.append(f"{name}: only the command line and studies import recipes")
    return broken


def test_imports_follow_the_rule() -> None:
    broken = {str(path.relative_to(ROOT)): broken_rules(layer(path), imported(path)) for path in SOURCES}
    assert len(broken) > 90
    assert {path: rules for path, rules in broken.items() if rules} == {}


def test_no_import_is_circular() -> None:
    """A circle would raise CycleError."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES}
    graph = {
        name: {part for one in imported(path) for part in (one, one.rpartition(".")[0])} & names.keys() - {"mitigate"}
        for name, path in names.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) == len(names)


SHARED = {"config", "job", "scorers", "settings", "sweep"}
"""Modules of recipes/ that recipes or the command share; the others are recipes."""


def recipe_of(module: str) -> str | None:
    """The recipe or study that a module is of, such as "audit"; None for what recipes share."""
    parts = module.split(".")
    is_recipe = parts[0] == "mitigate" and parts[1:2] in (["recipes"], ["studies"]) and len(parts) > 2
    is_recipe = is_recipe and parts[2] not in SHARED
    return parts[2] if is_recipe else None


def test_no_recipe_imports_another() -> None:
    for path in (path for folder in ("recipes", "studies") for path in (ROOT / "mitigate" / folder).rglob("*.py")):
        mine = recipe_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        assert {recipe for name in imported(path) if (recipe := recipe_of(name))} <= {mine}, path


def test_no_recipe_reads_the_configuration_after_its_plan() -> None:
    sources = [path for path in (ROOT / "mitigate" / "recipes").rglob("*.py") if path.name != "job.py"]
    assert [path for path in sources if re.search(r"\b(job|plan)\.config\b", path.read_text(encoding="utf-8"))] == []
