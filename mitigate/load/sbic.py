"""The Social Bias Inference Corpus (Sap et al. 2020): its published files, and partial files of it.

Published are SBIC.v2.{trn,dev,tst}.csv, a row for each annotator, group and statement, and SBIC.v2.agg.{...}.csv, a row
for each post with averaged values and lists; the same columns in files of other names, such as the Parquet files of the
Hugging Face hub (default/train/0000.parquet), whose names or folders determine the split. Partial files
(mitigate/data/frames/files.csv) have some values only; others are null. A split in both published forms is read in the
first."""

import html
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.table import TABLES, Column, layout_of, read_table
from mitigate.package_data import rows_of
from mitigate.triples import SPLITS
from mitigate.words.frames import CHOICES

COLUMNS = {"lewd": "sexYN", "offensive": "offensiveYN", "intent": "intentYN", "targeted": "whoTarget"}
COLUMNS |= {"ingroup": "speakerMinorityYN"}
"""The published columns of the classifications."""

TEXT_COLUMNS = ("targetMinority", "targetCategory", "targetStereotype")
KNOWN = "frames/files.csv"  # in data/: the names and forms of files
IMPLIED = "frames_test_posts.csv"  # posts that annotators found to imply something of a group
POSITIVE = 0.5
"""Binarised, "yes" (1), "probably" (0.66) and "maybe" (0.5) are 1, "probably not" (0.33) and "no" (0) are 0."""

WORDS = {"yes": 1.0, "probably": 1.0, "maybe": 1.0, "probably not": 0.0, "no": 0.0}

Found = Iterator[tuple[dict[str, Any], Mapping[str, float | None], Sequence[str | None], str | None]]
"""A row of a file, its classifications, its group, category and implied statement, and its unit."""

NOT_SAID = (None, None, None)
ANNOTATIONS: dict[str, Any] = {
    "file": pl.String,
    "part": pl.String,  # train, dev or test, as in the file; null without one
    "post": pl.String,
    "key": pl.String,  # the normalised post
    "unit": pl.String,  # annotator and task, so that one annotator's rows count once; null in partial files
    **dict.fromkeys(CHOICES, pl.Float64),  # 0 to 1
    "group": pl.String,
    "category": pl.String,
    "implied": pl.String,
    "source": pl.String,  # the website
}
"""A row for each annotation and each group and statement in it."""


def read_annotations(folder: Path) -> pl.DataFrame:
    """All annotations in a folder (columns ANNOTATIONS) from its files, published and partial ones, except those of
    posts without a letter or a digit, which have no key."""
    found = _files(folder)
    plain = {row["part"] for row, _ in found if row["form"] == "published"}
    found = [(row, path) for row, path in found if not (row["form"] == "aggregated" and row["part"] in plain)]
    if not found:
        names = ", ".join(row["file"] for row in rows_of(KNOWN))
        raise MitigateError(
            f"{folder} has no file of the corpus; allowed: {names}, or files with the published columns in CSV, "
            "JSON or Parquet, named or in folders by split: train, validation, test"
        )
    rows = list[tuple]()
    for known, path in found:
        for row, values, texts, unit in READERS[known["form"]](path, known["names"]):
            post, choices = row["post"] or "", [values.get(name) for name in CHOICES]
            text = " ".join(html.unescape(post).split())
            source = row.get("dataSource") or None
            rows.append((path.name, known["part"] or None, text, normalise(post), unit, *choices, *texts, source))
    return pl.DataFrame(rows, schema=ANNOTATIONS, orient="row").filter(pl.col("key") != "")


def read_implied(folder: Path) -> list[tuple[str, list[str]]]:
    """Each implied statement of the partial file IMPLIED, in lower case, with the groups of its post."""
    path = folder / IMPLIED
    if not path.is_file():
        raise MitigateError(f"{folder} has no {IMPLIED}; set data.root to the folder that contains sbic/")

    def plain(texts: Sequence[str | None] | None) -> list[str]:
        return [words for text in texts or [] if (words := " ".join((text or "").lower().split()))]

    return [
        (statement, plain(row["targetMinority"]))
        for row in _rows(path, (), lists=("targetStereotype", "targetMinority"))
        for statement in plain(row["targetStereotype"])
    ]


def _files(folder: Path) -> list[tuple[dict[str, str], Path]]:
    """The files of the corpus, each with its description: by its name, else by its columns and the split in its name or
    folder."""
    known = {row["file"]: row for row in rows_of(KNOWN)}
    found = [(known[path.name], path) for path in sorted(folder.glob("*.csv")) if path.name in known]
    for path in sorted(folder.rglob("*")):
        words = re.findall(r"[a-z]+", str(path.relative_to(folder)).lower())
        part = next((SPLITS[word] for word in reversed(words) if word in SPLITS), None)
        if part and path.name not in known and path.name.removesuffix(".gz").endswith(TABLES) and path.is_file():
            names = layout_of(path).names
            if {*COLUMNS.values(), "post"} - {"speakerMinorityYN"} <= set(names):
                form = "published" if "WorkerId" in names else "aggregated"
                found.append(({"file": path.name, "form": form, "part": part, "names": ""}, path))
    return found


def normalise(post: str) -> str:
    """The common key of copies of a post: its words in lower case, without punctuation and HTML's escapes."""
    text = unicodedata.normalize("NFKC", html.unescape(post)).casefold()
    return " ".join(re.findall(r"\w+", text))


def cleaned(text: str) -> str:
    """A group or statement in one line and lower case, without a full stop at its end."""
    return " ".join(html.unescape(text).lower().split()).rstrip(" .")


def _published(path: Path, names: str) -> Found:
    needed = (*COLUMNS.values(), "post", "targetMinority", "targetStereotype")
    for row in _rows(path, needed, optional=("targetCategory", "HITId", "WorkerId", "dataSource")):
        texts = [cleaned(row[column] or "") or None for column in TEXT_COLUMNS]
        yield row, _values(path, row), texts, f"{row['HITId'] or ''}/{row['WorkerId'] or row['row']}"


def _aggregated(path: Path, names: str) -> Found:
    """Yield the rows of an aggregated file. Its lists are not paired: each statement goes with the group it names, else
    the first."""
    for row in _rows(path, ("post",), lists=TEXT_COLUMNS, optional=(*COLUMNS.values(), "dataSource")):
        values = _values(path, row)
        groups, categories, statements = (_cleaned(row[column]) for column in TEXT_COLUMNS)
        if values["targeted"] is None and row[COLUMNS["offensive"]] is not None:
            values["targeted"] = float(bool(groups))
        for texts in _paired(groups, categories, statements):
            yield row, values, texts, None


def _groups(path: Path, names: str) -> Found:
    known = dict(pair.split("=") for pair in names.split(";"))
    for row in _rows(path, ("post", "target_minority")):
        group = (row["target_minority"] or "").strip()
        yield row, {"targeted": 1.0}, (known.get(group, cleaned(group)), None, None), None


def _offensive(path: Path, names: str) -> Found:
    rows, _ = read_table(path, {"label": 1, "post": 2}, widths=(2,))
    for row in rows.iter_rows(named=True):
        if row["label"] not in ("0", "1"):
            found = f"found {row['label'][:60]!r}, expected `label,post` with label 0 or 1"
            raise MitigateError(f"{path}:{row['row']}: {found}")
        yield row, {"offensive": float(row["label"])}, NOT_SAID, None


def _implied(path: Path, names: str) -> Found:
    for row in _rows(path, ("post",), lists=("targetStereotype", "targetMinority")):
        for texts in _paired(_cleaned(row["targetMinority"]), [], _cleaned(row["targetStereotype"])):
            yield row, {"targeted": 1.0}, texts, None


READERS = {"published": _published, "aggregated": _aggregated, "groups": _groups}
READERS |= {"offensive": _offensive, "implied": _implied}


def _rows(
    path: Path, needed: Sequence[str], lists: Sequence[str] = (), optional: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield each row with its number: the columns needed, those that are lists of texts, and optional ones, null where
    they are missing."""
    wanted = {name: Column((name,)) for name in needed}
    wanted |= {name: Column((name,), lists=True, optional="Category" in name) for name in lists}
    wanted |= {name: Column((name,), optional=True) for name in optional}
    rows, _ = read_table(path, wanted)
    for row in rows.iter_rows(named=True):
        yield dict.fromkeys(wanted) | row


def _values(path: Path, row: Mapping[str, Any]) -> dict[str, float | None]:
    """The classifications of a row, numbers from 0 to 1 or the words of answers; null where a cell is empty."""
    found: dict[str, float | None] = {}
    for name, column in COLUMNS.items():
        text = (row[column] or "").strip().lower()
        try:
            value = WORDS[text] if text in WORDS else float(text or "nan")
        except ValueError:
            value = math.inf
        found[name] = None if math.isnan(value) or text == "none" else value
        if not 0 <= (found[name] or 0) <= 1:
            allowed = f"a number from 0 to 1, or one of {', '.join(WORDS)}"
            raise MitigateError(f"{path}:{row['row']}: {column} is {row[column]!r}; it must be {allowed}")
    return found


def _cleaned(texts: Sequence[str | None] | None) -> list[str]:
    return list(dict.fromkeys(filter(None, (cleaned(text or "") for text in texts or []))))


def _paired(
    groups: list[str], categories: list[str], statements: list[str]
) -> Iterator[tuple[str | None, str | None, str | None]]:
    """Yield rows of group, category and statement; groups without a statement have a row of their own."""
    category = categories[0] if len(categories) == 1 else None
    used: list[str | None] = []
    nobody: list[str | None] = [None]
    for statement in statements:
        words = set(statement.split())
        named = [group for group in groups if words & set(group.replace(",", " ").split()) - {"folks", "and"}]
        used.append((named or groups or nobody)[0])
        yield used[-1], category, statement
    for group in groups or ([] if statements else nobody):
        if group not in used:
            yield group, category, None
