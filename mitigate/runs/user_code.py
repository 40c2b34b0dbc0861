"""The identity of a user's own code: its version, or the hash of all its sources, or the reason why these cannot be
followed.

Code can be followed if it imports only Python sources, the standard library and a few packages, and reads nothing that
`opened` does not see. Code that cannot be followed has another identity in each process, so that no other process
reuses its results."""

import ast
import inspect
import sys
import uuid
from collections.abc import Iterable
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.runs import file_tracking, import_tracing
from mitigate.runs.import_tracing import digest_of_reached, file_of, is_users, module_of, nodes_of, outside, reached
from mitigate.runs.progress import notice

PACKAGES = {"mitigate", "models", "numpy", "polars", "hydra", "omegaconf", "typing_extensions"}
"""Packages that a followed source may import besides Python's own. Their names that read files are in UNSEEN."""
UNSEEN_MODULES = {  # they read files as compiled code, start processes, use the network, or load code by name
    *("sqlite3", "mmap", "dbm", "shelve", "pickle", "marshal", "ctypes", "subprocess", "multiprocessing", "concurrent"),
    *("asyncio", "socket", "ssl", "http", "urllib.request", "ftplib", "smtplib", "xmlrpc", "runpy", "pty"),
    *("mitigate.load", "mitigate.runs.store", "mitigate.runs.label_cache", "models"),
}
UNSEEN = {  # names, of whatever object
    *("environ", "environb", "getenv", "getenvb", "argv", "stdin", "now", "today"),
    *("exists", "lexists", "is_file", "is_dir", "isfile", "isdir", "stat", "lstat", "getmtime", "getsize", "access"),
    *("cwd", "getcwd", "abspath", "absolute", "system", "popen", "fork"),
    *("import_module", "__import__", "exec", "eval", "from_pretrained"),
    *("read_triples", "read_relations", "open_run", "open_generator", "compare_runs", "LabelStore"),  # the library's
    *("SQLContext", "sql", "deserialize", "register_plugin_function"),  # polars's, and:
    *(name for name in dir(pl) if name.startswith(("read_", "scan_"))),
}
VERSIONS = ("numpy", "polars", "vaderSentiment", "torch", "transformers")  # of packages that own code may reach
REMEDY = 'To identify the code by a version alone, set {name}.version = "1"'


class Own(NamedTuple):
    """A user's own code: its identity, its sources, and the reason why it cannot be followed completely."""

    known_by: tuple[str, ...]
    sources: tuple[Path, ...]  # whose opened files count besides; none where there is a version
    fault: str | None


def own(*codes: Any, version: str | None = None) -> Own:
    """A user's own classes, functions and names of modules, as one. version: that of an object of the first; by default
    its own. Code that cannot be followed completely has another identity in each process."""
    version = version or version_of(codes[0])
    if version is not None:
        return Own(("version", name_of(codes[0]), version), (), None)
    found = reached(*codes)
    file_tracking.watch(found.users)
    fault = _fault(codes, found.users)
    known_by = (digest_of_reached(found), *_installed(), *([_this_process()] if fault else []))
    return Own(known_by, found.users, fault)


def is_own(of: object) -> bool:
    """Return whether a class, a function or an object is a user's own: neither of the project nor of Python."""
    return is_users(module_of(of))


def version_of(of: Any) -> str | None:
    """The attribute `version` of a user's own class, function or object; None where it has none. Raises MitigateError
    for anything but a text or a number."""
    of = of.func if isinstance(of, partial) else of.__self__ if inspect.ismethod(of) else of
    if isinstance(of, str | ModuleType) or not is_own(of):
        return None
    classes = () if isinstance(of, type) or inspect.isroutine(of) else (type(of),)
    found = next((vars(one)["version"] for one in (of, *classes) if "version" in getattr(one, "__dict__", {})), None)
    if found is None:
        return None
    if not isinstance(found, str | int | float) or isinstance(found, bool) or found == "":
        raise MitigateError(f'{name_of(of)}.version={found!r} must be a text or a number, such as version = "1"')
    return str(found)


def name_of(of: Any) -> str:
    """The name of a class or function with its module; in a script, with its file."""
    of = of.func if isinstance(of, partial) else of
    thing = of if isinstance(of, type) or inspect.isroutine(of) else type(of)
    module = module_of(of)
    script = Path(getattr(sys.modules.get(module), "__file__", None) or "").stem if module == "__main__" else ""
    return f"{script or module}.{getattr(thing, '__qualname__', '')}"


def say_not_reused(what: str, codes: Iterable[Any]) -> bool:
    """Return whether other processes cannot reuse the results of a user's own code, and show that once in one line."""
    for code in codes:
        if is_own(code) and (fault := own(code).fault):
            say_fault(what, fault, code)
            return True
    return False


def say_fault(what: str, fault: str, code: Any) -> None:
    """Show once in a process, in one line, that a result is not reused. what: that result."""
    _notice_once(
        f"{what} cannot be reused: the next process computes this again, also after a kill, because {fault}. "
        + REMEDY.format(name=name_of(code).rpartition(".")[2])
    )


@cache
def _notice_once(message: str) -> None:
    notice(message)


def _fault(codes: Iterable[Any], users: Iterable[Path]) -> str | None:
    """The reason why own code cannot be followed completely; None where it can."""
    for module in (code if isinstance(code, str) else module_of(code) for code in codes):
        if file_of(module) is None:
            return f"{module} has no source file"
        for path, name in outside(module):
            parts = name.split(".")
            top = parts[0] in sys.stdlib_module_names or parts[0] in PACKAGES
            if not top or UNSEEN_MODULES.intersection(".".join(parts[:end]) for end in (1, 2)):
                return f"{path.name} imports {name}, which may read files that are not tracked"
    for path in users:
        for node in nodes_of(path):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in UNSEEN:
                    return f"{path.name} uses `{name}`, which may read files that are not tracked"
                case ast.alias(name=dotted) if (name := dotted.rpartition(".")[2]) in UNSEEN:
                    return f"{path.name} uses `{name}`, which may read files that are not tracked"
    return None


@cache
def _installed() -> tuple[str, ...]:
    return tuple(metadata.version(name) for name in VERSIONS)


@cache
def _this_process() -> str:
    return uuid.uuid4().hex


def forget() -> None:
    """Clear all caches of sources, as in a new process."""
    import_tracing.forget()
    file_tracking.forget()
    _this_process.cache_clear()
    _notice_once.cache_clear()
