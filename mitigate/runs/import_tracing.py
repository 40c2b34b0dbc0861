"""Sources that code reaches, and data files that they name. From the module of a function, imports are followed through
this project and through a user's own modules, not through installed packages. Docstrings, comments and formatting do
not count. A string in a source of the project that names a file beside it, or in the project's data folder, stands for
that data file, which counts."""

import ast
import hashlib
import importlib.util
import inspect
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1]
DATA = PACKAGE / "data"
OURS = (f"{PACKAGE}{os.sep}", f"{PACKAGE.parent / 'models'}{os.sep}")  # a wheel has the networks below `mitigate`

NOT_FOLLOWED = {
    f"mitigate.{name}"
    for name in (
        *("__main__", "runs.fingerprints", "runs.import_tracing", "runs.user_code", "runs.file_tracking"),
        *("errors", "runs.progress", "settings", "words.outside_text"),  # for display, without effect on results
        *("runs.files", "runs.store", "runs.label_cache", "runs.status"),  # storage of results
        "tracking.record",
    )
} | {"mitigate"}
INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that, as polars, are not a user's own
LAYERS_NOT_FOLLOWED = ("mitigate.recipes", "mitigate.cli", "mitigate.serve")


class Reached(NamedTuple):
    """The sources and the data files that a function reaches, each by its path, sorted."""

    sources: tuple[Path, ...]
    data: tuple[Path, ...]

    @property
    def users(self) -> tuple[Path, ...]:
        """The sources that are a user's own."""
        return tuple(path for path in self.sources if not is_ours(path))


def reached(*of: object) -> Reached:
    """The sources and data files that functions, classes, objects' classes, modules or names of modules reach. Raises
    TypeError for an object without a module."""
    each = [_reached(one if isinstance(one, str) else module_of(one)) for one in of]
    sources, data = (tuple(sorted({path for found in each for path in found[part]})) for part in (0, 1))
    return Reached(sources, data)


def is_ours(path: Path | str) -> bool:
    """Return whether a file is the project's."""
    return str(path).startswith(OURS)


def is_users_file(name: str) -> bool:
    """Return whether a source is neither the project's, nor Python's own, nor of an installed package."""
    installed = not INSTALLED.isdisjoint(Path(name).parts) or name.startswith(("<frozen", sysconfig.get_path("stdlib")))
    return not is_ours(name) and not installed


def is_users(name: str) -> bool:
    """Return whether the module of a name is a user's own, or has no source that could tell."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        return name == "__main__"
    path = file_of(name)
    return path is None or not is_ours(path)


def outside(*of: object) -> Iterator[tuple[Path, str]]:
    """Yield the imports of the user's own sources that are not followed: the source, and the module's name."""
    for one in of:
        found = _followed(one if isinstance(one, str) else module_of(one))
        users = {name: path for name, path in found.items() if not is_ours(path)}
        tops = {name.partition(".")[0] for name in users}
        for name, path in users.items():
            yield from ((path, other) for other in imports_of(path, name) if other.partition(".")[0] not in tops)


@cache
def _reached(module: str) -> Reached:
    found = _followed(module).values()
    data = {file for path in found if is_ours(path) for file in _named_files(path)}
    return Reached(tuple(sorted(set(found))), tuple(sorted(data)))


@cache
def _followed(module: str) -> dict[str, Path]:
    """The modules that a module reaches, by name."""
    found: dict[str, Path] = {}
    waiting = [module]
    recipe = ".".join(module.split(".")[:3]) + "." if module.startswith("mitigate.recipes.") else None
    while waiting:
        name = waiting.pop()
        own = name == module or (recipe is not None and name.startswith(recipe))
        if name not in found and (own or _is_followed(name, module)) and (path := file_of(name)):
            found[name] = path
            waiting += imports_of(path, name)
    return found


def _is_followed(name: str, first: str) -> bool:
    """Return whether a module can change a result: those of this project without the layers around results, and if
    `first` is a user's own, other modules of the user. Installed packages are not a user's own, wherever the
    environment is, except the package of `first`. A stage function inside a recipe's package also reaches that package;
    all other recipes, the command line and the service do not count."""
    path = file_of(name)
    if path is None or is_ours(path):
        around = any(name == layer or name.startswith(f"{layer}.") for layer in LAYERS_NOT_FOLLOWED)
        return path is not None and name not in NOT_FOLLOWED and not around
    if not is_users(first):
        return False
    top = name.partition(".")[0]
    same = top == first.partition(".")[0]
    return top not in sys.stdlib_module_names and (same or INSTALLED.isdisjoint(path.parts))


def users_module(target: str) -> str | None:
    """The user's own module of a dotted name, such as "study" of "study.Words", found without importing it."""
    parts = target.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    found = next((name for name in names if file_of(name)), None)
    return found if found and is_users(found) and found.partition(".")[0] not in sys.stdlib_module_names else None


def module_of(of: object) -> str:
    """The name of the module of a function, a class or an object's class."""
    if isinstance(of, partial):
        return module_of(of.func)
    if isinstance(of, ModuleType):
        return of.__name__
    thing = of if isinstance(of, type) or inspect.isroutine(of) else type(of)
    name = getattr(inspect.unwrap(thing), "__module__", None)  # type: ignore[arg-type]
    if not isinstance(name, str):
        raise TypeError(f"{of!r} has no module whose source could be read")
    return name


@cache
def file_of(name: str) -> Path | None:
    """The source of a module, or the __init__.py of a package; None where there is no source."""
    if name in sys.modules and getattr(sys.modules[name], "__file__", None):
        path = Path(str(sys.modules[name].__file__))
        return path if path.suffix == ".py" else None
    top, *rest = name.split(".")
    if not rest:
        spec = _spec(name)
        return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
    places = [folder.joinpath(*rest) for folder in _folders_of(top)]
    files = (file for place in places for file in (place.with_name(place.name + ".py"), place / "__init__.py"))
    return next((file for file in files if file.is_file()), None)


def _folders_of(package: str) -> list[Path]:
    """The folders of a package's modules, found without importing it."""
    if (loaded := sys.modules.get(package)) is not None:
        return list(map(Path, getattr(loaded, "__path__", ())))
    spec = _spec(package)
    return list(map(Path, spec.submodule_search_locations or ())) if spec else []


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


@cache
def nodes_of(path: Path) -> Sequence[ast.AST]:
    """The nodes of the parsed source without docstrings, as ast.walk yields them: the module first. One walk serves
    all who look for something, since walks are most of the time."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError:  # the import of the module reports it
        tree = ast.Module([], [])
    nodes: list[ast.AST] = [tree]
    for node in nodes:  # which grows meanwhile
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [part for part in body if not _is_text_alone(part)]  # type: ignore[attr-defined]
        for name in node._fields:
            part = getattr(node, name, None)
            if isinstance(part, list):
                nodes += [each for each in part if isinstance(each, ast.AST)]
            elif isinstance(part, ast.AST):
                nodes.append(part)
    return nodes


def _is_text_alone(node: ast.AST) -> bool:
    """A docstring, or the same below an attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class Facts(NamedTuple):
    """The parts of a source that matter."""

    imports: list[list[str]]  # of `import a.b as c`: name and bound name
    imports_from: list[tuple[int, str, list[list[str]]]]  # of `from .a import b as c`: level, module, such pairs
    attributes: list[str]  # that are read of the library, where the source imports it under a name
    texts: list[str]  # strings that may name files
    code: str  # a hash of the source without comments and docstrings


@cache
def facts_of(path: Path) -> Facts:
    """The facts of a source. Those of the project's are stored beside Python's bytecode, with a hash of the source and
    of this module, as parsing all sources takes half a second of each start."""
    if not is_ours(path) or sys.implementation.cache_tag is None:
        return _facts(nodes_of(path))
    key = hashlib.sha256(path.read_bytes() + _own_hash()).hexdigest()
    place = Path(importlib.util.cache_from_source(str(path))).with_suffix(".facts.json")
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        if stored["key"] == key:
            return Facts(**stored["facts"])
    except (OSError, ValueError, TypeError, KeyError):
        pass  # not there, or damaged
    found = _facts(nodes_of(path))
    if not sys.dont_write_bytecode:
        with suppress(OSError):  # a folder that cannot be written
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps({"key": key, "facts": found._asdict()}), encoding="utf-8")
            part.replace(place)
    return found


@cache
def _own_hash() -> bytes:
    return hashlib.sha256(Path(__file__).read_bytes()).digest()


def _facts(nodes: Sequence[ast.AST]) -> Facts:
    imports = [
        [alias.name, alias.asname or alias.name]
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    imports_from = [
        (node.level, node.module or "", [[alias.name, alias.asname or ""] for alias in node.names])
        for node in nodes
        if isinstance(node, ast.ImportFrom)
    ]
    library = {bound for name, bound in imports if name == "mitigate"}
    attributes = {
        node.attr
        for node in (nodes if library else ())
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in library
    }
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    code = hashlib.sha256(ast.dump(nodes[0]).encode()).hexdigest()
    return Facts(imports, imports_from, sorted(attributes), [text for text in texts if _may_name(text)], code)


@cache
def imports_of(path: Path, name: str) -> tuple[str, ...]:
    """The modules that a source imports, at its top or inside functions, and their packages. A public name of the
    library stands for its module."""
    is_package = path.name == "__init__.py"
    facts = facts_of(path)
    found = ([] if name == "mitigate" else _library_names(facts)) + [imported for imported, _ in facts.imports]
    for level, module, names in facts.imports_from:
        base = module
        if level:
            parts = name.split(".")
            parts = parts[: len(parts) - level + is_package]
            base = ".".join([*parts, *([module] if module else [])])
        found += [base, *(f"{base}.{imported}" for imported, _ in names)]
    each = [one.split(".") for one in dict.fromkeys(found)]
    return tuple(dict.fromkeys(".".join(parts[:end]) for parts in each for end in (*range(2, len(parts) + 1), 1)))


def _library_names(facts: Facts) -> list[str]:
    """The modules of the public names that a source imports from the library: `from mitigate import label_statements`,
    or `import mitigate as m` and `m.label_statements`."""
    offered = _offered()
    used = {imported for _, module, names in facts.imports_from if module == "mitigate" for imported, _ in names}
    return [offered[name] for name in sorted({*used, *facts.attributes}) if name in offered]


@cache
def _offered() -> dict[str, str]:
    """The library's public names, each with its module."""
    imports = facts_of(PACKAGE / "__init__.py").imports_from
    return {bound: module for _, module, names in imports for _, bound in names if bound and module}


_INCLUDED = re.compile(r"""["']([\w./-]+\.jinja)["']""")
LONGEST_NAME = 200  # characters; a longer string names no file
NOT_DATA = (".md", ".py", ".pyc")  # in a folder of data: cards, and code, which is followed by its imports


@cache
def _named_files(path: Path) -> tuple[Path, ...]:
    """The files that strings of one of the project's sources name: beside it, below the package or in its data folder.
    A folder of data stands for all its files except cards; a template also for those that it includes."""
    return tuple(dict.fromkeys(file for text in facts_of(path).texts for file in _files(text, path.parent)))


def _may_name(text: str) -> bool:
    return text.isprintable() and len(text) <= LONGEST_NAME and ("." in text or "/" in text)


def _files(text: str, beside: Path) -> list[Path]:
    for base in (beside, PACKAGE, DATA):
        place = base / text
        if not place.exists() or ".." in place.parts:
            continue
        if place.resolve() in (DATA, PACKAGE, PACKAGE.parent, beside.resolve()):
            continue
        if place.is_file() and place.suffix != ".py":
            return _with_included(place)
        if place.is_dir() and place.is_relative_to(DATA):
            return [file for file in sorted(place.rglob("*")) if file.is_file() and file.suffix not in NOT_DATA]
    return []


def _with_included(file: Path) -> list[Path]:
    found, waiting = [], [file]
    while waiting:
        if (path := waiting.pop()) not in found:
            found.append(path)
            if path.suffix == ".jinja":
                names = _INCLUDED.findall(path.read_text(encoding="utf-8"))
                waiting += [path.parent / name for name in names if (path.parent / name).is_file()]
    return found


@cache
def digest_of_reached(found: Reached) -> str:
    """One hash of the code and the data files."""
    code = [_code(path) for path in found.sources]
    data = [f"{path.name} {_digest_of_file(path)}" for path in found.data]
    return hashlib.sha256("\0".join([*code, *data]).encode()).hexdigest()


def _code(path: Path) -> str:
    """A hash of a source without comments and docstrings."""
    return facts_of(path).code


@cache
def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def forget() -> None:
    """Clear all caches, as after an edit in a running process."""
    of_sources = (file_of, nodes_of, facts_of, imports_of, _offered, _named_files, _digest_of_file)
    for cached in (_reached, _followed, digest_of_reached, *of_sources):
        cached.cache_clear()
