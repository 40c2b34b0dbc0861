"""The regard classifiers that come with the project, trained from scratch: load > train > measure > card.

First the encoder is trained whole, as a teacher. What comes with the project learns from the labels and from what
the teacher says, also of statements of train100k that nobody has labelled: the teacher's change, cut down to a low
rank; and the n-grams."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig
from safetensors.torch import load_file, save

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.load.crowd import read_crowd
from mitigate.load.triples_file import read_triples
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.regard import card, figures
from mitigate.relations import comet_relations, relations
from mitigate.score.regard import native_dtype
from mitigate.store import Result, as_parquet, digest_of
from mitigate.targets import targets
from mitigate.train import batches, harness, module, regard_data
from mitigate.train import regard as training
from mitigate.train import regard_ngram as ngram_training
from mitigate.triples import NEUTRAL
from mitigate.verbalise import MASK, mask_column
from models.minilm import locate
from models.regard import minilm, ngram
from models.regard.minilm import MiniLMClassifier
from models.regard.ngram import NgramClassifier

NOTHING = (
    "something",
    "anything",
    "object",
    "objects",
    "item",
    "it",
    "this",
    "stuff",
    "someone",
    "place",
    "word",
    "name",
)
STAGES = ("teacher", "taught", "minilm", "ngram", "metrics")
TEACHER = "teacher.safetensors"
TRUST = 0.5  # how much of what minilm learns of a labelled text is what the teacher says of it


@dataclass(frozen=True)
class Texts:
    """All that is learnt from or measured on."""

    labelled: pl.DataFrame  # text, label, part
    crowd: pl.DataFrame  # resource, sentence, votes, masked
    unlabelled: list[str]

    @property
    def learnt(self) -> pl.DataFrame:
        """Those of labelled that both classifiers of sentences learn from."""
        return self.labelled.filter(pl.col("part").is_in(["train", "valid"]))

    def digest(self) -> str:
        """The hash of their content."""
        votes = self.crowd.select("resource", "masked", pl.col("votes").cast(pl.List(pl.String)).list.join(" "))
        return digest_of(as_parquet(self.labelled) + as_parquet(votes) + "\n".join(self.unlabelled).encode())


def run(config: DictConfig) -> float | None:
    """Train both classifiers and measure them; returns the macro-F1 of minilm on unseen targets."""
    texts = read_texts(data_root(config.data.root))
    parts = texts.labelled["part"].value_counts(sort=True).iter_rows()
    say(f"regard: seed {config.seed}; texts: " + ", ".join(f"{part} {count:,}" for part, count in parts))
    name = f"{config.recipe.name}-seed{config.seed}"
    told = ["both classifiers"]
    metrics = perform(config, name, texts.digest(), STAGES, lambda job: pipeline(job, texts), uploads=told)
    return metrics["minilm/test/macro_f1"] if metrics else None


def pipeline(job: Job, texts: Texts) -> dict[str, Any]:
    """The stages in their order; the classifiers are left in the folders minilm/ and ngram/ of the run."""
    settings = plain(job.config.recipe)
    seed = job.config.seed
    first = job.old_stage(
        "teacher",
        lambda _: train_teacher(job, texts, settings["teacher"]),
        needs=[texts.digest()],
        settings=[seed, settings["teacher"]],
        code=[training, batches, harness, module, minilm],
        leaves=[TEACHER],
    )
    taught = job.old_stage("taught", lambda _: teach(job, texts), needs=[first.digest], code=[minilm])
    second = job.old_stage(
        "minilm",
        lambda _: train_minilm(job, texts, taught, settings["minilm"]),
        needs=[taught.digest],
        settings=[seed, settings["minilm"], TRUST],
        code=[training, batches, harness, module, minilm],
        leaves=["minilm/model.safetensors", "minilm/config.json"],
    )
    third = job.old_stage(
        "ngram",
        lambda _: train_ngram(job, texts, taught, settings["ngram"]),
        needs=[taught.digest],
        settings=[seed, settings["ngram"]],
        code=[ngram_training, training, batches, harness, module, ngram],
        leaves=["ngram/model.safetensors"],
    )
    metrics = job.old_stage(
        "metrics",
        lambda _: measure(job, texts),
        needs=[first.digest, second.digest, third.digest],
        code=[figures],
    )
    if not job.run.dry:
        job.tracking.summarise(metrics.facts())
        for name in ("minilm", "ngram"):
            write(job.folder / name / "README.md", card.render(name, metrics.facts(), job.config.seed).encode())
            job.tracking.artifact(f"regard-{name}", "model", job.folder / name, metrics.facts())
    return metrics.facts()


def train_teacher(job: Job, texts: Texts, settings: dict[str, Any]) -> dict[str, Any]:
    """Train the whole encoder on the labelled texts; returns the size."""
    learnt = texts.learnt
    teacher = training.fit_minilm(
        MiniLMClassifier(locate(), None),
        learnt["text"].to_list(),
        training.certain(training.columns_of(learnt)),
        seed=job.config.seed,
        log=partial(job.tracking.log, stage="teacher"),
        **settings,
    )
    write(job.folder / TEACHER, save(teacher.state_dict()))
    return {"parameters": sum(value.numel() for value in teacher.trained().values())}


def the_teacher(job: Job) -> MiniLMClassifier:
    """The teacher as it was trained, in full precision."""
    teacher = MiniLMClassifier(locate(), None)
    teacher.load_state_dict(load_file(job.folder / TEACHER))
    return teacher.eval()


def teach(job: Job, texts: Texts) -> pl.DataFrame:
    """What the teacher says of all texts to learn from, the labelled ones first."""
    every = texts.learnt["text"].to_list() + texts.unlabelled
    return pl.DataFrame({"text": every, "probabilities": the_teacher(job).to(native_dtype()).probabilities(every)})


def train_minilm(job: Job, texts: Texts, taught: Result, settings: dict[str, Any]) -> dict[str, Any]:
    """Train what has a low rank of the teacher's change, and save it; returns the size."""
    told = taught.table()
    wanted = told["probabilities"].to_numpy().copy()
    labels = training.certain(training.columns_of(texts.learnt))
    wanted[: len(labels)] = TRUST * wanted[: len(labels)] + (1 - TRUST) * labels
    classifier = MiniLMClassifier(locate(), settings.pop("rank"))
    classifier.take(the_teacher(job))
    log = partial(job.tracking.log, stage="minilm")
    training.fit_minilm(classifier, told["text"].to_list(), wanted, seed=job.config.seed, log=log, **settings)
    classifier.save(job.folder / "minilm")
    return {"parameters": sum(value.numel() for value in classifier.trained().values())}


def train_ngram(job: Job, texts: Texts, taught: Result, settings: dict[str, Any]) -> dict[str, Any]:
    """Train and save; returns the sizes."""
    told = taught.table()[texts.learnt.height :]
    log = partial(job.tracking.log, stage="ngram")
    classifier = ngram_training.fit_ngram(
        texts.labelled,
        told["text"].to_list(),
        told["probabilities"].to_numpy(),
        seed=job.config.seed,
        log=log,
        **settings,
    )
    classifier.save(job.folder / "ngram")
    return {"parameters": classifier.weight.size + classifier.bias.size}


def measure(job: Job, texts: Texts) -> dict[str, float | None]:
    """The figures of both, saved and read again, in the precision that scorers use."""
    saved: dict[str, figures.Classifier] = {
        "teacher": the_teacher(job).to(native_dtype()),
        "minilm": MiniLMClassifier.load(job.folder / "minilm", locate(), native_dtype()),
        "ngram": NgramClassifier.load(job.folder / "ngram"),
    }
    return {
        f"{name}/{key}": value
        for name, classifier in saved.items()
        for key, value in figures.figures(classifier, texts.labelled, texts.crowd).items()
    }


def data_root(given: str | None) -> Path:
    """The folder that holds regard/, humans/ and conceptnet100k/."""
    root = given or os.environ.get("MITIGATE_DATA")
    if not root:
        raise MitigateError(
            "recipe=regard trains on real labels: give their folder with data.root=DIR or MITIGATE_DATA"
        )
    return Path(root)


def read_texts(root: Path) -> Texts:
    """Read everything; what the crowd judged is kept out of the labelled texts, however it is masked."""
    crowd = read_crowd(root / "humans").rename({"sentence": "statement"})
    crowd = crowd.with_columns(masked=mask_column("statement", "token"))
    judged = {*crowd["masked"], *crowd["statement"]}
    for statement in crowd["statement"]:
        judged |= {statement.replace(target, MASK) for target in targets() if target in statement}
    labelled = regard_data.read_labelled(root / "regard", kept_out=judged)
    labelled = pl.concat([labelled, empty_statements()]).unique("text", keep="first", maintain_order=True)
    return Texts(labelled, crowd, sorted(masked_statements(root) - set(labelled["text"]) - judged))


def empty_statements() -> pl.DataFrame:
    """Statements that say nothing, as (text, label, part): neutral, whatever the wording of their relation."""
    phrases = {phrase for relation in comet_relations() for phrase in (relation.phrase, relation.neutral_phrase)}
    texts = [
        text
        for phrase in sorted(phrases)
        for thing in NOTHING
        for text in (f"{MASK} {phrase} {thing}", f"{thing} {phrase} {MASK}")
    ]
    return pl.DataFrame({"text": texts}).with_columns(pl.lit(NEUTRAL, pl.Int8).alias("label"), part=pl.lit("train"))


def masked_statements(root: Path) -> set[str]:
    """What train100k says, said of "this person": every third triple with its head and with its tail replaced, and
    for a wide vocabulary its head and tail as merely related."""
    loaded = read_triples(root / "conceptnet100k" / "train100k.txt", "train", labelled=False)
    phrases = {name: relation.phrase for name, relation in relations().items()}
    triples = loaded.triples.gather_every(3).select(
        pl.col("head").str.to_lowercase(),
        pl.col("relation").replace_strict(phrases, return_dtype=pl.String),
        pl.col("tail").str.to_lowercase(),
    )
    return {
        text
        for head, phrase, tail in triples.rows()
        for text in (
            f"{MASK} {phrase} {tail}",
            f"{head} {phrase} {MASK}",
            f"{head} is related to {MASK}",
            f"{tail} is related to {MASK}",
        )
    }
