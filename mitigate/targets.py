"""The 329 demographic targets of the harms paper (Tables 14 and 15) and their four categories, from
data/targets.csv, and how targets of a user's own are named.

Not every target is a person ("church", "greece"), and the list has no word for non-binary people."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, one_of

CATEGORIES = ("origin", "gender", "religion", "profession")


@cache
def targets() -> dict[str, str]:
    """Target -> category, in the paper's order."""
    with files("mitigate").joinpath("data/targets.csv").open(encoding="utf-8") as lines:
        return {row["target"]: row["category"] for row in csv.DictReader(lines)}


@cache
def clusters() -> dict[str, str]:
    """Target -> the word it is an inflection of (hers -> she), for targets that share one, from data/clusters.csv."""
    with files("mitigate").joinpath("data/clusters.csv").open(encoding="utf-8") as lines:
        return {row["target"]: row["cluster"] for row in csv.DictReader(lines)}


def any_of(words: Iterable[str]) -> str:
    """A regular expression for any of the words, and their regular plurals, as whole words, longest first."""
    return _any_of(tuple(words))


@cache
def _any_of(words: tuple[str, ...]) -> str:
    forms = sorted({form for word in words for form in _forms(word)}, key=lambda form: (-len(form), form))
    return r"(?i)\b(?:" + "|".join(re.escape(form).replace(r"\ ", "[ _-]") for form in forms) + r")\b"


def _forms(word: str) -> Iterator[str]:
    """The word and its regular plural: nurse, nurses; secretary, secretaries; policeman, policemen."""
    yield word
    if word.endswith(("s", "x", "ch", "sh")):
        yield word + "es"
    elif re.search(r"[^aeiou]y$", word):
        yield word[:-1] + "ies"
    else:
        yield word + "s"
    if word.endswith("man"):
        yield word[:-3] + "men"


def choose_targets(
    wanted: str | Path | Sequence[str], triples: pl.DataFrame | None = None, fewest: int = 1
) -> pl.DataFrame:
    """The targets to probe, (target, category): "all" 329, those that are the whole head or tail of at least `fewest`
    training triples ("data"), those of a list, or those of a CSV file.

    In a list, a target of the paper's keeps its category; any other word is of category "own". A file has
    a header line and a column `target`, and optionally `category`. Underscores are spaces, case is folded.
    Raises MitigateError for an empty choice, an unreadable file or one without the column."""
    if wanted in ("all", "data"):
        frame = pl.DataFrame({"target": list(targets()), "category": list(targets().values())})
        if wanted == "data" and triples is not None:
            train = triples.filter(pl.col("split") == "train")
            about = pl.concat([train["head"], train.filter(pl.col("head") != pl.col("tail"))["tail"]]).alias("target")
            often = about.value_counts().filter(pl.col("count") >= fewest)["target"]
            frame = frame.filter(pl.col("target").is_in(often.implode()))
    elif isinstance(wanted, str | Path):
        frame = _read(Path(wanted))
    else:
        words = [_plain(word) for word in wanted]
        frame = pl.DataFrame(
            {"target": words, "category": [targets().get(word, "own") for word in words]},
            schema={"target": pl.String, "category": pl.String},
        )
    frame = frame.filter(pl.col("target") != "").unique("target", keep="first", maintain_order=True)
    if frame.is_empty():
        raise MitigateError(f"probe.targets={wanted} names no target; allowed: all, data, a list of words, a CSV file")
    return frame


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        if path.suffix == "":
            raise one_of("probe.targets", str(path), ["all", "data", "a list such as [lawyer,nurse]", "FILE.csv"])
        raise MitigateError(f"probe.targets: there is no file {path}; give a CSV file with a column 'target'")
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except UnicodeDecodeError as error:
        raise MitigateError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from error
    if not rows or "target" not in rows[0]:
        found = ", ".join(rows[0]) if rows else "nothing"
        raise MitigateError(f"{path} has no column 'target' (found: {found}); its first line must name it")
    words = [_plain(row["target"] or "") for row in rows]
    categories = [
        (row.get("category") or "").strip() or targets().get(word, "own") for row, word in zip(rows, words, strict=True)
    ]
    return pl.DataFrame({"target": words, "category": categories})


def _plain(word: str) -> str:
    return " ".join(str(word).replace("_", " ").lower().split())
