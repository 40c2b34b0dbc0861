"""How large the tree of this project is, and how long the ways through it are.

    python benchmarks/tree_figures.py BEFORE AFTER      two checkouts; one column of the table each

Nothing is imported: the sources are read. A trip follows the configuration from a recipe's `run`: every call, in the
order of the source, of a function that is given the configuration, or that reads it from an object that holds it
(`plan.config`, `job.config`), itself or in a function that it calls. Methods of Job, which is the runner, are not
followed. A stay is a file that is entered by a call, or returned to."""

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

USES = ast.Name | ast.Attribute
HOLDERS = {"plan", "job"}
RECIPES = {"compare": ("recipes.compare", "recipes.comparing"), "kge": ("studies.kge", "recipes.kge")}
TRIPS = {
    "main job": ("recipes.mitigate", "recipes.mitigate.recipe"),
    "audit": ("studies.audit", "recipes.audit.recipe"),
    "kge": RECIPES["kge"],
}
"""The modules of recipes, where they are now and in version 0.2."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function or method; `node` is its source."""

    file: str
    node: ast.FunctionDef
    owner: str | None = None  # the class of a method

    @property
    def takes_config(self) -> bool:
        """Whether a parameter is a part of the configuration."""
        arguments = self.node.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return any(
            one.annotation is not None and re.search(r"\b(?:Dict)?Config\b", ast.unparse(one.annotation))
            for one in given
        )

    @property
    def calls(self) -> list[ast.expr]:
        """Calls in the order of the source; of partial(function, ...) the function."""
        found = [node for node in ast.walk(self.node) if isinstance(node, ast.Call)]
        found.sort(key=lambda call: (call.lineno, call.col_offset))
        is_partial = [isinstance(call.func, ast.Name) and call.func.id == "partial" for call in found]
        return [call.args[0] if of_partial else call.func for call, of_partial in zip(found, is_partial, strict=True)]


@dataclass(eq=False)
class Tree:
    """The sources of a checkout."""

    root: Path

    def __post_init__(self) -> None:
        files = sorted([*(self.root / "mitigate").rglob("*.py"), *(self.root / "models").rglob("*.py")])
        self.files = {self.name_of(path): path for path in files}
        self.trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in self.files.items()}
        self.imports = {name: self.imports_of(tree) for name, tree in self.trees.items()}

    def name_of(self, path: Path) -> str:
        """The dotted name of a source."""
        return ".".join(path.relative_to(self.root).with_suffix("").parts).removesuffix(".__init__")

    @property
    def ours(self) -> dict[str, ast.Module]:
        """Those of mitigate/."""
        return {name: tree for name, tree in self.trees.items() if name.split(".")[0] == "mitigate"}

    def imports_of(self, tree: ast.Module) -> dict[str, str]:
        """Imports of a module, inside functions too: the local name and the dotted name in the project."""
        found = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                module = node.module.replace("mitigate.models", "models")
                found |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
        return {local: dotted for local, dotted in found.items() if dotted.split(".")[0] in ("mitigate", "models")}

    def reached(self, name: str) -> int:
        """How many modules a module reaches, itself included; packages' own files, which have a sentence, are not
        counted, and the library's root is not followed."""
        found, waiting = set(), [name]
        while waiting:
            if (module := waiting.pop()) not in found and module != "mitigate":
                found.add(module)
                dotted = self.imports[module].values()
                waiting += [one if one in self.trees else one.rpartition(".")[0] for one in dotted]
                waiting = [one for one in waiting if one in self.trees]
        return sum(self.files[module].name != "__init__.py" for module in found)

    @cached_property
    def functions(self) -> dict[str, Function]:
        """All by dotted name; a class stands for its __init__."""
        found = {}
        for name, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    found[f"{name}.{node.name}"] = Function(name, node)
                for part in node.body if isinstance(node, ast.ClassDef) else ():
                    if isinstance(part, ast.FunctionDef):
                        found[f"{name}.{node.name}.{part.name}"] = Function(name, part, node.name)
                        if part.name == "__init__":
                            found[f"{name}.{node.name}"] = found[f"{name}.{node.name}.__init__"]
        return found

    @cached_property
    def called(self) -> dict[Function, list[Function]]:
        """The project's functions that each function calls, as far as the source says which."""
        functions = dict.fromkeys(self.functions.values())
        return {
            one: [other for call in one.calls if (other := self._resolve(call, one)) is not None] for one in functions
        }

    def _resolve(self, call: ast.expr, function: Function) -> Function | None:
        if isinstance(call, ast.Name):
            dotted = self.imports[function.file].get(call.id, f"{function.file}.{call.id}")
            return self.functions.get(dotted)
        if not isinstance(call, ast.Attribute):
            return None
        before = ast.unparse(call.value)
        if before == "self" and function.owner:
            return self.functions.get(f"{function.file}.{function.owner}.{call.attr}")
        if (module := self.imports[function.file].get(before)) is not None:
            return self.functions.get(f"{module}.{call.attr}")
        known = self.methods.get(call.attr, [])
        return known[0] if len(known) == 1 else None

    def module_of(self, places: tuple[str, ...]) -> str:
        """The module of a recipe that this tree has."""
        return next(f"mitigate.{place}" for place in places if f"mitigate.{place}.run" in self.functions)

    @cached_property
    def methods(self) -> dict[str, list[Function]]:
        """The methods that take a part of the configuration, by name."""
        found: dict[str, list[Function]] = {}
        for one in dict.fromkeys(self.functions.values()):
            if one.owner not in (None, "Job") and one.takes_config:
                found.setdefault(one.node.name, []).append(one)
        return found

    @cached_property
    def following(self) -> set[Function]:
        """The functions that are given the configuration or read it, themselves or below."""
        everything = set(self.functions.values())
        found = {one for one in everything if one.takes_config or _reads_config(one.node)}
        while more := {one for one in everything - found if not found.isdisjoint(self.called[one])}:
            found |= more
        return {one for one in found if one.owner != "Job"}

    def trip(self, function: Function, above: tuple[Function, ...] = ()) -> Iterator[tuple[str, bool]]:
        """The files entered and returned to, each with whether it is a return."""
        for other in self.called[function]:
            if other not in self.following or other in (*above, function):
                continue
            moves = other.file != function.file
            if moves:
                yield other.file, False
            yield from self.trip(other, (*above, function))
            if moves:
                yield function.file, True


def _reads_config(node: ast.AST) -> bool:
    holders = [part.value for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr == "config"]
    return any(isinstance(holder, ast.Name) and holder.id in HOLDERS for holder in holders)


def helpers_used_once(trees: dict[str, ast.Module]) -> tuple[int, int]:
    """How many private functions and methods are used exactly once in their module, and how many there are."""
    once = total = 0
    for tree in trees.values():
        nodes = list(ast.walk(tree))
        private = [one.name for one in nodes if isinstance(one, ast.FunctionDef) and re.match("_[^_]", one.name)]
        used = Counter(one.id if isinstance(one, ast.Name) else one.attr for one in nodes if isinstance(one, USES))
        once += sum(used[name] == 1 for name in private)
        total += len(private)
    return once, total


def figures(root: Path) -> dict[str, str]:
    """The rows of the table for a checkout."""
    tree = Tree(root)
    ours = tree.ours
    lines = sum(len(tree.files[name].read_text(encoding="utf-8").splitlines()) for name in ours)
    imported = [
        node for one in ours.values() for node in ast.walk(one) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    of_imports = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imported)
    once, private = helpers_used_once(ours)
    found = {
        "lines of mitigate/": f"{lines:,}",
        "files": f"{len(ours)}",
        "lines a file": f"{lines / len(ours):.0f}",
        "share of import lines, %": f"{100 * of_imports / lines:.1f}",
        "private helpers used once, of all": f"{once} of {private}",
    }
    found |= {
        f"modules that {name} reaches": f"{tree.reached(tree.module_of(places))}" for name, places in RECIPES.items()
    }
    pages = [one for name, one in ours.items() if name.startswith("mitigate.report.")]
    nodes = [node for one in pages for node in ast.walk(one) if isinstance(node, ast.ImportFrom)]
    between = sum((node.module or "").startswith("mitigate.report") for node in nodes)
    found["imports between files of report/"] = f"{between}"
    for name, places in TRIPS.items():
        start = tree.functions[f"{tree.module_of(places)}.run"]
        stays = list(tree.trip(start))
        files = {start.file, *(file for file, _ in stays)}
        found[f"way of config, {name}: stays, returns, files"] = (
            f"{len(stays) + 1}, {sum(back for _, back in stays)}, {len(files)}"
        )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    columns = [figures(root.resolve()) for root in parser.parse_args().trees]
    for row in columns[0]:
        print(f"| {row} | " + " | ".join(column[row] for column in columns) + " |")
