"""Sentences and statements: a user's own, `target<TAB>statement`; stories, `prompt|||story`; sentences whose targets
the audit finds, GenericsKB's too; and the resources that the harms paper audits, as its authors released them, in the
folder harms/ of data.root or of MITIGATE_DATA."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, counted, one_of, whole_sentences
from mitigate.load.stream import Counts, Loaded, OnBadLine, Streamed, Table, decoded, describe, filled, path_of, report
from mitigate.load.table import BLANK, Column, Columns, Place, layout_of, open_lines, open_table
from mitigate.load.triples import columns_of
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, TRIPLES
from mitigate.words.prompts import PROMPTS, kind_of, targets_of_prompt
from mitigate.words.relations import relations
from mitigate.words.targets import PAPER, TargetList, targets

COLUMNS = ("target", "statement")
SCHEMA = ("row", "target", "category", "statement")
MEANINGS = {"prejudice": PREJUDICE, "neutral": NEUTRAL, "favouritism": FAVOURITISM, "other": OTHER}
LABELS = {
    **MEANINGS,
    **{"negative": PREJUDICE, "positive": FAVOURITISM, "favoritism": FAVOURITISM},
    **{"-1": PREJUDICE, "0": NEUTRAL, "1": FAVOURITISM, "+1": FAVOURITISM},
}
"""Labels in files, in lower case. Other numbers, and 0 and 1 without -1, could mean anything: data.labels says it."""
WHOLE_NUMBER = r"^([+-]?\d+)\.0+$"  # 1.0: so pandas writes the integers of a column with gaps
LISTED = "the sources that docs/resources.md lists"
PAPERS = "the paper's repository, https://github.com/Ninarehm/Commonsense_bias"
CONCEPTNET = "harms/conceptnet_target_triples.txt"
GENERICSKB = "harms/genericskb_target_sentences.tsv"
REGARD = "regard/bert_labels_conceptnet.tsv"
MOST = 10  # labels in a message
NAMES = ("statement", "text", "sentence")  # of the default column of sentences
OF_GENERICSKB = {
    "statement": Column(("generic sentence", "generic_sentence", "knowledge.sentence", "sentence")),
    "term": Column(("term", "knowledge.key_concept", "concept_name"), optional=True),
}
BETWEEN = "|||"
EXPECTED_STORY = f"prompt{BETWEEN}story"


def load(
    path: str | None,
    on_bad_line: OnBadLine = "error",
    columns: Columns | None = None,
    label_column: str | None = None,
    labels: Mapping[str | int, str] | None = None,
) -> Loaded:
    """The statements of a file: lines `target<TAB>statement`, or a table with such columns in any format: row (the
    line's number), target (lower-cased, "own" if not among the 329), category, statement, and the labels of the file.

    columns: what a table calls its columns, {"target": "who"}, or their places from 1. label_column: the column that
    labels statements; it keeps its name. labels: the meaning of its values, {0: prejudice, 1: neutral, 2: favouritism};
    without it LABELS, in any case."""
    place = path_of(path, "statements", "FILE.tsv, a file of lines 'target<TAB>statement'")
    label_columns = () if label_column is None else (label_column.lower(),)
    if set(label_columns) & set(SCHEMA):
        raise MitigateError(f"data.label_column={label_column} has another meaning here; rename the column in the file")
    wanted: dict[str, Place] = {**{name: name for name in label_columns}, **columns_of(columns, COLUMNS, label_columns)}
    layout = layout_of(place)
    widths: list[int] | None = None
    if not (columns or label_columns or set(COLUMNS) & set(layout.lower)) and layout.form != "objects":
        wanted, widths = {"target": 1, "statement": 2}, [2]
    remedy = "; name the columns in a first line, or set 'data.columns={target: 1, statement: 2}'"
    rows, counts = open_table(place, wanted, layout=layout, widths=widths, remedy=remedy).read()
    rows = filled(place, rows, COLUMNS, counts)
    for name in label_columns:
        label = pl.col(name).fill_null("").str.strip_chars().str.to_lowercase()
        rows = rows.with_columns(label.str.replace(WHOLE_NUMBER, "$1"))
        label_of, more = meanings(rows[name], labels), "; data.labels={...} gives others a meaning"
        rows = decoded(place, rows, name, label_of, counts, more)
    notices = describe(counts, on_bad_line)
    if rows.is_empty():
        raise MitigateError(f"{path} has no statements; expected lines 'target<TAB>statement'")
    plain = pl.col("target").str.replace_all(r"[_\s]+", " ").str.strip_chars().str.to_lowercase()
    category = plain.replace_strict(targets(), default="own", return_dtype=pl.String)
    rows = rows.select("row", plain, category.alias("category"), "statement", pl.col(label_columns).cast(pl.Int8))
    return Loaded(rows, notices, kind="statements")


def meanings(values: pl.Series, labels: Mapping[str | int, str] | None = None) -> dict[str, int]:
    """The label that each value of a column stands for. values: in lower case. labels: their meanings, as the user
    gives them.

    Raises MitigateError for an unknown meaning, and without meanings where numbers could have another sign: a file of
    0 and 1 is as often "toxic" as it is "positive"."""
    if labels:
        given = {str(value).lower(): str(meaning).lower() for value, meaning in labels.items()}
        if wrong := [meaning for meaning in given.values() if meaning not in LABELS]:
            raise one_of("data.labels", wrong[0], MEANINGS)
        return {value: LABELS[meaning] for value, meaning in given.items()}
    numbers = sorted((value for value in set(values) if re.fullmatch(r"[+-]?\d+(?:\.\d+)?", value)), key=float)
    if not numbers or ("-1" in numbers and set(numbers) <= set(LABELS)):
        return LABELS
    order = ["prejudice", *["neutral"] * (len(numbers) - 2), "favouritism"]
    example = "{" + ", ".join(f"{value}: {meaning}" for value, meaning in zip(numbers, order, strict=False)) + "}"
    if numbers == ["0", "1"]:
        example = f"{{0: neutral, 1: prejudice}} where 1 marks harm, {example} where 0 does"
    raise MitigateError(
        f"the labels are {', '.join(numbers[:MOST])}, which does not say what is prejudice; allowed: -1, 0 and 1 with "
        f"some -1, or words ({', '.join([*MEANINGS, 'negative', 'positive'])}). Give the meaning of each, for example "
        f"data.labels={example}"
    )


def stories(path: str | None, on_bad_line: OnBadLine = "error", target_list: TargetList = PAPER) -> Loaded:
    """The stories of a file about targets of the list or in the place of a template: columns PROMPTS and story; row is
    the line's number. A story whose prompt names several targets has a row for each."""
    place = path_of(path, "stories", f"FILE, of lines '{EXPECTED_STORY}'")
    lines, counts = open_lines(place).read()
    rows = list[tuple]()
    for number, line in lines.iter_rows():
        parts = [part.strip() for part in line.split(BETWEEN)]
        about = targets_of_prompt(parts[0], target_list)
        if len(parts) != 2 or not all(parts):
            report(place, [(number, f"not of the form '{EXPECTED_STORY}'")], counts)
        elif not about:
            report(place, [(number, f"no target in the prompt {parts[0]!r}")], counts)
        elif not whole_sentences(parts[1]):
            report(place, [(number, "a story without a whole sentence")], counts)
        else:
            for target, template in about:
                category, kind = target_list.categories.get(target, "own"), kind_of(target, target_list)
                rows.append((number, target, category, kind, template, *parts))
    notices = describe(counts, on_bad_line)
    if not rows:
        raise MitigateError(f"{path} has no stories; expected lines '{EXPECTED_STORY}'")
    return Loaded(pl.DataFrame(rows, {**PROMPTS, "story": pl.String}, orient="row"), notices, kind="stories")


def sentences(path: str | None, on_bad_line: OnBadLine = "error", columns: Columns | None = None) -> Streamed:
    """The sentences of a file; repeats stay.

    columns: {"statement": the name of its column, or its place, from 1}; without it each line of a plain text is a
    sentence, and a table has a column of NAMES."""
    place = path_of(path, "sentences")
    column = columns_of(columns, ("statement",))["statement"] if columns else None
    return _streamed(place, _open_texts(place, column, "'data.columns={statement: NAME}'"), on_bad_line)


def genericskb(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The sentences of a file, with the term of each in lower case where the file has it."""
    place = path_of(path, "genericskb")
    remedy = "; for another table than GenericsKB, set data=sentences data.path=FILE 'data.columns={statement: NAME}'"
    is_plain = layout_of(place).form == "lines"
    table = open_lines(place) if is_plain else open_table(place, OF_GENERICSKB, remedy=remedy)
    return _streamed(place, table, on_bad_line)


def _open_texts(path: Path, column: Place | None, name_it: str) -> Table:
    """A table with one column, `statement`: the lines of a plain text, or the column of a table; None: the one of
    NAMES, or the only one. A file that looks like a table is never read as lines. name_it: the setting for the column.
    """
    layout = layout_of(path)
    if layout.form == "lines" and column is None:
        return open_lines(path)
    only = layout.names[0] if len(layout.names) == 1 else None
    if column is None and only and layout.form == "table" and len(only.split()) > 2:
        raise MitigateError(
            f"{path}: its first line is a text, not a column name: {only[:60]!r}. Add a first line with the column "
            "name, such as text, or rename the file to .txt: there each line is a text"
        )
    chosen = column or next((name for name in NAMES if name in layout.lower), only)
    remedy = f"; name the column of the texts: {name_it}"
    if chosen is None:
        raise MitigateError(f"{path} has the columns {', '.join(layout.names)[:200]}{remedy}")
    return open_table(path, {"statement": chosen}, layout=layout, remedy=remedy)


def _streamed(path: Path, table: Table, on_bad_line: OnBadLine) -> Streamed:
    """Sentences from a table with a column `statement`, and perhaps `term`."""

    def parse(frame: pl.DataFrame, counts: Counts) -> pl.DataFrame:
        term = pl.col("term") if "term" in frame.columns else pl.lit(None, dtype=pl.String).alias("term")
        rows = frame.select("row", term.str.strip_chars().str.to_lowercase(), pl.col("statement").str.strip_chars())
        kept = rows.filter(pl.col("statement") != "")
        counts["noted", "row without a sentence"] += rows.height - kept.height
        return kept

    return Streamed(path, "sentences", table, parse, on_bad_line)


def load_texts(path: str, column: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """The texts of a file: row, statement. Empty ones are left out and counted.

    column: of a table; None: `statement`, `text` or `sentence`, or the only one."""
    rows, counts = _open_texts(Path(path), column, "recipe.column=NAME").read()
    kept = rows.filter(pl.col("statement").str.strip_chars() != "")
    left_out = rows.height - kept.height + counts.pop(("noted", BLANK), 0)
    notices = describe(counts, on_bad_line)
    if kept.is_empty():
        raise MitigateError(f"{path} has no text to label")
    notices += [f"{counted(left_out, 'empty text')} left out; `row` counts them too"] if left_out else []
    return Loaded(kept, notices, kind="statements")


def harms_conceptnet(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """ConceptNet's 101,229 triples, lines `head Relation tail` with underscores as spaces. Those whose relation has no
    phrase (ExternalURL, dbpedia) are left out and counted; repeats stay, because the paper counts them."""
    path, places = root_with(root, [CONCEPTNET], PAPERS) / CONCEPTNET, {"head": 1, "relation": 2, "tail": 3}
    rows, counts = open_table(path, places, layout=layout_of(path, " "), widths=(3,)).read()
    known = pl.col("relation").is_in(list(relations()))
    counts.update(("relation", name) for name in rows.filter(~known)["relation"])
    plain = pl.col("head", "tail").str.replace_all("_", " ", literal=True).str.to_lowercase()
    triples = rows.filter(known).with_columns(plain, split=pl.lit("train"), valid=pl.lit(True))
    return Loaded(triples.select(*TRIPLES), describe(counts, on_bad_line))


def harms_genericskb(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """GenericsKB's 29,505 sentences."""
    return load(str(root_with(root, [GENERICSKB], PAPERS) / GENERICSKB), on_bad_line)


def harms_conceptnet_regard(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """85,992 of ConceptNet's statements, masked by the paper's authors, with their classifier's regard labels."""
    labels: dict[str | int, str] = {-1: "prejudice", 0: "neutral", 1: "favouritism", 2: "other"}
    columns, path = {"target": 1, "regard": 2, "statement": 3}, root_with(root, [REGARD], PAPERS) / REGARD
    return load(str(path), on_bad_line, columns, "regard", labels)


def find_root(given: str | None) -> Path | None:
    """The folder, or None where neither names one."""
    place = given or os.environ.get("MITIGATE_DATA")
    return Path(place) if place else None


def root_with(given: str | None, needed: Sequence[str], source: str = LISTED) -> Path:
    """The folder with these files and folders. source: their origin."""
    root = find_root(given)
    missing = next((root / name for name in needed if not (root / name).exists()), None) if root else None
    if root is None or missing:
        fault = f"no such file or folder: {missing}" if missing else "data.root is not set"
        holding = f"the folder that contains {', '.join(needed)}, from {source}"
        raise MitigateError(f"{fault}; set data.root, or the variable MITIGATE_DATA, to {holding}")
    return root
