"""The Social Bias Inference Corpus (Sap et al. 2020): published files, and partial ones that have some values only.

Published are SBIC.v2.{trn,dev,tst}.csv, with a row for each annotator, group and statement, or files of other names
with the same columns, such as the Parquet files of the Hugging Face hub. The name or the folder of a file says its
split. Partial files are offensive_*.csv, groups_*.csv and frames_test_posts.csv."""

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
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
        if not part or not path.is_file() or not (reader := _reader_of(path)):
            continue
        is_empty = False
        for post, values, texts, unit in reader(path):
            text, choices = " ".join(html.unescape(post or "").split()), map(values.get, CHOICES)
            rows.append((path.name, part, text, normalise(post or ""), unit, *choices, *texts))
    if is_empty:
        raise MitigateError(
            f"{folder} has no file of the corpus; allowed: {ALLOWED}, or files with the published columns, named or in "
            "folders by split: train, validation, test"
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
    is_table = path.name.removesuffix(".gz").endswith(TABLES)
    return _published if is_table and {*COLUMNS.values(), "post", "WorkerId"} <= set(layout_of(path).names) else None


def _published(path: Path) -> Found:
    for row in _rows(path, *COLUMNS.values(), "post", "targetMinority", "targetStereotype", "WorkerId"):
        values: dict[str, float | None] = {}
        for name, column in COLUMNS.items():
            value = row[column] or None
            if value is not None and not re.fullmatch(r"0?\.\d+|[01](?:\.0*)?", value):
                raise MitigateError(f"{path}:{row['row']}: {column} is {value!r}; it must be a number from 0 to 1")
            values[name] = None if value is None else float(value)
        texts = _cleaned(row["targetMinority"]), _cleaned(row["targetStereotype"])
        yield row["post"], values, texts, row["WorkerId"] or str(row["row"])


def _offensive(path: Path) -> Found:
    rows, _ = read_table(path, {"label": 1, "post": 2}, widths=(2,))
    for row, label, post in rows.iter_rows():
        if label not in ("0", "1"):
            raise MitigateError(f"{path}:{row}: found {label[:60]!r}, expected `label,post` with label 0 or 1")
        yield post, {"offensive": float(label)}, (None, None), None


def _groups(path: Path) -> Found:
    for row in _rows(path, "post", "target_minority"):
        group = (row["target_minority"] or "").strip()
        yield row["post"], {"targeted": 1.0}, (GROUPS.get(group) or _cleaned(group), None), None


def _implied(path: Path) -> Found:
    """Yield a row for each statement, with the group that it names, else the first one, and for each other group."""
    for row in _rows(path, "post", targetStereotype=True, targetMinority=True):
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


def _rows(path: Path, *texts: str, **lists: bool) -> Iterator[dict[str, Any]]:
    """Yield each row with its number: columns of texts, and of lists of texts."""
    rows, _ = read_table(path, {name: Column((name,), lists=name in lists) for name in (*texts, *lists)})
    yield from rows.iter_rows(named=True)
