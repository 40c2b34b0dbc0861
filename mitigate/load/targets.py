"""The targets that a triple or a sentence is about: those that are its whole head or tail, as in the harms paper
(Section 3.1), or those that occur in it; the targets of a file of statements, and those of finished runs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from mitigate.errors import MitigateError, counted, one_of
from mitigate.finished import FinishedRun
from mitigate.load.stream import first
from mitigate.words.targets import TargetList, as_targets, choose_targets, in_sense, list_of, without_other_senses

Wanted = str | Path | Sequence[str] | None
"""Setting of targets, as in words.targets.choose_targets; None: those that are named."""
OF_A_RUN = "tables/targets.csv"
ENDS = ("head", "tail")
SENSES = ["head_sense", "tail_sense"]


def targets_of_statements(wanted: Wanted, statements: pl.DataFrame) -> pl.DataFrame:
    """The targets (columns TARGETS) to measure over: by default those that the file of statements names (harms paper,
    Section 2.1), with wanted="all" the 329 besides."""
    named = as_targets(dict(statements.select("target", "category").unique(maintain_order=True).iter_rows()))
    if wanted in (None, "data"):
        return named
    chosen = choose_targets(wanted)
    return pl.concat([chosen, named.filter(category="own")]) if wanted == "all" else chosen


def those_about(statements: pl.DataFrame, chosen: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Select the statements about the targets, in any of their forms, with the targets' words and categories; and a
    notice that counts the others. Raises MitigateError where no statement is about any of them."""
    named = statements.with_columns(target=list_of(chosen).target_of(pl.col("target")))
    categories = chosen.select("target", "category")
    rows = named.drop("category").join(categories, on="target", how="inner", maintain_order="left")
    if rows.is_empty():
        raise MitigateError(
            f"no statement is about a target of recipe.targets or probe.targets ({chosen.height:,} given); those in "
            f"the file: {first(statements['target'].unique(maintain_order=True).to_list(), ', ')}"
        )
    others = statements.height - rows.height
    notice = f"{counted(others, 'row')} left out, about none of the {chosen.height:,} targets"
    return rows.select(statements.columns), [notice] * bool(others)


def list_of_runs(runs: Iterable[FinishedRun]) -> TargetList:
    """The paper's targets and the own targets of finished runs. Raises MitigateError for a damaged file."""
    tables = [as_targets([])]
    for run in (run for run in runs if OF_A_RUN in run.files):
        if fault := run.fault(OF_A_RUN):
            raise MitigateError(f"{fault}.")
        tables.append(choose_targets(run.folder / OF_A_RUN))
    return list_of(pl.concat(tables).unique("target", keep="first", maintain_order=True))


Match = Literal["exact", "contains", "paper"]


def about_targets(
    triples: pl.DataFrame, targets: pl.DataFrame, match: Match = "paper", target_list: TargetList | None = None
) -> pl.DataFrame:
    """A row for each triple and each target it is about, with that target and its category, in the triples' order.

    A triple with a target at either end has two rows; with the same at both ends one. match: "paper" matches the
    paper's targets literally, "exact" in all their forms, as those of target_list (None: that of the targets) always;
    "contains" finds them within ends too, as whole words, the longest of two that begin together; words that
    ambiguous.csv takes for something else are none. Columns head_sense and tail_sense, as ConceptNet's URIs have them,
    are used unless match="paper", and dropped. Raises MitigateError for another match."""
    check_match(match)
    listed = list_of(targets) if target_list is None else target_list
    literal, with_senses = match == "paper", SENSES[0] in triples.columns and match != "paper"
    whole = {end: listed.target_of(pl.col(end), literal) for end in ENDS}
    if with_senses:
        whole = {end: in_sense(name, pl.col(f"{end}_sense")) for end, name in whole.items()}
    rows = triples.drop(SENSES, strict=False)
    if match == "contains":
        ends = [pl.when(whole[end].is_not_null()).then(end) for end in ENDS]  # null: in another sense
        text = triples.select(text=pl.concat_str(ends, separator="\n", ignore_nulls=True))["text"]
        return _named(rows, listed.found_in(without_other_senses(text), targets["target"].to_list(), literal), targets)
    names = triples.select(name.alias(end) for end, name in whole.items()).with_row_index("at")
    return _named(rows, names.unpivot(ENDS, index="at", value_name="target"), targets)


def sentences_about_targets(
    sentences: pl.DataFrame, targets: pl.DataFrame, match: Match = "paper", target_list: TargetList | None = None
) -> pl.DataFrame:
    """A row for each sentence (term, statement) and each target it is about: the term that the source gives, or, where
    that is null and with match="contains", all that occur in it as whole words. match: as about_targets has it; only
    "paper" has no plurals and counts words that ambiguous.csv takes for something else."""
    check_match(match)
    listed = list_of(targets) if target_list is None else target_list
    literal, text, wanted = match == "paper", sentences["statement"], targets["target"].to_list()
    places = listed.found_in(text if literal else without_other_senses(text), wanted, literal)
    if match != "contains" and sentences["term"].null_count() < sentences.height:
        of_term = sentences.select(target=listed.target_of(pl.col("term"), literal)).with_row_index("at").drop_nulls()
        places = pl.concat([places.join(of_term, on="at", how="anti"), of_term])
    return _named(sentences, places, targets)


def check_match(match: str) -> None:
    """Raise MitigateError for a match that is not one of the three."""
    if match not in get_args(Match):
        raise one_of("measure.match", match, get_args(Match))


def _named(rows: pl.DataFrame, places: pl.DataFrame, targets: pl.DataFrame) -> pl.DataFrame:
    """The rows at the places (at, target), each with its target and the target's category, without repeats."""
    chosen = places.join(targets.select("target", "category"), on="target", how="inner", maintain_order="left")
    named = chosen.unique(["at", "target"], keep="first", maintain_order=True).sort("at", maintain_order=True)
    return rows[named["at"]].with_columns(named["target"], named["category"])
