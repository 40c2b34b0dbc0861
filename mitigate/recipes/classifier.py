"""recipe=classifier: a classifier that comes with the project, trained again: load > train > measure.

Each class below describes one of them (conf/classifier): its data and settings, and its stages."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.finished import open_run
from mitigate.load import conceptnet
from mitigate.load.statements import root_with
from mitigate.measure.caveats import WHOLE
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import keyed, of_study
from mitigate.recipes.job import Config, Job, perform, say, say_notes
from mitigate.recipes.scorers import Scorers, label_cache
from mitigate.report.table import Column, Table, as_text, text
from mitigate.stages import Result, in_folder
from mitigate.tasks.crowd.accuracy import FILE, SCORER, accuracy_table, as_metrics, passed_table
from mitigate.tasks.crowd.training import label_unseen, read_texts, train_crowd
from mitigate.tasks.plausibility import average_networks, check_dev, measure_plausibility, train_plausibility
from mitigate.tasks.predicted_ratings.figures import measure_polarity, measure_validity
from mitigate.tasks.predicted_ratings.training import train_harm, train_validity
from mitigate.tasks.ratings.agreement import label_described
from mitigate.tasks.ratings.paper_statements import read_with_quality
from mitigate.tasks.regard import figures, minilm
from mitigate.tasks.regard import texts as regard_texts
from models import hub

Results = Mapping[str, Result]
CROWD = {
    "implied_weight": 0.03,  # of an implied statement of Social Bias Frames, a rated one being 1
    "decay": 0.1,  # weight of half the sum of squared weights
    "false_alarms": 0.15,  # share of the neutral statements in the training folds labelled as polarised
}
VALIDITY = {"reads": ["statement", "masked"], "layers": [2], "decay": 0.3, "steps": 200}
POLARITY = {
    **{"reads": ["masked", "negated"], "layers": [2], "decay": 0.1, "steps": 60},
    "implied": 0.0,  # weight of an implied statement of Social Bias Frames, a rated one being 1
    "copies": 2,  # of each rated and written statement, with identity terms in place of "this person"
    "copied": 0.5,  # weight of a rated statement's copies together
    "written": 5.0,  # weight of a statement that was written together with its label, its copies included
    "false_alarms": 0.13,  # share of COMeT's neutral statements labelled as polarised
}
KEYS = {  # the beginnings of the keys of each table's figures
    "validity": "{relation}/{label}",
    "seen": "seen/{text}/{target}",
    "accuracy": "accuracy/{template}/{source}/{category}",
    "shares": "shares/{source}/{part}",
    "identity": "identity/{part}/{error}",
}
DEPTH = 0.5  # of a causal language model: share of its layers below the one that is read
LEARNT = {"dropout": 0.1, "batch_size": 512, "echo": 0.2, "contrast": 0.3}  # as train.plausibility.Settings has them
NETWORKS = {  # of the plausibility classifiers
    "words": {"width": 128, "learning_rate": 0.003, "epochs": 6},
    "minilm": {"width": 128, "learning_rate": 0.005, "epochs": 4},
}
REGARD: dict[str, dict[str, Any]] = {
    "teacher": {"learning_rate": 0.0001, "epochs": 3, "batch_size": 64, "neutral_share": 0.5},
    "minilm": {  # layers of all-MiniLM-L6-v2, with a change of low rank: 3.4 MB in half precision
        **{"layers": [0, 2, 4], "rank": 80, "learning_rate": 0.0003, "epochs": 2, "batch_size": 64},
        "neutral_share": 0.4,
        # copies of a text, with an identity term in place of "this person"; 0.2: of every fifth
        "copies": {"written": 8, "polar": 1.5, "neutral": 0.2},
    },
    "gate": {"channels": 128, "learning_rate": 0.003, "epochs": 3, "batch_size": 64, "neutral_share": 1.0},
    "ngram": {"buckets": 262144, "learning_rate": 0.05, "decay": 0.000001, "epochs": 5, "batch_size": 256},
}


class Artefact(NamedTuple):
    """A folder of trained weights, and what is added to it."""

    folder: str
    accuracy: pl.DataFrame | None = None  # written beside the weights
    upload: str | None = None  # its name in W&B; None: it is not uploaded


class Classifier(ABC):
    """A classifier to be trained. Its constructor reads and checks everything before the first stage."""

    uploads: str  # to W&B, in words
    headline: str  # the key of the metric that the recipe returns
    has_seed = True  # whether results depend on the seed, so that it is part of the run folder's name
    inputs: object  # that results depend on: tables and hashes

    def __init__(self, config: Config) -> None:
        self.seed: int = config.seed

    @classmethod
    def run(cls, config: Config) -> float | None:
        """Train the classifier and measure it; returns its headline."""
        made = cls(config)
        name = f"{config.recipe.name}-seed{made.seed}" if cls.has_seed else config.recipe.name
        found = perform(config, name, made.inputs, made.pipeline, made.record, uploads=[cls.uploads])
        return made.metrics(found)[cls.headline] if found else None

    def pipeline(self, job: Job) -> None:
        """Run the stages, and store their figures as results."""
        self.stages(job)
        job.stage("results", of_study, self.metrics(job.results))

    @abstractmethod
    def stages(self, job: Job) -> None:
        """Run the stages in their order; trained weights are left in folders of the run folder."""

    @abstractmethod
    def artefacts(self, results: Results) -> Iterator[Artefact]:
        """Yield the folders of trained weights."""

    def metrics(self, results: Results) -> dict[str, Any]:
        """The figures by their keys."""
        return results["metrics"].facts()

    def record(self, job: Job) -> None:
        """Record the figures and the weights."""
        metrics = self.metrics(job.results)
        job.tracking.summarise(metrics)
        for folder, accuracy, upload in self.artefacts(job.results):
            if accuracy is not None:
                write(job.folder / folder / FILE, accuracy.with_columns(pl.col(pl.Float64).round(4)).write_csv())
            if upload:
                job.tracking.artifact(upload, "model", job.folder / folder, metrics)


class Crowd(Classifier):
    """crowd: polarity, learnt from people's ratings by heads that each leave out a fold of targets."""

    uploads, headline, has_seed = "the classifier", f"passed/{SCORER}/recall", False
    compared = ("ngram", "keyword")  # scorers

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.texts = read_texts(root_with(config.data.root, ["humans", "sbic"]))
        self.inputs = self.texts
        self.others = Scorers(config.score).rated(self.compared)
        self.intervals = Bootstrap(resamples=config.measure.resamples, seed=self.seed)
        self.cache = label_cache(config)
        say(f"crowd: {self.texts.rated.height:,} rated statements, {len(self.texts.implied):,} implied by posts")

    def stages(self, job: Job) -> None:
        rated, using = self.texts.rated, {"cache": self.cache}
        heads = job.stage("heads", train_crowd, self.texts, CROWD, using=in_folder())
        others = job.stage("others", label_described, rated, self.others, using=using)
        labels = job.stage(
            "unseen", label_unseen, others, after=[heads], using={**using, "folder": heads.folder / "crowd"}
        )
        accuracy = job.stage("accuracy", accuracy_table, labels, self.intervals)
        passed = job.stage("passed", passed_table, labels, [SCORER, *self.compared], self.intervals)
        job.stage("metrics", as_metrics, accuracy, passed)

    def artefacts(self, results: Results) -> Iterator[Artefact]:
        yield Artefact("crowd", results["accuracy"].table(), "crowd")


class People(Classifier):
    """people: people_valid, crowd2 and, with recipe.base, crowd_lm, learnt from people's ratings by heads that each
    leave out a fold of targets and a fold of texts. With a half of the ratings of validity there is no crowd2, since it
    would not differ."""

    uploads, headline, has_seed = "the heads", "people_valid/all/all/auc", False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        root = root_with(config.data.root, ["humans", "sbic"])
        self.base, base, half = config.recipe.base, config.recipe.validity.base, config.recipe.validity.half
        bases = [digest_of_model("recipe.base", self.base), digest_of_model("recipe.validity.base", base)]
        self.texts, self.rated = read_texts(root), read_with_quality(root)
        self.inputs = self.texts, self.rated, *bases
        self.intervals = Bootstrap(resamples=config.measure.resamples, seed=self.seed)
        by_model = {"layers": None, "depth": DEPTH}
        learnt_by = {"people_valid": {**VALIDITY, "base": base, "half": half, **(by_model if base is not None else {})}}
        if half == WHOLE:
            learnt_by["crowd2"] = POLARITY
        if self.base is not None:
            learnt_by["crowd_lm"] = {**POLARITY, **by_model}
        self.learnt_by: dict[str, dict[str, Any]] = learnt_by
        say(f"people: {self.rated.height:,} statements rated for validity, {self.texts.rated.height:,} for polarity")

    def stages(self, job: Job) -> None:
        texts, using = self.texts, in_folder()
        for name, settings in self.learnt_by.items():
            figures = f"{name}_figures"
            if name == "people_valid":
                base = settings["base"]
                heads = job.stage(name, train_validity, self.rated, settings, base=base, using=using)
                job.stage(figures, measure_validity, self.rated, base=base, after=[heads], using=using)
            else:
                more: dict[str, Any] = {"scorer": name, "base": self.base if name == "crowd_lm" else None}
                heads = job.stage(name, train_harm, texts, settings, self.seed, **more, using=using)
                job.stage(figures, measure_polarity, texts.rated, self.intervals, **more, after=[heads], using=using)

    def metrics(self, results: Results) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.learnt_by:
            tables = results[f"{name}_figures"].facts()
            for table, place in KEYS.items():
                found |= keyed(f"{name}/{place}", tables.get(table, ()))
        return {key: value for key, value in found.items() if isinstance(value, int | float)}

    def artefacts(self, results: Results) -> Iterator[Artefact]:
        for name in self.learnt_by:
            rows = results[f"{name}_figures"].facts().get("accuracy")
            yield Artefact(name, rows and pl.DataFrame(rows, infer_schema_length=None), name)


def digest_of_model(setting: str, base: str | None) -> str | None:
    """The hash of a causal language model, if one is named. Raises MitigateError where there is none of that name."""
    try:
        return None if base is None else hub.digest_of(hub.locate(base, seq2seq=False))
    except (FileNotFoundError, ValueError) as error:
        raise MitigateError(f"{setting}: {error}") from error


class Plausibility(Classifier):
    """plausibility: two networks that are trained on ConceptNet train100k, and their average."""

    uploads, headline = "the classifier", "average/test/accuracy"
    networks = ("words", "minilm")

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        loaded = conceptnet.load(config.data.root, config.paths.cache, config.data.on_bad_line)
        say_notes(loaded.notices)
        self.triples = loaded.rows.with_columns(pl.col("head", "tail").str.to_lowercase())
        check_dev(self.triples)
        self.probes, self.scorers = read_probes(config.recipe.probes), Scorers(config.score).of_roles
        self.inputs = self.triples, self.probes
        self.cache = label_cache(config)

    def stages(self, job: Job) -> None:
        triples, made = self.triples, dict[str, Result]()
        for name in self.networks:
            values = train_plausibility, triples, name, {**NETWORKS[name], **LEARNT, "seed": self.seed}
            made[name] = job.stage(name, *values, using=job.training(name))
        both = list(made.values())
        made["average"] = job.stage("average", average_networks, triples, dict(made), after=both, using=in_folder())
        after, using = list(made.values()), in_folder(cache=self.cache)
        job.stage("metrics", measure_plausibility, triples, self.probes, self.scorers, made, after=after, using=using)

    def artefacts(self, results: Results) -> Iterator[Artefact]:
        yield Artefact("average", upload="plausibility")

    def record(self, job: Job) -> None:
        super().record(job)
        metrics, names = self.metrics(job.results), (*self.networks, "average")
        keys = dict.fromkeys(key.partition("/")[2] for key in metrics)
        rows = [{"figure": key, **{name: metrics.get(f"{name}/{key}") for name in names}} for key in keys]
        say(as_text(Table("", [text("figure"), *(Column(name, name, 2) for name in names)], rows)))


def read_probes(folders: Iterable[str]) -> dict[str, pl.DataFrame]:
    """The generated triples of finished runs, by the names of their folders, which stand in names of figures. Raises
    MitigateError for a run without them, and for two folders of one name."""
    found: dict[str, pl.DataFrame] = {}
    for folder in folders:
        name = Path(folder).resolve().name
        if name in found:
            raise MitigateError(f"recipe.probes names two folders called {name}; name one, or rename a copy")
        probed = open_run(folder, needs=["probe.parquet"]).table("probe.parquet", ["target", "relation", "tail"])
        # Earlier versions had no events: the target itself was the head, and there was no column `head`.
        head = pl.col("head" if "head" in probed.columns else "target").alias("head")
        found[name] = probed.select(head, "relation", "tail")
    return found


class Regard(Classifier):
    """regard: first the encoder is trained whole, as a teacher. The shipped classifiers learn from the labels and from
    the teacher's probabilities, also of statements of train100k without a label and of copies that name groups: some of
    the teacher's layers with a low-rank part of their change, a gate before them, and the n-grams."""

    uploads, headline = "both classifiers", "minilm/test/macro_f1"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        root = root_with(config.data.root, ["regard", "humans", "conceptnet100k"])
        self.texts = regard_texts.read_texts(root)
        self.inputs = self.texts
        parts = self.texts.labelled["part"].value_counts(sort=True).iter_rows()
        say(f"regard: seed {self.seed}; texts: " + ", ".join(f"{part} {count:,}" for part, count in parts))

    def stages(self, job: Job) -> None:
        texts = self.texts

        def learn(name: str, *values: Any, **more: Any) -> Result:
            log = partial(job.tracking.log, stage=name)
            return job.stage(name, *values, REGARD[name], seed=self.seed, using=in_folder(log=log), **more)

        teacher = learn("teacher", minilm.train_teacher, texts.learnt)
        values = minilm.teach, texts.learnt, texts.unlabelled, REGARD["minilm"]["copies"]
        taught = job.stage("taught", *values, seed=self.seed, after=[teacher], using=in_folder())
        layers = learn("minilm", minilm.train_minilm, taught, after=[teacher])
        gate = learn("gate", minilm.train_gate, taught, texts.choosing, after=[layers])
        ngram = learn("ngram", minilm.train_ngram, texts.labelled, taught)
        after: dict[str, Any] = {"after": [teacher, layers, gate, ngram], "using": in_folder()}
        terms = job.stage("identity", figures.identity_terms, Bootstrap(seed=self.seed), **after)
        job.stage("checked", figures.gate_figures, texts.checking, **after)
        job.stage("metrics", figures.measure_regard, texts.labelled, texts.crowd, terms, **after)

    def artefacts(self, results: Results) -> Iterator[Artefact]:
        for name in ("minilm", "ngram"):
            yield Artefact(name, upload=f"regard-{name}")
