"""The regard classifiers that come with the project, trained from scratch: load > train > measure > card.

First the encoder is trained whole, as a teacher. The shipped classifiers learn from the labels and from the teacher's
probabilities, also of statements of train100k without a label and of copies that name groups: some of the teacher's
layers with a low-rank part of their change, a gate before them, and the n-grams."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omegaconf import DictConfig

from mitigate.load.files import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.report import classifier_cards
from mitigate.runs.files import write
from mitigate.runs.store import Result
from mitigate.tasks.identity import identity_summary
from mitigate.tasks.regard import minilm
from mitigate.tasks.regard.figures import gate_figures, identity_terms, measure_regard
from mitigate.tasks.regard.minilm import train_gate, train_minilm, train_ngram
from mitigate.tasks.regard.texts import Texts, read_texts

CLASSIFIERS = ("minilm", "ngram")


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    texts: Texts
    settings: dict[str, Any]  # by part: teacher, minilm, gate, ngram
    seed: int


def run(config: DictConfig) -> float | None:
    """Train both classifiers and measure them; returns the macro-F1 of minilm on unseen targets."""
    texts = read_texts(root_with(config.data.root, ["regard", "humans", "conceptnet100k"]))
    plan = Plan(texts, plain(config.recipe), config.seed)
    parts = texts.labelled["part"].value_counts(sort=True).iter_rows()
    say(f"regard: seed {plan.seed}; texts: " + ", ".join(f"{part} {count:,}" for part, count in parts))
    phases = partial(pipeline, plan=plan), partial(record, plan=plan)
    name = f"{config.recipe.name}-seed{plan.seed}"
    found = perform(config, name, texts.digest(), *phases, uploads=["both classifiers"])
    return found["metrics"].facts()["minilm/test/macro_f1"] if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order; the classifiers are left in the folders minilm/ and ngram/ of the run."""
    texts, how, folder = plan.texts, plan.settings, {"folder": job.folder}

    def train(name: str, *given: Any, leaves: list[str], after: Sequence[Result] = ()) -> Result:
        using = folder | {"log": partial(job.tracking.log, stage=name)}
        more: dict[str, Any] = {"seed": plan.seed, "after": after, "using": using, "leaves": leaves}
        return job.stage(name, *given, **more, may_be_kept=True)

    first = train("teacher", minilm.train_teacher, texts.learnt, how["teacher"], leaves=[minilm.FILE])
    labels = partial(minilm.label_by_teacher, texts.learnt, texts.unlabelled)
    taught = job.stage("taught", labels, after=[first], using=folder)
    left = ["minilm/model.safetensors", "minilm/config.json"]
    second = train("minilm", train_minilm, texts.learnt, taught, how["minilm"], after=[first], leaves=left)
    copies, left = how["minilm"]["copies"], ["minilm/gate.safetensors", "minilm/gate.json"]
    given = texts.learnt, taught, texts.choosing, copies, how["gate"]
    gate = train("gate", train_gate, *given, after=[second], leaves=left)
    left = ["ngram/model.safetensors"]
    third = train("ngram", train_ngram, texts.labelled, taught, copies, how["ngram"], leaves=left)
    learnt = [first, second, gate, third]
    identity = job.stage("identity", identity_terms, Bootstrap(seed=plan.seed), after=learnt, using=folder)
    job.stage("checked", gate_figures, texts.checking, after=learnt, using=folder)
    job.stage("metrics", measure_regard, texts.labelled, texts.crowd, identity, after=learnt, using=folder)


def record(job: Job, plan: Plan) -> None:
    """Record the figures, and the classifiers with their cards."""
    metrics, terms = job.results["metrics"].facts(), job.results["identity"].table()
    checked, summed = job.results["checked"].table(), identity_summary(terms)
    job.tracking.summarise(metrics)
    for name in CLASSIFIERS:
        of_terms = {"terms": terms.filter(scorer=name), "summed": summed.filter(scorer=name)}
        card = classifier_cards.regard(name, metrics, plan.seed, **of_terms, checked=checked)
        write(job.folder / name / "README.md", card.encode())
        job.tracking.artifact(f"regard-{name}", "model", job.folder / name, metrics)
