"""Notices about compared runs that limit the findings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from mitigate.finished import FinishedRun, differing, model_settings
from mitigate.load.targets import list_of_runs
from mitigate.measure import harms
from mitigate.measure.caveats import few_targets
from mitigate.measure.quality import is_scored
from mitigate.tasks.compare import run_groups
from mitigate.tasks.compare.pairs import FEWEST_SEEDS
from mitigate.tasks.compare.run_groups import Contrast, statements_of
from mitigate.tasks.compare.scorers import filtered_by

VERSIONS = ("mitigate", "torch", "transformers", "vaderSentiment")
MOST_NAMED = 8


def notices(
    pairs: Sequence[Contrast], runs: Sequence[FinishedRun], relations: Sequence[str], labelled_by: Iterable[str]
) -> list[str]:
    """All notices, the gravest first, none twice. labelled_by: the scorers of the compared labels."""
    statements = statements_of(runs[0])
    targets = statements.select("target", "category").unique("target", maintain_order=True)
    labels = next(name for name in statements.columns if f"{name}_strength" in statements.columns)
    found = [
        *_identical(pairs),
        *_other_prompts(runs, relations),
        *_other_data(runs),
        *_other_tests(runs),
        *_other_settings(runs),
        *_limits(pairs, set(labelled_by)),
        *few_targets(harms.per_target(statements, labels, targets), list_of_runs(runs)),
    ]
    return list(dict.fromkeys(found))


def _identical(pairs: Sequence[Contrast]) -> Iterator[str]:
    for pair in pairs:
        if pair.is_same:
            yield (
                f"{pair.name} and {pair.against} have identical numbers: it is the same run, a copy of it, or a policy "
                "that changed nothing."
            )
        elif set(map(run_groups.numbers_of, pair.before)) & set(map(run_groups.numbers_of, pair.after)):
            yield f"Some runs of {pair.name} have the same numbers as runs of {pair.against}: they are copies."


def _other_prompts(runs: Sequence[FinishedRun], relations: Sequence[str]) -> Iterator[str]:
    targets = [set(statements_of(run)["target"].to_list()) for run in runs]
    shared = set.intersection(*targets)
    if most := max(len(names) for names in targets) - len(shared):
        yield (
            f"The runs were not probed with the same targets: the {len(shared):,} that all share are compared, up to "
            f"{most:,} of a run are left out."
        )
    if most := max(statements_of(run)["relation"].n_unique() for run in runs) - len(relations):
        yield (
            f"The runs were not probed with the same relations: the {len(relations)} that all share are compared, up "
            f"to {most} of a run are left out."
        )


def _other_data(runs: Sequence[FinishedRun]) -> Iterator[str]:
    names = dict.fromkeys(str(run.text("data.name")) for run in runs)
    if len(names) > 1:
        yield f"The runs were trained on different data ({', '.join(names)}): a difference need not be the policy's."
    elif len({run.metrics["fingerprint"] for run in runs}) > 1:
        yield (
            "The fingerprints of corpus and targets differ: a difference between runs need not be the policy's, but "
            "may be the corpus's."
        )


def _other_tests(runs: Sequence[FinishedRun]) -> Iterator[str]:
    tested = [run_groups.table_of(run, run_groups.LIKELIHOOD) for run in runs]
    triples = [table.select("head", "relation", "tail") for table in tested]
    if any(not table.equals(triples[0]) for table in triples):
        yield "The runs were tested on different triples: figures of quality have no intervals, and differ by that too."
    elif any(table.height and not is_scored(table) for table in tested):
        yield "Some generators are files of tails and give no probabilities: perplexity is not compared."
    elif any(not table["tokens"].equals(tested[0]["tokens"]) for table in tested):
        yield "The models cut text into tokens differently: compare bits per character, not perplexity."


def _other_settings(runs: Sequence[FinishedRun]) -> Iterator[str]:
    """Notices of settings with other values, of other versions, and of settings that only some runs have."""
    if names := run_groups.shortened(differing(runs)):
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        yield f"The runs differ in more than policy and seed: {', '.join(names[:MOST_NAMED])}{more}."
    yield from other_versions([run.manifest for run in runs])
    several_models = len({run.text("model.name") for run in runs}) > 1
    own = ("policy.", "model.") if several_models else ("policy.",)  # each kind has settings of its own
    settings = [{name for name in model_settings(run) if not name.startswith(own)} for run in runs]
    if extra := sorted(settings[0].union(*settings) - settings[0].intersection(*settings)):
        yield (
            "The runs were made by different revisions of mitigate: only some know the settings "
            f"{', '.join(extra[:MOST_NAMED])}."
        )


def other_versions(manifests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield notices of manifests that name different versions."""
    for package in VERSIONS:
        versions = dict.fromkeys(str(manifest.get(package)) for manifest in manifests)
        if len(versions) > 1:
            yield f"The runs were made by different versions of {package}: {', '.join(versions)}."


def _limits(pairs: Sequence[Contrast], labelled_by: Set[str]) -> Iterator[str]:
    """Notices of policies that filter by all the scorers that measure them, and of few seeds."""
    biased = [pair.name for pair in pairs if labelled_by and labelled_by <= set(filtered_by(pair.after[0]))]
    single = [pair.name for pair in pairs if not pair.several_seeds and not pair.is_same]
    few = [pair.name for pair in pairs if 1 < min(len(pair.before), len(pair.after)) < FEWEST_SEEDS]
    if biased:
        yield (
            f"{_named(biased)}: filtered by the same scorers that measure it, so that the figures of harm are biased "
            "in its favour. Add held-out scorers to all runs: score.extra=[crowd,keyword]."
        )
    if single:
        yield (
            f"{_named(single)}: a single seed on either side, so two trained models are compared, not two policies. "
            "Train five seeds or more of each."
        )
    if few:
        yield (
            f"{_named(few)}: with fewer than {FEWEST_SEEDS} seeds a side findings are exploratory. The error of "
            "training is itself uncertain, and no claim about the policy is made."
        )


def _named(names: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(names))
