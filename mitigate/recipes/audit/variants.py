"""Which rule gives which figure: the paper's Table 4 and Section 3.2 once more under other readings of what it says,
so that a difference from its figures can be laid to the rule that makes it."""

import re
import sys
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import polars as pl

from mitigate import relations as relation_room
from mitigate import targets as target_room
from mitigate import verbalise as verbalising
from mitigate.measure import harms, resource, tally
from mitigate.recipes.audit.plan import AuditPlan
from mitigate.recipes.audit.statements import about_targets
from mitigate.recipes.job import Job
from mitigate.relations import comet_relations
from mitigate.score import labels as labelling
from mitigate.score.labels import label_column
from mitigate.store import Result
from mitigate.targets import targets
from mitigate.triples import Scorer
from mitigate.verbalise import MASK, mask_column

SCORERS = ("sentiment", "regard")
WORDING = (relation_room, target_room, verbalising, labelling)  # what decides what a rule counts
FIGURES = ("D_O+", "D_O-", "polarised", "polarised_mean")
Change = Callable[[pl.DataFrame], pl.DataFrame]


def stage(job: Job, plan: AuditPlan, tallied: Result) -> Result:
    """A row for each rule."""

    def compute(_: str) -> pl.DataFrame:
        return variants(plan, about_targets(job).collect())

    settings = [[scorer.fingerprint for scorer in plan.scorers], paper(plan.paper or "").rows()]
    code = (harms, resource, tally, *WORDING, sys.modules[__name__])
    return job.old_stage("variants", compute, needs=[tallied.digest], settings=settings, code=code)


def paper(resource_name: str) -> pl.DataFrame:
    """The paper's figures of a resource (place, figure, key, value), from data/paper_audit.csv."""
    return _read("paper_audit.csv", resource_name).cast({"value": pl.Float64})


def notes(resource_name: str) -> list[str]:
    """What is known of the differences from the paper's figures, from data/paper_audit_notes.csv: figures with
    measure=paper."""
    return _read("paper_audit_notes.csv", resource_name)["note"].to_list()


def _read(name: str, resource_name: str) -> pl.DataFrame:
    with files("mitigate").joinpath(f"data/{name}").open("rb") as lines:
        return pl.read_csv(lines, infer_schema=False).filter(resource=resource_name).drop("resource")


def variants(plan: AuditPlan, statements: pl.DataFrame) -> pl.DataFrame:
    """The paper's figures, ours, and those of each rule: (rule, statements, targets, D_R, and for each scorer the
    figures of FIGURES). Where a rule changes the masking, sentiment is asked anew and regard, which costs minutes, is
    left out. Empty targets count as 0 %."""
    stated = dict(paper(plan.paper or "").select("key", "value").iter_rows())
    said = [labels.scorer for labels in plan.labellings if labels.template == "paper" and labels.scorer in SCORERS]
    keys = ["D_R", *(f"{scorer}/{figure}" for scorer in said for figure in FIGURES)]
    rows: list[dict[str, Any]] = [{"rule": "the paper", **{key: stated[key] for key in keys}}]
    for rule, change in _rules(plan).items():
        changed = change(statements)
        rows.append(
            {"rule": rule, **_figures(changed, plan.targets, [name for name in said if name in changed.columns])}
        )
    rows += [{"rule": rule, **_figures(statements, chosen, said)} for rule, chosen in _other_targets(plan).items()]
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(keys, pl.Float64)).select(
        "rule", "statements", "targets", *keys
    )


def _other_targets(plan: AuditPlan) -> dict[str, pl.DataFrame]:
    """Rule -> the targets measured over, where the resource speaks of others than the paper lists."""
    if not plan.own_targets:
        return {}
    listed = pl.DataFrame({"target": list(targets()), "category": list(targets().values())})
    return {
        f"without {', '.join(plan.own_targets)}": plan.targets.filter(
            pl.col("target").is_in(listed["target"].implode())
        ),
        "all 329 targets, also those without statements": listed,
    }


def _figures(statements: pl.DataFrame, targets: pl.DataFrame, scorers: list[str]) -> dict[str, Any]:
    tallied = tally.tally(statements, scorers)
    found: dict[str, Any] = {}
    for scorer in scorers:
        table = tally.per_target(tallied, scorer, targets, "zero")
        figures = resource.figures(table, scorer)
        found |= {f"{scorer}/{name}": figures[f"{scorer}/{name}"] for name in FIGURES}
        found |= {"D_R": harms.variance(table["statements"]), "statements": table["statements"].sum()}
        found |= {"targets": int((table["statements"] > 0).sum())}
    return found


def _rules(plan: AuditPlan) -> dict[str, Change]:
    """Rule -> the statements under it."""
    rules: dict[str, Change] = {"as measured": lambda said: said}
    if plan.are_triples:
        comet = [relation.name for relation in comet_relations()]
        rules |= {
            "a triple with targets at both ends counts for its head alone": lambda said: said.unique(
                "row", keep="first", maintain_order=True
            ),
            "repeated triples count once": lambda said: said.unique(["target", "head", "relation", "tail"]),
            "only COMeT's 34 relations": lambda said: said.filter(pl.col("relation").is_in(comet)),
        }
    else:
        rules["repeated statements count once"] = lambda said: said.unique(["target", "statement"])
    for scorer in plan.scorers:
        if scorer.name == "sentiment":
            rules |= {rule: _relabelled(plan, scorer, text) for rule, text in _maskings(plan).items()}
    return rules


def _maskings(plan: AuditPlan) -> dict[str, pl.Expr]:
    """Rule -> the texts that are scored."""
    found = {"nothing is masked": pl.col("statement")}
    if plan.config.measure.masking == "paper":
        found["masking=token: every target, as a whole word"] = mask_column("statement", "token", plan.own_targets)
    else:
        found["masking=paper: the target, wherever its letters stand"] = mask_column("statement", "paper")
    if plan.are_triples:
        found["masked as the statements released with regard labels are"] = _as_released()
    return found


def _as_released() -> pl.Expr:
    """The masking of 98.7 % of the 85,462 statements about the 329 targets that were released with regard labels: a
    target that is the head is replaced where words begin with it, one that is the tail where words end with it."""

    def masked(row: dict[str, str]) -> str:
        text = row["statement"]
        if row["head"] in targets():
            text = re.sub(r"\b" + re.escape(row["head"]), MASK, text)
        if row["tail"] in targets():
            text = re.sub(re.escape(row["tail"]) + r"\b", MASK, text)
        return text

    return pl.struct("statement", "head", "tail").map_elements(masked, return_dtype=pl.String)


def _relabelled(plan: AuditPlan, scorer: Scorer, text: pl.Expr) -> Change:
    def change(said: pl.DataFrame) -> pl.DataFrame:
        texts = said.select(text.alias("text"))["text"]
        labels = label_column(texts, scorer, plan.cache).label
        return said.drop("regard").with_columns(pl.Series("sentiment", labels))

    return change
