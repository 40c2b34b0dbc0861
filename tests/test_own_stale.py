# ruff: noqa: E501 - sources of modules, a line each
"""What a user's own code labels is never stale: after each change the labels are those of the code and the files as they
are, and where these cannot be followed, one line says so."""

import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mitigate.recipes.scorers import _load
from mitigate.runs import fingerprints
from mitigate.runs.label_cache import LabelStore
from mitigate.score.labels import NOTHING_CACHED, label_column

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
TEXTS = pl.Series(["a rude clerk", "a lazy clerk", "a kind clerk"])
BEFORE, AFTER = [-1, 0, 0], [0, -1, 0]  # labels by the word "rude", and by the word "lazy"
HERE = "from pathlib import Path\nHERE = Path(__file__).parent\n"
SCORER = """
import numpy as np
from mitigate import Labels

class Own:
    def __init__(self, given="rude", file=None):
        self.given, self.file = given, file

    def words(self):
        {words}

    def __call__(self, texts):
        found = np.array([any(word in text.split() for word in self.words()) for text in texts])
        return Labels(-found.astype(np.int8), -found.astype(np.float32))
"""


def scorer(words: str = "return [self.given]", head: str = "") -> str:
    """The source of a scorer: what its method `words` does, and what stands above the class."""
    return head + SCORER.format(words=words)


@dataclass(frozen=True)
class Change:
    """A change of a user's own code or files, by which the word of prejudice becomes "lazy" instead of "rude"."""

    name: str
    files: Mapping[str, str]  # the module that is named, study.py, and others
    changed: Mapping[str, str | None] = field(default_factory=dict)  # their new contents; None: removed
    node: Mapping[str, Any] = field(default_factory=dict)  # of the configuration, besides _target_: study.Own
    new_node: Mapping[str, Any] | None = None
    said: str | None = None  # why it cannot be followed; None: it can
    act: Callable[[Path, pytest.MonkeyPatch], None] | None = None  # what else changes


def of_code() -> Iterator[Change]:
    yield Change("its code", {"study.py": scorer("return ['rude']")}, {"study.py": scorer("return ['lazy']")})
    yield Change("a default", {"study.py": scorer()}, {"study.py": scorer().replace('="rude"', '="lazy"')})
    head = "WORDS = ['{}']\n"
    old, new = (scorer("return WORDS", head.format(word)) for word in ("rude", "lazy"))
    yield Change("a global", {"study.py": old}, {"study.py": new})
    words = {"rude": "WORDS = ['rude']\n", "lazy": "WORDS = ['lazy']\n"}
    for name, place, head in (
        ("a module beside it", "lists.py", "from lists import WORDS\n"),
        ("a module by its name", "lists.py", "import lists\nWORDS = lists.WORDS\n"),
        ("a module of a package", "own_lists/words.py", "from own_lists.words import WORDS\n"),
        ("a package without __init__", "own_space/words.py", "import own_space.words as w\nWORDS = w.WORDS\n"),
        ("a package called models", "own_study/models/words.py", "from own_study.models.words import WORDS\n"),
        ("a module above the package", "../above_words.py", "from above_words import WORDS\n"),
    ):
        package = {"own_lists/__init__.py": ""} if place.startswith("own_lists") else {}
        yield Change(
            name, {"study.py": scorer("return WORDS", head), place: words["rude"], **package}, {place: words["lazy"]}
        )
    lazily = scorer("from lists import WORDS; return WORDS")
    yield Change(
        "a module imported when it is called",
        {"study.py": lazily, "lists.py": words["rude"]},
        {"lists.py": words["lazy"]},
    )
    base = "class Base:\n    def list(self):\n        return ['{}']\n"
    derived = scorer("return self.list()", "from base import Base\n").replace("class Own:", "class Own(Base):")
    yield Change(
        "its base class", {"study.py": derived, "base.py": base.format("rude")}, {"base.py": base.format("lazy")}
    )
    wrap = "def always(method):\n    return lambda self: ['{}']\n"
    decorated = scorer("return []", "from wraps import always\n").replace("    def words", "    @always\n    def words")
    yield Change(
        "a decorator", {"study.py": decorated, "wraps.py": wrap.format("rude")}, {"wraps.py": wrap.format("lazy")}
    )
    factory = {"_target_": "factory.make"}
    made = "from study import Own\ndef make(): return Own('{}')\n"
    yield Change(
        "a factory",
        {"study.py": scorer(), "factory.py": made.format("rude")},
        {"factory.py": made.format("lazy")},
        factory,
    )
    part = "class Part:\n    word = '{}'\n"
    nested = {"given": {"_target_": "parts.Part"}}
    inner = scorer("return [self.given.word]")
    yield Change(
        "a nested _target_",
        {"study.py": inner, "parts.py": part.format("rude")},
        {"parts.py": part.format("lazy")},
        nested,
    )
    closure = "import numpy as np\nfrom mitigate import Labels\ndef make(word):\n    def label(texts):\n        return [-int(word in text) for text in texts]\n    return label\n"
    yield Change(
        "the argument of a closure",
        {"factory.py": closure},
        {},
        {**factory, "word": "rude"},
        {**factory, "word": "lazy"},
    )
    lambdas = "def make(): return lambda texts: [-int('{}' in text) for text in texts]\n"
    yield Change("a lambda", {"factory.py": lambdas.format("rude")}, {"factory.py": lambdas.format("lazy")}, factory)
    yield Change("an argument", {"study.py": scorer()}, {}, {"given": "rude"}, {"given": "lazy"})
    vader = "from mitigate.score.vader import Vader\nfrom mitigate import Labels\nimport numpy as np\nclass Own(Vader):\n    def __init__(self, word='rude'):\n        super().__init__()\n        self.word = word\n    def __call__(self, texts):\n        found = np.array([{} in text for text in texts])\n        return Labels(-found.astype(np.int8), -found.astype(np.float32))\n"
    yield Change(
        "an argument of a class derived from the project's",
        {"study.py": vader.format("self.word")},
        {},
        {"word": "rude"},
        {"word": "lazy"},
    )
    yield Change("the code of such a class", {"study.py": vader.format("'rude'")}, {"study.py": vader.format("'lazy'")})


def of_files() -> Iterator[Change]:
    read = "return ({}).read_text().split()"
    for name, path, file in (
        ("a file beside it", 'HERE / "words.txt"', "words.txt"),
        ("a file with a name that is put together", 'HERE / ("wo" + "rds" + ".txt")', "words.txt"),
        ("a file in a folder", 'HERE / "lists" / "words.txt"', "lists/words.txt"),
        ("a file above the module", 'HERE.parent / "words.txt"', "../words.txt"),
        ("a file in the working directory", 'Path("words.txt")', "../here/words.txt"),
        ("a file below ~", 'Path("~/words.txt").expanduser()', "../home/words.txt"),
        ("a file of an argument", "Path(self.file)", "words.txt"),
    ):
        node = {"file": "PLACE/words.txt"} if "self.file" in path else {}
        yield Change(name, {"study.py": scorer(read.format(path), HERE), file: "rude"}, {file: "lazy"}, node)
    once = scorer("return WORDS", HERE + 'WORDS = (HERE / "words.txt").read_text().split()\n')
    yield Change("a file read at import", {"study.py": once, "words.txt": "rude"}, {"words.txt": "lazy"})
    built = scorer("return self.given", HERE).replace(
        "= given, file", '= (HERE / "words.txt").read_text().split(), file'
    )
    yield Change("a file read when it is built", {"study.py": built, "words.txt": "rude"}, {"words.txt": "lazy"})
    helper = HERE + 'def words(): return (HERE / "words.txt").read_text().split()\n'
    of_module = {"study.py": scorer("import lists; return lists.words()"), "lists.py": helper, "words.txt": "rude"}
    yield Change("a file that another module reads", of_module, {"words.txt": "lazy"})
    part = (
        HERE + 'class Part:\n    def __init__(self):\n        self.words = (HERE / "words.txt").read_text().split()\n'
    )
    nested = {"study.py": scorer("return self.given.words"), "parts.py": part, "words.txt": "rude"}
    yield Change("a file of a nested _target_", nested, {"words.txt": "lazy"}, {"given": {"_target_": "parts.Part"}})
    missing = "try: return (HERE / 'mine.txt').read_text().split()\n        except FileNotFoundError: return ['rude']"
    yield Change("a file that was not there", {"study.py": scorer(missing, HERE)}, {"mine.txt": "lazy"})
    for name, ways in {
        "json": ("import json\n", 'return json.load(open(HERE / "words.txt"))', '["rude"]', '["lazy"]'),
        "csv": ("import csv\n", 'return next(csv.reader(open(HERE / "words.txt")))', "rude,x", "lazy,x"),
        "configparser": (
            "import configparser\n",
            'c = configparser.ConfigParser(); c.read(HERE / "words.txt"); return [c["a"]["w"]]',
            "[a]\nw=rude",
            "[a]\nw=lazy",
        ),
        "linecache": (
            "import linecache\n",
            'linecache.clearcache(); return [linecache.getline(str(HERE / "words.txt"), 1).strip()]',
            "rude\n",
            "lazy\n",
        ),
        "numpy": ("import numpy\n", 'return [str(numpy.genfromtxt(HERE / "words.txt", dtype=str))]', "rude", "lazy"),
        "os.open": (
            "import os\n",
            'return [os.read(os.open(HERE / "words.txt", os.O_RDONLY), 9).decode()]',
            "rude",
            "lazy",
        ),
        "a resource": (
            "from importlib import resources\n",
            'return resources.files("own_lists").joinpath("words.txt").read_text().split()',
            "rude",
            "lazy",
        ),
    }.items():
        head, body, old, new = ways
        file = "own_lists/words.txt" if name == "a resource" else "words.txt"
        package = {"own_lists/__init__.py": ""} if name == "a resource" else {}
        yield Change(
            f"a file read by {name}", {"study.py": scorer(body, HERE + head), file: old, **package}, {file: new}
        )
    listed = 'return [path.stem for path in (HERE / "lists").{}]'
    for name, how in (("iterdir", "iterdir()"), ("glob", 'glob("*.txt")'), ("rglob", 'rglob("*.txt")')):
        files = {"study.py": scorer(listed.format(how), HERE), "lists/rude.txt": ""}
        yield Change(f"a renamed file in a folder, by {name}", files, {"lists/rude.txt": None, "lists/lazy.txt": ""})
    every = 'import os; return os.listdir(HERE / "lists")'
    yield Change(
        "a file removed from a folder",
        {
            "study.py": scorer(
                f"{every[:11]}found = os.listdir(HERE / 'lists'); return ['rude'] if len(found) > 1 else ['lazy']", HERE
            ),
            "lists/a": "",
            "lists/b": "",
        },
        {"lists/b": None},
    )
    newest = 'return sorted((HERE / "lists").iterdir())[-1].read_text().split()'
    yield Change("a file added to a folder", {"study.py": scorer(newest, HERE), "lists/a": "rude"}, {"lists/b": "lazy"})

    def elsewhere(place: Path, patch: pytest.MonkeyPatch) -> None:
        (place / "there").mkdir()
        (place / "there" / "words.txt").write_text("lazy")
        patch.chdir(place / "there")

    working = {"study.py": scorer('return open("words.txt").read().split()'), "../here/words.txt": "rude"}
    yield Change("another working directory", working, act=elsewhere)


def unseen() -> Iterator[Change]:
    def files(body: str, head: str = "") -> dict[str, str]:
        return {"study.py": scorer(body, HERE + head), "words.txt": "rude"}

    for name, body, head, said in (
        (
            "polars",
            'return pl.read_csv(HERE / "words.txt", has_header=False, new_columns=["w"])["w"].to_list()',
            "import polars as pl\n",
            "`read_csv`",
        ),
        (
            "polars lazily",
            'return pl.scan_csv(HERE / "words.txt", has_header=False, new_columns=["w"]).collect()["w"].to_list()',
            "import polars as pl\n",
            "`scan_csv`",
        ),
        (
            "a process",
            'return subprocess.check_output(["cat", HERE / "words.txt"], text=True).split()',
            "import subprocess\n",
            "imports subprocess",
        ),
        ("os.popen", 'return os.popen(f"cat {HERE}/words.txt").read().split()', "import os\n", "`popen`"),
        (
            "a memory map",
            'return [bytes(mmap.mmap(os.open(HERE / "words.txt", os.O_RDONLY), 0, prot=mmap.PROT_READ)).decode()]',
            "import mmap, os\n",
            "imports mmap",
        ),
        ("ctypes", "import ctypes; return (HERE / 'words.txt').read_text().split()", "", "imports ctypes"),
        (
            "whether a file exists",
            'return (HERE / "words.txt").read_text().split() if (HERE / "words.txt").exists() else []',
            "",
            "`exists`",
        ),
        ("code by name", 'import importlib; return importlib.import_module("lists").WORDS', "", "`import_module`"),
        ("code of a text", 'found = {}; exec((HERE / "words.py").read_text(), found); return found["W"]', "", "`exec`"),
        (
            "the library's readers",
            'return mitigate.read_triples(HERE / "words.csv")["tail"].to_list()',
            "import mitigate\n",
            "`read_triples`",
        ),
        ("the path of the working directory", 'return (Path.cwd() / "words.txt").read_text().split()', "", "`cwd`"),
        (
            "an installed package",
            "import vaderSentiment; return (HERE / 'words.txt').read_text().split()",
            "",
            "imports vaderSentiment",
        ),
        (
            "safetensors",
            "import safetensors; return (HERE / 'words.txt').read_text().split()",
            "",
            "imports safetensors",
        ),
        ("torch", "import torch; return (HERE / 'words.txt').read_text().split()", "", "imports torch"),
        ("pickle", "import pickle; return (HERE / 'words.txt').read_text().split()", "", "imports pickle"),
    ):
        old, new = files(body, head), {"words.txt": "lazy"}
        if name == "code by name":
            old, new = old | {"lists.py": "WORDS = ['rude']\n"}, {"lists.py": "WORDS = ['lazy']\n"}
        if name == "code of a text":
            old, new = old | {"words.py": "W = ['rude']\n"}, {"words.py": "W = ['lazy']\n"}
        if name == "the library's readers":
            rows = "head,relation,tail\nnurse,IsA,{}\n"
            old, new = old | {"words.csv": rows.format("rude")}, {"words.csv": rows.format("lazy")}
        if name == "the path of the working directory":
            old, new = old | {"../here/words.txt": "rude"}, {"../here/words.txt": "lazy"}
        yield Change(f"read by {name}", old, new, said=said)
    database = 'return [row[0] for row in sqlite3.connect(HERE / "words.db").execute("SELECT word FROM words")]'

    def stored(word: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
        import sqlite3

        def act(place: Path, _: pytest.MonkeyPatch) -> None:
            with sqlite3.connect(place / "own" / "words.db") as connection:
                connection.executescript(f"DROP TABLE IF EXISTS words; CREATE TABLE words AS SELECT '{word}' AS word")

        return act

    yield Change("read by sqlite3", files(database, "import sqlite3\n"), said="imports sqlite3", act=stored("lazy"))

    def environment(_: Path, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("OWN_WORDS", "lazy")

    for name, how in (("environ", 'os.environ.get("OWN_WORDS", "rude")'), ("getenv", 'os.getenv("OWN_WORDS", "rude")')):
        yield Change(f"read by os.{name}", files(f"return [{how}]", "import os\n"), said=f"`{name}`", act=environment)


CHANGES = [*of_code(), *of_files(), *unseen()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with one of a user's own modules, `own`, from which they are imported, a home and a working directory."""
    for name in ("own", "home", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "own")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    before = set(sys.modules)
    yield tmp_path
    forget(before)


def forget(before: set[str]) -> None:
    """As a new process would begin."""
    for name in [name for name in set(sys.modules) - before if own_file(name)]:
        del sys.modules[name]
    fingerprints.forget()
    sys.path_importer_cache.clear()


def own_file(name: str) -> bool:
    module = sys.modules[name]
    path = getattr(module, "__path__", ())  # of torch.classes an object that cannot be iterated over
    places = [getattr(module, "__file__", None) or "", *(map(str, path) if isinstance(path, Iterable) else ())]
    return any("/own" in one or "above_words" in one for one in places)


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def labels_of(change: Change, node: Mapping[str, Any], place: Path) -> tuple[list[int], list[int]]:
    """The labels by the cache, and those of the code as it is, each as a new process has them."""
    text = json.dumps({"_target_": "study.Own", **node}).replace("PLACE", str(place / "own"))
    found = []
    for cache in (LabelStore(place / "cache"), NOTHING_CACHED):
        before = set(sys.modules)
        made = _load(json.loads(text), "own", "own")
        found.append(label_column(TEXTS, made, cache).label.tolist())
        forget(before)
    return found[0], found[1]


@pytest.fixture(autouse=True, scope="module")
def _files_that_own_code_left_open() -> Iterator[None]:
    """Closed here: their warnings would come in the middle of another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subprocess.run(["true"], check=True)  # a new process makes Python forget those that nobody waited for
        gc.collect()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_labels_of_a_scorer_are_never_stale(
    change: Change, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write(place / "own", change.files)
    if change.name == "read by sqlite3":
        import sqlite3

        with sqlite3.connect(place / "own" / "words.db") as connection:
            connection.execute("CREATE TABLE words AS SELECT 'rude' AS word")
    assert labels_of(change, change.node, place) == (BEFORE, BEFORE)
    write(place / "own", change.changed)
    if change.act:
        change.act(place, monkeypatch)
    assert labels_of(change, change.node if change.new_node is None else change.new_node, place) == (AFTER, AFTER)
    said = capsys.readouterr().err
    if change.said is None:
        assert said == ""
    else:
        assert said.count("\n") == 2  # one line in each of two processes
        assert "the result of the scorer own cannot be reused: the next process computes this again" in said
        assert change.said in said
        assert 'To identify the code by a version alone, set Own.version = "1"' in said
