"""What a comparison of two resources knows and has checked before it computes anything: the audits' run folders, the
labels that both have, and what a reader must be told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.measure.between_resources import side_by_side
from mitigate.measure.tally import per_target
from mitigate.recipes.audit.plan import title_of
from mitigate.recipes.compare.notices import other_versions
from mitigate.recipes.compare.plan import MOST_OF_A_TAG
from mitigate.recipes.finished import folders, lacking, read_finished, recipe_of
from mitigate.recipes.job import plain
from mitigate.report.audit_tables import Wording
from mitigate.store import as_json, digest_of
from mitigate.tasks.caveats import few_targets
from mitigate.triples import TEMPLATE_PREFIX, TEMPLATES, label_columns

MUST_AGREE = ("measure.masking", "measure.empty_targets", "score.sentiment", "score.regard")
SCORERS = ("sentiment", "regard")  # in the order they are told, before any others
OUGHT_TO_AGREE = ("measure.match", "measure.template", "recipe.targets", "filter.splits")


@dataclass(frozen=True, eq=False)
class FinishedAudit:
    """A run folder of recipe=audit with all its stages done."""

    folder: Path
    config: DictConfig
    metrics: dict[str, Any]
    manifest: dict[str, Any]

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """What figures and examples are made of: the tally, the statements, the tables."""
        return self.folder / "tally.parquet", self.folder / "statements", self.folder / "tables"

    @property
    def digest(self) -> str:
        """Of all that was counted."""
        return self.manifest["files"]["tally.parquet"]

    @cached_property
    def statements(self) -> pl.LazyFrame:
        """What it says about targets, labelled, to be worked through without holding it."""
        return pl.scan_parquet(self.files[1] / "*.parquet").filter(pl.col("target").is_not_null())

    @cached_property
    def columns(self) -> dict[Wording, str]:
        """The label column of each scorer and template. A sentence has no phrase: its one column stands for both."""
        counted = self._tally["column"].unique().to_list()
        worded = "relation" in self.statements.collect_schema()
        scorers = {name.removesuffix("_neutral") if worded else name for name in counted}
        found = {
            (scorer, template): label_columns(scorer, template)[0] if worded else scorer
            for scorer in sorted(scorers, key=lambda scorer: (_place(scorer), scorer))
            for template in TEMPLATES
        }
        return {wording: column for wording, column in found.items() if column in counted}

    def targets(self, wording: Wording) -> pl.DataFrame:
        """A row a target with its percentages; a target without statements has none."""
        column = self.columns[wording]
        asked = pl.read_csv(self.files[2] / f"targets_{column}.csv", columns=["target", "category"])
        return per_target(self._tally, column, asked)

    def alone(self, wording: Wording, figure: str) -> float | None:
        """A figure of metrics.json, over all the audit's own targets."""
        template = "neutral" if self.columns.get(wording, "").endswith("_neutral") else "paper"
        return self.metrics.get(TEMPLATE_PREFIX[template] + figure)

    @cached_property
    def _tally(self) -> pl.DataFrame:
        return pl.read_parquet(self.files[0])


@dataclass(frozen=True, eq=False)
class AuditsPlan:
    """Two audits that have been read and found fit to be compared."""

    config: DictConfig
    titles: tuple[str, str]
    audits: tuple[FinishedAudit, FinishedAudit]
    wordings: list[Wording]  # that both have, by scorer
    source: str  # the hash of what is compared

    @property
    def demonstration(self) -> bool:
        return any(audit.config.data.demonstration for audit in self.audits)

    @property
    def is_same(self) -> bool:
        """Whether all numbers are."""
        return self.audits[0].digest == self.audits[1].digest

    def both(self, wording: Wording) -> pl.DataFrame:
        """The targets that both speak of, as side_by_side."""
        first, second = (audit.targets(wording) for audit in self.audits)
        return side_by_side(first, second)

    @property
    def spoken(self) -> tuple[int, int]:
        """Of how many targets each says anything."""
        first, second = (audit.targets(self.wordings[0]).filter(pl.col("statements") > 0) for audit in self.audits)
        return first.height, second.height

    @cached_property
    def notices(self) -> list[str]:
        """What a reader must know before believing the numbers."""
        return list(_notices(self))


def are_named(config: DictConfig) -> bool:
    """Whether compare.runs or compare.baseline name a run folder of recipe=audit."""
    return any(recipe_of(folder) == "audit" for folder in _folders(config))


def make_plan(config: DictConfig) -> AuditsPlan:
    """Everything the stages need, with all faults of settings and input raised here."""
    first, second = _two_audits(_folders(config))
    _check(first, second)
    source = digest_of(as_json([[audit.digest, audit.metrics] for audit in (first, second)]))
    plan = AuditsPlan(config, _titles(first, second), (first, second), _wordings(first, second), source)
    plan.both(plan.wordings[0])  # raises where they speak of no target in common
    return plan


def _folders(config: DictConfig) -> list[Path]:
    """The baseline first, if there is one."""
    return list(dict.fromkeys([*folders(plain(config.compare.baseline)), *folders(plain(config.compare.runs))]))


def _two_audits(named: Sequence[Path]) -> tuple[FinishedAudit, FinishedAudit]:
    found = [_read(folder) for folder in named]
    if faults := [fault for fault in found if isinstance(fault, str)]:
        raise MitigateError(
            f"compare.runs: {'; '.join(faults)}. An audit is set beside another audit: name two folders that finished "
            "runs of recipe=audit left."
        )
    audits = [audit for audit in found if isinstance(audit, FinishedAudit)]
    if len(audits) != 2:
        raise MitigateError(
            f"compare.runs names {len(audits)} audits, and two are set side by side; name them by "
            "compare.runs=[DIR,DIR], in the order they are to stand in"
        )
    return audits[0], audits[1]


def _read(folder: Path) -> FinishedAudit | str:
    found = read_finished(folder, "audit")
    if isinstance(found, str):
        return found
    audit = FinishedAudit(*found)
    return lacking(folder, audit.files) or audit


def _check(first: FinishedAudit, second: FinishedAudit) -> None:
    """Raises MitigateError where the two were measured in ways that make their figures mean different things."""
    differing = [
        f"{name}={ours} and {theirs}"
        for name, ours, theirs in _settings(first, second, MUST_AGREE)
        if not (name.startswith("score.") and None in (ours, theirs))  # what only one was asked is left out
    ]
    if differing:
        raise MitigateError(
            f"the audits {first.folder} and {second.folder} were measured in different ways ({'; '.join(differing)}), "
            "so that a difference need not be the resources'; make one of them again with the other's settings"
        )


def _settings(
    first: FinishedAudit, second: FinishedAudit, names: Sequence[str]
) -> Iterator[tuple[str, object, object]]:
    """Those of the settings that are not the same: name, the first's, the second's."""
    for name in names:
        group, key = name.split(".")
        values = [plain(audit.config[group]).get(key) for audit in (first, second)]
        if values[0] != values[1]:
            yield name, *values


def _wordings(first: FinishedAudit, second: FinishedAudit) -> list[Wording]:
    """Those of the first that the second has too; where neither has phrases, each scorer's once."""
    shared = [wording for wording in first.columns if wording in second.columns]
    if not shared:
        raise MitigateError(
            f"the audits {first.folder} ({', '.join(set(first.columns.values()))}) and {second.folder} "
            f"({', '.join(set(second.columns.values()))}) have no labels in common; audit both with the same scorers "
            "and the same measure.template"
        )
    columns = {wording: (first.columns[wording], second.columns[wording]) for wording in shared}
    return [
        (scorer, template)
        for scorer, template in shared
        if template == "paper" or columns[scorer, template] != columns.get((scorer, "paper"))
    ]


def _place(scorer: str) -> int:
    return SCORERS.index(scorer) if scorer in SCORERS else len(SCORERS)


def _titles(first: FinishedAudit, second: FinishedAudit) -> tuple[str, str]:
    """What the resources are called; two of one name by their run folders."""
    titles = title_of(first.config.data), title_of(second.config.data)
    return titles if titles[0] != titles[1] else (first.folder.name, second.folder.name)


def _notices(plan: AuditsPlan) -> Iterator[str]:
    first, second = plan.audits
    if plan.is_same:
        yield "Both audits have the very same numbers: it is one resource, or a copy of it."
    for name, ours, theirs in _settings(first, second, OUGHT_TO_AGREE):
        yield (
            f"The audits differ in {name} ({ours} in {plan.titles[0]}, {theirs} in {plan.titles[1]}): a difference "
            "may be that setting's."
        )
    yield from other_versions([audit.manifest for audit in plan.audits])
    yield from few_targets(plan.both(plan.wordings[0]))


def about(plan: AuditsPlan) -> dict[str, Any]:
    """What of the configuration is the compared audits': how they were measured, what the record in W&B is found by,
    and whose texts they are."""
    data = [audit.config.data for audit in plan.audits]
    return {
        "policy": {"name": shorten(", ".join(plan.titles), MOST_OF_A_TAG, placeholder=" ...")},
        "data": {
            "name": "-".join(one.name for one in data),
            "licence": "; ".join(str(one.licence) for one in data),
            "attribution": "; ".join(str(one.attribution) for one in data),
            "own_texts": any(one.own_texts for one in data),
            "demonstration": plan.demonstration,
        },
        "measure": {name: plan.audits[0].config.measure[name] for name in ("masking", "empty_targets")},
        "score": roles(plan),
    }


def roles(plan: AuditsPlan) -> dict[str, str]:
    """The scorers by role, of the labels that are compared: {"sentiment": "vader", "regard": "minilm"}."""
    score = plan.audits[0].config.score
    return {role: str(score[role]) for role in SCORERS if any(role == scorer for scorer, _ in plan.wordings)}
