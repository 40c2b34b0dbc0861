"""recipe=kge: bias in knowledge-graph embeddings. load > train > rank > measure > report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.finished import FinishedRun, read_runs
from mitigate.load.graph import Graph, TrainedEmbeddings, read_embeddings, restrict
from mitigate.load.settings import Graph as GraphData
from mitigate.package_data import frame_of
from mitigate.probe.comet import find_devices
from mitigate.recipes import reporting
from mitigate.recipes.job import Config, Job, build, folder_name, may_record_texts, perform, say, say_notes
from mitigate.report import kge as page
from mitigate.report.page import write
from mitigate.stages import Result, digest_of_values, in_folder
from mitigate.tasks.kge.figures import measure_bias, profession_table
from mitigate.tasks.kge.mitigation import CHANGES, VARIANTS, RelationalBias, change_vectors, changed_name
from mitigate.tasks.kge.predictions import (
    Pair,
    choose_pairs,
    compare_pairs,
    measure_leakage,
    parity_figures,
    predict_professions,
)
from mitigate.tasks.kge.question import AND, SETTINGS, Question, Triples, find_question, triples_of
from mitigate.tasks.kge.training import (
    change_scores,
    check_interaction,
    keep_embeddings,
    rank_test_triples,
    train_embeddings,
)
from mitigate.train.kge import Settings
from mitigate.train.settings import Embedding, Foreign
from models.kge import KINDS, DotProduct, Embeddings

SHAPE = ("kind", "dimension", "deviation")
FOREIGN = "foreign"  # the name of the model that is not trained here
FROM_ELSEWHERE = (
    "The embeddings are those of {origin}, scored as {kind}. They are not trained here: there is one training."
)
PROFESSIONS = "professions.parquet"
STEP = 0.01  # along the gradient in equation 1, as in Fisher et al. 2020
PENALTY = 1.0  # weight of kge.mitigations=regularise


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
    step: float  # how far embeddings of people are moved
    device: str
    mitigations: Sequence[str]
    penalty: RelationalBias
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


def run(config: Config) -> float | None:
    """Train, measure and report; returns the metric that `optimized_metric` names."""
    plan = make_plan(config)
    say_notes(plan.notices)
    question = plan.question
    (a, b), sizes = question.names, question.sizes
    say(f"  {a} ({sizes[0]:,} people) and {b} ({sizes[1]:,}); {question.professions.height:,} professions")
    found = perform(
        config,
        folder_name("kge", config.data.name, config.model.name, config.kge.sensitive.rsplit("/", 1)[-1]),
        [plan.source, plan.foreign] if plan.foreign else plan.source,
        partial(pipeline, plan=plan),
        partial(record, plan=plan),
        uploads=["plots", "professions" if may_record_texts(config) else "no texts"],
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def make_plan(config: Config) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    if not isinstance(config.data, GraphData):
        raise MitigateError(
            f"recipe=kge reads knowledge graphs, and data={config.data.name} is not one; set data=fb15k237, codex_m "
            "or wd50k, or data=graph data.path=FILE.tsv"
        )
    if not isinstance(config.model, Embedding | Foreign):
        raise MitigateError(
            f"recipe=kge trains embeddings, and model={config.model.name} is a generator; set model=transe, complex, "
            "transe_l2, distmult, complex_n3, rotate or foreign"
        )
    is_foreign = config.model.name == FOREIGN
    shape, training = ({}, Settings(seed=config.seed)) if is_foreign else _model(config)
    kge, data, model = config.kge, config.data.name, config.model.name
    mitigations = _mitigations(config)
    runs = read_runs(map(Path, kge.runs), "kge", "kge.runs", [PROFESSIONS])
    graph: Graph = build(config.data.graph, "data.graph")
    foreign = (
        read_embeddings(config.model.path, config.model.kind, KINDS) if isinstance(config.model, Foreign) else None
    )
    graph = restrict(graph, set(foreign.entities), set(foreign.relations)) if foreign else graph
    sensitive = _sensitive(config, graph)
    question = find_question(graph, sensitive, kge.values, config.data.occupation, kge.fewest, kge.fewest_of_each)
    triples = triples_of(graph)
    if foreign:
        check_interaction(foreign, graph, triples)
    foreign_notices = [FROM_ELSEWHERE.format(origin=foreign.origin, kind=foreign.kind)] if foreign else []
    source = digest_of_values(triples, graph.entities, graph.relations, graph.entity_names, graph.relation_names)
    return Plan(
        triples=triples,
        graph=graph,
        foreign=foreign,
        question=question,
        pairs=choose_pairs(graph, triples, question, kge.people),
        shape=shape,
        settings=training,
        num_seeds=1 if foreign else kge.seeds,
        step=STEP,
        device=find_devices(config.probe.device, 1)[0].partition(":")[0],
        mitigations=mitigations,
        penalty=RelationalBias(question.attributes, question.occupation, question.entities, PENALTY),
        others=_others(config, runs, source),
        source=source,
        about={"data": data, "model": model, "seed": config.seed, "fingerprint": source},
        page={
            "model": model,
            "data": data,
            "names": question.names,
            "values": question.values,
            "sensitive": kge.sensitive,
            "fewest": kge.fewest,
            "notices": [*question.notices, *foreign_notices],
        },
        provenance=reporting.source_of(vars(config.data)),
        demonstration=config.data.demonstration,
        notices=[*graph.notices, *question.notices, *foreign_notices],
    )


def _mitigations(config: Config) -> list[str]:
    """The mitigations in the order in which they are done. Raises MitigateError for unknown ones, and for those that
    the model does not allow."""
    named = [str(name) for name in config.kge.mitigations]
    if unknown := [name for name in named if name not in VARIANTS]:
        raise one_of("kge.mitigations", unknown[0], VARIANTS)
    found = [name for name in VARIANTS if name in named]
    if config.model.name == FOREIGN and "regularise" in found:
        raise MitigateError(
            "kge.mitigations=regularise trains again, and model=foreign is not trained here; leave it out"
        )
    if "regularise" in found and not issubclass(KINDS[config.model.kind].interaction, DotProduct):
        raise MitigateError(
            f"kge.mitigations=regularise is for dot products, and model={config.model.name} is a distance; leave it out"
        )
    return found


def _sensitive(config: Config, graph: Graph) -> list[str]:
    """The relations that kge.sensitive names. Raises MitigateError for one that the graph does not have."""
    attributes = config.data.attributes
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


def _model(config: Config) -> tuple[dict[str, Any], Settings]:
    """The model's kind and size, and its training. Raises MitigateError for values that are not allowed."""
    shape = {name: getattr(config.model, name) for name in SHAPE}
    settings = replace(config.model.training, seed=config.seed, checkpoint_every=config.kge.checkpoint_every)
    try:
        Embeddings(shape["kind"], 1, 1, shape["dimension"], shape["deviation"])
    except ValueError as error:
        raise MitigateError(f"model={config.model.name}: {error}") from error
    return shape, settings


def _others(config: Config, runs: Sequence[FinishedRun], source: str) -> dict[str, pl.DataFrame]:
    """The professions of the runs that kge.runs names, by model and folder. Raises MitigateError for runs with another
    question, or on other triples: each graph of one's own has the name "graph"."""
    runs = list({run.folder: run for run in runs}.values())
    for run in runs:
        same = {f"kge.{name}": getattr(config.kge, name) for name in SETTINGS}
        for name, mine in {"data.name": config.data.name, "data.occupation": config.data.occupation, **same}.items():
            if mine != (theirs := run.setting(name, 0)):  # 0: kge.fewest_of_each is seldom given
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


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    question, seed = plan.question, plan.settings.seed
    names = [f"seed_{seed}" for seed in plan.seeds]
    trained = [
        train(job, plan, seed, f"train_{seed}", name)
        if plan.foreign is None
        else import_embeddings(job, plan, plan.foreign, name)
        for seed, name in zip(plan.seeds, names, strict=True)
    ]
    base = measure(job, plan, names, trained)
    pairs = job.stage("pairs", compare_pairs, question, plan.pairs, names, seed, after=trained, using=in_folder())
    mitigated = {}
    for name in plan.mitigations:
        changed, after = mitigate(job, plan, name, names, trained)
        variant = VARIANTS[name]
        mitigated[variant] = measure(job, plan, changed, after, f"_{variant}")
    job.stage("professions", profession_table, question, base["changes"])
    job.measure(
        measure_bias,
        question,
        base["rank"],
        base["changes"],
        pairs,
        base["parity"],
        base["leakage"],
        plan.others,
        {f"{variant}/{name}": found[name] for variant, found in mitigated.items() for name in found},
        facts=plan.about,
    )
    report(job, plan)


def train(job: Job, plan: Plan, seed: int, stage: str, name: str, penalty: RelationalBias | None = None) -> Result:
    """A training, whose embeddings are left in embeddings/{name}/."""
    return job.stage(
        stage,
        train_embeddings,
        plan.triples,
        plan.shape,
        plan.trained_by(seed),
        name,
        penalty,
        using=job.training(stage, accelerator=plan.device),
    )


def import_embeddings(job: Job, plan: Plan, foreign: TrainedEmbeddings, name: str) -> Result:
    """Embeddings that another program trained, left in embeddings/{name}/."""
    return job.stage("import", keep_embeddings, foreign, plan.graph, name, using=in_folder())


def measure(job: Job, plan: Plan, names: Sequence[str], trained: Sequence[Result], end: str = "") -> dict[str, Result]:
    """The measures before or after a mitigation, of models in embeddings/."""
    question, seed = plan.question, plan.settings.seed
    places: dict[str, Any] = {"after": trained, "using": in_folder()}
    found = {
        "rank": job.stage(f"rank{end}", rank_test_triples, plan.triples, names, **places),
        "changes": job.stage(f"changes{end}", change_scores, question, names, plan.step, **places),
    }
    predictions = job.stage(f"predictions{end}", predict_professions, plan.triples, question, names, **places)
    found["parity"] = job.stage(f"parity{end}", parity_figures, predictions, question, seed)
    found["leakage"] = job.stage(f"leakage{end}", measure_leakage, plan.triples, question, names, seed, **places)
    return found


def mitigate(
    job: Job, plan: Plan, mitigation: str, names: Sequence[str], trained: Sequence[Result]
) -> tuple[list[str], list[Result]]:
    """The models after a mitigation, by name, and the stages that made them."""
    changed = [changed_name(mitigation, name) for name in names]
    if mitigation not in CHANGES:
        return changed, [
            train(job, plan, seed, of, of, plan.penalty) for seed, of in zip(plan.seeds, changed, strict=True)
        ]
    values = (mitigation, plan.question, names, plan.settings.seed)
    places: dict[str, Any] = {"using": in_folder()}
    return changed, [job.stage(VARIANTS[mitigation], change_vectors, *values, after=trained, **places)]


def report(job: Job, plan: Plan) -> None:
    """Write kge.html, its tables and plots, from the stages so far."""
    done = job.results
    job.stage(
        "report",
        write_report,
        done["results"],
        done["professions"],
        {name: done[stage] for name, stage in (("ranks", "rank"), ("pairs", "pairs"))},
        list(plan.others),
        **plan.page,
        demonstration=plan.demonstration,
        after=[job.folder.name],
        using=lambda work: {
            "folder": work.folder,
            "about": reporting.about(job, {"data": plan.provenance, "data fingerprint": plan.source}),
        },
    )


def record(job: Job, plan: Plan) -> None:
    """Record the figures in W&B, and print the state and the professions, or with verbose=true all figures."""
    metrics, professions = job.figures, job.results["professions"].table()
    reporting.record_metrics(job, metrics)
    if job.records_texts:
        job.tracking.table("professions", professions)
    reporting.record_plots(job)
    reporting.say_verdict(job.results["report"].facts()["verdict"], "")
    say("\n" + page.console(metrics.table, professions, plan.question.names, brief=job.brief))
    say(f"  report      {job.folder / 'kge.html'}")


def write_report(
    figures: pl.DataFrame,
    professions: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    others: Sequence[str],
    *,
    data: str,
    model: str,
    values: pl.DataFrame,
    folder: Path,
    about: Mapping[str, Any],
    **what: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures. values: (value, people), the last row of people without one; what:
    further arguments of the page. Returns the state with its hedge."""
    published = frame_of("kge_published.csv").filter(data=data, model=model)
    tables = {**tables, "values": values, "professions": professions}
    made = page.page(figures, professions, others, published=published, tables=tables, **what, **about)
    write(made, folder, "kge.html")
    return {"verdict": f"{made.state}. {made.hedge}"}
