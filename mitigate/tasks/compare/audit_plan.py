"""Plan of a comparison of two resources, checked before anything is computed: the run folders of their audits, the
labels that both have, and notices."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.resource_differences import side_by_side
from mitigate.measure.tally import per_target
from mitigate.metrics import TEMPLATE_PREFIX
from mitigate.report.audit_tables import Wording
from mitigate.result_settings import role_scorers
from mitigate.runs.fingerprints import digest_of
from mitigate.runs.finished import NOT_GIVEN, FinishedRun, Named, folders
from mitigate.tasks.caveats import few_targets
from mitigate.tasks.compare.endpoints import Endpoints
from mitigate.tasks.compare.notices import other_versions
from mitigate.tasks.compare.plan import Plan, data_flags, data_source, differing_settings, read_two
from mitigate.tasks.compare.scorers import is_shared, score_of
from mitigate.tasks.targets import list_of_runs
from mitigate.triples import ROLES, TEMPLATES, label_columns

TALLY = "tally.parquet"
FILES = (TALLY, "statements/", "tables/")  # of figures and examples
MUST_AGREE = ("measure.masking", "measure.empty_targets", *(f"score.{role}" for role in ROLES))
OUGHT_TO_AGREE = ("measure.match", "measure.template", "recipe.targets", "filter.splits")


@dataclass(frozen=True, eq=False)
class ComparedAudit:
    """A finished run of recipe=audit."""

    run: FinishedRun

    @property
    def digest(self) -> str:
        return self.run.digest

    @property
    def counted(self) -> str:
        """The hash of the tally."""
        return self.run.files[TALLY]

    @property
    def title(self) -> str:
        """Title of the resource; of a user's file its name."""
        path = self.run.text("data.path")
        return self.run.text("data.title") or (Path(path).name if path else str(self.run.text("data.name")))

    @cached_property
    def statements(self) -> pl.LazyFrame:
        """Query of its labelled statements about targets, without reading them into memory."""
        parts = [self.run.folder / name for name in self.run.below("statements") if name.endswith(".parquet")]
        return pl.scan_parquet(parts, glob=False).filter(pl.col("target").is_not_null())

    @cached_property
    def columns(self) -> dict[Wording, str]:
        """The label column of each scorer and template. A sentence has no phrase: its one column stands for both."""
        tallied = self._tally["column"].unique().to_list()
        worded = "relation" in self.statements.collect_schema()
        scorers = {name.removesuffix("_neutral") if worded else name for name in tallied}
        found = {
            (scorer, template): label_columns(scorer, template)[0] if worded else scorer
            for scorer in sorted(scorers, key=lambda name: (ROLES.index(name) if name in ROLES else len(ROLES), name))
            for template in TEMPLATES
        }
        return {wording: column for wording, column in found.items() if column in tallied}

    def targets(self, wording: Wording) -> pl.DataFrame:
        """A row a target with its percentages; a target without statements has none."""
        column = self.columns[wording]
        targets = self.run.table(f"tables/targets_{column}.csv", ["target", "category"]).select("target", "category")
        return per_target(self._tally, column, targets)

    def alone(self, wording: Wording, figure: str) -> float | None:
        """A figure of metrics.json, over all the audit's own targets."""
        template = "neutral" if self.columns.get(wording, "").endswith("_neutral") else "paper"
        return self.run.metrics.get(TEMPLATE_PREFIX[template] + figure)

    @property
    def _tally(self) -> pl.DataFrame:
        return self.run.table(TALLY, ["column", "target"])


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditsPlan(Plan):
    """Two audits; each resource has a title."""

    audits: tuple[ComparedAudit, ComparedAudit]
    wordings: list[Wording]  # that both have, by scorer

    @property
    def is_same(self) -> bool:
        """Return whether all numbers are equal."""
        return self.audits[0].counted == self.audits[1].counted

    @property
    def spoken(self) -> tuple[int, int]:
        """The number of targets that each has statements about."""
        first, second = (audit.targets(self.wordings[0]).filter(pl.col("statements") > 0) for audit in self.audits)
        return first.height, second.height

    @property
    def scorers(self) -> dict[str, str]:
        """The scorers of the roles among those of compared labels: {"sentiment": "vader", "regard": "minilm"}."""
        compared = {scorer for scorer, _ in self.wordings}
        return {name: one for name, one in role_scorers(score_of(self.runs[0])).items() if name in compared}

    @property
    def about(self) -> dict[str, Any]:
        first = self.runs[0]
        data = {"name": "-".join(str(run.text("data.name")) for run in self.runs)}
        for key in ("licence", "attribution"):
            data[key] = "; ".join(run.text(f"data.{key}") or NOT_GIVEN for run in self.runs)
        return {
            "data": data | data_flags(self.runs),
            "measure": {name: first.text(f"measure.{name}") for name in ("masking", "empty_targets")},
            "score": {role: first.text(f"score.{role}") for role in ROLES},
        }

    @property
    def provenance(self) -> dict[str, Any]:
        return {**super().provenance, "masking": self.runs[0].text("measure.masking")}

    def origin_of(self, run: FinishedRun) -> dict[str, Any]:
        counts = {name: run.metrics[name] for name in ("fingerprint", "statements")}
        return {**super().origin_of(run), "data": data_source(run), **counts}


def read_plan(runs: Named, baseline: Named, endpoints: Endpoints) -> AuditsPlan:
    """Read and check the two folders of audits, which have no primary endpoints. Raises MitigateError where they cannot
    be compared."""
    both_runs = read_two([*folders(baseline), *folders(runs)], "audit", "audits", FILES)
    first, second = audits = (ComparedAudit(both_runs[0]), ComparedAudit(both_runs[1]))
    _check(first, second)
    titles, wordings = (first.title, second.title), _wordings(first, second)
    if titles[0] == titles[1]:
        titles = first.run.folder.name, second.run.folder.name
    both(audits, wordings[0])  # raises where no target is in both
    return AuditsPlan(
        runs=both_runs,
        titles=titles,
        audits=audits,
        wordings=wordings,
        notices=list(_notices(audits, titles, wordings)),
        source=digest_of(json.dumps([[audit.counted, audit.run.metrics] for audit in audits])),
    )


def both(audits: Sequence[ComparedAudit], wording: Wording) -> pl.DataFrame:
    """The targets that both have statements about, as side_by_side."""
    first, second = (audit.targets(wording) for audit in audits)
    return side_by_side(first, second)


def _check(first: ComparedAudit, second: ComparedAudit) -> None:
    """Raise MitigateError for audits with settings that make their figures incomparable."""
    runs = [first.run, second.run]
    differing = [
        f"{name}={ours} and {theirs}"
        for name, (ours, theirs) in differing_settings(runs, MUST_AGREE).items()
        if not (name.startswith("score.") and None in (ours, theirs))  # a role that only one has is left out
    ]
    differing += [
        f"the settings of score.scorers.{scorer}"
        for scorer in dict.fromkeys(scorer for scorer, _ in first.columns if (scorer, "paper") in second.columns)
        if not differing and not is_shared(runs, scorer)
    ]
    if differing:
        raise MitigateError(
            f"the audits {first.run.folder} and {second.run.folder} were measured in different ways "
            f"({'; '.join(differing)}), so a difference may come from the settings; run one of them again with the "
            "settings of the other"
        )


def _wordings(first: ComparedAudit, second: ComparedAudit) -> list[Wording]:
    """The wordings that both have; where neither has phrases, one for each scorer."""
    columns = {
        wording: (column, second.columns[wording])
        for wording, column in first.columns.items()
        if wording in second.columns
    }
    if not columns:
        raise MitigateError(
            f"the audits {first.run.folder} ({', '.join(set(first.columns.values()))}) and {second.run.folder} "
            f"({', '.join(set(second.columns.values()))}) have no labels in common; audit both with the same scorers "
            "and the same measure.template"
        )
    return [
        (scorer, template)
        for (scorer, template), pair in columns.items()
        if template == "paper" or pair != columns.get((scorer, "paper"))
    ]


def _notices(audits: Sequence[ComparedAudit], titles: Sequence[str], wordings: Sequence[Wording]) -> Iterator[str]:
    runs = [audit.run for audit in audits]
    if audits[0].counted == audits[1].counted:
        yield "Both audits have the same numbers: it is one resource, or a copy of it."
    for name, (ours, theirs) in differing_settings(runs, OUGHT_TO_AGREE).items():
        yield (
            f"The audits differ in {name} ({ours} in {titles[0]}, {theirs} in {titles[1]}): a difference may be that "
            "setting's."
        )
    yield from other_versions([run.manifest for run in runs])
    yield from few_targets(both(audits, wordings[0]), list_of_runs(runs))
