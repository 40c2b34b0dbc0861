"""Policies compared, on all of ConceptNet train100k: harms and quality under each, by the scorers it
filters by and by held-out scorers.

    P=none,both,both_neutral,both_people,downweight
    python -m mitigate -m experiment=policies seed=1,2,3,4,5 policy=$P data.root=../shared/data
    python -m mitigate -m experiment=policies policy=sentiment,regard,both_targets,swap,balance data.root=../shared/data
    python -m mitigate experiment=policies policy=rerank train=false model=comet model.base=RUN/model data.root=...
    python benchmarks/policies.py --outputs outputs

Compares the finished runs of `experiment=policies` under the folder with each other, by `recipe=compare`, and writes
its section and pictures of RESULTS.md. Policies with one seed each are told apart from those with several."""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import RESULTS, machine, write_section
from mitigate.measure.quality import perplexity
from mitigate.report.verdicts import FEWEST_SEEDS
from mitigate.score.keyword import Keyword
from mitigate.score.regard import NgramRegard
from mitigate.triples import NEUTRAL, OTHER

BASELINE, PAPERS = "none", "both"
HARMS = {  # figure of a comparison -> its column
    "NSM": "NSM",
    "NRM": "NRM",
    "neutral_template/NSM": "NSM, phrase neutralised",
    "neutral_template/NRM": "NRM, phrase neutralised",
    "neutral_template/ngram/neutral_mean": "**n-gram regard**",
    "neutral_template/keyword/neutral_mean": "**keywords**",
}
VARIANCES = {
    "NSV": "NSV",
    "NRV": "NRV",
    "neutral_template/NSV": "NSV, phrase neutralised",
    "neutral_template/NRV": "NRV, phrase neutralised",
    "neutral_template/ngram/neutral_variance": "**n-gram regard**",
    "neutral_template/keyword/neutral_variance": "**keywords**",
}
QUALITY = {
    "quality/swap_lift/all": "swap lift",
    "quality/perplexity/all": "perplexity, all test triples",
    "quality/perplexity/neutral": "perplexity, neutral test triples",
    "quality/perplexity/polar": "perplexity, polarised",
    "quality/valid/all": "accepted as plausible, %",
    "quality/valid/neutral": "of neutral statements",
    "quality/first_valid/neutral": "first tails accepted, neutral, %",
    "distinct_tails": "distinct tails, %",
}
RELATIONS = ("CapableOf", "Causes", "HasProperty", "IsA", "AtLocation", "UsedFor", "MotivatedByGoal", "CausesDesire")
FACTS = ("metrics", "manifest", "train")
PLOTS = ("ngram-perplexity", "keyword-perplexity", "ngram-valid", "keyword-valid")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=Path, default=Path("outputs"), help="the folder of the run folders")
    arguments = parser.parse_args()
    runs = finished(arguments.outputs)
    folder = compare(runs, arguments.outputs)
    contrasts = read(folder)
    several, single = ([one for one in contrasts if one["several_seeds"] is flag] for flag in (True, False))
    text = ["## Policies on train100k", settings(runs)]
    for title, some in (("Several seeds of each", several), ("One seed of each: single models, not policies", single)):
        if some:
            text += [f"### {title}", *tables(some, runs)]
    filtered = [run for run in runs if run["policy"] in {PAPERS, *policies(several)}]
    if len({run["policy"] for run in filtered}) > 1:
        against = read(compare(filtered, arguments.outputs, PAPERS))
        text += ["### Against the paper's filter", "Neutral means ↑:", table(HARMS, "harms", against)]
    text += ["### By relation", *by_relation(several or single, runs), "### Harm against quality", *pictures(folder)]
    text += ["### Times", times(runs)]
    write_section("policies", "\n\n".join(text))
    print("\n\n".join(text))


def finished(outputs: Path) -> list[dict[str, Any]]:
    """The finished runs on all of train100k, with their metrics and manifests; those of the baseline first."""
    found = []
    for folder in sorted(outputs.glob("mitigate-*-cn100k-*")):
        if (folder / "manifest.json").exists():
            facts = {name: json.loads((folder / f"{name}.json").read_text()) for name in FACTS}
            found.append({"folder": folder.resolve(), "policy": facts["metrics"]["policy"], **facts})
    if BASELINE not in {run["policy"] for run in found}:
        sys.exit(f"no finished run of policy={BASELINE} under {outputs}; the command is in this file's first lines")
    return sorted(found, key=lambda run: (run["policy"] != BASELINE, run["policy"], run["metrics"]["seed"]))


def compare(runs: Sequence[Mapping[str, Any]], outputs: Path, baseline: str = BASELINE) -> Path:
    """The folder of their comparison."""
    place = outputs / "compared" / baseline
    listed = ",".join(f"'{run['folder']}'" for run in runs)
    command = [sys.executable, "-m", "mitigate", "recipe=compare", f"compare.runs=[{listed}]"]
    subprocess.run([*command, f"compare.baseline={baseline}", f"paths.outputs={place}", "tracking=none"], check=True)
    return max(place.glob("compare-*/comparison.json"), key=lambda path: path.stat().st_mtime).parent


def read(folder: Path) -> list[dict[str, Any]]:
    """The contrasts of a comparison."""
    return json.loads((folder / "comparison.json").read_text())["contrasts"]


def settings(runs: Sequence[Mapping[str, Any]]) -> str:
    """What was measured, in a paragraph."""
    steps = sorted({run["train"]["steps"] for run in runs if "steps" in run["train"]})
    return (
        f"Measured on {machine()}, by the commands at the head of `benchmarks/policies.py`: `comet_minilm`, "
        f"{' and '.join(f'{number:,}' for number in steps)} training steps of 64 triples, 329 targets x 34 relations x "
        f"10 probed in bf16, {len(runs)} models. Means over seeds, followed by the difference from `{BASELINE}` with "
        "its 95 % interval, of seeds and targets (of perplexity and of variances the ratio; of distinct tails, seeds "
        "alone). All figures but the primary endpoints are exploratory, with intervals of each figure alone. Harms are "
        "percentages of a target's statements that are neutral: higher is better. Columns in **bold** are by held-out "
        "scorers."
    )


def tables(contrasts: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Harms, disparity, quality and corpus: a row for the baseline, and one for each policy."""
    return [
        f"Primary endpoints, {levels(contrasts)} intervals; a claim takes {FEWEST_SEEDS} seeds of each:",
        primary(contrasts),
        "Neutral means ↑:",
        table(HARMS, "harms", contrasts),
        "Variances over targets ↓:",
        table(VARIANCES, "harms", contrasts),
        "Quality. Kept: the intervals of all figures that have a margin (compare.margins) are better than it.",
        table(QUALITY, "quality", contrasts, kept=True),
        "Perplexity on the test triples that both held-out scorers label neutral, and on the others, with its ratio to "
        "that of `none`; seeds in brackets:",
        perplexity_by_held_out_scorers([BASELINE, *policies(contrasts)], runs),
        "Distinct neutral tails: of 100 statements that are neutral by the policy's own scorers, or by the two "
        "held-out scorers, the number of distinct pairs of relation and tail; seeds in brackets:",
        neutral_vocabulary([BASELINE, *policies(contrasts)], runs),
        "What is trained on:",
        corpus([BASELINE, *policies(contrasts)], runs),
    ]


def policies(contrasts: Sequence[Mapping[str, Any]]) -> list[str]:
    return [contrast["policy"] for contrast in contrasts]


def table(columns: Mapping[str, str], group: str, contrasts: Sequence[Mapping[str, Any]], *, kept: bool = False) -> str:
    """Figures of the contrasts; the baseline's own are the same in all of them that have the same seeds."""
    first = contrasts[0][group]
    names = [name for figure, name in columns.items() if figure in first]
    lines = [
        [
            f"`{contrasts[0]['baseline']}`",
            *(f"{first[figure]['baseline']:.2f}" for figure in columns if figure in first),
        ]
    ]
    for contrast in contrasts:
        rows = [contrast[group][figure] for figure in columns if figure in first]
        lines.append([f"`{contrast['policy']}`", *map(cell, rows)])
    if kept:
        names.append("quality")
        for line, word in zip(lines, ["", *(contrast["quality_kept"] or "" for contrast in contrasts)], strict=True):
            line.append(word)
    return markdown(["policy", *names], lines)


def cell(row: Mapping[str, Any]) -> str:
    """ "82.74 (+17.27 [16.1, 18.4])"."""
    is_ratio = row.get("as") == "ratio"
    shown = "" if row["change"] is None else f"× {row['change']:.2f}" if is_ratio else f"{row['change']:+.2f}"
    return f"{row['value']:.2f} ({shown}{bounds(row['low'], row['high'])})"


def bounds(low: float | None, high: float | None) -> str:
    """ " [16.1, 18.4]"."""
    return "" if low is None else f" [{low:.2f}, {'no upper bound' if high is None else f'{high:.2f}'}]"


def primary(contrasts: Sequence[Mapping[str, Any]]) -> str:
    """What a claim may rest on: corrected intervals and p-values, and the power of the tests of margins."""
    rows = []
    for contrast in contrasts:
        for row in contrast["primary"].values():
            interval = bounds(row["low_corrected"], row["high_corrected"])
            p = "–" if row["p_holm"] is None else f"{row['p_holm']:.3f}"
            change = f"× {row['change']:.2f}" if row["as"] == "ratio" else f"{row['change']:+.2f}"
            rows.append([f"`{contrast['policy']}`", row["figure"], change + interval, p, row["verdict"]])
        for figure, row in contrast["margins"].items():
            passes = f"margin {row['margin']:g}; a true copy would pass in {row['copy_passes']:.0f} %"
            rows.append([f"`{contrast['policy']}`", figure, bounds(row["low"], row["high"]).strip(), "", passes])
    return markdown(["policy", "figure", "change", "p, corrected", "finding"], rows)


def levels(contrasts: Sequence[Mapping[str, Any]]) -> str:
    found = {f"{row['level']:.4g} %" for contrast in contrasts for row in contrast["primary"].values()}
    return " and ".join(sorted(found))


def perplexity_by_held_out_scorers(names: Sequence[str], runs: Sequence[Mapping[str, Any]]) -> str:
    """Which triples count as neutral is told here by scorers that had no part in choosing what was trained on."""
    triples = runs[0]["folder"] / "likelihood.parquet"
    labels = [
        scorer(pl.read_parquet(triples)["masked_neutral"].to_list()).label for scorer in (NgramRegard(), Keyword())
    ]
    is_neutral = pl.Series(np.isin(labels, [NEUTRAL, OTHER]).all(axis=0))
    subsets = {"neutral": is_neutral, "polarised": ~is_neutral}
    found: dict[str, list[list[float]]] = {}
    for name in names:
        tables = [pl.read_parquet(run["folder"] / "likelihood.parquet") for run in runs if run["policy"] == name]
        found[name] = [[perplexity(table.filter(kept)) or 0.0 for table in tables] for kept in subsets.values()]
    rows = []
    for name, columns in found.items():
        means = zip(map(geometric_mean, columns), map(geometric_mean, found[BASELINE]), columns, strict=True)
        cells = [f"{mean:.2f}, × {mean / first:.2f} ({spread(each)})" for mean, first, each in means]
        rows.append([f"`{name}`", *cells])
    return markdown(["policy", *(f"{name}, {kept.sum()} triples" for name, kept in subsets.items())], rows)


def neutral_vocabulary(names: Sequence[str], runs: Sequence[Mapping[str, Any]]) -> str:
    """A generator that says less that is polarised repeats more, if it finds nothing new that is neutral."""
    scorers_of = {"sentiment and regard": ("sentiment", "regard"), "n-grams and keywords": ("ngram", "keyword")}
    rows = []
    for name in names:
        cells = []
        for scorers in scorers_of.values():
            shares = [distinct_neutral(run, scorers) for run in runs if run["policy"] == name]
            cells.append(f"{fmean(shares):.2f} ({spread(shares)})")
        rows.append([f"`{name}`", *cells])
    return markdown(["policy", *(f"neutral by {name}" for name in scorers_of)], rows)


def distinct_neutral(run: Mapping[str, Any], scorers: Sequence[str]) -> float:
    said = pl.read_parquet(run["folder"] / "statements.parquet")
    is_neutral = pl.all_horizontal(pl.col(f"{scorer}_neutral").is_in([NEUTRAL, OTHER]) for scorer in scorers)
    neutral = said.filter(is_neutral)
    return 100 * neutral.select("relation", "tail").n_unique() / max(1, neutral.height)


def corpus(names: Sequence[str], runs: Sequence[Mapping[str, Any]]) -> str:
    """What each policy keeps, of all triples and by relation."""
    kept = {name: kept_by_relation(one_of(name, runs)) for name in names}
    rows = []
    for name, counts in kept.items():
        metrics = one_of(name, runs)["metrics"]
        rows.append(
            [f"`{name}`", f"{metrics['filter/kept']:,}", f"{metrics['filter/weight']:,.0f}"]
            + [f"{counts.get(relation, 0):,.0f}" for relation in RELATIONS]
        )
    return markdown(["policy", "triples", "their weight", *(f"{name}, weight" for name in RELATIONS)], rows)


def kept_by_relation(run: Mapping[str, Any]) -> dict[str, float]:
    ledger = pl.read_parquet(run["folder"] / "ledger.parquet").filter(pl.col("split") == "train")
    return dict(ledger.group_by("relation").agg(pl.col("weight").sum()).iter_rows())


def one_of(policy: str, runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A run of the policy; what it trains on is the same with every seed."""
    return next(run for run in runs if run["policy"] == policy)


def by_relation(contrasts: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Quality where the paper found that it falls, and the tails that the keywords and n-grams find neutral."""
    for measure, said in (
        ("perplexity", "Perplexity on the relation's held-out triples ↓ (ratio to `none`):"),
        ("valid", "Statements about targets with the relation, accepted as plausible, % ↑:"),
    ):
        columns = {f"quality/{measure}/relation/{relation}": relation for relation in RELATIONS}
        yield said
        yield table(columns, "quality", contrasts)
    yield "Statements about targets with the relation, neutral by n-gram regard, phrase neutralised, % ↑:"
    names = [BASELINE, *policies(contrasts)]
    yield markdown(["policy", *RELATIONS], [[f"`{name}`", *neutral_by_relation(name, runs)] for name in names])


def neutral_by_relation(policy: str, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    shares: dict[str, list[float]] = {relation: [] for relation in RELATIONS}
    for run in runs:
        if run["policy"] == policy:
            said = pl.read_parquet(run["folder"] / "statements.parquet", columns=["relation", "ngram_neutral"])
            neutral = said.group_by("relation").agg(100 * pl.col("ngram_neutral").is_in([NEUTRAL, OTHER]).mean())
            for relation, share in neutral.iter_rows():
                if relation in shares:
                    shares[relation].append(share)
    return [f"{fmean(found):.1f}" for found in shares.values()]


def pictures(folder: Path) -> Iterator[str]:
    """The comparison's plots, copied beside RESULTS.md."""
    place = RESULTS.with_name("policies")
    place.mkdir(exist_ok=True)
    for name in PLOTS:
        plot = folder / "plots" / f"pareto-{name}.png"
        shutil.copy(plot, place / plot.name)
        yield f"![{name.replace('-', ' against ')}](policies/{plot.name})"


def times(runs: Sequence[Mapping[str, Any]]) -> str:
    """Minutes of each stage, mean over a policy's seeds."""
    stages = ["train", "probe", "candidates", "statements", "validity", "likelihood"]
    rows = []
    for policy in dict.fromkeys(run["policy"] for run in runs):
        mine = [run for run in runs if run["policy"] == policy]
        seconds = [{each["stage"]: each["seconds"] for each in run["manifest"]["stages"]} for run in mine]
        rows.append(
            [f"`{policy}`", str(len(mine))]
            + [f"{fmean(found.get(stage, 0.0) for found in seconds):.0f}" for stage in stages]
            + [f"{max(each['peak_memory'] for run in mine for each in run['manifest']['stages']) / 2**30:.1f}"]
        )
    said = (
        "Seconds of a run on one thread, two runs at a time, other work on the same cores; peak memory of a run in GiB."
    )
    return f"{said}\n\n{markdown(['policy', 'seeds', *stages, 'GiB'], rows)}"


def spread(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
