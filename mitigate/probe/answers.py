"""The best tails of a finished run for a head and a relation: those that its probe found, or new ones by its generator
with the settings of its probe, labelled by its own scorers.

A run folder may come from anybody: of the classes that its settings name, only those of the project and those that the
caller trusts are called."""

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import polars as pl

from mitigate import finished as runs
from mitigate.errors import MitigateError
from mitigate.finished import FinishedRun
from mitigate.policies import Choice, choice_of, renamed
from mitigate.probe.run_index import Index
from mitigate.settings import NOT_ARGUMENTS
from mitigate.train.base_model import kind_of
from mitigate.triples import Labels, Scorer, called
from mitigate.verbalise import Masking
from mitigate.words.relations import prompt_phrases
from mitigate.words.targets import as_targets
from models.tail_prompts import regimen

OWN_CLASSES = ("mitigate.score.", "mitigate.policies.")
ALLOWED = "Questions about its targets and probed relations need no generator: they are answered from its tables"
SMALL = 200_000_000  # bytes of a model that one thread searches with as fast as several
LOADING = threading.Lock()  # runs share scorers, which two threads would load twice
WHOLE_MACHINE = threading.Lock()


class Answers:
    """Tails of a run for heads and relations. Models are loaded when a question needs them, and stay loaded.

    scorers: those that label; None: the run's own, whose labels of its targets are read and not computed. trusted:
    dotted names of classes besides the project's that its settings may name."""

    def __init__(
        self,
        run: FinishedRun,
        scorers: Sequence[Scorer] | None = None,
        trusted: Collection[str] = (),
    ) -> None:
        self.run = run
        self.index = Index(run)
        self.given = scorers
        self.trusted = trusted
        self._is_loaded = False

    def tails(self, head: str, relation: str) -> pl.DataFrame:
        """The best tails, the best first, a row each. Raises MitigateError as AnsweringRun.tails."""
        head, name = self.index.head(head), self.index.relation(relation)
        stored = self.index.stored(head, name) if self.given is None else None
        return self.generated_of([(head, name)]) if stored is None else stored

    def generated_of(self, prompts: Sequence[tuple[str, str]]) -> pl.DataFrame:
        """Generate the tails of several heads and relations, searched and labelled together, grouped by relation;
        several threads may do so at once. The first time, scorers are loaded during the search."""
        with nullcontext() if self._is_loaded else LOADING:
            if not self._is_loaded:
                self._check()  # at once, and not after seconds of loading
            found = self._generated(prompts)
            self._is_loaded = True
        return found

    def _generated(self, prompts: Sequence[tuple[str, str]]) -> pl.DataFrame:

        with self._few_threads():
            with ThreadPoolExecutor(max_workers=2) as pool:
                scorers = pool.submit(self._load_scorers, pool)
                model, wordings = self._generator
                probed = self._search(model, prompts, wordings)
                scorers.result()
            from mitigate.score.labels import NOTHING_CACHED
            from mitigate.score.plausibility import with_plausibility

            found = self._labelled(probed)
            if self._plausibility is not None:
                found = with_plausibility(found, self._plausibility, NOTHING_CACHED)
        names = self.index.scorers if self.given is None else [scorer.name for scorer in self.given]
        return found.select(self.index.columns(names))

    @contextmanager
    def _few_threads(self) -> Iterator[None]:
        """Context with one thread for each small model: a question is a few rows, which take longer to distribute over
        threads than to compute, and scorers are loaded at the same time. A large model has all threads for itself."""
        import torch

        import models.comet  # noqa: F401  also before there are threads

        with nullcontext() if self._is_small else WHOLE_MACHINE:
            before = torch.get_num_threads()
            torch.set_num_threads(1 if self._is_small else before)
            try:
                yield
            finally:
                torch.set_num_threads(before)

    @cached_property
    def _is_small(self) -> bool:
        return sum((self.run.folder / name).stat().st_size for name in self.run.below("model")) < SMALL

    def _check(self) -> None:
        """Raise MitigateError where there is no generator, or a scorer of a class that is not trusted."""
        if not self.run.below("model"):
            raise MitigateError(f"{self.run.folder} has no generator: it was not trained (train=false). {ALLOWED}.")
        if fault := self.run.fault("model/"):
            raise MitigateError(f"{fault}. {ALLOWED}.")
        nodes = self.run.setting("score.scorers") or {}
        for name in self.index.scorers.values() if self.given is None else ():
            self._class_of(f"score.scorers.{name}", nodes.get(name))

    def _load_scorers(self, pool: ThreadPoolExecutor) -> None:
        """Load all scorers."""
        plausibility = pool.submit(lambda: self._plausibility)
        _ = self._scorers
        plausibility.result()

    def _search(self, model: Any, prompts: Sequence[tuple[str, str]], wordings: Mapping[str, str]) -> pl.DataFrame:
        from mitigate.probe.generator import EVENTS, probe_generator

        top, beams = self._setting("probe.top", 10), self._setting("probe.beams", 10)
        if self._choice is not None:
            top = beams = self._choice.candidates
        how: dict[str, Any] = {"beams": beams, "top": top, "max_length": self._setting("probe.max_length", 15)}
        named = {relation: wordings[relation] for _, relation in prompts}
        heads = pl.DataFrame([("", relation, head) for head, relation in prompts], schema=EVENTS, orient="row")
        found = probe_generator(model, as_targets([""]), named, heads=heads.unique(maintain_order=True), **how)
        if self._choice is None or self._choice.needs != "contrast":
            return found
        from mitigate.probe.candidates import with_contrast

        return with_contrast(found, model, wordings)

    def _labelled(self, probed: pl.DataFrame) -> pl.DataFrame:
        from mitigate.score.labeller import label_statements

        masking = cast(Masking, self.run.setting("measure.masking", "token"))
        found = label_statements(
            probed.drop("target", "category"),
            self._scorers,
            masking=masking,
            target_list=self.index.target_list,
            own_relations=self.index.further,
        )
        if self._choice is None:
            return found
        candidates = found.with_columns(target="head", category=pl.lit(None, pl.String))
        if self._choice.needs == "validity":
            from mitigate.score.validity import with_people_valid

            critic = self._build("score.critic", self.run.setting("score.critic"))
            candidates = with_people_valid(candidates, critic, self.index.target_list)
        ranked = self._choice.choose(candidates, self._setting("probe.top", 10))
        places = ranked.select("relation", head="target", rank="beam_rank", _rank="rank")
        return places.join(found, on=["head", "relation", "rank"], maintain_order="left").with_columns(rank="_rank")

    @cached_property
    def _generator(self) -> tuple[Any, dict[str, str]]:
        """The model, and the text in its prompts for each relation."""
        folder = self.run.folder / "model"
        try:
            model: Any = kind_of(folder).load(folder)
            wording = regimen(folder).relation
        except (ValueError, OSError, KeyError) as error:
            raise MitigateError(f"the generator in {folder} cannot be loaded ({error}). {ALLOWED}.") from error
        if self.run.setting("probe.precision") == "bf16":
            model = model.bfloat16()
        return model, prompt_phrases(wording, self.index.further, comet=self.index.has_comet_relations)

    @cached_property
    def _choice(self) -> Choice | None:
        """The policy's part that chooses among generated tails."""
        policy = self.run.setting("policy") or {}
        node = {**policy, **policy.get("second", {})}
        if "candidates" not in node:
            return None
        given = {name: value for name, value in node.items() if name not in ("first", "second")}
        if "action" in node:  # of version 0.2, where a decoding was named in place of a class
            if (decoding := node.get("decoding", "none")) == "none":
                return None
            given = {name: node[name] for name in ("name", "scorers", "template", "candidates")}
            given["_target_"] = f"mitigate.policies.{decoding.capitalize()}"
        return choice_of(renamed(self._build("policy", given), called(self.run.setting("score") or {})))

    @cached_property
    def _scorers(self) -> list[Scorer]:
        """The scorers that label, and further ones that the policy chooses by."""
        roles = self.index.scorers
        found = list(self.given) if self.given is not None else [self._scorer(*role) for role in roles.items()]
        named = [scorer.name for scorer in found]
        chosen_by = [] if self._choice is None else [name for name in self._choice.reads if name not in named]
        return [*found, *(self._scorer(name, roles.get(name, name)) for name in chosen_by)]

    @cached_property
    def _plausibility(self) -> Scorer | None:
        node = self.run.setting("score.plausibility")
        return None if node is None else self._build("score.plausibility", node)

    def _scorer(self, name: str, configured: str) -> Scorer:
        node = (self.run.setting("score.scorers") or {}).get(configured)
        return _Called(name, self._build(f"score.scorers.{configured}", node))

    def _build(self, setting: str, node: Any) -> Any:
        """Build the object that a run's settings name by a class and its arguments. Raises MitigateError as _class_of,
        and for a class that cannot be built."""
        target = self._class_of(setting, node)
        arguments = {key: value for key, value in node.items() if key not in ("_target_", *NOT_ARGUMENTS)}
        try:
            return _built(target, json.dumps(arguments, sort_keys=True))
        except (ImportError, AttributeError, TypeError, ValueError, OSError) as error:
            raise MitigateError(f"{setting}: {target} cannot be used ({error}). {ALLOWED}.") from error

    def _class_of(self, setting: str, node: Any) -> str:
        """Return the class that a setting names. Raises MitigateError if it is neither the project's nor trusted."""
        target = node.get("_target_") if isinstance(node, Mapping) else None
        if isinstance(target, str) and (target.startswith(OWN_CLASSES) or target in self.trusted):
            return target
        raise MitigateError(
            f"{setting} of {self.run.folder} names {target}, a class outside the project, which is not run without "
            "permission. Give the configuration of the run again: --config-dir=DIR score=NAME (in Python: tails(..., "
            f"scorers=[...])). {ALLOWED}."
        )

    def _setting(self, name: str, default: int) -> int:
        value = self.run.setting(name, default)
        if not isinstance(value, int):
            raise MitigateError(f"{self.run.folder / 'config.yaml'} has {name}={value!r}, which is not a whole number")
        return value


class AnsweringRun(FinishedRun):
    """A finished run of the main job that answers `tails`."""

    def tails(self, head: str, relation: str, *, scorers: Sequence[Scorer] | None = None) -> pl.DataFrame:
        """Return the best tails for a head and a relation, the best first, with the run's labels and plausibility:
        head, relation, rank, tail, score (log-probability per token), log_prob, statement, masked, masked_neutral, the
        columns of each scorer's labels under both templates, judged_valid and plausibility.

        Tails of a target and a relation that the run was probed with are read. Others are generated now with the
        settings of its probe, and labelled as it labelled; models stay loaded. head: in any case, or a form of an own
        target. relation: a name, or its unique beginning. scorers: those that label, in place of the run's.

        Raises MitigateError for an empty head, an unknown relation, a run of another recipe than the main job, a
        generator that is needed and was not kept, and a scorer of a class that is not the project's."""
        return (self._answers if scorers is None else Answers(self, scorers)).tails(head, relation)

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self)


def open_run(folder: str | Path, recipe: str | None = None, needs: Sequence[str] = ()) -> AnsweringRun:
    """Open the finished run in a folder. Raises MitigateError for a folder that is not a run's, of another recipe than
    `recipe`, not finished, or with a damaged file among config.yaml, metrics.json and `needs`."""
    run = runs.open_run(folder, recipe, needs)
    return AnsweringRun(run.folder, run.recipe, run.config, run.metrics, run.manifest)


@dataclass(frozen=True)
class _Called:
    """A scorer (the Protocol `Scorer`) with the name of its columns. Its fingerprint is empty, since that of some
    scorers takes longer to compute than the labels, and caches nothing."""

    name: str
    scorer: Callable[[Sequence[str]], Labels]
    fingerprint: str = ""

    def __call__(self, texts: Sequence[str]) -> Labels:
        return self.scorer(texts)


@cache
def _built(target: str, arguments: str) -> Any:
    """Build the object of a class and its arguments, given as JSON: one for all runs that name it."""
    module, _, name = target.rpartition(".")
    found = getattr(import_module(module), name)
    if not isinstance(found, type) or not f"{found.__module__}.".startswith(f"{module}."):
        raise TypeError("it is not a class of that module")
    return found(**json.loads(arguments))


def shared_relations(runs: Sequence[Answers]) -> list[str]:
    """The relations that all the runs can be asked about, in the order of the first."""
    first, *others = (run.index.relations for run in runs)
    return [name for name in first if all(name in names for names in others)]


def all_targets(runs: Sequence[Answers]) -> list[str]:
    """The targets of all runs, each once."""
    return list(dict.fromkeys(target for run in runs for target in run.index.targets["target"]))
