"""What a comparison leaves for people: comparison.json, the page, plots and tables, and the record in W&B."""

import sys
from functools import cache
from typing import Any

import polars as pl

from mitigate import report as room
from mitigate.measure.harms import NEUTRAL_MEASURES, neutral_names
from mitigate.recipes.compare.figures import chance
from mitigate.recipes.compare.plan import ComparePlan, roles
from mitigate.recipes.compare.runs import Contrast
from mitigate.recipes.job import Job, command, plain, provenance, say
from mitigate.report import comparison as page
from mitigate.report import gallery, tables
from mitigate.report.before_after import only_in
from mitigate.report.pareto import HARMS, QUALITIES, Axis
from mitigate.report.proxies import proxies
from mitigate.store import Result
from mitigate.triples import TEMPLATE_PREFIX

MOST_MOVED = 5  # up, and as many down


def report(job: Job, plan: ComparePlan, harms: Result, quality: Result, moves: Result) -> dict[str, Any]:
    """Write everything, and record it; returns what comparison.json holds."""

    @cache
    def pairs() -> list[page.Pair]:
        return _pairs(plan, harms, quality, moves)

    @cache
    def frames() -> dict[str, pl.DataFrame]:
        words = _with_words(pairs())
        return {"harms": words, "quality": quality.table(), "moves": moves.table(), "models": _models(plan)}

    needs = [plan.source, harms.digest, quality.digest, moves.digest]
    code = [room, sys.modules[__name__]]
    compared = job.old_stage(
        "comparison",
        lambda _: _facts(plan, pairs()),
        needs=needs,
        settings=[plan.notices, plain(plan.config.compare.margins)],
        code=code,
    )

    def compute(_: str) -> dict[str, Any]:
        about = page.Comparison(
            name=job.folder.name,
            command=command(job.config),
            demonstration=plan.demonstration,
            pairs=pairs(),
            models=frames()["models"],
            axes=_axes(plan),
            moves=moves.table(),
            scorers=roles(plan),
            stages=[page.Stage(r.stage, r.seconds, r.from_cache) for r in job.run.results],
            facts=_provenance(plan),
            notices=plan.notices,
        )
        page.write(job.folder / "comparison.html", about)
        gallery.save(about.pictures, job.folder / "plots")
        for name, frame in frames().items():
            tables.save_csv(frame, job.folder / "tables" / f"{name}.csv")
            caption = f"{name} ({job.folder.name})"
            tables.save_latex(tables.with_p_as_shown(frame), job.folder / "tables" / f"{name}.tex", caption)
        return {"notices": list(about.notices)}

    job.old_stage(
        "report",
        compute,
        needs=[*needs, compared.digest],
        settings=[plan.notices, plain(plan.config.compare.margins)],
        code=code,
        leaves=["comparison.html", "plots", "tables"],
    )
    if not job.run.dry:
        _record(job, plan, pairs(), frames())  # also what is kept from before, if W&B hands out the job
        say(f"  comparison  {job.folder / 'comparison.html'}")
    return compared.facts()


def _pairs(plan: ComparePlan, harms: Result, quality: Result, moves: Result) -> list[page.Pair]:
    found = []
    for contrast in plan.contrasts:
        mine = moves.table().filter(contrast=contrast.name)
        columns = dict(mine.select("scorer", "column").unique(maintain_order=True).iter_rows())
        found.append(
            page.Pair(
                name=contrast.name,
                against=contrast.against,
                seeds=(len(contrast.before), len(contrast.after)),
                is_same=contrast.is_same,
                filtered_by=plain(contrast.after[0].config.policy.get("scorers")) or [],
                harms=harms.table().filter(contrast=contrast.name),
                quality=quality.table().filter(contrast=contrast.name),
                moved={scorer: _moved(plan, contrast, mine, scorer) for scorer in columns},
                chance={scorer: chance(plan, column, contrast.before) for scorer, column in columns.items()},
                margins=plain(plan.config.compare.margins),
            )
        )
    return found


def _moved(plan: ComparePlan, contrast: Contrast, moves: pl.DataFrame, scorer: str) -> list[page.Moved]:
    """The targets that rose most and, after them, those that fell most; with what only one of two models says."""
    ranked = moves.filter(scorer=scorer).sort("difference", "target", descending=[True, False])
    ends = [
        ranked.filter(pl.col("difference") > 0).head(MOST_MOVED),
        ranked.filter(pl.col("difference") < 0).tail(MOST_MOVED),
    ]
    before, after = (plan.statements(side[0]) for side in (contrast.before, contrast.after))
    return [
        page.Moved(
            row["target"],
            row["category"],
            row["before"],
            row["after"],
            {
                contrast.against: only_in(before, after, row["target"], row["column"]),
                contrast.name: only_in(after, before, row["target"], row["column"]),
            },
        )
        for row in pl.concat(ends).to_dicts()
    ]


def _models(plan: ComparePlan) -> pl.DataFrame:
    """A row for each run: policy, seed, run, and its figures on the plots' axes, where it has them."""
    axes = [*_axes(plan), *QUALITIES]
    rows = []
    for arm in plan.arms:
        for run in arm.runs:
            figures = {axis.key: run.metrics.get(axis.key) for axis in axes}
            rows.append({"policy": arm.name, "seed": run.seed, "run": run.folder.name, **figures})
    numbers = dict.fromkeys((axis.key for axis in axes), pl.Float64)
    return pl.DataFrame(rows, schema={"policy": pl.String, "seed": pl.Int64, "run": pl.String, **numbers})


def _axes(plan: ComparePlan) -> list[Axis]:
    """The harms that are plotted: the paper's, and what further scorers say, who may be those that no policy heard."""
    further = dict.fromkeys(scorer for scorer, _ in plan.labellings.values() if scorer not in NEUTRAL_MEASURES)
    keys = {scorer: TEMPLATE_PREFIX["neutral"] + neutral_names(scorer)[0] for scorer in further}
    return [*HARMS, *(Axis(key, f"% neutral by {scorer}", "up", scorer) for scorer, key in keys.items())]


def _with_words(pairs: list[page.Pair]) -> pl.DataFrame:
    """All rows of harms, each with what it allows one to say."""
    return pl.concat(
        pair.harms.with_columns(
            verdict=pl.Series([pair.verdict(row) for row in pair.harms.to_dicts()], dtype=pl.String)
        )
        for pair in pairs
    )


def _facts(plan: ComparePlan, pairs: list[page.Pair]) -> dict[str, Any]:
    """What comparison.json holds: every figure of every contrast, and what may be said of it."""
    return {
        "demonstration": plan.demonstration,
        "contrasts": [
            {
                "policy": pair.name,
                "baseline": pair.against,
                "runs": [str(run.folder) for run in contrast.after],
                "baseline_runs": [str(run.folder) for run in contrast.before],
                "several_seeds": pair.several_seeds,
                "identical": pair.is_same,
                "quality_kept": pair.quality_kept,
                "harms": {
                    row["figure"]: {key: row[key] for key in pair.harms.columns[6:]} | {"verdict": pair.verdict(row)}
                    for row in pair.harms.to_dicts()
                },
                "quality": {
                    row["figure"]: {k: row[k] for k in pair.quality.columns[2:]} for row in pair.quality.to_dicts()
                },
            }
            for contrast, pair in zip(plan.contrasts, pairs, strict=True)
        ],
        "lines": [page.line(pair) for pair in pairs],
        "notices": plan.notices,
        "proxies": [row._asdict() for row in proxies(roles(plan))],
    }


def _provenance(plan: ComparePlan) -> dict[str, Any]:
    fingerprints = dict.fromkeys(str(run.metrics["fingerprint"]) for run in plan.runs)
    licences = {
        str(run.config.data.name): f"{run.config.data.attribution}, licence {run.config.data.licence}"
        for run in plan.runs
    }
    return provenance(
        plan.config,
        {
            "data": "; ".join(f"{name}, {licence}" for name, licence in licences.items()),
            "fingerprints of corpus and targets": ", ".join(fingerprints),
            "scorers": roles(plan),
            "resamples": plan.config.measure.resamples,
        },
    )


def _record(job: Job, plan: ComparePlan, pairs: list[page.Pair], frames: dict[str, pl.DataFrame]) -> None:
    """Summary, tables and plots; targets of a user's own only when that is wished."""
    tracking = job.tracking
    tracking.summarise(
        {f"{pair.name}/{row['figure']}": row["difference"] for pair in pairs for row in pair.headlines.values()}
        | {f"{pair.name}/{row['figure']}/p": row["p_holm"] for pair in pairs for row in pair.headlines.values()}
    )
    for name, frame in frames.items():
        if name != "moves" or plan.config.tracking.statements or not any(r.config.data.own_texts for r in plan.runs):
            tracking.table(name, frame)
    for picture in sorted((job.folder / "plots").glob("*.png")):
        tracking.image(f"plots/{picture.stem}", picture, picture.stem)
