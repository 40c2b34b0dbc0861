"""The Social Bias Inference Corpus (Sap et al. 2020): published files, and partial ones that have some values only.

Published are SBIC.v2.{trn,dev,tst}.csv, with a row for each annotator, group and statement, or files of other names
with the same columns, such as the Parquet files of the Hugging Face hub. The name or the folder of a file says its
split. Partial files are offensive_*.csv, groups_*.csv and frames_test_posts.csv."""

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

Found = Iterator[tuple[str | None, Mapping[str, float | None], tuple[str | None, str | None], str | None]]
"""The posts of a file with classifications, a group and an implied statement, and the unit."""


def read_annotations(folder: Path) -> pl.DataFrame:
    """All annotations in a folder (columns ANNOTATIONS), except those of posts without a letter or a digit. Raises
    MitigateError where no file is of the corpus, and for a damaged one."""
    rows, is_empty = list[tuple](), True
    for path in sorted(folder.rglob("*")):
        words = re.findall(r"[a-z]+", str(path.relative_to(folder)).lower())
        part = next((SPLITS[word] for word in reversed(words) if word in SPLITS), None)
        reader = _reader_of(path) if part and path.is_file() else None
        for post, values, texts, unit in reader(path) if reader else []:
            text = " ".join(html.unescape(post or "").split())
            choices = [values.get(name) for name in CHOICES]
            rows.append((path.name, part, text, normalise(post or ""), unit, *choices, *texts))
        is_empty &= reader is None
    if is_empty:
        raise MitigateError(
            f"{folder} has no file of the corpus; allowed: {ALLOWED}, or files with the published columns in CSV, "
            "JSON or Parquet, named or in folders by split: train, validation, test. SBIC.v2.agg.*.csv are not read"
        )
    return pl.DataFrame(rows, schema=ANNOTATIONS, orient="row").filter(pl.col("key") != "")


def normalise(post: str) -> str:
    """The common key of copies of a post: its words in lower case, without punctuation and HTML's escapes."""
    text = unicodedata.normalize("NFKC", html.unescape(post)).casefold()
    return " ".join(re.findall(r"\w+", text))


def _cleaned(text: str | None) -> str | None:
    """A group or statement in one line and lower case, without a full stop at its end."""
    return " ".join(html.unescape(text or "").lower().split()).rstrip(" .") or None


def _reader_of(path: Path) -> Any:
    """The function that reads a file; None for a file that is not of the corpus."""
    for name, reader in {"offensive_": _offensive, "groups_": _groups, IMPLIED: _implied}.items():
        if path.name.startswith(name):
            return reader
    if not path.name.removesuffix(".gz").endswith(TABLES):
        return None
    return _published if {*COLUMNS.values(), "post", "WorkerId"} <= set(layout_of(path).names) else None


def _published(path: Path) -> Found:
    for row in _rows(path, (*COLUMNS.values(), "post", "targetMinority", "targetStereotype", "WorkerId")):
        values = {}
        for name, column in COLUMNS.items():
            try:
                value = float(row[column] or "nan")
            except ValueError:
                value = math.inf
            if not (0 <= value <= 1 or math.isnan(value)):
                raise MitigateError(
                    f"{path}:{row['row']}: {column} is {row[column]!r}; it must be a number from 0 to 1"
                )
            values[name] = None if math.isnan(value) else value
        texts = _cleaned(row["targetMinority"]), _cleaned(row["targetStereotype"])
        yield row["post"], values, texts, row["WorkerId"] or str(row["row"])


def _offensive(path: Path) -> Found:
    rows, _ = read_table(path, {"label": 1, "post": 2}, widths=(2,))
    for row in rows.iter_rows(named=True):
        if row["label"] not in ("0", "1"):
            found = f"found {row['label'][:60]!r}, expected `label,post` with label 0 or 1"
            raise MitigateError(f"{path}:{row['row']}: {found}")
        yield row["post"], {"offensive": float(row["label"])}, (None, None), None


def _groups(path: Path) -> Found:
    for row in _rows(path, ("post", "target_minority")):
        group = (row["target_minority"] or "").strip()
        yield row["post"], {"targeted": 1.0}, (GROUPS.get(group) or _cleaned(group), None), None


def _implied(path: Path) -> Found:
    """Yield a row for each statement, with the group that it names, else the first one, and for each other group."""
    for row in _rows(path, ("post",), ("targetStereotype", "targetMinority")):
        statements, groups = (
            list(dict.fromkeys(filter(None, map(_cleaned, row[name] or []))))
            for name in ("targetStereotype", "targetMinority")
        )
        pairs = list[tuple[str | None, str | None]]()
        for statement in statements:
            words = set(statement.split())
            named = [group for group in groups if words & set(group.replace(",", " ").split()) - {"folks", "and"}]
            pairs.append((next(iter(named or groups), None), statement))
        pairs += [(group, None) for group in groups if group not in {of for of, _ in pairs}]
        for texts in pairs or [(None, None)]:
            yield row["post"], {"targeted": 1.0}, texts, None


def _rows(path: Path, texts: Sequence[str], lists: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield each row with its number: columns of texts, and of lists of texts."""
    rows, _ = read_table(path, {name: Column((name,), lists=name in lists) for name in (*texts, *lists)})
    yield from rows.iter_rows(named=True)
