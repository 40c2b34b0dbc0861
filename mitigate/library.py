"""The library: the commands as Python functions, and scorers and policies by their names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from mitigate.cli import in_words, start
from mitigate.errors import MitigateError, spelt
from mitigate.finished import open_run
from mitigate.load import triples
from mitigate.load.stream import OnBadLine
from mitigate.load.table import Columns
from mitigate.measure.results import Results
from mitigate.policies import Policy
from mitigate.probe.answers import Answers
from mitigate.progress import notice
from mitigate.recipes.config import Scorers, configured
from mitigate.score.labeller import label_statements
from mitigate.settings import CONF
from mitigate.triples import ROLES, Scorer


class RunResults(Results):
    """The results of a finished run: a mapping by the keys of metrics.json, such as results["NRM"].

    table: measure, scorer, template, by, group, k, value, low, high, n. folder: the run folder. report: its page."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        is_comparison = (self.folder / "comparison.json").is_file()
        results = Results.of_run(open_run(folder, figures="comparison.json" if is_comparison else "metrics.json"))
        super().__init__(results.table, results.facts)
        self.report = next(iter(sorted(self.folder.glob("*.html"))), self.folder / "report.html")

    def ask(self, head: str, relation: str) -> pl.DataFrame:
        """The best tails for a head and a relation, the best first, with their labels (probe.answers.Answers.tails)."""
        if not hasattr(self, "_answers"):
            self._answers = Answers(open_run(self.folder, "mitigate"))  # its models stay loaded
        return self._answers.tails(head, relation)


def run(recipe: str = "mitigate", *, path: str | PathLike[str] | None = None, **settings: Any) -> RunResults:
    """Run a recipe as `python -m mitigate` does, and return its results; a run that is complete is read.

    path: data.path. settings: by their names on the command line, groups as words or mappings: policy="both",
    data="triples", seed=2, trainer={"max_steps": 60}, or **{"trainer.max_steps": 60}. An interrupted run resumes with
    the same call. Raises MitigateError for settings and input that a user can correct, and without a run folder."""
    given = [f"recipe={recipe}", *_overrides(settings)]
    given += [] if path is None else [f"data.path={spelt(path)}"]
    config = _composed(given)
    try:
        start(config, {"arguments": given, "overrides": given, "sweep": None, "number": None})
    except Exception as error:
        raise _in_words(error) from error
    folder = config.call.get("folder")
    if folder is None:
        raise MitigateError(
            f"recipe={recipe} leaves no run folder with these settings, so it has no results; run python -m mitigate"
        )
    return RunResults(folder)


def audit(data: str, *, path: str | PathLike[str] | None = None, **settings: Any) -> RunResults:
    """Measure the harms of a resource as it is: run("audit", data=...), where data is "conceptnet", "triples",
    "sentences" or another group of conf/data."""
    return run("audit", data=data, path=path, **settings)


def compare(
    runs: Sequence[str | Path | RunResults], *, baseline: str | Path | RunResults | None = None, **settings: Any
) -> RunResults:
    """Compare finished runs with a baseline: run("compare", ...). runs: folders, or what `run` returns. baseline: one
    of them, or a policy among them; None: the policy none."""
    folders = [one.folder if isinstance(one, RunResults) else one for one in runs]
    base = baseline.folder if isinstance(baseline, RunResults) else baseline
    return run("compare", compare={"runs": folders, "baseline": base}, **settings)


def label(rows: pl.DataFrame | Iterable[str], scorers: Iterable[str | Scorer] = ROLES, **more: Any) -> pl.DataFrame:
    """Label texts, or a table of triples (head, relation, tail) or sentences (statement): the rows with `masked` and
    for each scorer a label (-1 prejudice, 0 neutral, 1 favouritism, 2 other) and a strength (-1 to 1).

    scorers: names (`scorer`), or objects of make_scorer. more: further arguments of
    score.labeller.label_statements. Raises MitigateError as that does, and for an unknown scorer."""
    if not isinstance(rows, pl.DataFrame):
        rows = pl.DataFrame({"statement": [rows] if isinstance(rows, str) else list(rows)})
    named = [scorers] if isinstance(scorers, str) else scorers
    return label_statements(rows, [scorer(one) if isinstance(one, str) else one for one in named], **more)


def scorer(name: str, **settings: Any) -> Scorer:
    """Build a scorer by its name in conf/score: "sentiment" and "regard", or another such as "crowd2" or "keyword".
    settings: of the group score. Raises MitigateError for an unknown name."""
    no_others = {role: None for role in ROLES if role != name}  # whose networks need not be loaded
    scorers = Scorers(configured(_composed(list(_overrides({"score": settings | no_others})))).score)
    return scorers.labelling[0] if name in ROLES else scorers.named([name], "scorer")[0]


def policy(name: str, **settings: Any) -> Policy:
    """Build a policy by its name in conf/policy, such as "both_neutral"; settings: its own, such as control=True. Its
    method `filter` takes labelled triples and returns the ledger."""
    config = _composed([f"policy={name}", *_overrides({"policy": settings} if settings else {})])
    return Scorers(configured(config).score).policy(config.policy)


def _composed(overrides: Sequence[str]) -> DictConfig:
    before = GlobalHydra.instance().hydra  # of the command, where a recipe of a user's own calls this
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(config_dir=str(CONF), version_base=None, job_name="mitigate"):
            return compose("config", list(overrides))
    except Exception as error:
        raise _in_words(error) from error
    finally:
        GlobalHydra.instance().hydra = before


def _in_words(error: Exception) -> Exception:
    sentence = in_words(error)
    return error if sentence is None or isinstance(error, MitigateError) else MitigateError(sentence)


def _overrides(settings: Mapping[str, Any]) -> Iterator[str]:
    """Settings as arguments of the command line; those of a group may be a mapping."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and "." not in name:
            yield from (f"{name}.{key}={spelt(one)}" for key, one in value.items())
        else:
            yield f"{name}={spelt(value)}"


def read_triples(
    path: str | Path,
    columns: Columns | None = None,
    on_bad_line: OnBadLine = "error",
    relations: str | Path | None = None,
) -> pl.DataFrame:
    """Read the triples of a file (load.triples.load), columns TRIPLES: row, split, head, relation, tail, valid.

    columns: what the file calls head, relation and tail, such as {"head": "subject"}, or their places, from 1.
    relations: a file of relations of your own (read_relations). Raises MitigateError for a file that cannot be read or
    has no such columns, and, unless on_bad_line is "skip", for bad lines and relations without a phrase."""
    loaded = triples.load(str(path), on_bad_line, columns, relations)
    for sentence in loaded.notices:
        notice(sentence)
    return loaded.rows
