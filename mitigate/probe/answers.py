"""The best tails of a finished run for a head and a relation: those that its probe found, or new ones by its generator
with the settings of its probe, labelled by its own scorers.

A run folder may come from anybody: of the classes that its settings name, only those of the project and those that the
caller trusts are called."""

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import polars as pl

from mitigate import finished as runs
from mitigate.errors import MitigateError, one_of
from mitigate.finished import FinishedRun
from mitigate.policies import Choice, choice_of, renamed
from mitigate.settings import NOT_ARGUMENTS
from mitigate.train.base_model import kind_of
from mitigate.triples import PROBED as COLUMNS
from mitigate.triples import TEMPLATES, Labels, Scorer, called, label_columns, role_scorers
from mitigate.verbalise import MASK, Masking
from mitigate.words.relations import Relation, comet_relations, prompt_phrases, relations, spelt
from mitigate.words.targets import TargetList, as_targets, choose_targets, list_of
from models.tail_prompts import regimen

OWN_CLASSES = ("mitigate.score.", "mitigate.policies.")
ALLOWED = "Questions about its targets and probed relations need no generator: they are answered from its tables"
ONE_AT_A_TIME = threading.Lock()  # runs share scorers, which two threads would load twice
PROBED = ("validity.parquet", "statements.parquet")  # labelled tails of the probe; the first has more columns
TARGETS = "tables/targets.csv"
ANSWER = ("head", "relation", "rank", "tail", "score", "log_prob", "statement", "masked", "masked_neutral")
PLAUSIBLE = ("judged_valid", "plausibility")
WORDED = ("relation", "tail", "statement", "masked_neutral")


class Index:
    """Relations, targets and stored tails of a run, from its tables."""

    def __init__(self, run: FinishedRun) -> None:
        self.run = run

    @cached_property
    def probed(self) -> pl.DataFrame:
        """Tails of the probe with their labels. Raises MitigateError for a damaged table."""
        name = next((name for name in PROBED if name in self.run.files), PROBED[-1])
        table = self.run.table(name, ["target", "tail", "rank", *WORDED])
        table = table.with_columns(pl.col("rank").cast(COLUMNS["rank"]))  # runs of earlier code have a smaller type
        # Before targets were asked about in events, the target itself was the head, and no column said so.
        return table if "head" in table.columns else table.with_columns(head="target")

    @cached_property
    def targets(self) -> pl.DataFrame:
        """The targets of the run (columns words.targets.TARGETS). Raises MitigateError for a damaged table."""
        if TARGETS not in self.run.files:
            return as_targets(self.probed["target"].unique(maintain_order=True).to_list())
        if fault := self.run.fault(TARGETS):
            raise MitigateError(f"{fault}.")
        return choose_targets(self.run.folder / TARGETS)

    @cached_property
    def target_list(self) -> TargetList:
        """The paper's targets and the run's own, which masking replaces."""
        return list_of(self.targets)

    @cached_property
    def further(self) -> list[Relation]:
        """The relations that it was probed or trained with, without those of COMeT's 34 in their usual wording."""
        tables = [self.probed.select("head", *WORDED)]
        if self.run.setting("data.relations") is not None or self.run.setting("probe.relations") is not None:
            tables.append(self.run.table("score.parquet", ["head", *WORDED]).select("head", *WORDED))
        plain = {relation.name: relation for relation in comet_relations()} if self.has_comet_relations else {}
        return [found for found in _worded(pl.concat(tables)) if plain.get(found.name) != found]

    @property
    def has_comet_relations(self) -> bool:
        """Return whether it was trained with prompts for COMeT's 34 relations."""
        return self.run.setting("data.asked_relations") != "data"

    @property
    def relations(self) -> list[str]:
        """The names of the relations that it can be asked about."""
        comets = [relation.name for relation in comet_relations()] if self.has_comet_relations else []
        names = [*comets, *(relation.name for relation in self.further)]
        return list(dict.fromkeys(names))

    @property
    def scorers(self) -> dict[str, str]:
        """The configured scorers of the roles, by their names in tables."""
        return role_scorers(self.run.setting("score") or {})

    def columns(self, scorers: Iterable[str]) -> list[str]:
        """The columns of an answer with the labels of these scorers."""
        labels = [c for name in scorers for template in TEMPLATES for c in label_columns(name, template)]
        plausible = PLAUSIBLE if self.run.setting("score.plausibility") is not None else ()
        return [*ANSWER, *labels, *plausible]

    def head(self, given: str) -> str:
        """Return a head as in prompts: the target that it is a form of, else in lower case with single blanks. Raises
        MitigateError for an empty one."""
        if not given.strip():
            some = ", ".join(self.targets["target"][:3])
            raise MitigateError(f"the head is empty; give a word or a few, such as one of the run's targets: {some}")
        return self.target_list.named(given)

    def relation(self, given: str) -> str:
        """Find the relation of that name, or with that unique beginning. Raises MitigateError for another."""
        return find_relation(given, self.relations)

    def stored(self, head: str, relation: str) -> pl.DataFrame | None:
        """Tails of the probe for a prompt; None for a prompt that it did not have, or if its table lacks a column."""
        wanted = self.columns(self.scorers)
        if any(column not in self.probed.columns for column in wanted):
            return None
        found = self.probed.filter(pl.col("head") == head, pl.col("relation") == relation)
        return None if found.is_empty() else found.select(wanted).sort("rank")


def find_relation(given: str, relations: Iterable[str]) -> str:
    """Find the relation of that name, without regard to case, blanks and underscores, or with that unique beginning.
    Raises MitigateError that names the relations that may be meant."""
    names = {spelt(name): name for name in relations}
    if (wanted := spelt(given)) in names:
        return names[wanted]
    begun = [name for key, name in names.items() if key.startswith(wanted)] if wanted else []
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise MitigateError(f"ambiguous relation {given!r}: {', '.join(begun)}; write more of the name")
    raise one_of("relation", given, names.values())


def _worded(rows: pl.DataFrame) -> list[Relation]:
    """Read the relations of statements with their phrases. A relation of the project's in its usual wording is the
    project's own object."""
    head, tail = pl.col("head"), pl.col("tail")
    masked = pl.col("masked_neutral")
    start = pl.when(masked.str.starts_with(head)).then(head).when(masked.str.starts_with(MASK)).then(pl.lit(MASK))
    found = (
        rows.filter(tail != "")
        .with_columns(start=start)
        .with_columns(
            phrase=_between(pl.col("statement"), head, tail),
            neutral=pl.when(masked.str.ends_with(tail)).then(_between(masked, pl.col("start"), tail)),
        )
        .group_by("relation", maintain_order=True)
        .agg(pl.col("phrase").first(), pl.col("neutral").drop_nulls().first())
    )
    ours = relations()
    return [
        ours[name]
        if name in ours and ours[name].phrase == phrase and neutral in (None, ours[name].neutral_phrase)
        else Relation(name, phrase, neutral or phrase)
        for name, phrase, neutral in found.iter_rows()
    ]


def _between(text: pl.Expr, start: pl.Expr, end: pl.Expr) -> pl.Expr:
    length = text.str.len_chars().cast(pl.Int64) - start.str.len_chars() - end.str.len_chars() - 2
    return text.str.slice(start.str.len_chars() + 1, length.clip(lower_bound=0))


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

    def tails(self, head: str, relation: str) -> pl.DataFrame:
        """The best tails, the best first, a row each. Raises MitigateError as AnsweringRun.tails."""
        head, name = self.index.head(head), self.index.relation(relation)
        stored = self.index.stored(head, name) if self.given is None else None
        return self.generated_of([(head, name)]) if stored is None else stored

    def generated_of(self, prompts: Sequence[tuple[str, str]]) -> pl.DataFrame:
        """Generate the tails of several heads and relations, searched and labelled together, grouped by relation; of
        several threads, one at a time."""
        self._check()  # at once, and not after seconds of loading
        with ONE_AT_A_TIME:
            from mitigate.score.labels import NOTHING_CACHED
            from mitigate.score.plausibility import with_plausibility

            model, wordings = self._generator
            found = self._labelled(self._search(model, prompts, wordings))
            if self._plausibility is not None:
                found = with_plausibility(found, self._plausibility, NOTHING_CACHED)
        names = self.index.scorers if self.given is None else [scorer.name for scorer in self.given]
        return found.select(self.index.columns(names))

    def _check(self) -> None:
        """Raise MitigateError where there is no generator, or a scorer of a class that is not trusted."""
        if not self.run.below("model"):
            raise MitigateError(f"{self.run.folder} has no generator: it was not trained (train=false). {ALLOWED}.")
        if fault := self.run.fault("model/"):
            raise MitigateError(f"{fault}. {ALLOWED}.")
        nodes = self.run.setting("score.scorers") or {}
        for name in self.index.scorers.values() if self.given is None else ():
            self._class_of(f"score.scorers.{name}", nodes.get(name))

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
