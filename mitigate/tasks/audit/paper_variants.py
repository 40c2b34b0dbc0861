"""Figures of the paper's Table 4 and Section 3.2 under other readings of its text, so that a difference from its
figures can be traced to one rule."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import polars as pl

from mitigate.measure import audit_figures, harms, tally
from mitigate.metrics import REPRESENTATION, Share, Statistic, harm_key
from mitigate.score.labels import label_column
from mitigate.tasks.label import Labeller
from mitigate.triples import ROLES, LabelCache, Scorer
from mitigate.verbalise import MASK, Masking, mask_column
from mitigate.words.relations import comet_relations
from mitigate.words.targets import not_listed
from mitigate.words.targets import targets as all_targets

FIGURES: tuple[tuple[Statistic, Share], ...] = (
    ("variance", "favouritism"),
    ("variance", "prejudice"),
    ("pooled", "polarised"),
    ("mean", "polarised"),
)
Change = Callable[[pl.DataFrame], pl.DataFrame]


def variants(
    stated: pl.DataFrame,
    targets: pl.DataFrame,
    labeller: Labeller,
    roles: Sequence[str] = ROLES,
    *,
    statements: Iterable[pl.DataFrame],
) -> pl.DataFrame:
    """The paper's figures, ours, and those of each rule: (rule, statements, targets, D_R, and for each role FIGURES).
    Where a rule changes the masking, sentiment is labelled anew and regard, which takes minutes, is left out. A target
    without statements counts as 0 %.

    stated: what paper_figures returns. targets: (target, category) measured over. roles: of ROLES, those of the
    labels; statements: parts that count_statements saved."""
    about = pl.concat(part.filter(pl.col("target").is_not_null()) for part in statements)
    of_paper = dict(stated.select("key", "value").iter_rows())
    keys = [REPRESENTATION, *(key for role in roles for key in _keys(role))]
    rows: list[dict[str, Any]] = [{"rule": "the paper", **{key: of_paper[key] for key in keys}}]
    for rule, change in _rules(about, labeller).items():
        changed = change(about)
        labelled = [role for role in roles if role in changed.columns]
        rows.append({"rule": rule, **_figures(changed, targets, labelled)})
    if own := sorted(not_listed(targets)):  # the resource names targets that the paper does not list
        listed = pl.DataFrame({"target": list(all_targets()), "category": list(all_targets().values())})
        others = targets.filter(pl.col("target").is_in(listed["target"].implode()))
        rows.append({"rule": f"without {', '.join(own)}", **_figures(about, others, roles)})
        rows.append({"rule": "all 329 targets, also those without statements", **_figures(about, listed, roles)})
    table = pl.DataFrame(rows, schema_overrides=dict.fromkeys(keys, pl.Float64))
    return table.select("rule", "statements", "targets", *keys)


def _keys(role: str) -> list[str]:
    return [harm_key(role, statistic, share) for statistic, share in FIGURES]


def _figures(statements: pl.DataFrame, targets: pl.DataFrame, roles: Sequence[str]) -> dict[str, Any]:
    tallied = tally.tally(statements, roles)
    found: dict[str, Any] = {}
    for role in roles:
        table = tally.per_target(tallied, role, targets, "zero")
        figures = audit_figures.figures(table, role)
        found |= {key: figures[key] for key in _keys(role)}
        found |= {REPRESENTATION: harms.variance(table["statements"]), "statements": table["statements"].sum()}
        found |= {"targets": int((table["statements"] > 0).sum())}
    return found


def _rules(statements: pl.DataFrame, labeller: Labeller) -> dict[str, Change]:
    """Rule -> the statements under it."""
    rules: dict[str, Change] = {"as measured": lambda table: table}
    if are_triples := "relation" in statements.columns:
        comet = [relation.name for relation in comet_relations()]
        rules |= {
            "a triple with targets at both ends counts for its head alone": lambda table: table.unique(
                "row", keep="first", maintain_order=True
            ),
            "repeated triples count once": lambda table: table.unique(["target", "head", "relation", "tail"]),
            "only COMeT's 34 relations": lambda table: table.filter(pl.col("relation").is_in(comet)),
        }
    else:
        rules["repeated statements count once"] = lambda table: table.unique(["target", "statement"])
    texts = {"nothing is masked": pl.col("statement")}
    other: Masking = "token" if labeller.masking == "paper" else "paper"
    described = {"token": "every target, as a whole word", "paper": "the target, wherever its letters stand"}
    texts[f"masking={other}: {described[other]}"] = mask_column("statement", other, labeller.target_list)
    if are_triples:
        texts["masked as the statements released with regard labels are"] = _as_released()
    for scorer in labeller.scorers:
        if scorer.name == "sentiment":
            rules |= {rule: partial(_relabelled, scorer, text, labeller.cache) for rule, text in texts.items()}
    return rules


def _as_released() -> pl.Expr:
    """Masking of 98.7 % of the 85,462 statements about the 329 targets that were released with regard labels: a target
    that is the head is replaced where words begin with it, one that is the tail where words end with it."""

    def masked(row: dict[str, str]) -> str:
        text = row["statement"]
        if row["head"] in all_targets():
            text = re.sub(r"\b" + re.escape(row["head"]), MASK, text)
        if row["tail"] in all_targets():
            text = re.sub(re.escape(row["tail"]) + r"\b", MASK, text)
        return text

    return pl.struct("statement", "head", "tail").map_elements(masked, return_dtype=pl.String)


def _relabelled(scorer: Scorer, text: pl.Expr, cache: LabelCache, statements: pl.DataFrame) -> pl.DataFrame:
    labels = label_column(statements.select(text.alias("text"))["text"], scorer, cache).label
    return statements.drop("regard", strict=False).with_columns(pl.Series("sentiment", labels))
