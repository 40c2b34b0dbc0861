"""The Social Bias Inference Corpus (Sap et al. 2020): published files, and partial ones that have some values only.

Published are SBIC.v2.{trn,dev,tst}.csv, with a row for each annotator, group and statement, or files of other names
with the same columns, such as the Parquet files of the Hugging Face hub. The name or the folder of a file says its
split. Partial files are offensive_*.csv, groups_*.csv and frames_test_posts.csv."""

import html
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.table import TABLES, Column, layout_of, read_table
from mitigate.triples import SPLITS

COLUMNS = {"lewd": "sexYN", "offensive": "offensiveYN", "intent": "intentYN", "targeted": "whoTarget"}
COLUMNS |= {"ingroup": "speakerMinorityYN"}
"""The published columns of the classifications, in the order of equation 1."""
CHOICES = tuple(COLUMNS)

IMPLIED = "frames_test_posts.csv"  # original test posts that annotators found to imply something of a group
ALLOWED = f"SBIC.v2.trn.csv, groups_trn.csv, offensive_train.csv, {IMPLIED}"
GROUPS = {one: f"{one.lower()} folks" for one in ("black", "jewish", "muslim", "asian")} | {"LGBT": "lgbtq folks"}
POSITIVE = 0.5  # "maybe"; "probably" is 0.66, "probably not" 0.33
ANNOTATIONS: dict[str, Any] = {
    "file": pl.String,
    "part": pl.String,  # train, dev or test, as in the file
    "post": pl.String,
    "key": pl.String,  # the normalised post
    "unit": pl.String,  # the annotator, whose rows count once; null in partial files
    **dict.fromkeys(CHOICES, pl.Float64),  # 0 to 1
    "group": pl.String,
    "implied": pl.String,
}
"""A row for each annotation and each group and statement in it."""

LISTS = {"implied": "targetStereotype", "group": "targetMinority"}
PARTIAL: dict[str, dict[str, Any]] = {
    "offensive_": {"label": 1, "post": 2},
    "groups_": {"post": "post", "group": "target_minority"},
    IMPLIED: {"post": "post", **{name: Column((column,), lists=True) for name, column in LISTS.items()}},
}
"""The beginning of a partial file's name -> its columns."""
PUBLISHED = {**COLUMNS, "post": "post", **LISTS, "unit": "WorkerId"}


def read_annotations(folder: Path) -> pl.DataFrame:
    """All annotations in a folder (columns ANNOTATIONS), except those of posts without a letter or a digit. Raises
    MitigateError where no file is of the corpus, and for a damaged one."""
    rows = list[tuple]()
    for path in sorted(folder.rglob("*")):
        words = re.findall(r"[a-z]+", str(path.relative_to(folder)).lower())
        part = next((SPLITS[word] for word in reversed(words) if word in SPLITS), None)
        if not part or not path.is_file() or not (columns := _columns_of(path)):
            continue
        for row in read_table(path, columns)[0].iter_rows(named=True):
            text, key = " ".join(html.unescape(row["post"] or "").split()), normalise(row["post"] or "")
            unit = (row["unit"] or str(row["row"])) if "unit" in row else None
            facts = (path.name, part, text, key, unit, *map(_choices(path, row).get, CHOICES))
            rows += [(*facts, *texts) for texts in _texts(row)]
    if not rows:
        others = "files with the published columns, named or in folders by split: train, validation, test"
        raise MitigateError(f"{folder} has no file of the corpus; allowed: {ALLOWED}, or {others}")
    return pl.DataFrame(rows, schema=ANNOTATIONS, orient="row").filter(pl.col("key") != "")


def normalise(post: str) -> str:
    """The common key of copies of a post: its words in lower case, without punctuation and HTML's escapes."""
    text = unicodedata.normalize("NFKC", html.unescape(post)).casefold()
    return " ".join(re.findall(r"\w+", text))


def _cleaned(text: str | None) -> str | None:
    """A group or statement in one line and lower case, without a full stop at its end."""
    return " ".join(html.unescape(text or "").lower().split()).rstrip(" .") or None


def _columns_of(path: Path) -> Mapping[str, Any] | None:
    """The columns to read of a file; None for a file that is not of the corpus."""
    if name := next((name for name in PARTIAL if path.name.startswith(name)), None):
        return PARTIAL[name]
    is_table = path.name.removesuffix(".gz").endswith(TABLES)
    return PUBLISHED if is_table and {*COLUMNS.values(), "post", "WorkerId"} <= set(layout_of(path).names) else None


def _choices(path: Path, row: Mapping[str, Any]) -> dict[str, float | None]:
    """The classifications of a post, 0 to 1."""
    at = f"{path}:{row['row']}"
    if "label" in row and row["label"] not in ("0", "1"):
        raise MitigateError(f"{at}: found {row['label'][:60]!r}, expected `label,post` with label 0 or 1")
    if "lewd" not in row:
        return {"offensive": float(row["label"])} if "label" in row else {"targeted": 1.0}
    for name, column in COLUMNS.items():
        if row[name] and not re.fullmatch(r"0?\.\d+|[01](?:\.0*)?", row[name]):
            raise MitigateError(f"{at}: {column} is {row[name]!r}; it must be a number from 0 to 1")
    return {name: float(row[name]) if row[name] else None for name in COLUMNS}


def _texts(row: Mapping[str, Any]) -> list[tuple[str | None, str | None]]:
    """The groups of a post with what it implies. A list of statements gives a pair for each, with the group that it
    names, else the first one, and a pair for each other group."""
    group, implied = row.get("group"), row.get("implied")
    if not isinstance(group, list) and not isinstance(implied, list):
        known = {} if "implied" in row else GROUPS  # of partial files
        return [(known.get((group or "").strip()) or _cleaned(group), _cleaned(implied))]
    statements, groups = (list(dict.fromkeys(filter(None, map(_cleaned, each or [])))) for each in (implied, group))
    pairs = list[tuple[str | None, str | None]]()
    for statement in statements:
        words = set(statement.split())
        named = [one for one in groups if words & set(one.replace(",", " ").split()) - {"folks", "and"}]
        pairs.append((next(iter(named or groups), None), statement))
    return pairs + [(one, None) for one in groups if one not in {of for of, _ in pairs}] or [(None, None)]
