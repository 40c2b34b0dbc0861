"""What a result depends on, found and not listed: the code a function reaches, the data files this code names, and the
values the function is given.

The code is read from the sources. From the module of a function, imports are followed through this project (and, for a
class of a user's own, through the folder that it is imported from, but for installed packages). Docstrings, comments
and formatting do not count. A string that names a file beside the module, or in the project's data folder, is a data
file that counts; beside a user's own module also a path in parts, and a folder with all its files."""

import ast
import hashlib
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.machinery import ModuleSpec
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

PACKAGE = Path(__file__).parent
PACKAGES = ("mitigate", "models")  # a wheel has the networks below `mitigate`
DATA = PACKAGE / "data"
SEAL = "sha256"  # in a manifest and in the record of a stage: the hash of all else in it
SURROUNDING = {"surrounding": True}
"""Metadata of a dataclass field that says how or where something is done and never what comes of it:
`checkpoint_every: float = field(default=30.0, metadata=SURROUNDING)`."""

NOT_FOLLOWED = {
    f"mitigate.{name}"
    for name in (
        *("__main__", "fingerprints"),
        *("errors", "progress", "settings", "texts"),  # what is shown, not what is found
        *("files", "store", "label_cache", "tracking", "dashboards", "status"),  # where it is kept
    )
} | {"mitigate"}
INSTALLED = {"site-packages", "dist-packages"}  # folders of packages that are a user's own no more than polars is
LAYERS_NOT_FOLLOWED = ("mitigate.recipes", "mitigate.serve", "mitigate.tasks.ask")  # none of them is in a stage


class Reached(NamedTuple):
    """The sources and the data files that a function reaches, each by its path, sorted."""

    sources: tuple[Path, ...]
    data: tuple[Path, ...]


def digest_of(content: bytes | str) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The object, of what JSON can hold, with the hash of all else in it, by which `is_intact` finds damage."""
    rest = {name: value for name, value in content.items() if name != SEAL}
    return {**rest, SEAL: digest_of(json.dumps(rest, sort_keys=True, ensure_ascii=False))}


def is_intact(content: Mapping[str, Any]) -> bool:
    """Whether the object is as it was sealed. One without a hash, as earlier code wrote it, is taken as it is; in one
    whose last entry is the hash of all others, the hash's own name is damaged."""
    if SEAL in content or not content:
        return not content or sealed(content)[SEAL] == content[SEAL]
    *others, last = content
    return sealed({name: content[name] for name in others})[SEAL] != content[last]


def digest_of_values(*values: object) -> str:
    """One hash of values of any of the kinds that `plain` knows."""
    return digest_of(json.dumps(plain(values), sort_keys=True, ensure_ascii=False))


def digest_of_code(of: object) -> str:
    """One hash of the code and the data files that a function, a class, an object's class or a module reaches."""
    return _digest_of_reached(reached(of))


def digest_of_stage(function: object, values: object) -> str:
    """One hash of what `reached_by_stage` finds, of which function of its module it is, and of what a method is bound
    to."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    bound = getattr(function, "__self__", None) if inspect.isroutine(function) else function
    of_module = inspect.isbuiltin(function) or isinstance(bound, ModuleType)
    state = digest_of_values(None if of_module else bound)
    return digest_of(f"{_module_of(function)} {name} {state} {_digest_of_reached(reached_by_stage(function, values))}")


def reached_by_stage(function: object, values: object) -> Reached:
    """What a function reaches, and the code that objects among its values name as theirs by an attribute `code`: a
    model's start names what loads it."""
    each = [reached(code) for code in (function, *_code_among(values))]
    sources, data = (tuple(sorted({path for found in each for path in found[part]})) for part in (0, 1))
    return Reached(sources, data)


def _code_among(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _code_among(part)
    elif callable(code := getattr(value, "code", None)):
        yield code


def fingerprint(made: object, *facts: object) -> str:
    """The fingerprint of an object such as a scorer: the code its class reaches, and facts such as hashes of weights
    and settings."""
    return digest_of(digest_of_code(made) + digest_of_values(*facts))


def reached(of: object) -> Reached:
    """What `digest_of_code` reads. Raises TypeError for something that has no module."""
    return _reached(_module_of(of))


def plain(value: object) -> Any:
    """A value as JSON has it, with hashes in place of tables, arrays and code: equal for equal values only.

    An object with a `digest` or a `fingerprint` is known by that; a dataclass by its fields, but for those marked
    SURROUNDING. Raises TypeError for a path, which says nothing of what the file holds, and for any other kind."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, pl.DataFrame | pl.Series):
        frame = value if isinstance(value, pl.DataFrame) else value.to_frame()
        return {"table": digest_of(as_parquet(frame))}
    if isinstance(value, np.ndarray):
        return {"array": digest_of(np.ascontiguousarray(value).tobytes()), "as": [str(value.dtype), *value.shape]}
    if isinstance(value, np.generic):
        return value.item()
    for name in ("digest", "fingerprint"):
        if isinstance(known := getattr(value, name, None), str):
            called = getattr(value, "name", None)  # a scorer's columns are called by its name
            return {name: known} | ({"name": called} if isinstance(called, str) else {})
    if is_dataclass(value) and not isinstance(value, type):
        kept = {f.name: plain(getattr(value, f.name)) for f in fields(value) if "surrounding" not in f.metadata}
        return {"object": type(value).__qualname__, **kept}
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key), plain(part)] for key, part in value.items()]}
    if isinstance(value, Set):
        return {"set": sorted(json.dumps(plain(part), sort_keys=True) for part in value)}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return {"bytes": digest_of(value)}
    if isinstance(value, partial):
        return {"partial": plain(value.func), "args": plain(value.args), "with": plain(value.keywords)}
    if isinstance(value, ModuleType | type) or inspect.isroutine(value):
        return {"code": digest_of_code(value), "name": getattr(value, "__qualname__", getattr(value, "__name__", ""))}
    raise TypeError(
        f"a result cannot depend on {value!r} ({type(value).__name__}): give plain values, tables, dataclasses or "
        "objects with a `fingerprint`; paths and what only says where or how goes into `using`"
    )


def as_parquet(frame: pl.DataFrame) -> bytes:
    """The table as a Parquet file: the same bytes for the same rows, however they came together."""
    buffer = BytesIO()
    frame.rechunk().write_parquet(buffer, row_group_size=2**18)
    return buffer.getvalue()


@cache
def _reached(module: str) -> Reached:
    found: dict[str, Path] = {}
    waiting = [module]
    first = _file_of(module)
    beside = _imported_from(module, first) if first and module.partition(".")[0] not in PACKAGES else None
    recipe = ".".join(module.split(".")[:3]) + "." if module.startswith("mitigate.recipes.") else None
    while waiting:
        name = waiting.pop()
        own = name == module or (recipe is not None and name.startswith(recipe))
        same = beside is not None and name.partition(".")[0] == module.partition(".")[0]
        if name not in found and (own or _is_followed(name, beside, same)) and (path := _file_of(name)):
            found[name] = path
            waiting += _imports(path, name)
    data = {file for path in found.values() for file in _named_files(path)}
    return Reached(tuple(sorted(set(found.values()))), tuple(sorted(data)))


def _imported_from(module: str, file: Path) -> Path:
    """The folder that a user's own module is imported from: of pkg.part, the one that pkg is in."""
    up = module.count(".") + (file.name == "__init__.py")
    return file.parents[min(up, len(file.parents) - 1)]


def _is_followed(name: str, beside: Path | None, same: bool) -> bool:
    """Whether a module can change a result: this project's but for the layers around results, and a user's own in the
    folder of the class that is asked about. Installed packages are not a user's own, wherever the environment is, but
    for the one that the class is in (`same`)."""
    top = name.partition(".")[0]
    if top in PACKAGES:
        around = any(name == layer or name.startswith(f"{layer}.") for layer in LAYERS_NOT_FOLLOWED)
        return name not in NOT_FOLLOWED and not around
    if beside is None or top in sys.stdlib_module_names:
        return False
    path = _file_of(name)
    return path is not None and path.is_relative_to(beside) and (same or INSTALLED.isdisjoint(path.parts))


def _module_of(of: object) -> str:
    if isinstance(of, partial):
        return _module_of(of.func)
    if isinstance(of, ModuleType):
        return of.__name__
    thing = of if isinstance(of, type) or inspect.isroutine(of) else type(of)
    name = getattr(inspect.unwrap(thing), "__module__", None)  # type: ignore[arg-type]
    if not isinstance(name, str):
        raise TypeError(f"{of!r} has no module whose source could be read")
    return name


@cache
def _file_of(name: str) -> Path | None:
    """The source of a module; of a package its __init__.py. None where there is no source to read."""
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
    """Where the modules of a package are, found without importing it."""
    if (known := sys.modules.get(package)) is not None:
        return list(map(Path, getattr(known, "__path__", ())))
    spec = _spec(package)
    return list(map(Path, spec.submodule_search_locations or ())) if spec else []


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


@cache
def _tree(path: Path) -> ast.Module:
    """The parsed source without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [part for part in body if not _is_text_alone(part)]  # type: ignore[attr-defined]
    return tree


def _is_text_alone(node: ast.AST) -> bool:
    """A docstring, or the same below an attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def _imports(path: Path, name: str) -> tuple[str, ...]:
    """The modules that a source imports, at its top or inside functions, and the packages they are in. A public name of
    the library stands for the module that has it."""
    is_package = path.name == "__init__.py"
    found = [] if name == "mitigate" else _library_names(path)
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            found.append(base)
            found += [f"{base}.{alias.name}" for alias in node.names]
    return tuple(dict.fromkeys(_with_packages(found)))


def _library_names(path: Path) -> list[str]:
    """The modules of the public names that a source takes from the library: `from mitigate import label_statements`, or
    `import mitigate as m` and `m.label_statements`."""
    tree, offered = _tree(path), _offered()
    called, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            called |= {alias.asname or alias.name for alias in node.names if alias.name == "mitigate"}
        elif isinstance(node, ast.ImportFrom) and node.module == "mitigate":
            used |= {alias.name for alias in node.names}
    for node in ast.walk(tree) if called else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in called:
            used.add(node.attr)
    return [offered[name] for name in sorted(used) if name in offered]


@cache
def _offered() -> dict[str, str]:
    """The library's public names, each with the module it is from."""
    imports = (node for node in ast.walk(_tree(PACKAGE / "__init__.py")) if isinstance(node, ast.ImportFrom))
    return {alias.asname: node.module for node in imports for alias in node.names if alias.asname and node.module}


def _with_packages(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:end]) for end in range(2, len(parts) + 1))
        yield parts[0]


_INCLUDED = re.compile(r"""["']([\w./-]+\.jinja)["']""")
LONGEST_NAME = 200  # characters; a longer string names no file


@cache
def _named_files(path: Path) -> tuple[Path, ...]:
    """The files that strings of a source name: beside it, below the package or in its data folder. Of a folder all, but
    for cards; of a template also those it includes."""
    found = [_files(text, path.parent, is_path) for text, is_path in _names(_tree(path))]
    return tuple(dict.fromkeys(file for files in found for file in files))


def _names(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The strings of a source, and paths in parts, whose last parts are strings: HERE / "lists" / "words.txt",
    HERE.joinpath("lists", "words.txt"). Each with whether it is surely a path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, False
        elif parts := _last_parts(node):
            yield "/".join(parts), True


def _last_parts(node: ast.AST) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        operands = [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("joinpath", "join"):
        operands = [node.func.value, *node.args]
    else:
        return []
    parts: list[str] = []
    for operand in operands:
        is_text = isinstance(operand, ast.Constant) and isinstance(operand.value, str)
        parts = [*parts, operand.value] if is_text else _last_parts(operand)  # type: ignore[attr-defined]
    return parts


def _files(text: str, beside: Path, is_path: bool) -> list[Path]:
    is_ours = beside.is_relative_to(PACKAGE) or beside.is_relative_to(PACKAGE.parent / "models")
    if not text.isprintable() or len(text) > LONGEST_NAME or (is_ours and not ("." in text or "/" in text)):
        return []
    for base in (beside, PACKAGE, DATA):
        place = base / text
        if not place.exists() or ".." in place.parts:
            continue
        if place.resolve() in (DATA, PACKAGE, PACKAGE.parent, beside.resolve()):
            continue
        if place.is_file() and place.suffix != ".py":
            return _with_included(place)
        if place.is_dir() and (place.is_relative_to(DATA) or (is_path and not is_ours)):
            return [file for file in sorted(place.rglob("*")) if file.is_file() and _is_data(file)]
    return []


def _is_data(file: Path) -> bool:
    """Whether a file in a folder of data is more than its card, or code, which is followed by its imports."""
    return file.suffix not in (".md", ".py", ".pyc")


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
def _digest_of_reached(found: Reached) -> str:
    code = [_code(path) for path in found.sources]
    data = [f"{path.name} {_digest_of_file(path)}" for path in found.data]
    return digest_of("\0".join([*code, *data]))


@cache
def _code(path: Path) -> str:
    """A source without comments and docstrings."""
    return ast.dump(_tree(path))


@cache
def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def forget() -> None:
    """Read every source again the next time, as after an edit in a running process."""
    of_sources = (_file_of, _tree, _code, _imports, _offered, _named_files, _digest_of_file)
    for cached in (_reached, _digest_of_reached, *of_sources):
        cached.cache_clear()
