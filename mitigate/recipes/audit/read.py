"""The first stage of an audit: which rows of the resource are about which target, and what was left out on the way.

A resource of any size is read a chunk at a time. What is kept of each lies in the run folder at once, so that a killed
audit goes on from there; and every fault of the file is told before anything is labelled."""

import shutil
import sys

import polars as pl

from mitigate import load, match, targets
from mitigate.errors import MitigateError
from mitigate.load.stream import Met
from mitigate.match import about_targets, sentences_about_targets
from mitigate.recipes.audit.plan import AuditPlan
from mitigate.recipes.job import Job, plain
from mitigate.recipes.progress import Progress
from mitigate.store import PartFolder, Result

COUNTS = {"kind": pl.String, "what": pl.String, "count": pl.Int64}


def read(job: Job, plan: AuditPlan) -> Result:
    """The rows, in the parts of rows/, with their target (null where there is none), and what was met, as counts."""

    def compute(fingerprint: str) -> pl.DataFrame:
        folder = job.folder / "parts" / fingerprint[:16]
        rows, met = PartFolder(folder / "rows"), PartFolder(folder / "met")
        progress = Progress("read", "rows")
        for number, share, chunk in plan.resource.chunks(finished=met.__contains__):
            if chunk is not None:
                found = about(plan, chunk.rows)
                if not found.is_empty():
                    rows.save(number, found)
                met.save(number, as_frame(chunk.met + counted(chunk.rows, found)))
                progress.at(share, chunk.height)
        counts = as_met(met)
        try:
            check(plan, counts)
        except MitigateError:
            shutil.rmtree(folder)  # the same file would only say the same again
            raise
        shutil.rmtree(job.folder / "rows", ignore_errors=True)
        rows.folder.rename(job.folder / "rows")
        shutil.rmtree(folder)
        return as_frame(counts)

    measure = plan.config.measure
    return job.old_stage(
        "read",
        compute,
        needs=[plan.source],
        settings=[measure.match, measure.texts, plan.config.data.on_bad_line, plain(plan.config.data.get("columns"))],
        code=[load, match, targets, sys.modules[__name__]],
        leaves=["rows"],
    )


def about(plan: AuditPlan, rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each row and each target it is about; with measure.texts=all also those that are about none."""
    measure = plan.config.measure
    if plan.resource.kind == "statements":
        return rows  # their file says what they are about
    find = about_targets if plan.resource.kind == "triples" else sentences_about_targets
    found = find(rows, plan.targets, measure.match)
    if measure.texts == "targets":
        return found
    others = rows.join(found.select("row"), on="row", how="anti", maintain_order="left")
    return pl.concat([found, others], how="diagonal").sort("row", maintain_order=True)


def counted(rows: pl.DataFrame, found: pl.DataFrame) -> Met:
    """How many rows there were, how many about a target, and how many statements they make."""
    about = found.drop_nulls("target")["row"].n_unique()
    counts = {"rows": rows.height, "about a target": about, "statements": found.height}
    return Met({("counted", what): count for what, count in counts.items()})


def as_frame(met: Met) -> pl.DataFrame:
    return pl.DataFrame([(*key, count) for key, count in met.items()], schema=COUNTS, orient="row")


def as_met(parts: PartFolder | list[pl.DataFrame]) -> Met:
    """The sum of counts."""
    total = Met()
    for part in parts:
        for kind, what, count in part.iter_rows():
            total[kind, what] += count
    return total


def check(plan: AuditPlan, counts: Met) -> None:
    """Raises MitigateError for bad lines, unless they are to be left out, and where there is nothing to measure."""
    left_out = "; ".join(plan.resource.told(counts))
    if not counts["counted", "about a target"]:
        raise MitigateError(
            f"nothing in {plan.title} ({counts['counted', 'rows']:,} rows) is about any of the {plan.targets.height:,} "
            "targets; measure.match=contains finds them inside phrases too, and recipe.targets=[...] names others"
            + (f". Besides, {left_out}" if left_out else "")
        )
