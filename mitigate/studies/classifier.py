"""recipe=classifier: trains a classifier that comes with the project again and measures it on statements and targets
that were left out. The trained folders are left in the run folder.

    python -m mitigate recipe=classifier classifier=regard|plausibility|people data.root=DIR"""

import hashlib
import random
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import softmax

from mitigate.files import replacing_folder
from mitigate.load import corpus
from mitigate.load.ratings import RESOURCES, read_crowd, read_rated
from mitigate.load.statements import root_with
from mitigate.measure import agreement
from mitigate.measure.quality import best_threshold
from mitigate.measure.results import of_study
from mitigate.models.encoder import Cascade, Encoder, Gate, MiniLMClassifier, States
from mitigate.models.heads import LABELS, REGARD, CrossFitted, fold_of, hash_of
from mitigate.models.plausibility import MEMBERS, Average, Bilinear
from mitigate.models.stored_tensors import minilm_folder
from mitigate.recipes.config import Config
from mitigate.recipes.job import Job, open_job, say, say_notes
from mitigate.score.people import MEANING, VALID, Crowd2, PeopleValid, features, plain, polarity
from mitigate.score.regard import MiniLMRegard, NgramRegard
from mitigate.stages import Result, in_folder
from mitigate.train import classifiers as training
from mitigate.train import harness
from mitigate.train.harness import Log
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, fold_other
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
TEACHER: Facts = {"learning_rate": 0.0001, "epochs": 3, "batch_size": 64, "neutral_share": 0.5}
LAYERS: Facts = {  # of all-MiniLM-L6-v2, with a change of low rank: 3.4 MB in half precision
    **{"layers": [0, 2, 4], "rank": 80, "learning_rate": 0.0003, "epochs": 2, "batch_size": 64, "neutral_share": 0.4},
    # copies of a text, with an identity term in place of "this person"; 0.2: of every fifth
    "copies": {"written": 8, "polar": 1.5, "neutral": 0.2},
}
GATE: Facts = {"channels": 128, "learning_rate": 0.003, "epochs": 3, "batch_size": 64, "neutral_share": 1.0}
KEPT = 0.999  # share of the classifier's polarised labels that the gate keeps on the texts its threshold is chosen by
NEVER_LESS = 0.5  # a threshold, so that texts that the gate passes are neutral by its own probabilities
NGRAM: Facts = {"buckets": 262144, "learning_rate": 0.05, "decay": 0.000001, "epochs": 5, "batch_size": 256}
SHOWN = ("test/accuracy", "test/macro_f1", "paper/all/kappa", "people_valid/all/auc")


def record(job: Job, metrics: Facts, **folders: str) -> None:
    """Record the figures, and upload the trained folders (folder=name in W&B)."""
    job.stage("results", of_study, metrics)
    if job.is_new():
        job.tracking.summarise(metrics)
        for folder, name in folders.items():
            job.tracking.artifact(name, "model", job.folder / folder, metrics)
        shown = {key: value for key, value in metrics.items() if key.endswith(SHOWN)}
        say("\n".join(f"  {key:<40}{value:.4g}" for key, value in shown.items()))


# classifier=people: people_valid and crowd2


def run_people(config: Config) -> float | None:
    """Train heads on people's ratings that each leave out a fold of targets and a fold of texts."""
    root = root_with(config.data.root, ["humans"])
    rated, with_quality = read_rated(root), read_rated(root, RESOURCES[-1:])
    say(f"people: {with_quality.height:,} statements rated for validity, {rated.height:,} for polarity")
    with open_job(config, f"people-seed{config.seed}", [rated, with_quality]) as job:
        valid = job.stage("people_valid", train_validity, with_quality, using=in_folder())
        crowd = job.stage("crowd2", train_polarity, rated, config.seed, using=in_folder())
        figures = job.stage("metrics", measure_people, rated, with_quality, after=[valid, crowd], using=in_folder())
        metrics = figures.facts()
        record(job, metrics, people_valid="people_valid", crowd2="crowd2")
        return metrics["people_valid/all/auc"]
    return None


def train_polarity(rated: pl.DataFrame, seed: int, *, folder: Path, states: States | None = None) -> dict[str, int]:
    """Train on rated statements (resource, masked, masked_neutral, cluster, votes, most), their copies and written
    statements, and write the heads to crowd2/ in a folder; returns the number of training texts. states: another
    network to read with."""
    settings, states = POLARITY, states or Encoder(minilm_folder(), POLARITY["layers"])
    shares = [rated["votes"].list.count_matches(MEANING[label]) / rated["votes"].list.len() for label in LABELS]
    first = rated_rows(rated, np.stack(shares, axis=1))
    copies = range(seed, seed + settings["copies"])
    weights = np.full(rated.height, settings["copied"] / len(copies))
    parts = [first, *(replace(first, texts=swapped(first.texts, copy), weights=weights) for copy in copies)]
    statements = written_statements()
    texts = [statements["text"].to_list()]
    texts += [swapped(texts[0], copy + len(copies)) for copy in copies]
    columns = [LABELS.index(next(name for name in LABELS if MEANING[name] == label)) for label in statements["label"]]
    weights = np.full(len(columns), settings["written"] / len(texts))
    by_all = np.full((2, len(columns)), -1)  # every head learns from them
    parts += [training.Rows(copy, np.eye(3)[columns], weights, *by_all) for copy in texts]
    rows = training.Rows.joined(parts)
    read = features(states, settings["reads"], {"masked": rows.texts})
    generated = np.flatnonzero(rated["resource"] == RESOURCES[-1])
    facts = {"labels": list(LABELS), "reads": settings["reads"], "layers": settings["layers"], "sha256": states.sha256}
    folds = dict(zip([*rated["masked_neutral"], *first.texts], [*first.folds, *first.folds], strict=True))
    heads, probabilities = fit_heads(rows, read, settings, generated, facts, folds)
    neutral = rated["most"].gather(generated).to_numpy() == NEUTRAL
    threshold = np.quantile(1 - probabilities[neutral, LABELS.index("neutral")], 1 - settings["false_alarms"])
    with replacing_folder(folder / "crowd2") as part:
        replace(heads, threshold=threshold).save(part)
    return {"texts": len(read)}


def train_validity(rated: pl.DataFrame, *, folder: Path) -> dict[str, int]:
    """Train on rated statements (sentence, masked, cluster, quality), and write the heads to people_valid/ in a folder;
    returns the number of training texts."""
    states, valid = Encoder(minilm_folder(), VALIDITY["layers"]), valid_votes(rated)
    rows = rated_rows(rated, np.stack([1 - valid, valid], axis=1))
    read = features(states, VALIDITY["reads"], {"masked": rows.texts, "statement": rated["sentence"].to_list()})
    facts = {"labels": list(VALID), "reads": VALIDITY["reads"], "layers": VALIDITY["layers"], "sha256": states.sha256}
    folds = dict(zip(rows.texts, rows.folds, strict=True))
    heads = fit_heads(rows, read, VALIDITY, np.arange(len(read)), facts, folds)[0]
    with replacing_folder(folder / "people_valid") as part:
        heads.save(part)
    return {"texts": len(read)}


def rated_rows(rated: pl.DataFrame, shares: np.ndarray) -> training.Rows:
    """Training rows of rated statements (masked, cluster), each left out by the heads of its folds."""
    subjects = np.array([fold_of(cluster) for cluster in rated["cluster"]])
    folds = np.array([fold_of(plain(text)) for text in rated["masked"]])
    return training.Rows(rated["masked"].to_list(), shares, np.ones(rated.height), subjects, folds)


def valid_votes(rated: pl.DataFrame) -> np.ndarray:
    """The share of raters who call each statement valid, (n,)."""
    return rated["quality"].list.eval(pl.element().cast(pl.Float64)).list.mean().to_numpy()


def fit_heads(
    rows: training.Rows, read: np.ndarray, settings: Facts, checked: np.ndarray, facts: Facts, folds: dict[str, int]
) -> tuple[CrossFitted, np.ndarray]:
    """Fit heads on the features `read` (n, width) of rows, calibrated on those checked, each by the head that left it
    out; with these rows' probabilities. settings: decay, and steps of each head's search; folds: of training texts."""
    weight, bias = training.fit_crossed(rows, read, settings["decay"], settings["steps"])
    left_out = rows.subjects[checked], rows.folds[checked]
    logits = np.einsum("nd,ndc->nc", read[checked], weight[left_out]) + bias[left_out]
    slope, shift = training.calibrate(logits, rows.shares[checked])
    marks = {hash_of(plain(text)): int(fold) for text, fold in folds.items()}
    hashes, marked = np.array(list(marks), dtype=np.int64), np.array(list(marks.values()), dtype=np.uint8)
    heads = CrossFitted(slope * weight, slope * bias + shift, np.array(0.5), hashes, marked, facts)
    return heads, softmax(slope * logits + shift, axis=-1)


def measure_people(rated: pl.DataFrame, with_quality: pl.DataFrame, *, folder: Path) -> Facts:
    """people_valid/...: validity_figures; crowd2/paper/{source, or all}/...: sensitivity, specificity and kappa against
    most raters, from 0 to 1. Both by heads that learnt neither from a statement's text nor about its target."""
    asked = (with_quality[name].to_list() for name in ("sentence", "masked", "cluster"))
    valid, crowd = PeopleValid(folder / "people_valid").probabilities(*asked), Crowd2(folder / "crowd2")
    figures = {f"people_valid/{key}": value for key, value in validity_figures(with_quality, valid).items()}
    probable = crowd.probabilities(rated["masked"].to_list(), rated["cluster"].to_list())
    labelled = rated.with_columns(pl.Series("label", polarity(probable, crowd.heads).label))
    for source in ("all", *rated["resource"].unique(maintain_order=True)):
        part = labelled if source == "all" else labelled.filter(resource=source)
        table = agreement.confusion(part["most"].to_numpy(), part["label"].to_numpy()).sum(0)
        for figure in (agreement.sensitivity, agreement.specificity, agreement.kappa):
            figures[f"crowd2/paper/{source}/{figure.__name__}"] = float(figure(table))
    return figures


def validity_figures(rated: pl.DataFrame, probabilities: np.ndarray) -> Facts:
    """{label of most raters, or all}/...: the areas under the ROC curve, against the majority on validity, of the
    probabilities (n,) (auc) and of one rater against two others (rater)."""
    columns = pl.Series("valid", valid_votes(rated)), pl.Series("probability", probabilities)
    table, figures = rated.with_columns(columns), Facts()
    for label, name in zip((None, *agreement.CLASSES), ("all", *agreement.CLASSES.values()), strict=True):
        part = table if label is None else table.filter(most=label)
        votes = np.array([quality[:3] for quality in part["quality"]], dtype=bool).reshape(-1, 3)  # a few have six
        figures[f"{name}/auc"] = agreement.auc(part["probability"].to_numpy(), part["valid"].to_numpy() > 0.5)
        figures[f"{name}/rater"] = agreement.auc_of_a_rater(votes)
    return figures


# classifier=plausibility: two networks that are trained from scratch on ConceptNet train100k, and their average


def run_plausibility(config: Config) -> float | None:
    """Train both networks and average their logits."""
    loaded = corpus.load(config.data.root, config.paths.cache, config.data.on_bad_line)
    say_notes(loaded.notices)
    triples = loaded.rows.with_columns(pl.col("head", "tail").str.to_lowercase())
    with open_job(config, f"plausibility-seed{config.seed}", triples) as job:
        both = [
            job.stage(name, train_plausibility, triples, name, settings, config.seed, using=job.training(name))
            for name, settings in NETWORKS.items()
        ]
        metrics = job.stage("metrics", average_networks, triples, after=both, using=in_folder()).facts()
        record(job, metrics, average="plausibility")
        return metrics["average/test/accuracy"]
    return None


def train_plausibility(
    triples: pl.DataFrame, phrases: str, settings: Facts, seed: int, *, folder: Path, fingerprint: str, log: Log
) -> Facts:
    """Train on the split train of triples (head, relation, tail, valid, split), choose the threshold on dev, and write
    the network to {phrases}/ of the folder, resuming from checkpoints/ there with that fingerprint; returns steps,
    seconds, triples_per_second and loss. phrases: "words" or "minilm"."""
    harness.seed(seed)
    learnt = triples.filter(split="train")
    relations = sorted(learnt["relation"].unique())
    network = Bilinear(minilm_folder(), relations, phrases, width=settings["width"], dropout=0.1)
    known, checkpoints = training.Known(learnt, network.relations), folder / "checkpoints" / phrases
    how = training.Settings(settings["epochs"], settings["learning_rate"], seed=seed)
    facts = training.fit_plausibility(network, known, how, checkpoints, fingerprint=fingerprint, log=log)
    set_threshold(network, triples)
    with replacing_folder(folder / phrases) as part:  # safetensors leaves a file of its own where it is killed
        network.save(part)
    return facts


def average_networks(triples: pl.DataFrame, *, folder: Path) -> Facts:
    """Average the two networks of the folder, choose the threshold on the split dev, and write average/; returns
    average/...: its plausibility_figures."""
    network = Average([Bilinear.load(folder / name, minilm_folder()) for name in MEMBERS])
    set_threshold(network, triples)
    with replacing_folder(folder / "average") as part:
        network.save(part, made_of=folder)
    figures = plausibility_figures(Average.load(folder / "average", minilm_folder()), triples)
    return {f"average/{key}": value for key, value in figures.items()}


def set_threshold(network: Average | Bilinear, triples: pl.DataFrame) -> None:
    """Shift the logits so that 0 is the threshold with the best accuracy on the split dev of labelled triples."""
    dev = triples.filter(split="dev")
    network.shift(-best_threshold(logits_of(network, dev), dev["valid"].to_numpy()))


def logits_of(network: Average | Bilinear, triples: pl.DataFrame) -> np.ndarray:
    """The logits of triples (head, relation, tail), (n,): above 0 is plausible."""
    return network.logits(*(triples[column].to_list() for column in ("head", "relation", "tail")))


def plausibility_figures(network: Average | Bilinear, triples: pl.DataFrame) -> Facts:
    """Percentages, {dev1|dev2|test}/... from labelled triples: accuracy, and the shares of true and of false ones that
    are accepted; valid/shuffled: accepted of true test triples with shuffled tails."""
    figures: Facts = {}
    for name, split in {"dev1": "dev", "dev2": "dev2", "test": "test"}.items():
        labelled = triples.filter(split=split)
        plausible, valid = logits_of(network, labelled) > 0, labelled["valid"].to_numpy()
        figures[f"{name}/accuracy"] = 100 * float((plausible == valid).mean())
        figures[f"{name}/true_judged_valid"] = 100 * float(plausible[valid].mean())
        figures[f"{name}/false_judged_valid"] = 100 * float(plausible[~valid].mean())
    true = triples.filter("valid", split="test")
    shuffled = true.with_columns(tail=true["tail"].gather(np.random.default_rng(0).permutation(true.height)))
    figures["valid/shuffled"] = 100 * float((logits_of(network, shuffled) > 0).mean())
    return figures


# classifier=regard. The whole encoder is trained as a teacher. Classifiers learn from the labels and its probabilities,
# also of texts without a label and of copies with an identity term, which get those of the text itself, so that the
# term makes no difference (Garg et al. 2019, Counterfactual Fairness in Text Classification through Robustness).


def run_regard(config: Config) -> float | None:
    """Train both classifiers."""
    texts = read_regard(root_with(config.data.root, ["regard", "humans", "conceptnet100k"]))
    labelled, unlabelled, choosing = texts
    parts = ", ".join(f"{part} {count:,}" for part, count in labelled["part"].value_counts(sort=True).iter_rows())
    say(f"regard: seed {config.seed}; texts: {parts}")
    with open_job(config, f"regard-seed{config.seed}", texts) as job:

        def learn(name: str, *values: Any, after: Sequence[Result] = ()) -> Result:
            using = in_folder(log=partial(job.tracking.log, stage=name))
            return job.stage(name, *values, config.seed, using=using, after=after)

        taught = learn("minilm", train_layers, labelled, unlabelled)
        gate = learn("gate", train_gate, taught, choosing, after=[taught])
        both = [gate, learn("ngram", train_ngram, labelled, taught)]
        metrics = job.stage("metrics", measure_regard, labelled, after=both, using=in_folder()).facts()
        record(job, metrics, minilm="regard-minilm", ngram="regard-ngram")
        return metrics["minilm/test/macro_f1"]
    return None


HUMAN = {"nlgbias_train_other.tsv": "train", "nlgbias_dev.tsv": "train", "nlgbias_test.tsv": "people"}
"""Sheng et al.'s test sentences are a part of their own: too few (30) to choose anything by."""
MOST = 12_000  # texts to choose the gate's threshold by
EMPTY = "something anything object objects item it this stuff someone place word name"
"""Words of statements without content, which are neutral whatever the wording of their relation."""


def read_regard(root: Path) -> tuple[pl.DataFrame, list[str], list[str]]:
    """Labelled texts (text, label, part: train, valid, test or people) of regard/ below a folder; unlabelled ones for
    training, written statements and those of train100k; and others of train100k, for the gate's threshold. No training
    text is a statement that the crowd rated, however masked, or names a target of part test."""
    crowd = read_crowd(root / "humans").rename({"sentence": "statement"})
    rated = {*crowd.select(mask_column("statement", "token")).to_series(), *crowd["statement"]}
    for statement in crowd["statement"]:
        rated |= {statement.replace(target, MASK) for target in targets() if target in statement}
    phrases = sorted({phrase for one in comet_relations() for phrase in (one.phrase, one.neutral_phrase)})
    ends = [pair for thing in EMPTY.split() for pair in ((MASK, thing), (thing, MASK))]
    empty = pl.DataFrame({"text": [f"{head} {phrase} {tail}" for phrase in phrases for head, tail in ends]})
    empty = empty.with_columns(pl.lit(NEUTRAL, pl.Int8).alias("label"), part=pl.lit("train"))
    labelled = pl.concat([read_labelled(root / "regard", rated), empty])
    labelled = labelled.unique("text", keep="first", maintain_order=True)
    names = re.compile(any_of([target for target in targets() if part_of(target) == "test"]))
    naming = pl.Series([names.search(text) is not None for text in labelled["text"]])
    labelled = labelled.filter(~(naming & labelled["part"].is_in(["train", "valid"])))
    written = [text for text in written_statements()["text"] if text not in {*labelled["text"], *rated}]
    triples = corpus.read_triples(root / "conceptnet100k" / "train100k.txt", "train").rows
    taken = {*labelled["text"], *written} | rated
    first = sorted(masked_statements(triples.gather_every(3)) - taken)
    second = sorted(masked_statements(triples.gather_every(3, 1)) - taken - set(first))
    choosing = random.Random(0).sample(second, min(MOST, len(second)))
    return labelled, [text for text in [*written, *first] if not names.search(text)], choosing


def read_labelled(folder: Path, kept_out: Collection[str] = ()) -> pl.DataFrame:
    """Each distinct text with its label and part: train, valid, test or people. All texts of test's targets are in
    test; of the rest all texts of valid's targets are in valid. Hence no text is in two parts, and no tested text
    occurs with another target elsewhere. Texts in `kept_out` are in no part."""

    def read(name: str, columns: list[str]) -> pl.DataFrame:
        table = pl.read_csv(folder / name, separator="\t", has_header=False, quote_char=None, new_columns=columns)
        return table.with_columns(pl.col("label").cast(pl.Int8))

    distilled = read("bert_labels_conceptnet.tsv", ["target", "label", "text"])  # a row for each target of a text
    parts = {target: part_of(target) for target in distilled["target"].unique()}
    part = pl.col("target").replace_strict(parts, return_dtype=pl.Enum(["test", "valid", "train"])).alias("part")
    distilled = distilled.group_by("text").agg(pl.col("label").first(), part.min().cast(pl.String))
    human = pl.concat(read(name, ["label", "text"]).with_columns(part=pl.lit(part)) for name, part in HUMAN.items())
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
    phrase = pl.col("relation").replace_strict({name: one.phrase for name, one in relations().items()})
    head, tail = (pl.col(end).str.to_lowercase() for end in ("head", "tail"))
    anyone, related = pl.lit(MASK), pl.lit("is related to")
    whole = pl.concat_str(head, phrase, tail, separator=" ").alias("statement")
    others = [(anyone, phrase, tail), (head, phrase, anyone), (head, related, anyone), (tail, related, anyone)]
    statements = set(triples.select(whole).select(mask_column("statement", "token")).to_series())
    return statements.union(*(triples.select(pl.concat_str(parts, separator=" ")).to_series() for parts in others))


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
    listed = read_terms().select("term", "plural", "split")
    tested = set(" ".join(" ".join(pair[:2]) for pair in listed.filter(split="test").rows()).split())
    tested -= {"person", "people", "with", "a"}
    identity = pl.concat([listed.filter(split="train")[:, :2], read_further_terms()[:, :2]]).rows()
    paper = [(target, list(with_plurals(target))[-1]) for target in targets() if part_of(target) != "test"]
    return identity, [pair for pair in paper if not tested & set(" ".join(pair).split())]


SINGULAR, BARE = 0.5, 0.2  # shares of the copies with "a term" and "term"; the others have the plural
OF_PAPER = 0.4  # share of the copies with a target of the paper
PLURAL_VERBS = {"is": "are", "has": "have", "does": "do", "was": "were", "isn't": "aren't"}


def swapped(texts: Sequence[str], seed: int) -> list[str]:
    """Put a term in place of every "this person", drawn for each text: with its article, bare, or in the plural, and
    then with the plural of a common verb behind it."""
    rng = np.random.default_rng(seed)
    identity, paper = terms()
    copies = []
    for text, of_paper, form in zip(texts, rng.random(len(texts)), rng.random(len(texts)), strict=True):
        pool = paper if of_paper < OF_PAPER else identity
        singular, plural = pool[rng.integers(len(pool))]
        if form < SINGULAR + BARE:
            copies.append(text.replace(MASK, f"{article(singular)} {singular}" if form < SINGULAR else singular))
        else:
            text = re.sub(rf"{MASK} (\S+)", lambda verb: f"{MASK} {PLURAL_VERBS.get(verb[1], verb[1])}", text)
            copies.append(text.replace(MASK, plural))
    return copies


def with_copies(labelled: pl.DataFrame, taught: pl.DataFrame, copies: Mapping[str, float], seed: int) -> pl.DataFrame:
    """Add to the taught texts (text, probabilities) their copies with identity terms, with training probabilities: for
    labelled texts, which come first, half the label and half the teacher's; for written statements their labels, since
    the teacher, which agreed less with the other labels when trained on them, was not.

    copies: numbers of copies of each written statement, of other texts that are not plainly neutral ("polar"), and of
    plainly neutral ones; of a fraction, copies of as large a share of the texts, drawn at random."""
    texts = taught["text"].to_numpy()
    wanted = taught["probabilities"].to_numpy().astype(np.float32)
    wanted[: labelled.height] = 0.5 * wanted[: labelled.height] + 0.5 * training.certain(labelled["label"])
    columns = dict(zip(written_statements()["text"], training.certain(written_statements()["label"]), strict=True))
    written = np.array([text in columns for text in texts]) & (np.arange(len(texts)) >= labelled.height)
    wanted[written] = [columns[text] for text in texts[written]] or 0
    plainly = wanted[:, training.NEUTRAL] >= training.PLAINLY
    often = np.where(written, copies["written"], np.where(plainly, copies["neutral"], copies["polar"]))
    often = np.where([MASK in text for text in texts], often, 0)
    whole = (often + np.random.default_rng(seed).random(len(often))).astype(int)
    sources = np.repeat(np.arange(len(texts)), whole)
    every = [*texts, *swapped([texts[i] for i in sources], seed)]
    return pl.DataFrame({"text": every, "probabilities": np.concatenate([wanted, wanted[sources]])})


def train_layers(labelled: pl.DataFrame, unlabelled: list[str], seed: int, *, folder: Path, log: Log) -> pl.DataFrame:
    """Train the teacher, then the classifier on the parts train and valid of labelled texts (text, label, part),
    unlabelled texts and copies of both, and write minilm/ to the folder; returns the training texts (text,
    probabilities) of with_copies."""
    learnt = labelled.filter(pl.col("part").is_in(["train", "valid"]))
    harness.seed(seed)  # the head's first weights are drawn when it is built
    teacher, wanted = MiniLMClassifier(minilm_folder(), None), training.certain(learnt["label"])
    training.fit_regard(teacher, teacher.encode(learnt["text"].to_list()), wanted, TEACHER, seed=seed)
    texts = learnt["text"].to_list() + unlabelled
    taught = pl.DataFrame({"text": texts, "probabilities": teacher.probabilities(texts)})
    taught = with_copies(learnt, taught, LAYERS["copies"], seed)
    harness.seed(seed)  # low-rank weights are random until they take the teacher's change
    classifier = MiniLMClassifier(minilm_folder(), LAYERS["rank"], LAYERS["layers"])
    classifier.take(teacher)
    rows, wanted = classifier.encode(taught["text"].to_list()), taught["probabilities"].to_numpy()
    training.fit_regard(classifier, rows, wanted, LAYERS, seed=seed, log=log)
    with replacing_folder(folder / "minilm") as part:
        classifier.save(part)
    return taught


def train_gate(taught: pl.DataFrame, unseen: list[str], seed: int, *, folder: Path, log: Log) -> dict[str, float]:
    """Train the gate towards the probabilities of the classifier in minilm/ of the folder on the classifier's training
    texts, set its threshold by texts that neither was trained on, and write it there; returns the threshold and the
    share of those texts that it passes."""
    classifier = MiniLMClassifier.load(folder / "minilm", minilm_folder())
    rows = classifier.encode(taught["text"].to_list())
    harness.seed(seed)
    gate = Gate(minilm_folder(), GATE["channels"])
    training.fit_regard(gate, rows, classifier.read(rows), GATE, seed=seed, log=log)
    neutral = Cascade(gate, classifier, 1.0).opinions(classifier.encode(unseen))[:, REGARD.index("neutral")]
    polarised = np.isin(classifier.probabilities(unseen).argmax(1), [training.NEGATIVE, training.POSITIVE])
    lost = float(np.quantile(neutral[polarised], KEPT, method="higher")) if polarised.any() else 0.0
    threshold = max(NEVER_LESS, lost)
    with replacing_folder(folder / "minilm") as part:
        shutil.copytree(folder / "minilm", part, dirs_exist_ok=True)
        Cascade(gate, classifier, threshold).save(part)
    return {"threshold": threshold, "passes": float((neutral > threshold).mean())}


def train_ngram(labelled: pl.DataFrame, taught: pl.DataFrame, seed: int, *, folder: Path, log: Log) -> dict[str, int]:
    """Train on the labelled texts of part train, and on those taught that are not labelled; write ngram/ to the folder;
    returns the number of texts."""
    rest = taught.filter(~pl.col("text").is_in(labelled["text"].implode()))
    with replacing_folder(folder / "ngram") as part:
        training.fit_ngram(labelled, rest, NGRAM, seed=seed, log=log).save(part)
    return {"texts": labelled.height + rest.height}


def measure_regard(labelled: pl.DataFrame, *, folder: Path) -> Facts:
    """{minilm|ngram}/{test|people}/... of the classifiers of a folder, from labelled texts (text, label, part), where
    "other" counts as neutral. recipe=agreement compares them with people's ratings."""
    metrics: Facts = {}
    scorers: dict[str, Any] = {"minilm": MiniLMRegard(folder / "minilm"), "ngram": NgramRegard(folder / "ngram")}
    for (name, scorer), part in product(scorers.items(), ("test", "people")):
        texts = labelled.filter(part=part)
        predicted = fold_other(scorer(texts["text"].to_list()).label)
        figures = agreement.classification(fold_other(texts["label"].to_numpy()), predicted)
        metrics |= {f"{name}/{part}/{key}": value for key, value in figures.items()}
    return metrics
