"""The regard classifiers that come with the project, trained from scratch: load > train > measure > card.

First the encoder is trained whole, as a teacher. What comes with the project learns from the labels and from the
teacher's probabilities, also of statements of train100k without a label and of copies that name groups: some of the
teacher's layers with a low-rank part of their change, a gate before them, and the n-grams."""

from functools import partial

from omegaconf import DictConfig

from mitigate.load.root import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.report import classifier_cards
from mitigate.runs.files import write
from mitigate.tasks.identity import identity_summary
from mitigate.tasks.regard import teacher
from mitigate.tasks.regard.figures import gate_figures, identity_terms, measure_regard
from mitigate.tasks.regard.minilm import train_gate, train_minilm
from mitigate.tasks.regard.ngram import train_ngram
from mitigate.tasks.regard.texts import Texts, read_texts

CLASSIFIERS = ("minilm", "ngram")


def run(config: DictConfig) -> float | None:
    """Train both classifiers and measure them; returns the macro-F1 of minilm on unseen targets."""
    texts = read_texts(root_with(config.data.root, ["regard", "humans", "conceptnet100k"]))
    parts = texts.labelled["part"].value_counts(sort=True).iter_rows()
    say(f"regard: seed {config.seed}; texts: " + ", ".join(f"{part} {count:,}" for part, count in parts))
    name = f"{config.recipe.name}-seed{config.seed}"
    uploads = ["both classifiers"]
    found = perform(config, name, texts.digest(), lambda job: pipeline(job, texts), record, uploads=uploads)
    return found["metrics"].facts()["minilm/test/macro_f1"] if found else None


def pipeline(job: Job, texts: Texts) -> None:
    """The stages in their order; the classifiers are left in the folders minilm/ and ngram/ of the run."""
    how, seed, folder = plain(job.config.recipe), job.config.seed, {"folder": job.folder}
    logs = {name: folder | {"log": partial(job.tracking.log, stage=name)} for name in ("teacher", "gate", *CLASSIFIERS)}
    first = job.stage(
        "teacher",
        teacher.train_teacher,
        texts.learnt,
        how["teacher"],
        seed=seed,
        using=logs["teacher"],
        leaves=[teacher.FILE],
        may_be_kept=True,
    )
    labels = partial(teacher.label_by_teacher, texts.learnt, texts.unlabelled)
    taught = job.stage("taught", labels, after=[first], using=folder)
    second = job.stage(
        "minilm",
        train_minilm,
        texts.learnt,
        taught,
        how["minilm"],
        seed=seed,
        after=[first],
        using=logs["minilm"],
        leaves=["minilm/model.safetensors", "minilm/config.json"],
        may_be_kept=True,
    )
    copies = how["minilm"]["copies"]
    gate = job.stage(
        "gate",
        train_gate,
        texts.learnt,
        taught,
        texts.choosing,
        copies,
        how["gate"],
        seed=seed,
        after=[second],
        using=logs["gate"],
        leaves=["minilm/gate.safetensors", "minilm/gate.json"],
        may_be_kept=True,
    )
    third = job.stage(
        "ngram",
        train_ngram,
        texts.labelled,
        taught,
        copies,
        how["ngram"],
        seed=seed,
        using=logs["ngram"],
        leaves=["ngram/model.safetensors"],
        may_be_kept=True,
    )
    learnt = [first, second, gate, third]
    identity = job.stage("identity", identity_terms, Bootstrap(seed=seed), after=learnt, using=folder)
    job.stage("checked", gate_figures, texts.checking, after=learnt, using=folder)
    job.stage("metrics", measure_regard, texts.labelled, texts.crowd, identity, after=learnt, using=folder)


def record(job: Job) -> None:
    """The figures, and the classifiers with their cards."""
    metrics, terms = job.results["metrics"].facts(), job.results["identity"].table()
    checked, summed = job.results["checked"].table(), identity_summary(terms)
    job.tracking.summarise(metrics)
    for name in CLASSIFIERS:
        of_terms = {"terms": terms.filter(scorer=name), "summed": summed.filter(scorer=name)}
        card = classifier_cards.regard(name, metrics, job.config.seed, **of_terms, checked=checked)
        write(job.folder / name / "README.md", card.encode())
        job.tracking.artifact(f"regard-{name}", "model", job.folder / name, metrics)
