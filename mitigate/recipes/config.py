"""The configuration of a job, and what it names: data, targets, downloads, and how statements are labelled."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig, OmegaConf

from mitigate.cache import LabelStore
from mitigate.errors import MitigateError
from mitigate.load.settings import Data
from mitigate.load.targets import Wanted, targets_of_statements
from mitigate.recipes.instantiate import build
from mitigate.score.labeller import Labeller
from mitigate.settings import check
from mitigate.triples import ROLES, Scorer
from mitigate.words.relations import Relation
from mitigate.words.targets import (
    LISTED,
    NAMED,
    PAPER,
    TargetList,
    check_spelling,
    choose_targets,
    list_of,
    not_listed,
    notice_of_own,
)

DESCRIBED = {"data": ("attribution", "licence", "demonstration"), "model": ("base", "licence")}
WHERE = ("accelerator", "devices", "strategy")  # settings of a trainer that do not change what is trained


@dataclass(frozen=True)
class Config:
    """The configuration of a job: its groups as objects of their classes (mitigate.settings), and all of it as
    composed, whose other parts are read as its attributes too."""

    node: DictConfig
    groups: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.groups[name] if name in self.groups else getattr(self.node, name)

    def load_data(self) -> Any:
        """The data, as the loader of `data` returns it. Raises MitigateError for data that only another recipe
        reads."""
        if self.data.load is None:
            raise self._wrong_recipe("is a knowledge graph", "kge")
        loaded = build(self.data.load, "data.load")
        if loaded.kind == "stories":
            raise self._wrong_recipe("has stories", "stories")
        return loaded

    def _wrong_recipe(self, what: str, recipe: str) -> MitigateError:
        return MitigateError(
            f"data={self.data.name} {what}, and recipe={self.recipe.name} reads triples or statements; set "
            f"recipe={recipe}, or other data: data=sample, data=triples data.path=FILE or data=statements "
            "data.path=FILE"
        )

    def missing(self, groups: Iterable[str]) -> list[str]:
        """A line for each download of what is not at hand: what, from where and to where; of these groups, such as data
        and model, and of the scorers, those of the policy included where data is filtered."""
        nodes: dict[str, Any] = {f"{group} {self.node[group].name}": self.node[group] for group in groups}
        score, policy = self.score, self.node.policy
        scorers = [*(getattr(score, role) for role in ROLES), *score.extra]
        parts = [policy, policy.get("first"), policy.get("second")] if "data" in groups else []
        scorers += [name for part in parts if part for name in part.get("scorers", ())]
        nodes |= {f"scorer {name}": score.scorers[name] for name in scorers if name in score.scorers}
        return [
            f"{what} from {address}"
            for what, node in nodes.items()
            if node.get("missing")
            for address in build(node["missing"], f"missing of {what}")
        ]

    def probed_targets(self, setting: str = "probe.targets") -> Any:
        """The targets that a setting names; None without it. Raises MitigateError for one that seems misspelt."""
        group, _, name = setting.partition(".")
        wanted = getattr(getattr(self, group), name, None)
        if wanted is not None and not self.probe.new_targets:
            check_spelling(wanted)
        return wanted

    def named_targets(self) -> Wanted:
        """The targets that recipe.targets names, or where that is null a list or a file in probe.targets; else None."""
        own, probed = self.probed_targets("recipe.targets"), self.probed_targets()
        return own if own is not None or probed in LISTED else probed

    def target_list(self, statements: pl.DataFrame | None = None) -> tuple[TargetList, list[str]]:
        """The paper's targets, and further ones that the configuration names, or where it names none a file of
        statements; and a notice of further ones."""
        named = self.named_targets()
        if statements is None and named is None:
            return PAPER, []
        chosen = choose_targets(named or []) if statements is None else targets_of_statements(named, statements)
        return list_of(chosen), notice_of_own(chosen)

    def shown_targets(self, chosen: pl.DataFrame) -> list[str]:
        """The targets whose bars the page draws: those of recipe.shown, and own ones."""
        return [*self.recipe.shown, *not_listed(chosen)[:NAMED]]

    def described(self, groups: Sequence[str] = tuple(DESCRIBED)) -> dict[str, dict[str, Any]]:
        """The description of data and model for a page and a model's card; `source` is the data's attribution, or else
        its title."""
        found = {group: {name: getattr(getattr(self, group), name) for name in DESCRIBED[group]} for group in groups}
        return found | {"data": {**found["data"], "source": self.data.attribution or title_of(self.data)}}

    def label_cache(self) -> LabelStore:
        """The labels that all runs share."""
        return LabelStore(Path(self.paths.cache) / "labels")

    def labeller(
        self, scorers: Sequence[Scorer], target_list: TargetList, own_relations: Sequence[Relation] = ()
    ) -> Labeller:
        """The labelling of triples and sentences by these scorers: masked as measure.masking states, with cached
        labels."""
        return Labeller(scorers, self.measure.masking, target_list, own_relations, self.label_cache())

    def training(self) -> tuple[Any, dict[str, Any]]:
        """The settings of a training (train.comet.Settings), and its devices."""
        from mitigate.train.settings import Training

        trainer = asdict(self.trainer)
        where = {name: trainer.pop(name) for name in WHERE}
        return Training(**trainer | {"seed": self.seed}), where


def configured(node: DictConfig) -> Config:
    """A composed configuration with its groups built. Raises MitigateError for wrong settings."""
    return Config(node, check(plain(node)))


def plain(node: Any) -> Any:
    """A part of the configuration as plain lists and dicts; anything else as it is."""
    node = node.node if isinstance(node, Config) else node
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def title_of(data: Data) -> str:
    """The title of the resource that the group `data` names; for a file of a user's own its name."""
    return data.title or (Path(data.path).name if data.path else data.name)
