"""The page of a run of the main job: harm against quality, beside runs of policy none and of the policy's control."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import polars as pl

from mitigate import files
from mitigate.errors import portable, without_folders
from mitigate.finished import FinishedRun
from mitigate.measure.base import key_of, measure_of, own_measures
from mitigate.measure.compare import no_conclusion
from mitigate.measure.harms import Measurement, tally
from mitigate.measure.quality import LIFT, PERPLEXITY, kept_by_target
from mitigate.measure.results import Results
from mitigate.measure.run import notices, untrained_notices
from mitigate.report import cards, compare, sections
from mitigate.report.cards import summary
from mitigate.report.compare import HEADLINES
from mitigate.report.page import OPEN, Fold, Number, Page, Part, Section, write
from mitigate.report.sections import crossed
from mitigate.report.table import Cell, Column, Table, as_text, grouped, number, signed, text
from mitigate.score.labels import long_texts

Row = Mapping[str, Any]
NAME = "this run"
SAME = 0.05  # percentage points that read 0.0
IN_MEASURES = ("neutral_mean", "neutral_variance", "O-", "O+", "largest_O-", "coverage", "least_coverage")
OF_QUALITY = ("heads", "test triples", "statements", "rated statements")
GROUPS = {"": "all", "neutral": "neutral", "polar": "polarised", "target": "about targets", "held_out": "no targets"}
"""The groups of rows that figures of quality are of, and their headings."""
OF_LIFT = (
    "Swap lift in percentage points, with the 95 % interval over heads, compared with generators that know nothing of "
    "the head and an oracle. Relations count where the oracle's tails are accepted in at least 10 % of cases."
)
ONE_RUN = "There is one run of each: another training with another seed could differ as much."
ALONE = "Run policy=none and policy.control=true with the same settings to compare it with."
BASELINE = "This is a baseline: run a policy and its control with the same settings to compare with it."
TRAIN = "Train longer (trainer.max_steps, trainer.max_epochs), or on more triples."
AS_IT_IS = "The model was not trained here: train it (train=true), or choose another form of prompts (model.prompt)."
LIMITS = (
    sections.PROXIES,
    "This is one training run. A claim about a policy needs five seeds or more of it, of none and of the policy's "
    "control (recipe=compare).",
    sections.EQUAL_WEIGHT,
)


class Verdict(NamedTuple):
    """The state of a run in at most eight words, how certain it is, and what it cost."""

    state: str
    hedge: str
    cost: str

    @property
    def sentence(self) -> str:
        return f"{self.state}. {self.hedge}".strip()


def headlines(runs: Iterable[Results], scorers: Sequence[str]) -> dict[str, str]:
    """The figures that come first, by their keys, and their titles: harm by each scorer, that in regard's place first,
    with the neutral template where that was measured, then quality; without those that no run has."""
    measured, titles = list(runs), dict[str, str]()
    for name in reversed(scorers):
        keys = [key_of("neutral_mean", name, template) for template in sections.TEMPLATES]
        known = [key for key in keys if any(key in results for results in measured)]
        titles |= dict.fromkeys(known[:1], f"neutral by {name}, % ↑")
    titles |= HEADLINES
    return {key: title for key, title in titles.items() if any(results.get(key) is not None for results in measured)}


def verdict(results: Results, others: Mapping[str, Results], scorers: Sequence[str]) -> Verdict:
    """The finding on harm by the scorer in regard's place. others: the results of runs that differ by their policy
    alone, such as "none" and "both-control"."""
    before: Mapping[str, Any] = others.get("none", {})
    cost = []
    kept, dropped = (results.get(f"filter/{name}") for name in ("kept", "dropped"))
    if kept is not None and dropped:
        cost.append(f"{100 * dropped / (dropped + kept):.1f} % of the training triples dropped")
    for key in (LIFT, PERPLEXITY):
        if (value := results.get(key)) is not None:
            was = before.get(key)
            change = "" if was is None else f" ({signed(value - was)})"
            cost.append(f"{HEADLINES[key]} {number(value, 1)}{change}")
    said = "; ".join(cost)
    if reason := no_conclusion({"": [results], **{f"“{name}”": [found] for name, found in others.items()}}):
        why = reason.partition(": ")[2]
        advice = TRAIN if results.get("training/steps") else AS_IT_IS
        return Verdict(OPEN, f"{why[0].upper()}{why[1:]} {advice}", said)
    harms = [key for key in headlines([results], scorers[-1:]) if key not in HEADLINES]
    if not harms:
        return Verdict("No harm was measured", "", said)
    value, was = results[harms[0]], before.get(harms[0])
    if was is None:
        hedge = BASELINE if results.get("policy") == "none" else ALONE
        return Verdict(f"{value:.1f} % neutral by {scorers[-1]}, nothing compared", hedge, said)
    if abs(value - was) < SAME:
        return Verdict("It is as neutral as without a policy", ONE_RUN, said)
    size = number(abs(value - was), 1)
    points = f"{size} point{'' if size == '1.0' else 's'}"
    return Verdict(f"Exploratory: {points} {'more' if value > was else 'less'} neutral", ONE_RUN, said)


def page(
    results: Results,
    found: Verdict,
    *,
    others: Mapping[str, Results],
    scorers: Sequence[str],
    frames: Mapping[str, pl.DataFrame],
    statements: pl.DataFrame,
    ledger: pl.DataFrame,
    chosen: Sequence[str] = (),
    tables: Mapping[str, pl.DataFrame],
    **about: Any,
) -> Page:
    """scorers: the names of those of the roles, that in regard's place last; frames: of targets by label column;
    ledger: of the training triples; chosen: targets whose bars are drawn; tables: stored beside the page; about:
    further fields of Page."""
    rows, names = results.table, scorers
    runs = {**others, str(results.get("policy", NAME)): results}
    shown_labels = sections.label_names(reversed(names), frames)
    shown_frames = {label: frames[label] for label in shown_labels.values()}
    titles = headlines([results], names[-1:])
    first = {title: Column(title, key).cell(results) for key, title in islice(titles.items(), 3)}
    drawn = [{"policy": name} | {k: v for k, v in of.items() if isinstance(v, float)} for name, of in runs.items()]
    models = pl.DataFrame(drawn, infer_schema_length=None)
    return Page(
        state=found.state,
        hedge=found.hedge,
        picture=next(iter(compare.pictures(models, compare.harm_axes(names[-1:]))), None),
        numbers=[Number(title, cell.text, " ".join(cell.below)) for title, cell in first.items()],
        summary=[comparison(runs, names, list(runs)[-1])],
        sections=[
            _measures(rows),
            sections.gallery(shown_frames, list(shown_labels), chosen),
            _quality(rows),
            _filter(ledger),
            sections.target_section(frames, statements, list(shown_frames), list(shown_labels)),
        ],
        limits=[*LIMITS, *sections.left_out([] if not frames else next(iter(frames.values()))["target"].to_list())],
        tables={**tables, **{f"targets_{label}": frame for label, frame in frames.items()}},
        **about,
    )


def write_report(
    figures: pl.DataFrame,
    flat: Mapping[str, Any],
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    how: Measurement,
    *,
    relations: Sequence[str],
    scorers: Mapping[str, str],
    chosen: Sequence[str],
    data: Mapping[str, Any],
    model: Mapping[str, Any] | None,
    prompt: str,
    also: Sequence[str],
    beside: Mapping[str, FinishedRun],
    folder: Path,
    **about: Any,
) -> dict[str, Any]:
    """Write the page, pictures and tables in the run folder, and for a model that was trained there the card.

    also: notices besides those that the figures call for; scorers: the configured scorers of the roles, by their names
    in tables; prompt: an example for the card; about: further fields of Page. Returns the verdict
    with its cost, all notices, and those about untrained relations."""
    results, others = Results.of(figures, flat), {name: Results.of_run(run) for name, run in beside.items()}
    rows, names = ledger.filter(split="train"), list(scorers)
    frames = how.tables(tally(statements, how.wordings))
    untrained = untrained_notices(ledger, statements) if model else []
    shown = [
        *untrained,
        *also,
        *notices(results, next(iter(frames.values())), how.target_list),
        *long_texts(pl.concat([rows["masked"], statements["masked"]])),
    ]
    found = verdict(results, others, names)
    tables = {"measures": results.overall, "targets": how.target_list.table(how.targets)}
    tables |= {f"ledger_by_{by}": summary(rows, by) for by in ("relation", "target", "reason")}
    tables |= {"coverage": kept_by_target(rows)}
    made = page(
        results,
        found,
        others=others,
        scorers=names,
        frames=frames,
        statements=statements,
        ledger=rows,
        chosen=chosen,
        tables=tables,
        demonstration=data["demonstration"],
        notices=shown,
        links={f"Run of {name}": f"../{quote(run.folder.name)}/report.html" for name, run in beside.items()},
        **about,
    )
    write(made, folder)
    if model:
        card = cards.Generator(
            name=made.name,
            license=data["licence"],
            base_model=without_folders(str(model["base"])),
            base_license=model["licence"],
            data=data["source"],
            prompt=prompt,
            policy=str(results["policy"]),
            command=portable(made.command),
            demonstration=bool(made.demonstration),
            metrics=results,
            verdict=found.sentence,
            ledger=rows,
            targets=how.targets["target"].to_list(),
            notices=shown,
            scorers=names,
            **{name: model[name] for name in ("seq2seq", "chat")},
        )
        files.write(folder / "model" / "README.md", cards.generator(card))
    return {"verdict": found.sentence, "cost": found.cost, "notices": shown, "untrained": untrained}


def comparison(runs: Mapping[str, Results], scorers: Sequence[str], mine: str) -> Table | None:
    """The headlines of each run, and the differences of the run `mine` from the others."""
    titles = headlines(runs.values(), scorers)
    lines: list[Mapping[str, Any]] = [{**found, "policy": name} for name, found in runs.items()]
    for other in [name for name in runs if name != mine]:
        pairs: dict[str, tuple[Any, Any]] = {key: (runs[mine].get(key), runs[other].get(key)) for key in titles}
        known = {
            key: Cell(signed(one - two)) for key, (one, two) in pairs.items() if one is not None and two is not None
        }
        lines.append({"policy": f"{mine} − {other}", **known})
    caption = "Harm and quality with 95 % intervals. The difference from the control shows how much it matters which "
    caption += "triples or tails the policy acts on"
    if mine != "none" and not mine.endswith("-control") and f"{mine}-control" not in runs:
        caption += f"; no run of {mine} with policy.control=true is in the same folder"
    columns = [text("policy"), *(Column(title, key) for key, title in titles.items())]
    return Table(f"{caption}.", columns, lines) if titles else None


def every_figure(results: Results) -> str:
    """All figures but those of single relations and targets, for the terminal."""
    rows = results.table.filter(~pl.col("by").is_in(["relation", "target"])).drop_nulls("value").rows(named=True)

    def section(row: Row) -> str:
        words = measure_of(row["measure"]).family, sections.TEMPLATES.get(row["template"])
        return ", ".join(filter(None, words))

    def name(row: Row) -> str:
        return ", ".join(filter(None, (sections.title_of(row), row["group"])))

    return as_text(Table("", [text("measure", name), Column("", sections.shown)], grouped(rows, section)), 110)


def _measures(rows: pl.DataFrame) -> Section:
    """Harms, what the policy kept of each category's triples, and a user's own measures."""
    own = [one.name for one in own_measures()]
    harms = rows.filter(pl.col("measure").is_in([*IN_MEASURES, *own]))
    parts: list[Part] = [crossed(f"{sections.OF_HARMS} O is overgeneralisation.", harms, sections.by_category(rows))]
    return Section("Measures", [*parts, Fold("What they mean", [sections.meanings(harms)])])


def _quality(rows: pl.DataFrame) -> Section:
    """Swap lift beside generators that know nothing of the head, and all figures of quality by group."""
    names = [name for name in rows["measure"].unique(maintain_order=True) if measure_of(name).of in OF_QUALITY]
    found = rows.filter(pl.col("measure").is_in(names), pl.col("by").is_in(["all", "subset"]))
    groups = {group: GROUPS.get(group, group) for group in ("", *GROUPS, *found["group"]) if "/" not in group}
    heads = found.filter(pl.col("measure").str.starts_with("swap_lift"))
    others = found.join(heads, on="measure", how="anti").filter(~pl.col("measure").str.contains("triples"))
    every = crossed("", others, groups, section=lambda row: measure_of(row["measure"]).of)
    fold = Fold("Perplexity, plausibility and other results", [every, sections.meanings(others)])
    return Section("Quality", [crossed(OF_LIFT, heads, groups), fold if every else None] if names else [])


def _filter(ledger: pl.DataFrame) -> Section:
    """The effect of the policy on the training triples; tables/ has it by relation and by target too."""
    reasons = summary(ledger, "reason")
    total, kept = (int(reasons[name].sum()) for name in ("input", "kept"))
    if not total or (kept == total and not reasons["added"].sum() and reasons["weight"].sum() == total):
        return Section("Filter", [])
    share = number(100 * (total - kept) / total, 1)
    said = f"Of {number(total)} triples the policy kept {number(kept)} and dropped {number(total - kept)} ({share} %)."
    counts = [Column(name, name) for name in ("input", "kept", "dropped", "added", "weight")]
    by_reason = Table("Triples by reason, and their weights in training.", [text("reason"), *counts], reasons)
    return Section("Filter", [said, by_reason.present()])
