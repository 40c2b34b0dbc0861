"""The plan of recipe=kge: all that is read and checked before its first stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import torch
from omegaconf import DictConfig, OmegaConf

from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.load.graph.graph import Graph
from mitigate.load.graph.trained_embeddings import TrainedEmbeddings, read_embeddings, restrict
from mitigate.recipes.job import build, plain
from mitigate.recipes.reporting import source_of, title_of
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.finished import FinishedRun, read_runs
from mitigate.tasks.kge.graphs import Triples, triples_of
from mitigate.tasks.kge.mitigation import CONTROL, MITIGATIONS, RelationalBias
from mitigate.tasks.kge.predictions import Pair, choose_pairs
from mitigate.tasks.kge.question import AND, SETTINGS, Question, find_question
from mitigate.tasks.kge.training import check_interaction
from mitigate.train.kge import Settings
from models.kge.embeddings import KINDS, Embeddings
from models.kge.interaction import DotProduct

SHAPE = ("kind", "dimension", "deviation")
FOREIGN = "foreign"  # the name of the model that is not trained here
NO_NULL = (
    "The embeddings are those of {origin}, scored as {kind}. They are not trained here, so that there is one training "
    "and no permuted graph."
)
PROFESSIONS = "professions.parquet"
SAME = ("data.name", *(f"kge.{name}" for name in SETTINGS))  # in compared runs


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    triples: Triples
    question: Question
    pairs: Sequence[Pair]
    graph: Graph
    foreign: TrainedEmbeddings | None  # embeddings that another program trained; None: they are trained here
    shape: dict[str, Any]  # empty with foreign embeddings
    settings: Settings  # of the first seed
    num_seeds: int  # 1 with foreign embeddings
    permuted: int  # trainings on graphs with permuted attributes; 0 with foreign embeddings
    step: float  # how far embeddings of people are moved
    device: str
    mitigations: Sequence[str]  # the control last
    penalty: RelationalBias
    filter_weight: float
    others: Mapping[str, pl.DataFrame]  # tables of professions of other models' runs
    source: str  # the hash of the graph and its names
    about: dict[str, Any]  # data, model, seed and fingerprint, as metrics.json begins
    page: dict[str, Any]  # data and question, for the page
    provenance: str  # of the data
    demonstration: bool
    notices: list[str]

    @property
    def seeds(self) -> list[int]:
        """The seeds of the trainings."""
        return [self.settings.seed + place for place in range(self.num_seeds)]

    def trained_by(self, seed: int) -> Settings:
        """The settings of a training."""
        return replace(self.settings, seed=seed)


def make_plan(config: DictConfig) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    if "graph" not in config.data:
        raise MitigateError(
            f"recipe=kge reads knowledge graphs, and data={config.data.name} is not one; set data=fb15k237, codex_m "
            "or wd50k, or data=graph data.path=FILE.tsv"
        )
    if "kind" not in config.model:
        raise MitigateError(
            f"recipe=kge trains embeddings, and model={config.model.name} is a generator; set model=transe, complex, "
            "transe_l2, distmult, complex_n3, rotate or foreign"
        )
    is_foreign = config.model.name == FOREIGN
    shape, training = ({}, Settings(seed=config.seed)) if is_foreign else _model(config)
    kge, data, model = config.kge, config.data.name, config.model.name
    mitigations = _mitigations(config)
    if kge.device == "cuda" and not torch.cuda.is_available():
        raise MitigateError("kge.device=cuda: PyTorch finds no GPU on this machine; set kge.device=cpu or auto")
    runs = read_runs(map(Path, kge.runs), "kge", "kge.runs", [PROFESSIONS])
    graph: Graph = build(config.data.graph)
    foreign = read_embeddings(config.model.path, config.model.kind, KINDS) if is_foreign else None
    graph = restrict(graph, set(foreign.entities), set(foreign.relations)) if foreign else graph
    sensitive = _sensitive(config, graph)
    question = find_question(graph, sensitive, list(kge["values"]), kge.occupation, kge.fewest, kge.fewest_of_each)
    triples = triples_of(graph)
    if foreign:
        check_interaction(foreign, graph, triples)
    foreign_notices = [NO_NULL.format(origin=foreign.origin, kind=foreign.kind)] if foreign else []
    source = digest_of_values(triples, graph.entities, graph.relations, graph.entity_names, graph.relation_names)
    return Plan(
        triples=triples,
        graph=graph,
        foreign=foreign,
        question=question,
        pairs=choose_pairs(graph, triples, question, list(kge.people)),
        shape=shape,
        settings=training,
        num_seeds=1 if foreign else kge.seeds,
        permuted=0 if foreign else kge.permuted,
        step=kge.step,
        device=kge.device,
        mitigations=mitigations,
        penalty=RelationalBias(question.attributes, question.occupation, question.entities, kge.bias_weight),
        filter_weight=kge.filter_weight,
        others=_others(config, runs, source),
        source=source,
        about={"data": data, "model": model, "seed": config.seed, "fingerprint": source},
        page={
            "title": title_of(config.data),
            "model": model,
            "data": data,
            "names": question.names,
            "values": question.values,
            "sensitive": kge.sensitive,
            "fewest": kge.fewest,
            "left_out": [*question.notices, *foreign_notices],
            "top": kge.top,
        },
        provenance=source_of(config.data),
        demonstration=config.data.demonstration,
        notices=[*graph.notices, *question.notices, *foreign_notices],
    )


def _mitigations(config: DictConfig) -> list[str]:
    """The mitigations in the order in which they are done. Raises MitigateError for unknown ones, and for those that
    the model does not allow."""
    named = [str(name) for name in config.kge.mitigations]
    if unknown := [name for name in named if name not in MITIGATIONS]:
        raise one_of("kge.mitigations", unknown[0], MITIGATIONS)
    found = [name for name in MITIGATIONS if name in named]
    again = [name for name in found if MITIGATIONS[name].change is None]
    if config.model.name == FOREIGN and again:
        raise MitigateError(
            f"kge.mitigations={again[0]} trains again, and model=foreign is not trained here; leave it out"
        )
    if "regularise" in found and not issubclass(KINDS[config.model.kind].interaction, DotProduct):
        raise MitigateError(
            f"kge.mitigations=regularise is for dot products, and model={config.model.name} is a distance; leave it out"
        )
    if found == [*again, CONTROL]:
        raise MitigateError(
            f"kge.mitigations={CONTROL} moves vectors as far as project or adversarial do; add one of these"
        )
    return found


def _sensitive(config: DictConfig, graph: Graph) -> list[str]:
    """The relations that kge.sensitive names. Raises MitigateError for one that the graph does not have."""
    attributes = plain(config.data.attributes)
    found = []
    for name in config.kge.sensitive.split(AND):
        try:
            found.append(attributes.get(name, name))
            graph.relations_called(found[-1])
        except MitigateError as error:
            named = f"data={config.data.name} has a name for {', '.join(attributes)}; " if attributes else ""
            raise MitigateError(
                f"kge.sensitive={config.kge.sensitive}: the graph has no relation {name!r}; {named}every relation of "
                f"the graph is allowed, by name or id, and several joined by {AND!r}"
                f"{did_you_mean(name, [*attributes, *graph.relation_names])}"
            ) from error
    return found


def _model(config: DictConfig) -> tuple[dict[str, Any], Settings]:
    """The model's kind and size, and its training. Raises MitigateError for values that are not allowed."""
    shape = {name: config.model[name] for name in SHAPE}
    settings = Settings(**plain(config.model.training), seed=config.seed, checkpoint_every=config.kge.checkpoint_every)
    try:
        network = Embeddings(shape["kind"], 1, 1, shape["dimension"], shape["deviation"])
        if settings.relation_weight:
            network.between(torch.tensor([0]), torch.tensor([0]))
    except ValueError as error:
        raise MitigateError(f"model={config.model.name}: {error}") from error
    return shape, settings


def _others(config: DictConfig, runs: Sequence[FinishedRun], source: str) -> dict[str, pl.DataFrame]:
    """The professions of the runs that kge.runs names, by model and folder. Raises MitigateError for runs with another
    question, or on other triples: each graph of one's own has the name "graph"."""
    runs = list({run.folder: run for run in runs}.values())
    for run in runs:
        for name in SAME:
            mine, theirs = plain(OmegaConf.select(config, name)), run.setting(name)
            if mine != theirs:
                raise MitigateError(
                    f"kge.runs: {run.folder} has {name}={theirs}, this run {mine}; choose runs with the same settings"
                )
        if run.metrics["fingerprint"] != source:
            raise MitigateError(f"kge.runs: {run.folder} was trained on other triples; choose runs on the same graph")
    short = [f"{run.setting('model.name')} ({run.folder.name[-8:]})" for run in runs]
    whole = [f"{run.setting('model.name')} ({run.folder})" for run in runs]  # where folders of one name are compared
    names = [long if short.count(name) > 1 else name for name, long in zip(short, whole, strict=True)]
    tables = [run.table(PROFESSIONS, ["profession", "change"]) for run in runs]
    return dict(zip(names, tables, strict=True))
