"""The best tails of a finished run for a head and a relation: those that its probe found, or new ones by its generator
with the settings of its probe, labelled by its own scorers.

A run folder may come from anybody: of the classes and addresses that its settings name, only the project's scorers and
what the caller trusts are used."""

from collections.abc import Collection, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.finished import FinishedRun
from mitigate.models.tail_prompts import read_prompt_format
from mitigate.score.base import identified
from mitigate.score.labeller import Labeller
from mitigate.score.labels import NOTHING_CACHED
from mitigate.settings import NOT_ARGUMENTS
from mitigate.train.base_model import class_of
from mitigate.triples import TEMPLATES, label_columns, role_scorers
from mitigate.words.relations import comet_relations, name_key, prompt_phrases, relations
from mitigate.words.targets import TargetList, choose_targets, list_of

SCORERS = "mitigate.score."  # the package of the scorers that need no permission
ALLOWED = "Questions about its targets and probed relations need no generator: they are answered from its tables"
TABLES = ("validity.parquet", "statements.parquet")  # labelled tails of the probe; the first has more columns
TARGETS = "tables/targets.csv"
ANSWER = ("head", "relation", "rank", "tail", "score", "log_prob", "statement", "masked", "masked_neutral")
PLAUSIBLE = ("judged_valid", "plausibility")
LIMITS = {"beams": 10, "top": 10, "max_length": 15}  # of a run whose settings lack them


class Answers:
    """Tails of a run for heads and relations. Models are loaded when a question needs them, and stay loaded.

    trusted: dotted names of classes besides the project's, and addresses of endpoints, that the run may name."""

    def __init__(self, run: FinishedRun, trusted: Collection[str] = ()) -> None:
        self.run, self.trusted = run, trusted

    def tails(self, head: str, relation: str) -> pl.DataFrame:
        """Return the best tails for a head and a relation, the best first (columns ANSWER, each scorer's labels under
        both templates, and PLAUSIBLE; score is the log-probability per token).

        Tails of a target and a relation that the run was probed with are read. Others are generated and labelled now,
        with the run's settings. head: in any case, or a form of an own target. relation: in any case, with or without
        blanks and underscores.

        Raises MitigateError for an unknown relation, a missing generator, and a scorer of a foreign class."""
        head, names = self.target_list.named(head), {name_key(name): name for name in self.relations}
        if (name := names.get(name_key(relation))) is None:
            raise one_of("relation", relation, names.values())
        tails = self.probed.filter(pl.col("head") == head, pl.col("relation") == name)
        return self.generated(head, name) if tails.is_empty() else tails.select(self.columns).sort("rank")

    @cached_property
    def probed(self) -> pl.DataFrame:
        """Tails of the probe with their labels. Raises MitigateError for a damaged table."""
        return self.run.table(next(name for name in TABLES if name in self.run.files), self.columns)

    @cached_property
    def target_list(self) -> TargetList:
        """The paper's targets and the run's own, which masking replaces."""
        if fault := self.run.fault(TARGETS):
            raise MitigateError(f"{fault}.")
        return list_of(choose_targets(self.run.folder / TARGETS))

    @property
    def relations(self) -> list[str]:
        """The names of the relations that it can be asked about: those of its prompts."""
        has_comets = self.run.setting("data.asked_relations") != "data"
        names = [relation.name for relation in comet_relations()] if has_comets else []
        return list(dict.fromkeys([*names, *self.probed["relation"]]))

    @property
    def scorers(self) -> dict[str, str]:
        """The configured scorers of the roles, by their names in tables."""
        return role_scorers(self.run.setting("score") or {})

    @property
    def columns(self) -> list[str]:
        """The columns of an answer."""
        labels = [column for name in self.scorers for template in TEMPLATES for column in label_columns(name, template)]
        return [*ANSWER, *labels, *(PLAUSIBLE if self.run.setting("score.plausibility") is not None else ())]

    def generated(self, head: str, relation: str) -> pl.DataFrame:
        """Generate the tails of a head and a relation, and label them."""
        from mitigate.probe.beams import probe_generator  # loads PyTorch
        from mitigate.score.plausibility import with_plausibility

        policy = self.run.setting("policy") or {}
        if "candidates" in {**policy, **policy.get("second", {})}:
            raise MitigateError(f"{self.run.policy} chooses among generated tails. {ALLOWED}.")
        model, wordings = self._generator
        search = {name: self.run.setting(f"probe.{name}", default) for name, default in LIMITS.items()}
        prompt = pl.DataFrame({"target": [head], "category": pl.Series([None], dtype=pl.String)})
        tails = probe_generator(model, prompt, {relation: wordings[relation]}, **search)
        tails = self._labeller.label(tails.drop("target", "category"))
        if (node := self.run.setting("score.plausibility")) is not None:
            tails = with_plausibility(tails, self._build("score.plausibility", node), NOTHING_CACHED)
        return tails.select(self.columns)

    @cached_property
    def _generator(self) -> tuple[Any, dict[str, str]]:
        """The model, and the text in its prompts for each relation. Raises MitigateError where there is none."""
        folder, known = self.run.folder / "model", relations()
        if not self.run.below("model"):
            raise MitigateError(f"{self.run.folder} has no generator: it was not trained (train=false). {ALLOWED}.")
        if self.run.setting("data.relations") is not None:
            raise MitigateError(f"{self.run.folder} has relations in a file of your own. {ALLOWED}.")
        if fault := self.run.fault("model/"):
            raise MitigateError(f"{fault}. {ALLOWED}.")
        try:
            model: Any = class_of(folder).load(folder)
            wording = read_prompt_format(folder).relation
        except (ValueError, OSError, KeyError) as error:
            raise MitigateError(f"the generator in {folder} cannot be loaded ({error}). {ALLOWED}.") from error
        if self.run.setting("probe.precision") == "bf16":
            model = model.bfloat16()
        return model, prompt_phrases(wording, [known[name] for name in self.relations if name in known], comet=False)

    @cached_property
    def _labeller(self) -> Any:
        """The scorers that label."""
        made = []
        for name, configured in self.scorers.items():
            node = (self.run.setting("score.scorers") or {}).get(configured)
            scorer = self._build(f"score.scorers.{configured}", node)
            made.append(identified(scorer, name, {}, type(scorer)))
        return Labeller(made, self.run.setting("measure.masking", "token"), self.target_list)

    def _build(self, setting: str, node: Any) -> Any:
        """Build the object that a run's settings name by a class and its arguments. Raises MitigateError for a class
        that is neither the project's nor trusted, an address that is not trusted, and what cannot be built."""
        target = node.get("_target_") if isinstance(node, Mapping) else None
        if not isinstance(target, str) or not (target.startswith(SCORERS) or target in self.trusted):
            raise MitigateError(
                f"{setting} of {self.run.folder} names {target}, a class outside the project, which is not run without "
                f"permission. Give the configuration of the run again: --config-dir=DIR score=NAME. {ALLOWED}."
            )
        if (url := node.get("url")) is not None and url not in self.trusted:
            raise MitigateError(
                f"{setting} of {self.run.folder} sends texts and a key to {url}, which needs permission: name the "
                f"address in your configuration too, score.judge.url={url}. {ALLOWED}."
            )
        module, _, name = target.rpartition(".")
        arguments = {key: value for key, value in node.items() if key not in ("_target_", *NOT_ARGUMENTS)}
        try:
            code = getattr(import_module(module), name)
            if not isinstance(code, type) or not f"{code.__module__}.".startswith(f"{module}."):
                raise TypeError("it is not a class of that module")
            return code(**arguments)
        except (ImportError, AttributeError, TypeError, ValueError, OSError) as error:
            raise MitigateError(f"{setting}: {target} cannot be used ({error}). {ALLOWED}.") from error
