"""recipe=kge: which professions embeddings of a knowledge graph tie to a sensitive attribute of people, in which
direction, and how sure that is. load > train > measure > mitigate > report.

Equation 1 of "Measuring social bias in knowledge graph embeddings" (Fisher et al. 2020): a person's vector takes a step
that makes one value of the attribute likelier than another, and professions are scored again. It is computed by
automatic differentiation, for any interaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from mitigate.errors import MitigateError, counted, one_of
from mitigate.files import frame_of, replacing_folder
from mitigate.finished import source_of
from mitigate.load.graph import SPLITS, Graph
from mitigate.load.graph import build as build_graph
from mitigate.load.stream import path_of
from mitigate.load.table import not_read, open_lines
from mitigate.measure import kge as measuring
from mitigate.measure.base import AT_RANDOM, PERTURBED, PROJECTED, REGULARISED, measures
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.kge import agreement, by_model
from mitigate.measure.results import measured
from mitigate.models.kge import KINDS, DotProduct, Embeddings, filtered_ranks
from mitigate.probe.beams import find_device
from mitigate.recipes.config import Config, build
from mitigate.recipes.job import open_job, say, say_notes, say_verdict
from mitigate.recipes.settings import Graph as GraphData
from mitigate.report import plots, sections
from mitigate.report.page import OPEN, Fold, Number, Page, Picture, Section, write
from mitigate.report.sections import crossed, figure, shown, title_of
from mitigate.report.table import Column, Table, as_text, figures, number, text
from mitigate.stages import Result, digest_of_values, in_folder
from mitigate.train.kge import Penalty, Settings, fit
from mitigate.train.settings import Embedding, Foreign

OTHERS = "all others"
STEP = 0.01  # along the gradient of equation 1, the paper's learning rate (footnote 5)
HITS = (1, 3, 10)
PERMUTATIONS = 200
MITIGATIONS = {"regularise": (REGULARISED, AT_RANDOM), "project": (PROJECTED, PERTURBED)}
"""The variants that kge.mitigations names, each with its random control."""


def run(config: Config) -> float | None:
    """Train, measure and report; returns the metric that `optimized_metric` names."""
    data, model, kge = config.data, config.model, config.kge
    if not isinstance(data, GraphData):
        raise MitigateError(
            f"recipe=kge reads knowledge graphs, and data={data.name} is not one; set data=fb15k237, codex_m or "
            "wd50k, or data=graph data.path=FILE.tsv"
        )
    if not isinstance(model, Embedding | Foreign):
        raise MitigateError(
            f"recipe=kge trains embeddings, and model={model.name} is a generator; set model={', '.join(KINDS)} or "
            "foreign"
        )
    if unknown := [name for name in kge.mitigations if name not in MITIGATIONS]:
        raise one_of("kge.mitigations", unknown[0], MITIGATIONS)
    if model.kind not in KINDS:
        raise one_of("model.kind", model.kind, KINDS)
    is_trained = isinstance(model, Embedding)
    if "regularise" in kge.mitigations and not (is_trained and issubclass(KINDS[model.kind], DotProduct)):
        raise MitigateError(
            f"kge.mitigations=regularise trains dot products again, and model={model.name} is "
            f"{'a distance' if is_trained else 'trained elsewhere'}; leave it out"
        )
    graph: Graph = build(data.graph, "data.graph")
    foreign, shape = tuple[Any, ...](), tuple[Any, ...]()
    settings, seeds = Settings(seed=config.seed), [config.seed]
    origin = []
    if isinstance(model, Embedding):
        shape = (model.kind, model.dimension, model.deviation)
        settings = replace(model.training, checkpoint_every=kge.checkpoint_every)
        seeds = [config.seed + place for place in range(kge.seeds)]
        try:
            Embeddings(shape[0], 1, 1, *shape[1:])
        except ValueError as error:
            raise MitigateError(f"model={model.name}: {error}") from error
    else:
        graph, *vectors = with_vectors(graph, model.path)
        check_interaction(graph, model.kind, *vectors)
        foreign = (model.kind, *vectors)
        origin = [f"The embeddings are those of {model.path}, scored as {model.kind}: one training, made elsewhere."]
    question = find_question(graph, data.attributes, kge.sensitive, kge.values, data.occupation, kge.fewest)
    device = find_device(config.probe.device)
    source = digest_of_values(graph)
    say_notes([*graph.notices, *question.notices, *origin])
    (a, b), of_a, of_b = question.names, len(question.group_a), len(question.group_b)
    say(f"  {a} ({of_a:,} people) and {b} ({of_b:,}); {question.professions.height:,} professions")

    names = [f"seed_{seed}" for seed in seeds]

    def train(before: str = "", penalty: Penalty | None = None) -> list[Result]:
        made = []
        for seed, name in zip(seeds, names, strict=True):
            stage = f"{before}train_{seed}"
            using = job.training(stage, device=device)
            given = (graph, shape, replace(settings, seed=seed), f"{before}{name}", penalty)
            made.append(job.stage(stage, train_embeddings, *given, using=using))
        return made

    def measure(after: Sequence[Result], before: str = "") -> Result:
        given = (graph, question, [f"{before}{name}" for name in names], config.seed)
        return job.stage(f"{before}trainings", measure_trainings, *given, after=after, using=in_folder())

    folder = "-".join(["kge", data.name, model.name, kge.sensitive.rsplit("/", 1)[-1]])
    with open_job(config, folder, [source, *foreign]) as job:
        imported = (*foreign, names[0])
        trained = train() if is_trained else [job.stage("import", keep_embeddings, *imported, using=in_folder())]
        trainings = measure(trained)
        changes = job.stage("changes", change_scores, question, names, after=trained, using=in_folder())
        mitigated = {}
        for name in [name for name in MITIGATIONS if name in kge.mitigations]:
            for variant, is_control in zip(MITIGATIONS[name], (False, True), strict=True):
                if name == "regularise":
                    changed = train(f"{variant}_", penalty_of(question, len(graph.entities), config.seed, is_control))
                else:
                    given = (question, names, variant, config.seed, is_control)
                    changed = [job.stage(variant, project, *given, after=trained, using=in_folder())]
                mitigated[variant] = measure(changed, f"{variant}_")
        professions = job.stage("professions", profession_table, question, changes)
        facts = {"data": data.name, "model": model.name, "seed": config.seed, "fingerprint": source}
        job.measure(measure_bias, question, changes, trainings, mitigated, facts=facts)
        provenance = {"data": source_of(vars(data)), "data fingerprint": source}
        report = job.stage(
            "report",
            write_report,
            *(job.results["results"], professions, trainings),
            **{"data": data.name, "model": model.name, "names": question.names, "sensitive": kge.sensitive},
            fewest=kge.fewest,
            notices=[*question.notices, *origin],
            demonstration=data.demonstration,
            after=[job.folder.name],
            using=lambda work: {"folder": work.folder, "about": job.about(provenance)},
        )
        if job.is_new():
            job.record_metrics(job.figures)
            if job.records_texts:
                job.tracking.table("professions", professions.table())
            job.record_plots()
            say_verdict(report.facts()["verdict"])
            size = 5 if job.brief else 20
            tables: list[Table | None] = [profession_list(ends(professions.table(), size), question.names, "")]
            tables += [] if job.brief else [effects(job.figures.table)]
            say("\n" + "\n\n".join(as_text(one, 110) for one in tables if one))
            say(f"  report      {job.folder / 'kge.html'}")
    return None if config.dry_run else job.results["metrics"].facts().get(config.optimized_metric)


# The question to a graph: two values of an attribute, and the professions whose scores are watched.


@dataclass(frozen=True, eq=False)
class Question:
    """Value a and value b of an attribute of people, and professions, as numbers of the graph's entities and relations.
    Ids with one name are one value, or one profession. Counts are of people in all splits."""

    relation: int  # of people to values
    a: np.ndarray  # entities that are value a
    b: np.ndarray
    names: tuple[str, str]  # of both values
    occupation: int  # the relation of people to professions
    professions: pl.DataFrame  # profession, people (of value a or b), of_a, of_b, log_ratio: a row a name
    entities: np.ndarray  # of professions, (e,): several may have one name
    places: np.ndarray  # (e,) the row of each among professions
    people: np.ndarray  # all people with the attribute or a profession
    group_a: np.ndarray  # people with value a and without value b
    group_b: np.ndarray
    num_both: int  # people with both values, who are in neither group
    num_unknown: int  # people with a profession and without any value

    @property
    def notices(self) -> list[str]:
        """Notices about people with both values, and about those without any."""
        of_both = (
            f"People with both {self.names[0]} and {self.names[1]}: {self.num_both:,}. They count in both columns of "
            "counts, and are left out of predictions."
        )
        of_unknown = (
            f"People with a profession and without a value in the graph: {self.num_unknown:,}. They are left out."
        )
        return [of_both] * (self.num_both > 0) + [of_unknown] * (self.num_unknown > 0)


def find_question(
    graph: Graph,
    attributes: Mapping[str, str],
    sensitive: str,
    values: Sequence[str],
    occupation: str | None,
    fewest: int,
) -> Question:
    """Find the question of settings in a graph. A profession needs `fewest` people of value a or b; people without a
    known value do not count. attributes: names for relations; values: of a single one, b is all others.

    Raises MitigateError for a relation or a value that the graph does not have, equal values, too many of them, a
    relation from values to people, groups without people, and fewer than three professions with enough people."""
    if not occupation:
        raise MitigateError("data.occupation is not set; set it to the relation from people to professions")
    job = find_relation(graph, occupation, "data.occupation", attributes)
    relation = find_relation(graph, sensitive, "kge.sensitive", attributes)
    of_job, of_attribute = (graph.triples[graph.triples[:, 1] == one] for one in (job, relation))
    if not np.isin(of_attribute[:, 0], of_job[:, 0]).any() or relation == job:
        raise MitigateError(
            f"kge.sensitive={sensitive}: none of its heads has a profession by data.occupation={occupation}; it must "
            "be another relation, from people to values"
        )
    if len(values) not in (1, 2):
        raise MitigateError(f"kge.values=[{','.join(values)}] must name one value or two of kge.sensitive={sensitive}")
    a, *second = (find_value(graph, of_attribute, value, sensitive) for value in values)
    b = second[0] if second else np.setdiff1d(of_attribute[:, 2], a)
    if not len(b) or np.isin(a, b).any():
        raise MitigateError(f"kge.values=[{','.join(values)}] must name two different values of {sensitive}")
    with_a, with_b = (np.unique(of_attribute[np.isin(of_attribute[:, 2], ends), 0]) for ends in (a, b))
    group_a, group_b = np.setdiff1d(with_a, with_b), np.setdiff1d(with_b, with_a)
    if not len(group_a) or not len(group_b):
        raise MitigateError(
            f"kge.values=[{','.join(values)}]: everybody with one of these values has the other too; compare others"
        )
    jobs = pl.DataFrame({"person": of_job[:, 0], "entity": of_job[:, 2]}).with_columns(
        profession=pl.Series([graph.entity_names[one] for one in of_job[:, 2]]),
        of_a=pl.col("person").is_in(with_a.tolist()),
        of_b=pl.col("person").is_in(with_b.tolist()),
    )
    holders = jobs.with_columns(people=pl.col("of_a") | pl.col("of_b")).unique(["person", "profession"])
    counts = holders.group_by("profession").agg(pl.col("people", "of_a", "of_b").sum().cast(pl.Int64))
    professions = counts.filter(pl.col("people") >= fewest).sort("profession")
    if professions.height < 3:
        raise MitigateError(
            f"professions with {fewest} or more people of the two values (kge.fewest): {professions.height}; at least "
            "3 are needed. Lower kge.fewest"
        )
    ratio = measuring.log_count_ratio(*professions.select("of_a", "of_b").to_numpy().T)
    rows = professions.select("profession").with_row_index("place").join(jobs, on="profession")
    rows = rows.select("entity", "place").unique().sort("entity")
    return Question(
        *(relation, a, b, (values[0], values[1] if second else OTHERS), job),
        professions=professions.with_columns(log_ratio=ratio),
        entities=rows["entity"].to_numpy(writable=True),
        places=rows["place"].to_numpy().astype(np.int64),
        people=np.union1d(of_attribute[:, 0], of_job[:, 0]),
        group_a=group_a,
        group_b=group_b,
        num_both=len(np.intersect1d(with_a, with_b)),
        num_unknown=len(np.setdiff1d(of_job[:, 0], of_attribute[:, 0])),
    )


def find_relation(graph: Graph, name: str, setting: str, attributes: Mapping[str, str]) -> int:
    """The relation of a name of the data's attributes, or of a name or an id of the graph."""
    numbers = graph.numbers_of(attributes.get(name, name), "relation", setting)
    if len(numbers) > 1:
        ids = ", ".join(graph.relations[one] for one in numbers)
        raise MitigateError(f"{setting}={name}: {len(numbers)} relations have this name; give one of their ids: {ids}")
    return int(numbers[0])


def find_value(graph: Graph, of_attribute: np.ndarray, name: str, sensitive: str) -> np.ndarray:
    """The entities with this name that people have as the attribute, by its triples (n, 3)."""
    tails, counts = np.unique(of_attribute[:, 2], return_counts=True)
    entities = np.intersect1d(graph.numbers_of(name, "entity", "kge.values"), tails)
    if not len(entities):
        common = ", ".join(graph.entity_names[tail] for tail in tails[np.argsort(-counts, kind="stable")][:8])
        raise MitigateError(
            f"kge.values: no person in the graph has {name!r} as {sensitive}; the most frequent values: {common}"
        )
    return entities


# Trainings, and embeddings that another program trained.


def train_embeddings(
    graph: Graph,
    shape: tuple[str, int, float],
    settings: Settings,
    name: str,
    penalty: Penalty | None = None,
    *,
    folder: Path,
    **how: Any,
) -> dict[str, Any]:
    """Train one model, and write it to embeddings/{name}/ of the folder; returns the facts of train.kge.fit.

    shape: kind, dimension and deviation; how: fingerprint, log and device, as fit takes them. Checkpoints are left in
    checkpoints/{name}/, for a killed training to resume."""
    torch.manual_seed(settings.seed)
    kind, dimension, deviation = shape
    network = Embeddings(kind, len(graph.entities), len(graph.relations), dimension, deviation)
    given = (graph.train, graph.valid, graph.triples, settings, folder / "checkpoints" / name)
    fitted = fit(network, *given, penalty=penalty, **how)
    with replacing_folder(folder / "embeddings" / name) as part:
        network.cpu().save(part)
    return {"seed": settings.seed, **fitted._asdict()}


def network_of(kind: str, entities: np.ndarray, relations: np.ndarray) -> Embeddings:
    """Vectors of entities and relations, in the order of a graph, scored by an interaction."""
    network = Embeddings(kind, len(entities), len(relations), entities.shape[1])
    network.load_state_dict({"entities": torch.from_numpy(entities), "relations": torch.from_numpy(relations)})
    return network.eval()


def keep_embeddings(
    kind: str, entities: np.ndarray, relations: np.ndarray, name: str, *, folder: Path
) -> dict[str, Any]:
    """Write embeddings from elsewhere to embeddings/{name}/ of the folder, like those of a training."""
    network = network_of(kind, entities, relations)
    with replacing_folder(folder / "embeddings" / name) as part:
        network.save(part)
    return dict(network.facts)


def with_vectors(graph: Graph, path: str | None) -> tuple[Graph, np.ndarray, np.ndarray]:
    """The triples of a graph for which a folder has vectors, and the vectors of its entities (n, dimension) and
    relations (m, dimension), float32, in its order.

    The folder has entities.npy and relations.npy, a row a vector, and entities.txt and relations.txt, an id a line.
    Raises MitigateError for damaged files, ids that repeat, two dimensions, and vectors of under half of the test
    triples."""
    place = path_of(path, "foreign", "FOLDER, with entities.npy, relations.npy, entities.txt, relations.txt", "model")
    (entities, of_entities), (relations, of_relations) = (_vectors(place, part) for part in ("entities", "relations"))
    if of_entities.shape[1] != of_relations.shape[1]:
        raise MitigateError(
            f"{place}: vectors of entities have {of_entities.shape[1]} numbers, and those of relations "
            f"{of_relations.shape[1]}; give both the same dimension (of complex vectors all real parts come first)"
        )
    kept = {}
    for split in SPLITS:
        ids = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in getattr(graph, split).tolist()]
        kept[split] = [(h, r, t) for h, r, t in ids if h in entities and r in relations and t in entities]
    if 2 * len(kept["test"]) < len(graph.test) or not all(kept.values()):
        raise MitigateError(
            f"model.path has vectors for {len(kept['test']):,} of {len(graph.test):,} test triples: its ids differ "
            f"from the graph's, such as the entity {graph.entities[0]!r} and the relation {graph.relations[0]!r}"
        )
    if lost := len(graph.triples) - sum(map(len, kept.values())):
        notice = f"{counted(lost, 'triple')} left out: model.path has no vector for an entity or the relation"
        of_entity = dict(zip(graph.entities, graph.entity_names, strict=True))
        of_relation = dict(zip(graph.relations, graph.relation_names, strict=True))
        graph = build_graph(kept, of_entity, of_relation, [*graph.notices, notice])
    rows = ([entities[name] for name in graph.entities], [relations[name] for name in graph.relations])
    return graph, of_entities[rows[0]], of_relations[rows[1]]


def _vectors(folder: Path, part: str) -> tuple[dict[str, int], np.ndarray]:
    """The row of each id, and the vectors of entities or of relations."""
    path = folder / f"{part}.npy"
    try:
        array = np.load(path, allow_pickle=False)  # a pickle can run code
    except (OSError, ValueError, EOFError) as error:
        raise not_read(path, error, f"cannot be read ({error})") from error
    ids = open_lines(folder / f"{part}.txt").read()[0]["statement"].to_list()
    if array.ndim != 2 or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise MitigateError(f"{path}: {array.dtype} of shape {array.shape}; expected finite floats (n, dimension)")
    if not len(array) == len(ids) == len(set(ids)):
        raise MitigateError(f"{path}: {len(array):,} vectors, {len(set(ids)):,} different ids; give one for each")
    return {id_: row for row, id_ in enumerate(ids)}, array.astype(np.float32)


def check_interaction(graph: Graph, kind: str, entities: np.ndarray, relations: np.ndarray) -> None:
    """Raise MitigateError if another interaction ranks 300 test triples clearly better than the given one, or if the
    given one ranks them hardly better than chance: a bias of wrong scores means nothing."""
    test = torch.from_numpy(graph.test[np.random.default_rng(0).permutation(len(graph.test))[:300]])
    reached = {}
    for one in KINDS:
        try:
            network = network_of(one, entities, relations)
            ranks = filtered_ranks(network, test, torch.from_numpy(graph.triples), len(graph.entities))
            reached[one] = float(torch.cat(ranks).reciprocal().mean())
        except (ValueError, FloatingPointError):  # an odd dimension, scores that overflow
            reached[one] = 0.0
    best = max(reached, key=lambda one: reached[one])
    chance = float(np.mean(1 / np.arange(1, len(graph.entities) + 1)))
    least = max(3 * chance, 0.02)
    facts = f"On {len(test)} test triples the mean reciprocal rank is {reached[kind]:.3f} with model.kind={kind}"
    if reached[best] > max(1.2 * reached[kind], least):
        raise MitigateError(f"{facts}, and {reached[best]:.3f} with {best}; set model.kind={best}")
    if reached[kind] < least:
        raise MitigateError(
            f"{facts}, too close to chance ({chance:.4f}): the vectors do not fit data's triples by this interaction. "
            f"Check ids and their order, and model.kind, one of {', '.join(KINDS)}"
        )


# Equation 1, and what models predict.


def change_scores(question: Question, models: Sequence[str], *, folder: Path) -> pl.DataFrame:
    """Equation 1 for each model: model, profession, and the change of its score, mean over people."""
    frames = []
    for name in models:
        changes = pl.Series(changes_of(Embeddings.load(folder / "embeddings" / name), question))
        frames.append(question.professions.select(pl.lit(name).alias("model"), "profession", change=changes))
    return pl.concat(frames)


def changes_of(network: Embeddings, question: Question) -> np.ndarray:
    """Move each person by STEP along the gradient of m = g(person, attribute, a) - g(person, attribute, b), and average
    the changes of each profession's score over people and over entities of one name, (professions,) float64.

    Computed in float64: the changes are much smaller than the scores."""
    tails = network.interaction.score_tails
    entities, relations = network.entities.detach().double(), network.relations.detach().double()
    total = torch.zeros(len(question.entities), dtype=torch.float64)
    for numbers in np.array_split(question.people, -(-len(question.people) // 512)):
        people = entities[numbers].requires_grad_()
        attribute, occupation = (relations[one].expand_as(people) for one in (question.relation, question.occupation))
        a, b = (tails(people, attribute, entities[values]).mean(1) for values in (question.a, question.b))
        (gradient,) = torch.autograd.grad((a - b).sum(), people)  # a person's part of the sum is its own m
        with torch.no_grad():
            moved = people + STEP * gradient
            before, after = (tails(one, occupation, entities[question.entities]) for one in (people, moved))
            total += (after - before).sum(0)
    counts = np.bincount(question.places)
    return np.bincount(question.places, (total / len(question.people)).numpy()) / counts


def measure_trainings(
    graph: Graph, question: Question, models: Sequence[str], seed: int, *, folder: Path
) -> pl.DataFrame:
    """A row for each model: model, mrr and hits at 1, 3 and 10 (0 to 1) of filtered ranks of test triples,
    rank_correlation and parity.

    Each person is predicted the profession with the highest score, that of the best entity of its name, among those
    that no training triple gives the person."""
    every, test = torch.from_numpy(graph.triples), torch.from_numpy(graph.test)
    people = np.concatenate([question.group_a, question.group_b])
    is_a = np.arange(len(people)) < len(question.group_a)
    ratios, size, scale = question.professions["log_ratio"].to_numpy(), question.professions.height, len(graph.entities)
    heads, _, tails = graph.train[graph.train[:, 1] == question.occupation].T
    has = np.isin(people[:, None] * scale + question.entities, heads * scale + tails)  # (people, entities)
    is_learnt = has @ np.eye(size, dtype=bool)[question.places]  # (people, professions)
    rows = []
    for name in models:
        network = Embeddings.load(folder / "embeddings" / name)
        ranks = torch.cat(filtered_ranks(network, test, every, len(graph.entities))).numpy()
        row: dict[str, Any] = {"model": name, "mrr": float(np.mean(1 / ranks))}
        row |= {f"hits_{k}": float(np.mean(ranks <= k)) for k in HITS}
        row["rank_correlation"] = agreement(np.stack([changes_of(network, question), ratios]))
        with torch.inference_mode():
            vectors = network.entities[people]
            occupation = network.relations[question.occupation].expand_as(vectors)
            scores = network.interaction.score_tails(vectors, occupation, network.entities[question.entities])
            places = torch.from_numpy(question.places).expand_as(scores)
            best = torch.full((len(people), size), -torch.inf).scatter_reduce(1, places, scores, "amax").numpy()
        predicted = np.where(is_learnt, -np.inf, best).argmax(1)
        row["parity"] = measuring.parity_distance(predicted, is_a, size)
        row["parity_by_chance"] = measuring.distance_by_chance(predicted, is_a, size, PERMUTATIONS, seed)
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.exclude("model").cast(pl.Float64))


# Mitigations, each with its random control.


@dataclass(frozen=True, eq=False)
class RelationalBias:
    """The penalty of Fair-KGNN (Chuang et al. 2022, Mitigating Relational Bias on Knowledge Graphs) for a dot product:
    how much more value a scores with professions than value b by the path over the attribute and the occupation, over
    the distance between both values, each through a logistic function, as the authors' code has it for DistMult.

    There the sum is over triples of a batch; here each profession counts once. Its weight is 1."""

    relation: int
    a: np.ndarray
    b: np.ndarray
    occupation: int
    professions: np.ndarray  # entities

    def __call__(self, network: Embeddings) -> Tensor:
        interaction, device = network.interaction, network.entities.device

        def vectors_of(entities: np.ndarray, relation: int) -> tuple[Tensor, Tensor]:
            vectors = network.entity_vectors(torch.from_numpy(entities).to(device))
            return vectors, interaction.transform_tails(network.relations[relation].expand_as(vectors), vectors)

        (a, from_a), (b, from_b) = (vectors_of(ends, self.relation) for ends in (self.a, self.b))
        distance = (a.mean(0) - b.mean(0)).square().sum().clamp_min(1e-12).sqrt()
        paths = vectors_of(self.professions, self.occupation)[1] @ (from_a.mean(0) - from_b.mean(0))
        return paths.sum().abs().sigmoid() / distance.sigmoid()


def penalty_of(question: Question, num_entities: int, seed: int, is_control: bool) -> RelationalBias:
    """The penalty of a training; of the control as many entities drawn at random stand for both values."""
    a, b = question.a, question.b
    if is_control:
        drawn = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(num_entities), [*a, *b]))
        a, b = drawn[: len(a)], drawn[len(a) : len(a) + len(b)]
    return RelationalBias(question.relation, a, b, question.occupation, question.entities)


def project(
    question: Question, names: Sequence[str], variant: str, seed: int, is_control: bool, *, folder: Path
) -> dict[str, Any]:
    """Write each model as {variant}_{name}, without the attribute's direction in the vectors of people and professions.
    The control moves each vector as far, in a direction drawn at random.

    Returns the mean squared distance by which people moved, in percent of their squared length."""
    shares = []
    for place, name in enumerate(names):
        network = Embeddings.load(folder / "embeddings" / name)
        before = network.entities.detach().clone()
        after = before.clone()
        for chosen, direction in zip((question.people, question.entities), directions(network, question), strict=True):
            after[chosen] -= (after[chosen] @ direction)[:, None] * direction
        if is_control:
            far = (after - before).norm(dim=1)
            drawn = torch.randn(before.shape, generator=torch.Generator().manual_seed(seed + place))
            after = before + far[:, None] * drawn / drawn.norm(dim=1, keepdim=True)
        moved, size = ((one[question.people]).square().sum() for one in (after - before, before))
        shares.append(float(moved / size))
        network.load_state_dict({"entities": after, "relations": network.relations})
        with replacing_folder(folder / "embeddings" / f"{variant}_{name}") as part:
            network.save(part)
    return {"people_moved": 100 * float(np.mean(shares))}


def directions(network: Embeddings, question: Question) -> tuple[Tensor, Tensor]:
    """The directions of people and of professions, (dimension,) of length 1. Without them equation 1 is 0 for a dot
    product: people move along the gradient of m, professions change by their part along it, transformed by the
    occupation. Of a distance the same directions lead from one value to the other."""
    interaction, entities, relations = network.interaction, network.entities.detach(), network.relations.detach()
    a, b = (
        interaction.transform_tails(relations[question.relation].expand(len(ends), -1), entities[ends]).mean(0)
        for ends in (question.a, question.b)
    )
    both = torch.stack([a - b, torch.zeros_like(a)])
    moved, origin = interaction.transform_heads(both, relations[question.occupation].expand_as(both))
    people, professions = (one / one.norm().clamp_min(1e-12) for one in (a - b, moved - origin))
    return people, professions


# Results.


def profession_table(question: Question, changes: pl.DataFrame) -> pl.DataFrame:
    """The professions, the one that value a raises most first: profession, people, of_a, of_b, log_ratio, change (mean
    over seeds), and its interval low and high."""
    columns = zip(("change", "low", "high"), measuring.over_seeds(by_model(changes)), strict=True)
    table = question.professions.with_columns(pl.Series(name, values) for name, values in columns)
    return table.with_columns(pl.col(pl.Float64).fill_nan(None)).sort("change", "profession", descending=[True, False])


def measure_bias(
    question: Question, changes: pl.DataFrame, trainings: pl.DataFrame, mitigated: Mapping[str, pl.DataFrame]
) -> pl.DataFrame:
    """The results (measure.results.SCHEMA). mitigated: tables of trainings by variant."""
    sizes = {"kge/people_a": len(question.group_a), "kge/people_b": len(question.group_b)}
    sizes |= {"kge/professions": question.professions.height, "kge/trainings": trainings.height}
    exact = Bootstrap()  # intervals over trainings are Student's, and need no draws
    tables = [
        measured("trainings", trainings, intervals=exact),
        measured("rankings", changes),
        measured("numbers", sizes),
    ]
    for variant, table in mitigated.items():
        if variant == PROJECTED:  # equation 1 is 0 by construction: the rest is rounding
            table = table.with_columns(rank_correlation=pl.lit(None, pl.Float64))
        tables.append(measured("trainings", table, intervals=exact, variant=variant))
    return pl.concat(tables)


# The page.

TITLES = {
    "": "as trained",
    REGULARISED: "penalised in training",
    AT_RANDOM: "control: random penalty",
    PROJECTED: "attribute projected out",
    PERTURBED: "control: moved at random",
}
DRAWN = 8  # professions of each end in the first picture
CORRELATION, AGREEMENT, MRR = "rank_correlation", "seeds/agreement", "mrr"
ORDER = "Read the order, not the sign: where one group is larger, chance is not at 0."
EQUATION = (
    "Equation 1 of “Measuring social bias in knowledge graph embeddings”: each person's embedding takes a step of 0.01 "
    "that makes {a} likelier than {b} as {sensitive}. The change of a profession's score is averaged over people; a "
    "positive one is towards {a}. Professions have at least {fewest} of these people: {num_a} {a} and {num_b} {b}."
)
PREDICTED = (
    "The profession with the highest score is predicted for each person of both groups, among those that no training "
    "triple gives the person. MRR is the price of a mitigation; one that gains no more than its control only adds "
    "noise. A projection makes equation 1 zero by construction."
)
LIMITS = (
    "A change of scores says what the embeddings encode, not that anybody is treated unfairly. Some professions belong "
    "to a group by definition. Counts are of the graph, not of the world.",
    "The attribute and its values are those of the graph. Fixed labels such as two genders leave people out, and say "
    "nothing of how people see themselves.",
    "Intervals are over trainings on one graph, and do not show what chance would give with permuted attributes.",
    "Embeddings learn triples of the attribute itself, so that a classifier finds it in any case.",
)


def write_report(
    rows: pl.DataFrame,
    professions: pl.DataFrame,
    trainings: pl.DataFrame,
    *,
    data: str,
    model: str,
    folder: Path,
    about: Mapping[str, Any],
    **what: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures; returns the state with its hedge."""
    published = frame_of("kge_published.csv").filter(data=data, model=model)
    tables = {"professions": professions, "trainings": trainings}
    made = page(rows, professions, published=published, tables=tables, **what, **about)
    write(made, folder, "kge.html")
    return {"verdict": f"{made.state}. {made.hedge}"}


def page(
    rows: pl.DataFrame,
    professions: pl.DataFrame,
    *,
    names: Sequence[str],
    sensitive: str,
    fewest: int,
    published: pl.DataFrame,
    demonstration: bool,
    **about: Any,
) -> Page:
    """rows: the table of results; professions: as profession_table has them; names: of value a and value b; published:
    (mrr, source); about: further fields of Page."""
    state, hedge = verdict(rows, professions, names)
    num_a, num_b = (shown(figure(rows, f"kge/people_{one}")).text for one in "ab")
    meaning = EQUATION.format(a=names[0], b=names[1], num_a=num_a, num_b=num_b, sensitive=sensitive, fewest=fewest)
    caption = f"{professions.height} professions, ordered by change: mean over trainings, with its 95 % interval."
    stated = "; ".join(f"{row['mrr']:.3f} ({row['source']})" for row in published.to_dicts())
    explained = rows.filter(pl.col("measure").is_in([CORRELATION, AGREEMENT, MRR, "parity"]))
    first = [one for name in (CORRELATION, AGREEMENT, MRR) if (one := figure(rows, name))]
    return Page(
        state=state,
        hedge=hedge,
        picture=first_picture(professions, names),
        numbers=[Number(title_of(one), shown(one).text, " ".join(shown(one).below)) for one in first],
        sections=[
            Section(f"Professions and {sensitive}", [meaning, profession_list(professions, names, caption)]),
            Section(
                "Quality, predictions and mitigations",
                [PREDICTED, effects(rows, stated), Fold("What they mean", [sections.meanings(explained)])],
            ),
        ],
        limits=LIMITS,
        demonstration=demonstration and "A made-up graph: the figures support no claim about any group of people.",
        **about,
    )


def verdict(rows: pl.DataFrame, professions: pl.DataFrame, names: Sequence[str]) -> tuple[str, str]:
    """The state and its hedge: whether scores follow the counts, and the professions at both ends."""
    correlation = figure(rows, CORRELATION)
    if correlation is None:
        return OPEN, "Fewer than three professions change differently. Set a lower kge.fewest."
    if correlation["low"] is None:
        return OPEN, "One training does not show what is due to chance. Train with more seeds (kge.seeds=5)."
    if correlation["low"] <= 0 <= correlation["high"]:
        return OPEN, "The interval of the rank correlation has 0 in it. Train with more seeds (kge.seeds)."
    verb = "follow" if correlation["low"] > 0 else "run against"
    first, last = (", ".join(part.head(3)) for part in (professions["profession"], professions["profession"].reverse()))
    top, bottom = sides(professions, names)
    return f"Scores of professions {verb} the graph's counts", f"Professions {top}: {first}; {bottom}: {last}. {ORDER}"


def sides(professions: pl.DataFrame, names: Sequence[str]) -> tuple[str, str]:
    """The ends of the ranking in words: where all changes go one way, the other end is the one that goes least."""
    first, last = professions["change"][0], professions["change"][-1]
    top = f"most towards {names[0]}" if first > 0 else f"least towards {names[1]}"
    return top, f"most towards {names[1]}" if last < 0 else f"least towards {names[0]}"


def ends(professions: pl.DataFrame, size: int) -> pl.DataFrame:
    """The professions at both ends of the ranking."""
    return pl.concat([professions.head(size), professions.tail(size)]).unique("profession", maintain_order=True)


def first_picture(professions: pl.DataFrame, names: Sequence[str]) -> Picture:
    """The professions of both ends, with their intervals over trainings."""
    rows = ends(professions, DRAWN).select("low", "high", name="profession", value="change")
    values = "; ".join(f"{name} {number(value, 4)}" for name, value in rows.select("name", "value").iter_rows())
    label = fill(f"← {names[1]} · change of score · {names[0]} →", 60)  # characters that fit beside the axes
    title = "Professions {} (top) and {} (bottom), 95 % intervals over trainings".format(*sides(professions, names))
    drawn = plots.intervals(rows, label, zero=0)
    return Picture("professions", "professions", title, f"Change of score: {values}", drawn)


def profession_list(professions: pl.DataFrame, names: Sequence[str], caption: str) -> Table:
    """The change of each profession, and its people of each value."""
    columns = [text("profession"), Column("change of score", "change", 4, bounds="")]
    columns += figures(2, of_a=names[0], of_b=names[1], log_ratio="log ratio of counts")
    return Table(caption, columns, professions, "tall")


def effects(rows: pl.DataFrame, published: str = "") -> Table | None:
    """Quality and parity as trained and after each mitigation."""
    names = [one.name for one in measures("trainings")]
    of_variants = rows.filter(pl.col("measure").is_in(names)).with_columns(group="variant", variant=pl.lit(""))
    caption = "Mean over trainings, with its 95 % interval. → chance: the closer to it, the better."
    return crossed(caption + f" Published MRR: {published}." * bool(published), of_variants, TITLES, first="figure")
