"""recipe=classifier: how the classifiers that come with the project were made. classifier=regard, people or
plausibility trains one again and measures it: read > train > measure. The trained folders are left in the run folder.

    python -m mitigate recipe=classifier classifier=regard data.root=DIR"""

import hashlib
import random
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.torch import load_file, save
from scipy.special import softmax

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder, write
from mitigate.load import conceptnet
from mitigate.load.ratings import RESOURCES, read_crowd, read_rated
from mitigate.load.statements import root_with
from mitigate.measure.agreement import (
    CLASSES,
    auc,
    auc_of_a_rater,
    classification,
    confusion,
    kappa,
    macro_f1,
    sensitivity,
    specificity,
)
from mitigate.measure.quality import best_threshold
from mitigate.measure.results import of_study
from mitigate.models import minilm
from mitigate.models.encoder import Cascade, Encoder, Gate, MiniLMClassifier, States
from mitigate.models.heads import LABELS, REGARD, CrossFitted, fold_of, hash_of
from mitigate.models.plausibility import MEMBERS, Average, Bilinear
from mitigate.recipes.config import Config
from mitigate.recipes.job import Job, open_job, say, say_notes
from mitigate.score.people import MEANING, VALID, Crowd2, PeopleValid, features, plain, polarity
from mitigate.score.regard import MiniLMRegard, NgramRegard
from mitigate.stages import Result, in_folder
from mitigate.train import classifiers as training
from mitigate.train import harness
from mitigate.train.harness import Log
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, TEMPLATES, fold_other
from mitigate.verbalise import MASK, mask_column
from mitigate.words.identity_terms import masked, read_frames, read_further_terms, read_predicates, read_terms
from mitigate.words.relations import comet_relations, relations
from mitigate.words.targets import targets
from mitigate.words.word_forms import any_of, article, with_plurals

Facts = dict[str, Any]
VALIDITY: Facts = {"reads": ["statement", "masked"], "layers": [2], "decay": 0.3, "steps": 200}
POLARITY: Facts = {
    **{"reads": ["masked", "negated"], "layers": [2], "decay": 0.1, "steps": 60},
    "copies": 2,  # of each rated and written statement, with identity terms in place of "this person"
    "copied": 0.5,  # weight of a rated statement's copies together
    "written": 5.0,  # weight of a statement that was written together with its label, its copies included
    "false_alarms": 0.13,  # share of COMeT's neutral statements labelled as polarised
}
NETWORKS: dict[str, Facts] = {  # of plausibility
    "words": {"width": 128, "learning_rate": 0.003, "epochs": 6},
    "minilm": {"width": 128, "learning_rate": 0.005, "epochs": 4},
}
TEACHER = {"learning_rate": 0.0001, "epochs": 3, "batch_size": 64, "neutral_share": 0.5}
LAYERS = {  # of all-MiniLM-L6-v2, with a change of low rank: 3.4 MB in half precision
    **{"layers": [0, 2, 4], "rank": 80, "learning_rate": 0.0003, "epochs": 2, "batch_size": 64, "neutral_share": 0.4},
    # copies of a text, with an identity term in place of "this person"; 0.2: of every fifth
    "copies": {"written": 8, "polar": 1.5, "neutral": 0.2},
}
GATE = {"channels": 128, "learning_rate": 0.003, "epochs": 3, "batch_size": 64, "neutral_share": 1.0}
NGRAM = {"buckets": 262144, "learning_rate": 0.05, "decay": 0.000001, "epochs": 5, "batch_size": 256}


def open_study(config: Config, inputs: object) -> AbstractContextManager[Job]:
    """The run folder of a training; it depends on the seed."""
    return open_job(config, f"{config.recipe.name}-seed{config.seed}", inputs)


def record(job: Job, metrics: Facts, **folders: str) -> None:
    """Record the figures, and upload the trained folders (folder=name in W&B)."""
    job.stage("results", of_study, metrics)
    if job.is_new():
        job.tracking.summarise(metrics)
        for folder, name in folders.items():
            job.tracking.artifact(name, "model", job.folder / folder, metrics)
        shown = {key: value for key, value in metrics.items() if key.endswith(SHOWN) and value is not None}
        say("\n".join(f"  {key:<40}{value:.4g}" for key, value in shown.items()))


SHOWN = ("test/accuracy", "test/macro_f1", "paper/all/kappa", "people_valid/all/auc")


# classifier=people: people_valid and crowd2


def run_people(config: Config) -> float | None:
    """Train heads on people's ratings that each leave out a fold of targets and a fold of texts. With a half of the
    ratings of validity there is no crowd2, since it would not differ."""
    root, half = root_with(config.data.root, ["humans"]), config.recipe.validity.half
    rated, with_quality = read_rated(root), read_rated(root, RESOURCES[-1:])
    say(f"people: {with_quality.height:,} statements rated for validity, {rated.height:,} for polarity")
    with open_study(config, [rated, with_quality]) as job:
        made: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
            "people_valid": (train_validity, measure_validity, (with_quality, half))
        }
        made |= {"crowd2": (train_polarity, measure_polarity, (rated, config.seed))} if half == "all" else {}
        found: Facts = {}
        for name, (train, measure, values) in made.items():
            heads = job.stage(name, train, *values, using=in_folder())
            figures = job.stage(f"{name}_figures", measure, values[0], after=[heads], using=in_folder()).facts()
            found |= {f"{name}/{key}": value for key, value in figures.items()}
        record(job, found, **{name: name for name in made})
        return found["people_valid/all/auc"]
    return None


def train_polarity(rated: pl.DataFrame, seed: int, *, folder: Path, states: States | None = None) -> dict[str, int]:
    """Train on rated statements (resource, masked, masked_neutral, cluster, votes, most), their copies and written
    statements, and write the heads to crowd2/ in a folder; returns the number of training texts. states: the network
    that they read with; None: the encoder."""
    settings, states = POLARITY, states or Encoder(minilm.locate(), POLARITY["layers"])
    shares = [rated["votes"].list.count_matches(MEANING[label]) / rated["votes"].list.len() for label in LABELS]
    first = rated_rows(rated, np.stack(shares, axis=1))
    copies = range(seed, seed + settings["copies"])
    weights = np.full(rated.height, settings["copied"] / max(1, len(copies)))
    parts = [first, *(replace(first, texts=swapped(first.texts, copy), weights=weights) for copy in copies)]
    statements = written_statements()
    texts = [statements["text"].to_list()]
    texts += [swapped(texts[0], copy + len(copies)) for copy in copies]
    columns = [LABELS.index(next(name for name in LABELS if MEANING[name] == label)) for label in statements["label"]]
    for copy in texts:
        weights = np.full(len(copy), settings["written"] / len(texts))
        parts.append(training.Rows(copy, np.eye(3)[columns], weights, *np.full((2, len(copy)), -1)))
    rows = training.Rows.joined(parts)
    read = features(states, settings["reads"], {"masked": rows.texts})
    generated = np.flatnonzero(rated["resource"] == RESOURCES[-1])
    facts = {"labels": list(LABELS), "reads": settings["reads"], "layers": settings["layers"], "sha256": states.sha256}
    heads, found = fit_calibrated(rows, read, settings, generated, facts)
    neutral = rated["most"].gather(generated).to_numpy() == NEUTRAL
    threshold = np.quantile(1 - found[neutral, LABELS.index("neutral")], 1 - settings["false_alarms"])
    worded = dict(zip(rated["masked_neutral"], first.folds, strict=True))
    folds = worded | dict(zip(first.texts, first.folds, strict=True))
    save_heads(replace(heads, threshold=threshold), folds, folder / "crowd2")
    return {"texts": len(read)}


def train_validity(rated: pl.DataFrame, half: str, *, folder: Path) -> dict[str, int]:
    """Train on rated statements (sentence, masked, cluster, quality) of a half, or all, and write the heads to
    people_valid/ in a folder; returns the number of training texts."""
    rated, states = half_of(rated, half), Encoder(minilm.locate(), VALIDITY["layers"])
    valid = valid_votes(rated)
    rows = rated_rows(rated, np.stack([1 - valid, valid], axis=1))
    texts = {"masked": rated["masked"].to_list(), "statement": rated["sentence"].to_list()}
    read = features(states, VALIDITY["reads"], texts)
    facts = {"labels": list(VALID), "reads": VALIDITY["reads"], "layers": VALIDITY["layers"], "sha256": states.sha256}
    heads, _ = fit_calibrated(rows, read, VALIDITY, np.arange(len(read)), facts | {"half": half})
    save_heads(heads, dict(zip(rows.texts, rows.folds, strict=True)), folder / "people_valid")
    return {"texts": len(read)}


def rated_rows(rated: pl.DataFrame, shares: np.ndarray) -> training.Rows:
    """Training rows of rated statements (masked, cluster), each left out by the heads of its folds."""
    subjects = np.array([fold_of(cluster) for cluster in rated["cluster"]])
    folds = np.array([fold_of(plain(text)) for text in rated["masked"]])
    return training.Rows(rated["masked"].to_list(), shares, np.ones(rated.height), subjects, folds)


def valid_votes(rated: pl.DataFrame) -> np.ndarray:
    """The share of raters who call each statement valid, (n,)."""
    return rated["quality"].list.eval(pl.element().cast(pl.Float64)).list.mean().to_numpy()


def half_of(rated: pl.DataFrame, half: str) -> pl.DataFrame:
    """Select the rated statements (masked, cluster) of a half of the clusters of targets, or all. A masked text that
    both halves have stays in one of them."""
    if half == "all":
        return rated
    rows = [(plain(text), fold_of(cluster) % 2) for text, cluster in rated.select("masked", "cluster").rows()]
    distinct, place = set(rows), ("first", "second").index(half)
    in_both = {text for text, own in distinct if (text, 1 - own) in distinct}
    kept = [own == place and (text not in in_both or fold_of(text) % 2 == place) for text, own in rows]
    return rated.filter(pl.Series(kept))


def fit_calibrated(
    rows: training.Rows, read: np.ndarray, settings: Facts, calibrated: np.ndarray, facts: Facts
) -> tuple[CrossFitted, np.ndarray]:
    """Fit heads on the features `read` (n, width) of rows, calibrated on some of these, each by the head that left it
    out; with these rows' probabilities. settings: decay, and steps of each head's search."""
    weight, bias = training.fit_crossed(rows, read, settings["decay"], settings["steps"])
    left_out = rows.subjects[calibrated], rows.folds[calibrated]
    logits = np.einsum("nd,ndc->nc", read[calibrated], weight[left_out]) + bias[left_out]
    slope, shift = training.calibrate(logits, rows.shares[calibrated])
    nothing = np.zeros(0, dtype=np.int64)
    heads = CrossFitted(slope * weight, slope * bias + shift, np.array(0.5), nothing, nothing, facts)
    return heads, softmax(slope * logits + shift, axis=-1)


def save_heads(heads: CrossFitted, folds: Mapping[str, int], folder: Path) -> None:
    """Write the heads with the hashes of their training texts and the folds of these."""
    marks = {hash_of(plain(text)): int(fold) for text, fold in folds.items()}
    hashes, marked = np.array(list(marks), dtype=np.int64), np.array(list(marks.values()), dtype=np.uint8)
    with replacing_folder(folder) as part:
        replace(heads, marks=hashes, marked=marked).save(part)


def measure_validity(rated: pl.DataFrame, *, folder: Path) -> Facts:
    """validity_figures of people_valid/ in the folder, by heads that learnt neither from a statement's text nor about
    its target."""
    columns = (rated[name].to_list() for name in ("sentence", "masked", "cluster"))
    return validity_figures(rated, PeopleValid(folder / PeopleValid.name).probabilities(*columns))


def validity_figures(rated: pl.DataFrame, found: np.ndarray) -> Facts:
    """{label of most raters, or all}/...: statements; the area under the ROC curve against the majority on validity of
    the probabilities found (n,) (auc), of the label's share of valid votes alone (polarity), and of one rater against
    two others (rater); and in percent the valid votes (valid) and the mean probability (found)."""
    label = pl.col("most").replace_strict(dict(CLASSES))
    table = rated.with_columns(pl.Series("valid", valid_votes(rated)), pl.Series("found", found), label=label)
    table = table.with_columns(alone=pl.col("valid").mean().over("most"))
    figures: Facts = {}
    for name in ("all", *CLASSES.values()):
        part = table if name == "all" else table.filter(label=name)
        accepted = part["valid"].to_numpy() > 0.5
        votes = np.array([quality[:3] for quality in part["quality"]], dtype=bool).reshape(-1, 3)  # a few have six
        row: Facts = {"statements": part.height, "auc": auc(part["found"].to_numpy(), accepted)}
        row |= {"polarity": auc(part["alone"].to_numpy(), accepted), "rater": auc_of_a_rater(votes)}
        row |= {key: 100 * part[key].to_numpy().mean() if part.height else None for key in ("valid", "found")}
        figures |= {f"{name}/{key}": value for key, value in row.items()}
    return figures


def measure_polarity(rated: pl.DataFrame, *, folder: Path) -> Facts:
    """{template}/{source, or all}/... of crowd2/ in the folder by heads that learnt neither from a statement's text nor
    about its target, against most raters, from 0 to 1. Raters read the sentences of the resources, in the paper's
    wording, whatever wording is labelled."""
    crowd, figures = Crowd2(folder / Crowd2.name), Facts()
    for template, column in zip(TEMPLATES, ("masked", "masked_neutral"), strict=True):
        probable = crowd.probabilities(rated[column].to_list(), rated["cluster"].to_list())
        labelled = rated.with_columns(pl.Series("label", polarity(probable, crowd.heads).label))
        for source in ("all", *rated["resource"].unique(maintain_order=True)):
            part = labelled if source == "all" else labelled.filter(resource=source)
            table = confusion(part["most"].to_numpy(), part["label"].to_numpy()).sum(0)
            figures |= {f"{template}/{source}/{name}": _known(figure(table)) for name, figure in AGAINST_MOST.items()}
    return figures


AGAINST_MOST = {"sensitivity": sensitivity, "specificity": specificity, "kappa": kappa, "macro_f1": macro_f1}


def _known(value: np.ndarray) -> float | None:
    return None if np.isnan(value) else float(value)


# classifier=plausibility: two networks that are trained from scratch on ConceptNet train100k, and their average


def run_plausibility(config: Config) -> float | None:
    """Train both networks and average their logits."""
    loaded = conceptnet.load(config.data.root, config.paths.cache, config.data.on_bad_line)
    say_notes(loaded.notices)
    triples = loaded.rows.with_columns(pl.col("head", "tail").str.to_lowercase())
    if (number := triples.filter(split="dev").height) < 2:
        raise MitigateError(
            f"the threshold of a plausibility classifier is chosen on labelled triples of split dev: {number} found, "
            "at least 2 are needed; give data.root=DIR with conceptnet100k/dev1.txt"
        )
    with open_study(config, triples) as job:
        both = [
            job.stage(name, train_plausibility, triples, name, settings, config.seed, using=job.training(name))
            for name, settings in NETWORKS.items()
        ]
        average = job.stage("average", average_networks, triples, after=both, using=in_folder())
        found = job.stage("metrics", measure_plausibility, triples, after=[average], using=in_folder()).facts()
        record(job, found, average="plausibility")
        return found["average/test/accuracy"]
    return None


def train_plausibility(
    triples: pl.DataFrame, phrases: str, settings: Facts, seed: int, *, folder: Path, fingerprint: str, log: Log
) -> Facts:
    """Train on the split train of triples (head, relation, tail, valid, split), choose the threshold on dev, and write
    the network to {phrases}/ of the folder; returns steps, seconds, triples_per_second and loss.

    phrases: their encoder, "words" or "minilm"; settings: as in NETWORKS. Checkpoints with that fingerprint are left in
    checkpoints/{phrases}/, for a killed training to continue from."""
    learnt, how = triples.filter(split="train"), {name: settings[name] for name in ("epochs", "learning_rate")}
    harness.seed(seed)
    relations = sorted(learnt["relation"].unique())
    network = Bilinear(minilm.locate(), relations, phrases, width=settings["width"], dropout=0.1)
    known, checkpoints = training.Known(learnt, network.relations), folder / "checkpoints" / phrases
    how["seed"] = seed
    found = training.fit_plausibility(
        network, known, training.Settings(**how), checkpoints, fingerprint=fingerprint, log=log
    )
    set_threshold(network, triples)
    with replacing_folder(folder / phrases) as part:  # safetensors leaves a file of its own where it is killed
        network.save(part)
    return found


def average_networks(triples: pl.DataFrame, *, folder: Path) -> dict[str, float]:
    """Average the two networks of the folder, choose the threshold on the split dev, and replace average/; returns its
    size in bytes."""
    network = Average([Bilinear.load(folder / name, minilm.locate()) for name in MEMBERS])
    set_threshold(network, triples)
    with replacing_folder(folder / "average") as part:
        network.save(part, made_of=folder)
    return {"bytes": sum(file.stat().st_size for file in (folder / "average").rglob("*") if file.is_file())}


def set_threshold(network: Average | Bilinear, triples: pl.DataFrame) -> None:
    """Shift the logits so that 0 is the threshold with the best accuracy on the split dev of labelled triples."""
    dev = triples.filter(split="dev")
    network.shift(-best_threshold(logits_of(network, dev), dev["valid"].to_numpy()))


def logits_of(network: Average | Bilinear, triples: pl.DataFrame) -> np.ndarray:
    """The logits of triples (head, relation, tail), (n,): above 0 is plausible."""
    return network.logits(*(triples[column].to_list() for column in ("head", "relation", "tail")))


def measure_plausibility(triples: pl.DataFrame, *, folder: Path) -> Facts:
    """average/...: plausibility_figures of the classifier of the folder."""
    figures = plausibility_figures(Average.load(folder / "average", minilm.locate()), triples)
    return {f"average/{key}": value for key, value in figures.items()}


def plausibility_figures(network: Average | Bilinear, triples: pl.DataFrame) -> Facts:
    """{dev1|dev2|test}/... from labelled triples; valid/{true|shuffled} on the true test triples as they are and with
    shuffled tails; valid/echo on targets as their own tails."""
    found: Facts = {}
    for name, split in {"dev1": "dev", "dev2": "dev2", "test": "test"}.items():
        labelled = triples.filter(split=split)
        plausible, valid = pl.Series(logits_of(network, labelled) > 0), labelled["valid"]
        found[f"{name}/triples"] = labelled.height
        found[f"{name}/accuracy"] = _share(plausible == valid)
        found[f"{name}/true_judged_valid"] = _share(plausible.filter(valid))
        found[f"{name}/false_judged_valid"] = _share(plausible.filter(~valid))
    true = triples.filter("valid", split="test")
    heads, named = pl.DataFrame({"head": list(targets())}), pl.DataFrame({"relation": list(network.relations)})
    shuffled = true.with_columns(tail=true["tail"].gather(np.random.default_rng(0).permutation(true.height)))
    echoes = heads.join(named, how="cross").with_columns(tail="head")
    for name, changed in {"true": true, "shuffled": shuffled, "echo": echoes}.items():
        found[f"valid/{name}"] = _share(pl.Series(logits_of(network, changed) > 0))
    return found


def _share(accepted: pl.Series) -> float | None:
    """The percentage of classified triples that are accepted; None without any."""
    mean: Any = accepted.mean()
    return None if mean is None else 100 * mean


# classifier=regard. First the encoder is trained whole, as a teacher. The shipped classifiers learn from the labels and
# from the teacher's probabilities, also of statements of train100k without a label and of copies that name groups: some
# of the teacher's layers with a low-rank part of their change, a gate before them, and the n-grams. A copy of a text
# with an identity term is trained towards the teacher's probabilities for the text itself, so that the term makes no
# difference (the pairing of Garg et al. 2019, Counterfactual Fairness in Text Classification through Robustness).


def run_regard(config: Config) -> float | None:
    """Train the teacher, then both classifiers."""
    texts = read_regard(root_with(config.data.root, ["regard", "humans", "conceptnet100k"]))
    parts = texts.labelled["part"].value_counts(sort=True).iter_rows()
    say(f"regard: seed {config.seed}; texts: " + ", ".join(f"{part} {count:,}" for part, count in parts))

    with open_study(config, texts) as job:

        def learn(name: str, *values: Any, after: Sequence[Result] = ()) -> Result:
            log = partial(job.tracking.log, stage=name)
            return job.stage(name, *values, seed=config.seed, using=in_folder(log=log), after=after)

        learnt = texts.labelled.filter(pl.col("part").is_in(["train", "valid"]))
        teacher = learn("teacher", train_teacher, learnt, TEACHER)
        values = teach, learnt, texts.unlabelled, LAYERS["copies"]
        taught = job.stage("taught", *values, seed=config.seed, after=[teacher], using=in_folder())
        layers = learn("minilm", train_layers, taught, LAYERS, after=[teacher])
        gate = learn("gate", train_gate, taught, texts.choosing, GATE, after=[layers])
        ngram = learn("ngram", train_ngram, texts.labelled, taught, NGRAM)
        after = [layers, gate, ngram]
        found = job.stage("metrics", measure_regard, texts.labelled, after=after, using=in_folder()).facts()
        record(job, found, minilm="regard-minilm", ngram="regard-ngram")
        return found["minilm/test/macro_f1"]
    return None


@dataclass(frozen=True)
class Texts:
    """Texts for training and measuring."""

    labelled: pl.DataFrame  # text, label, part: train, valid, test or people
    unlabelled: list[str]  # for training: written statements, and those of train100k
    choosing: list[str]  # of train100k, not in training, for the gate's threshold


DISTILLED = "bert_labels_conceptnet.tsv"
HUMAN = {"nlgbias_train_other.tsv": "train", "nlgbias_dev.tsv": "train", "nlgbias_test.tsv": "people"}
"""Sheng et al.'s test sentences are a part of their own: too few (30) to choose anything by."""
MOST = 12_000  # texts to choose the gate's threshold by
EMPTY = ("something anything object objects", "item it this stuff someone place word name")
"""Words of statements without content."""


def read_regard(root: Path) -> Texts:
    """Read the texts below a folder that holds regard/, humans/ and conceptnet100k/. No training text is a statement
    that the crowd rated, however masked, or names a target of part test."""
    crowd = read_crowd(root / "humans").rename({"sentence": "statement"})
    crowd = crowd.with_columns(masked=mask_column("statement", "token"))
    rated = {*crowd["masked"], *crowd["statement"]}
    for statement in crowd["statement"]:
        rated |= {statement.replace(target, MASK) for target in targets() if target in statement}
    # Statements without content are neutral whatever the wording of their relation.
    phrases = sorted({phrase for one in comet_relations() for phrase in (one.phrase, one.neutral_phrase)})
    ends = [pair for thing in " ".join(EMPTY).split() for pair in ((MASK, thing), (thing, MASK))]
    empty = pl.DataFrame({"text": [f"{head} {phrase} {tail}" for phrase in phrases for head, tail in ends]})
    empty = empty.with_columns(pl.lit(NEUTRAL, pl.Int8).alias("label"), part=pl.lit("train"))
    labelled = pl.concat([read_labelled(root / "regard", rated), empty]).unique(
        "text", keep="first", maintain_order=True
    )
    names = re.compile(any_of([target for target in targets() if part_of(target) == "test"]))
    learnt = labelled["part"].is_in(["train", "valid"]).to_list()
    kept = [not known or not names.search(text) for text, known in zip(labelled["text"], learnt, strict=True)]
    labelled = labelled.filter(pl.Series(kept))
    written = [text for text in written_statements()["text"] if text not in {*labelled["text"], *rated}]
    triples = conceptnet.read_triples(root / "conceptnet100k" / "train100k.txt", "train").rows
    taken = {*labelled["text"], *written} | rated
    first = sorted(masked_statements(triples.gather_every(3)) - taken)
    second = sorted(masked_statements(triples.gather_every(3, 1)) - taken - set(first))
    choosing = random.Random(0).sample(second, min(MOST, len(second)))
    unlabelled = [text for text in [*written, *first] if not names.search(text)]
    return Texts(labelled, unlabelled, choosing)


def read_labelled(folder: Path, kept_out: Collection[str] = ()) -> pl.DataFrame:
    """Each distinct text with its label and part: train, valid, test or people.

    A target is in one part, which depends only on its name and not on a seed. All texts of test's targets are in test;
    of the rest all texts of valid's targets are in valid. Hence no text is in two parts, and no tested text occurs with
    another target elsewhere. Texts in `kept_out` are in no part. Raises MitigateError when a file is missing."""

    def read(name: str, *columns: str) -> pl.DataFrame:
        kinds: Facts = {"separator": "\t", "has_header": False, "quote_char": None}
        return pl.read_csv(folder / name, new_columns=list(columns), schema_overrides={"label": pl.Int8}, **kinds)

    if missing := [name for name in (DISTILLED, *HUMAN) if not (folder / name).is_file()]:
        raise MitigateError(f"{folder} lacks {', '.join(missing)}; data.root must name the folder that has regard/")
    distilled = read(DISTILLED, "target", "label", "text")  # a row for each target that a text names
    parts = {target: part_of(target) for target in distilled["target"].unique()}
    part = pl.col("target").replace_strict(parts, return_dtype=pl.Enum(["test", "valid", "train"])).alias("part")
    distilled = distilled.group_by("text").agg(pl.col("label").first(), part.min().cast(pl.String))
    human = pl.concat(read(name, "label", "text").with_columns(part=pl.lit(part)) for name, part in HUMAN.items())
    human = human.select(pl.col("text").str.replace_all("XYZ", MASK), "label", "part")
    labelled = pl.concat([distilled, human]).unique("text", keep="first", maintain_order=True)
    return labelled.filter(~pl.col("text").is_in(list(kept_out))).sort("part", "text")


def part_of(target: str) -> str:
    """The part of a target: two of ten are for testing, one for choosing settings, seven for training."""
    digit = int(hashlib.sha256(target.encode()).hexdigest(), 16) % 10
    return {0: "test", 1: "test", 2: "valid"}.get(digit, "train")


def masked_statements(triples: pl.DataFrame) -> set[str]:
    """Statements of triples of train100k: whole, as the main job scores them; about "this person", with the head or the
    tail replaced; and, for a wide vocabulary, of head and tail as related to "this person"."""
    phrases = {name: relation.phrase for name, relation in relations().items()}
    phrase = pl.col("relation").replace_strict(phrases, return_dtype=pl.String)
    head, tail = (pl.col(end).str.to_lowercase() for end in ("head", "tail"))
    anyone, related = pl.lit(MASK), pl.lit("is related to")
    whole = pl.concat_str(head, phrase, tail, separator=" ").alias("statement")
    others = [(anyone, phrase, tail), (head, phrase, anyone), (head, related, anyone), (tail, related, anyone)]
    found = set(triples.select(whole).select(mask_column("statement", "token")).to_series())
    return found.union(*(triples.select(pl.concat_str(parts, separator=" ")).to_series() for parts in others))


# Texts that name groups


def written_statements() -> pl.DataFrame:
    """The frames of the split train and the predicates, about "this person": text, label. Denied kindness is unkind,
    any other denied predicate neutral."""
    label = {"neutral": NEUTRAL, "kind": FAVOURITISM, "unkind": PREJUDICE}
    frames = read_frames().filter(split="train", number="singular")
    rows = [(masked(frame, MASK), label[polar]) for frame, polar in frames.select("frame", "polarity").rows()]
    for affirmed, denied, polar in read_predicates().select("affirmed", "denied", "polarity").rows():
        rows.append((f"{MASK} {affirmed}", label[polar]))
        rows.append((f"{MASK} {denied}", PREJUDICE if polar == "kind" else NEUTRAL))
    return pl.DataFrame(rows, schema={"text": pl.String, "label": pl.Int8}, orient="row")


def terms() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(term, plural) of the identity terms of training, and of the paper's targets that are not of part test and share
    no word with an identity term of testing."""

    def words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text)) - {"person", "people", "with", "a"}

    listed = read_terms()
    tested = {
        word
        for pair in listed.filter(split="test").select("term", "plural").rows()
        for text in pair
        for word in words(text)
    }
    identity = pl.concat([listed.filter(split="train").select("term", "plural"), read_further_terms()[:, :2]]).rows()
    paper = [(target, list(with_plurals(target))[-1]) for target in targets() if part_of(target) != "test"]
    return identity, [pair for pair in paper if not tested & {word for text in pair for word in words(text)}]


SINGULAR, BARE = 0.5, 0.2  # shares of the copies with "a term" and "term"; the others have the plural
OF_PAPER = 0.4  # share of the copies with a target of the paper
PLURAL_VERBS = {"is": "are", "has": "have", "does": "do", "was": "were", "isn't": "aren't"}


def swapped(texts: Sequence[str], seed: int) -> list[str]:
    """Put a term in place of every "this person", drawn for each text: with its article, bare, or in the plural, and
    then with the plural of the verb behind it if it is a common one."""
    chance = np.random.default_rng(seed)
    identity, paper = terms()
    found = []
    for text, of_paper, form in zip(texts, chance.random(len(texts)), chance.random(len(texts)), strict=True):
        pool = paper if of_paper < OF_PAPER else identity
        one, many = pool[chance.integers(len(pool))]
        if form < SINGULAR + BARE:
            found.append(text.replace(MASK, f"{article(one)} {one}" if form < SINGULAR else one))
        else:
            verb = re.sub(rf"{MASK} (\S+)", lambda verb: f"{MASK} {PLURAL_VERBS.get(verb[1], verb[1])}", text)
            found.append(verb.replace(MASK, many))
    return found


def with_copies(labelled: pl.DataFrame, taught: pl.DataFrame, copies: Mapping[str, float], seed: int) -> pl.DataFrame:
    """Add to the taught texts (text, probabilities) their copies with identity terms, with training probabilities: for
    labelled texts, which come first, half the label and half the teacher's; for statements written for training their
    labels, since the teacher, which agreed less with the other labels when trained on them, was not.

    copies: numbers of copies of each statement written for training ("written"), of other texts that are not plainly
    neutral ("polar"), and of plainly neutral ones ("neutral"); of a fraction, copies of as large a share of the texts,
    drawn at random."""
    texts = taught["text"].to_numpy()
    wanted = taught["probabilities"].to_numpy().astype(np.float32)
    wanted[: labelled.height] = 0.5 * wanted[: labelled.height] + 0.5 * training.certain(labelled["label"])
    statements = written_statements()
    columns = dict(zip(statements["text"], training.certain(statements["label"]), strict=True))
    written = np.array([text in columns for text in texts]) & (np.arange(len(texts)) >= labelled.height)
    if written.any():
        wanted[written] = np.stack([columns[text] for text in texts[written]])
    plainly = wanted[:, training.NEUTRAL] >= training.PLAINLY
    often = np.where(written, copies["written"], np.where(plainly, copies["neutral"], copies["polar"]))
    often = np.where([MASK in text for text in texts], often, 0)
    whole = (often + np.random.default_rng(seed).random(len(often))).astype(int)
    sources = np.repeat(np.arange(len(texts)), whole)
    every = [*texts, *swapped([texts[i] for i in sources], seed)]
    return pl.DataFrame({"text": every, "probabilities": np.concatenate([wanted, wanted[sources]])})


# Training of regard

TEACHER_FILE = "teacher.safetensors"
KEPT = 0.999  # share of the classifier's polarised labels that the gate keeps on the texts its threshold is chosen by
NEVER_LESS = 0.5  # a threshold, so that texts that the gate passes are neutral by its own probabilities


def train_teacher(labelled: pl.DataFrame, settings: Facts, *, seed: int, folder: Path, log: Log) -> dict[str, int]:
    """Train the whole encoder on labelled texts (text, label) and write it to the folder; returns the number of
    texts. settings: of training.fit_regard."""
    harness.seed(seed)  # the head's first weights are drawn when it is built
    teacher, wanted = MiniLMClassifier(minilm.locate(), None), training.certain(labelled["label"])
    training.fit_regard(teacher, teacher.encode(labelled["text"].to_list()), wanted, settings, seed=seed, log=log)
    write(folder / TEACHER_FILE, save(teacher.state_dict()))
    return {"texts": labelled.height}


def load_teacher(folder: Path) -> MiniLMClassifier:
    """Load the teacher as it was trained, in full precision."""
    teacher = MiniLMClassifier(minilm.locate(), None)
    teacher.load_state_dict(load_file(folder / TEACHER_FILE))
    return teacher.eval()


def teach(
    labelled: pl.DataFrame, unlabelled: list[str], copies: Mapping[str, float], *, seed: int, folder: Path
) -> pl.DataFrame:
    """The training texts with copies and probabilities, as with_copies, by the teacher of the folder."""
    texts = labelled["text"].to_list() + unlabelled
    teacher = load_teacher(folder)
    return with_copies(
        labelled, pl.DataFrame({"text": texts, "probabilities": teacher.probabilities(texts)}), copies, seed
    )


def train_layers(taught: pl.DataFrame, settings: Facts, *, seed: int, folder: Path, log: Log) -> dict[str, int]:
    """Train on the result of teach, and write minilm/ to the folder, which has the teacher; returns the number of
    texts. settings: rank, layers, and those of training.fit_regard."""
    harness.seed(seed)  # low-rank weights are random until they take the teacher's change
    classifier = MiniLMClassifier(minilm.locate(), settings["rank"], settings["layers"])
    classifier.take(load_teacher(folder))
    rows, wanted = classifier.encode(taught["text"].to_list()), taught["probabilities"].to_numpy()
    training.fit_regard(classifier, rows, wanted, settings, seed=seed, log=log)
    with replacing_folder(folder / "minilm") as part:
        classifier.save(part)
    return {"texts": taught.height}


def train_gate(
    taught: pl.DataFrame, unseen: list[str], settings: Facts, *, seed: int, folder: Path, log: Log
) -> dict[str, float]:
    """Train the gate towards the probabilities of the classifier in minilm/ of the folder on the classifier's training
    texts, set its threshold by texts that neither was trained on, and write it there; returns the threshold
    and the share of those texts that it passes. settings: channels, and those of training.fit_regard."""
    classifier = MiniLMClassifier.load(folder / "minilm", minilm.locate())
    rows = classifier.encode(taught["text"].to_list())
    harness.seed(seed)
    gate = Gate(minilm.locate(), settings["channels"])
    training.fit_regard(gate, rows, classifier.read(rows), settings, seed=seed, log=log)
    found = Cascade(gate, classifier, 1.0).opinions(classifier.encode(unseen))[:, REGARD.index("neutral")]
    polarised = np.isin(classifier.probabilities(unseen).argmax(1), [training.NEGATIVE, training.POSITIVE])
    lost = float(np.quantile(found[polarised], KEPT, method="higher")) if polarised.any() else NEVER_LESS
    threshold = max(NEVER_LESS, lost)
    with replacing_folder(folder / "minilm") as part:
        shutil.copytree(folder / "minilm", part, dirs_exist_ok=True)
        Cascade(gate, classifier, threshold).save(part)
    return {"threshold": threshold, "passes": float((found > threshold).mean())}


def train_ngram(
    labelled: pl.DataFrame, taught: pl.DataFrame, settings: Facts, *, seed: int, folder: Path, log: Log
) -> dict[str, int]:
    """Train on the labelled texts (text, label, part) of part train, and on those of the result of teach that are not
    labelled; write ngram/ to the folder; returns the number of texts. settings: of training.fit_ngram."""
    rest = taught.filter(~pl.col("text").is_in(labelled["text"].implode()))
    classifier = training.fit_ngram(labelled, rest, settings, seed=seed, log=log)
    with replacing_folder(folder / "ngram") as part:
        classifier.save(part)
    return {"texts": labelled.height + rest.height}


# Figures of regard


def measure_regard(labelled: pl.DataFrame, *, folder: Path) -> Facts:
    """{minilm|ngram}/{test|people}/... of the classifiers of a folder, from labelled texts (text, label, part). "Other"
    counts as neutral; always_neutral is the accuracy of labelling every text so. recipe=agreement compares them with
    people's ratings."""
    found: Facts = {}
    scorers: dict[str, Any] = {"minilm": MiniLMRegard(folder / "minilm"), "ngram": NgramRegard(folder / "ngram")}
    for name, scorer in scorers.items():
        for part in ("test", "people"):
            texts = labelled.filter(part=part)
            true = fold_other(texts["label"].to_numpy())
            figures = classification(true, fold_other(scorer(texts["text"].to_list()).label))
            figures |= {"texts": texts.height, "always_neutral": float((true == NEUTRAL).mean())}
            found |= {f"{name}/{part}/{key}": value for key, value in figures.items()}
    return found
