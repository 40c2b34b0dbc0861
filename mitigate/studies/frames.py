"""recipe=frames: Social Bias Frames (Sap et al. 2020). A language model learns from posts to say whether a post is
offensive, whether it targets a group, which one, and what it implies.

Read the corpus, train, fill in frames of test posts, measure them (Tables 4, 5 and 7), calibrate the scorer, report."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn import functional as F

from mitigate.errors import MitigateError, check_installed
from mitigate.files import frame_of, replacing_folder, write
from mitigate.load.sbic import CHOICES, POSITIVE, read_annotations
from mitigate.load.statements import root_with
from mitigate.measure.base import bounds
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import keyed, of_study
from mitigate.models.decoder import Decoder, Padded, read_settings
from mitigate.models.form import NO, PARENTS, TEXTS, UNKNOWN, YES, Form, fill_in, open_form
from mitigate.models.stored_tensors import WEIGHTS, minilm_folder, sha256_of
from mitigate.models.tail_prompts import Encoding
from mitigate.progress import progress
from mitigate.recipes.config import Config
from mitigate.recipes.job import open_job, say, say_verdict
from mitigate.report import page, plots
from mitigate.report.page import OPEN, Fold, Number, Page, Picture, Section
from mitigate.report.table import Column, Table, as_text, number, span, text
from mitigate.score.frames import FILE, log_odds
from mitigate.stages import Result, digest_of_values, in_folder
from mitigate.train import harness
from mitigate.train.harness import Batches, Checkpoints, TrainingModule, adamw, linear

FOLDER = "sbic"
SOURCE = "the Social Bias Inference Corpus (docs/frames.md lists its files)"
DATA = "Social Bias Inference Corpus (Sap et al. 2020), CC BY 4.0"
RESAMPLES = 2000  # at most: there are thousands of posts
NAMES = {
    "offensive": "offensive",
    "intent": "intent to offend",
    "lewd": "lewd",
    "targeted": "group targeted",
    "ingroup": "in-group language",
    "group": "targeted group",
    "implied": "implied statement",
}


@dataclass(frozen=True)
class Training:
    """Settings of a training. The paper's: GPT-2, batch 4, lr 1e-5, 1, 2 or 5 epochs."""

    start: str  # minilm, or model: the GPT-2 of a folder
    weights: str  # the hash of that folder's weights
    dropout: float
    epochs: float
    lr: float
    batch_size: int
    seed: int


def run(config: Config) -> float | None:
    """Train, measure and report; returns the mean F1 over classifications, by which the paper chooses settings."""
    check_installed("recipe=frames", "frames", "sacrebleu", "rouge_score")
    how, seed = config.frames, config.seed
    if how.device == "cuda" and not torch.cuda.is_available():
        raise MitigateError("frames.device=cuda: PyTorch finds no GPU on this machine; set frames.device=cpu or auto")
    weights = None if how.weights is None else Path(how.weights)
    start = how.start, check_start(how.start, weights), how.dropout
    training = Training(*start, how.epochs, how.lr, how.batch_size, seed)
    annotations = read_annotations(root_with(config.data.root, [FOLDER], SOURCE) / FOLDER)
    posts = gather(annotations)
    for split in ("train", "test"):
        if posts.filter(pl.col("split") == split, pl.col("offensive").is_not_null()).is_empty():
            raise MitigateError(
                f"no {split} post has a value of `offensive`; recipe=frames needs some in train and test"
            )
    source = digest_of_values(annotations, posts, start)
    intervals = Bootstrap(resamples=min(config.measure.resamples, RESAMPLES), seed=seed)
    folds = fold_numbers(posts)
    parts = posts["split"].value_counts(sort=True).iter_rows()
    say("  posts: " + ", ".join(f"{split} {count:,}" for split, count in parts))

    device = {"accelerator": how.device, "checkpoint_every": how.checkpoint_every}
    with open_job(config, f"frames-{how.start}-seed{seed}", source) as job:
        here, of_folds = in_folder(), list[Result]()
        base = job.stage("base", train, posts, None, training, using=job.training("base", weights=weights, **device))
        further = replace(training, epochs=how.fold_epochs, lr=how.fold_lr)
        for fold in folds:
            using = job.training(f"fold_{fold}", **device)
            of_folds.append(job.stage(f"fold_{fold}", train, posts, fold, further, after=[base], using=using))
        predicted = {MODEL: job.stage("predict", predict, posts, [], after=[base], using=here)}
        if folds:
            predicted[FOLDS] = job.stage("predict_folds", predict, posts, folds, after=of_folds, using=here)
        last = predicted.get(FOLDS, predicted[MODEL])
        baselines = job.stage("baselines", predict_baselines, posts, seed)
        baseline_texts = job.stage("baseline_texts", predict_texts, posts, folds, last)
        classified = job.stage("classified", classification_table, posts, predicted, baselines, intervals)
        texts = job.stage("texts", text_table, posts, predicted, baseline_texts, intervals)
        scorer = job.stage("scorer", choose_scorer, posts, last, after=[base, *of_folds[:1]], using=here)
        metrics = job.stage("metrics", as_metrics, classified, texts, scorer)
        job.stage("results", of_study, metrics)
        about = job.about({"data": DATA, "data fingerprint": source})
        shown = classified, texts, posts, last, metrics
        report = job.stage("report", write_report, *shown, after=[job.folder.name], using=in_folder(about=about))
        if job.is_new():
            figures = {name: value for name, value in metrics.facts().items() if isinstance(value, int | float)}
            tables = {"classified": classified.table(), "texts": texts.table()}
            job.tracking.summarise(figures)
            for name, table in tables.items():
                job.tracking.table(name, table)
            job.tracking.artifact("frames", "model", job.folder / scorer.facts()["model"], figures)
            say_verdict(report.facts()["verdict"])
            compared = Table("", [text("system"), Column("%", "value", bounds="")], beside_baselines(**tables))
            printed = [compared] if job.brief else [by_system(table) for table in tables.values()]
            say("\n" + "\n\n".join(as_text(one, 110) for one in printed))
            say(f"  report      {job.folder / 'frames.html'}")
    return None if config.dry_run else metrics.facts()["f1"]


# Posts: one row and one split for each distinct post over all files

SPLITS = ("test", "dev", "train")  # a post in files of several belongs to the first: no model learns from a test post
HELD_BACK = 0.1  # share of dev posts, for calibration, among training posts whose classification no dev file has
NUM_FOLDS = 5


def gather(annotations: pl.DataFrame) -> pl.DataFrame:
    """A row for each distinct normalised post: key, post, split, the five classifications (Boolean, null without an
    answer or below a negative parent), groups, implied and implied_groups (lists, the latter two of equal length),
    files (list), fold (0 to 4 for test posts, else null).

    A classification is the mean over annotators of their binarised answers, positive from .5 on (Section 4.2). Groups
    and statements of single annotators stay, as references. An annotator who was not asked about a group, as the post
    was not offensive to them, counts as negative for `targeted`, and is left out for `ingroup`."""
    not_offensive = pl.col("unit").is_not_null() & (pl.col("offensive") < POSITIVE)
    asked = pl.when(not_offensive).then(pl.col("targeted").fill_null(0.0)).otherwise("targeted")
    binary = annotations.with_columns(targeted=asked).with_columns(
        (pl.col(name) >= POSITIVE).cast(pl.Float64) for name in CHOICES
    )
    posts = (
        binary.unique(["key", "file", "unit", *CHOICES], maintain_order=True)
        .group_by("key", maintain_order=True)
        .agg(pl.col("post").first(), *(pl.col(name).mean() >= POSITIVE for name in CHOICES))
    )
    pair = pl.struct("implied", "group")
    more = annotations.group_by("key", maintain_order=True).agg(
        files=pl.col("file").unique(maintain_order=True),
        parts=pl.col("part").unique(),
        groups=pl.col("group").drop_nulls().unique(maintain_order=True),
        pairs=pair.filter(pl.col("implied").is_not_null()).unique(maintain_order=True),
    )
    posts = posts.join(more, on="key", maintain_order="left")
    fold = pl.col("key").map_elements(lambda key: int(share_of(key, "fold") * NUM_FOLDS), return_dtype=pl.Int64)
    posts = posts.with_columns(
        implied=pl.col("pairs").list.eval(pl.element().struct.field("implied")),
        implied_groups=pl.col("pairs").list.eval(pl.element().struct.field("group")),
        split=pl.struct("key", "parts", "files").map_elements(_split, return_dtype=pl.String),
        targeted=pl.when(pl.col("offensive").eq_missing(False).not_()).then("targeted"),
        ingroup=pl.when(pl.col("targeted").eq_missing(False).not_()).then("ingroup"),
    ).with_columns(fold=pl.when(pl.col("split") == "test").then(fold))
    if posts["files"].list.contains("frames_test_posts.csv").any():
        # That file has the test posts with an implied statement: an offensive test post in no other file targets none.
        is_lacking = pl.col("offensive").eq_missing(True) & pl.col("targeted").is_null()
        lacking = is_lacking & pl.col("files").list.contains("offensive_test.csv")
        posts = posts.with_columns(targeted=pl.when(lacking).then(False).otherwise("targeted"))
    return posts.drop("pairs", "parts").sort("key")


def _split(row: dict[str, Any]) -> str:
    split = next(split for split in SPLITS if split in row["parts"])
    alone = all(file.startswith("offensive") for file in row["files"])
    return "dev" if split == "train" and alone and share_of(row["key"], "dev") < HELD_BACK else split


def share_of(key: str, purpose: str) -> float:
    """A number from 0 to 1, from a hash of the post and the purpose."""
    return int(hashlib.sha256(f"{purpose}/{key}".encode()).hexdigest()[:12], 16) / 16**12


def truth_of(posts: pl.DataFrame, name: str) -> pl.Series:
    """A classification, null where it is missing; below a negative parent it is negative, as in the paper."""
    negative = pl.any_horizontal(pl.lit(False), *(pl.col(one).eq_missing(False) for one in PARENTS.get(name, [])))
    return posts.select(pl.when(negative).then(False).otherwise(name).alias(name))[name]


def fold_numbers(posts: pl.DataFrame) -> list[int]:
    """The folds to train, where implied statements exist for test posts alone; else none."""
    splits = posts.filter(pl.col("implied").list.len() > 0)["split"].unique().to_list()
    return list(range(NUM_FOLDS)) if splits == ["test"] else []


# Training: equation 1, without loss for missing values and for those below a negative parent

FIRST = CHOICES[:-1]  # before the texts
MOST_ALTERNATIVES = 4  # groups and statements of a post
BASE = "base"
SHORTER = 1 / 3  # posts without implied statements that a fold is trained on, as a share of those that have some
WARMUP, WEIGHT_DECAY = 0.05, 0.01
PIECE = 512  # posts filled in between two reports of progress


class Row(NamedTuple):
    """A post with a filled form."""

    tokens: list[int]
    size: int  # the number of the post's own tokens
    targets: list[tuple[int, int]]  # what is learnt: the place that predicts, and the token


def check_start(start: str, weights: Path | None) -> str:
    """Check that a training can start from the folder of weights, without reading them; returns their hash."""
    if start == "model" and (weights is None or not (weights / WEIGHTS).is_file()):
        raise MitigateError(f"frames.start=model needs frames.weights=DIR with {WEIGHTS} of a GPT-2; found {weights}")
    try:
        if start == "minilm" or weights is None:
            return sha256_of(minilm_folder(weights) / WEIGHTS)
        if (kind := read_settings(weights)["kind"]) != "gpt2":
            raise ValueError(f"it is a {kind}")
        Encoding.load(weights)
        return sha256_of(weights / WEIGHTS)
    except (OSError, ValueError) as error:
        where = "" if weights is None else f"={weights}"
        raise MitigateError(
            f"frames.weights{where} cannot be loaded ({error}); set it to weights that fit frames.start"
        ) from error


def untrained(posts: pl.DataFrame, training: Training, weights: Path | None) -> tuple[Decoder, Form]:
    """The network to start from, and its form: it knows the classifications with both values in the posts, and the
    words of all groups and statements."""
    if training.start == "minilm" or weights is None:
        folder = minilm_folder(weights)
        decoder, encoding = Decoder.from_encoder(folder, training.dropout), Encoding.of_encoder(folder)
    else:
        decoder, encoding = Decoder.load(weights, training.dropout), Encoding.load(weights)
    known = [name for name in CHOICES if posts[name].drop_nulls().n_unique() == 2]
    texts = [text for column in ("groups", "implied") for row in posts[column] for text in row]
    words = {token for tokens in encoding.encode(texts) for token in tokens}
    form = Form(encoding, known, words)
    decoder.grow(encoding.vocab_size)
    return decoder, form


def examples(form: Form, posts: pl.DataFrame) -> list[list[Row]]:
    """The rows of each post, one for each of its groups and statements; the first one learns the choices. A missing
    parent of a positive value is read as positive and has no loss."""
    rows_of_posts, ids = list[list[Row]](), form.ids.tolist()
    for post, read in zip(posts.rows(named=True), form.read(posts["post"].to_list()), strict=True):
        values = {name: post[name] for name in FIRST}
        if post["targeted"]:
            values["offensive"] = True
        if post["offensive"] is False:
            values["targeted"] = False
        size, chosen, targets, rows = len(read), list[int](), list[tuple[int, int]](), list[Row]()
        for at, (name, value) in enumerate(values.items()):
            is_known = name in form.known
            chosen.append(ids[at][int(value) if is_known and value is not None else UNKNOWN])
            targets += [(size + at - 1, chosen[at])] * (is_known and post[name] is not None)
        pairs = list(zip(post["implied_groups"], post["implied"], strict=True)) or [(one, "") for one in post["groups"]]
        for group, implied in pairs[:MOST_ALTERNATIVES] if post["targeted"] else []:
            tokens = [*read, *chosen, form.end]
            for words in form.encoding.encode([group or "", implied]):
                part = [*words[: form.longest_text], form.end]
                targets += [(len(tokens) + at - 1, token) for at, token in enumerate(part) if words]
                tokens += part
            if "ingroup" in form.known and post["ingroup"] is not None:
                targets.append((len(tokens) - 1, ids[-1][int(post["ingroup"])]))
            rows.append(Row(tokens, size, targets))
            targets = []
        rows_of_posts.append(rows or [Row([*read, *chosen], size, targets)])
    return rows_of_posts


class FormModule(TrainingModule):
    def __init__(self, decoder: Decoder, form: Form, examples: Sequence[list[Row]], training: Training) -> None:
        steps = math.ceil(training.epochs * len(examples) / training.batch_size)
        sizes = [  # what the rows of a post share counts once
            sum(len(row.tokens) for row in rows) - (len(rows) - 1) * (rows[0].size + len(FIRST)) for rows in examples
        ]
        batches = Batches(np.array(sizes), training.batch_size, training.seed)
        super().__init__(batches, steps, linear(training.lr, WARMUP, steps), seed=training.seed)
        self.decoder, self.form, self.examples, self.lr = decoder, form, examples, training.lr

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        return loss(self.decoder, self.form, [row for place in batch for row in self.examples[place]])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return adamw(self.parameters(), self.lr, WEIGHT_DECAY)


def loss(decoder: Decoder, form: Form, rows: Sequence[Row]) -> Tensor:
    """The mean over learnt choices of minus the log-likelihood of the value against the other one, plus the mean over
    learnt tokens of texts of minus theirs, among the words that texts can have."""
    device, length = decoder.token_embedding.weight.device, max(len(row.tokens) for row in rows)
    tokens = torch.zeros(len(rows), length, dtype=torch.long)
    for place, row in enumerate(rows):
        tokens[place, : len(row.tokens)] = torch.tensor(row.tokens)
    positions = torch.arange(length).repeat(len(rows))
    attention = Padded(len(rows), decoder.config.dropout if decoder.training else 0.0)
    hidden = decoder(tokens.flatten().to(device), positions.to(device), attention)
    targets = [(number * length + at, token) for number, row in enumerate(rows) for at, token in row.targets]
    pair_of = {token: ids[:UNKNOWN] for ids in form.ids.tolist() for token in ids[:UNKNOWN]}
    choices = [(at, token, pair_of[token]) for at, token in targets if token in pair_of]
    texts = [(at, token) for at, token in targets if token not in pair_of]
    total = hidden.new_zeros(())
    if choices:
        at, chosen, pairs = (torch.tensor(part, device=device) for part in zip(*choices, strict=True))
        logits = (hidden[at][:, None] * decoder.token_embedding.weight[pairs]).sum(-1)
        if decoder.bias is not None:
            logits = logits + decoder.bias[pairs]
        total = total + F.cross_entropy(logits.float(), (chosen == pairs[:, YES]).long())
    if texts:
        words = torch.tensor(form.words, device=device)
        at, learnt = (torch.tensor(part, device=device) for part in zip(*texts, strict=True))
        logits = decoder.logits(hidden[at], words).float()
        total = total + F.cross_entropy(logits, torch.searchsorted(words, learnt))
    return total


def train(
    posts: pl.DataFrame,
    fold: int | None,
    training: Training,
    *,
    folder: Path,
    fingerprint: str,
    weights: Path | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Train on the posts of the split `train` and save in {folder}/models/base; or, with a fold, train that network
    further on posts of the other folds and save in {folder}/models/fold_{fold}. how: as harness.fit takes it."""
    name = BASE if fold is None else f"fold_{fold}"
    if fold is None:
        decoder, form = untrained(posts, training, weights)
        learnt = posts.filter(split="train")
    else:
        decoder, form = Decoder.load(folder / "models" / BASE), Form.load(folder / "models" / BASE)
        # Posts of the other folds with implied statements, and a third as many without.
        others = posts.filter(pl.col("fold").is_not_null(), pl.col("fold") != fold)
        has_implied = pl.col("implied").list.len() > 0
        implied, rest = others.filter(has_implied), others.filter(~has_implied)
        order = rest["key"].map_elements(lambda key: share_of(key, "drawn"), return_dtype=pl.Float64)
        learnt = pl.concat([implied, rest[order.arg_sort().head(round(SHORTER * implied.height))]])
    known = [rows for rows in examples(form, learnt) if any(row.targets for row in rows)]
    if not known:
        raise MitigateError("no post gives a value to learn; recipe=frames needs posts with values")
    module = FormModule(decoder, form, known, training)
    checkpoints = Checkpoints(folder / "checkpoints" / name, fingerprint)
    counts = harness.fit(module, precision="auto", checkpoints=checkpoints, **how)
    with replacing_folder(folder / "models" / name) as part:
        decoder.save(part, bos_token_id=form.start, eos_token_id=form.end, pad_token_id=form.encoding.pad)
        form.save(part)
    facts = {"examples": len(known), "steps": module.steps, "seconds": counts.seconds, "train_loss": counts.loss}
    return {**facts, "examples_per_second": counts.rate(module.steps), "learnt": form.known}


# Frames of test posts by the trained models


def predict(posts: pl.DataFrame, folds: Sequence[int], *, folder: Path) -> pl.DataFrame:
    """The frames of test posts: key, and the columns of fill_posts. folds: each post by the model that did not learn
    from its fold; none: by the model that learnt from training posts. Without implied statements of test posts alone
    also frames of dev posts, which then calibrate the scorer.

    Posts with references get texts whatever their classifications, so that texts can be measured apart from these."""
    splits = ["test"] if fold_numbers(posts) else ["dev", "test"]
    has_references = (pl.col("implied").list.len() > 0) | (pl.col("groups").list.len() > 0)
    parts = {f"fold_{fold}": pl.col("fold") == fold for fold in folds} or {BASE: pl.col("split").is_in(splits)}
    frames = []
    for model, of_model in parts.items():
        form, network = open_form(folder / "models" / model)
        wanted = posts.filter(of_model).with_columns(always=has_references)
        with progress(f"frames by {model}", wanted.height, "posts") as advance:
            for always in (True, False):
                for piece in wanted.filter(always=always).iter_slices(PIECE):
                    filled = fill_posts(form, network, piece["post"].to_list(), always=always)
                    frames.append(filled.with_columns(piece["key"]))
                    advance(piece.height)
    return pl.concat(frames)


def fill_posts(form: Form, network: Any, posts: Sequence[str], *, always: bool = False) -> pl.DataFrame:
    """A row for each post: the five classifications as decoded (null where not reached or not learnt) and as the most
    probable consistent ones (constrained_NAME), group, implied, and the probability of each positive value (p_NAME)."""
    filled = fill_in(form, network, posts, always=always)
    log_probs = filled.log_probs
    values = np.where(np.isnan(log_probs[:, :, YES]), np.nan, filled.choices == YES)
    tables = {"": values, "constrained_": constrained(values, log_probs), "p_": np.exp(log_probs[:, :, YES])}
    columns = {
        prefix + name: pl.Series(table[:, at], dtype=pl.Float64, nan_to_null=True)
        for prefix, table in tables.items()
        for at, name in enumerate(CHOICES)
    }
    texts = {name: pl.Series([pair[at] for pair in filled.texts], dtype=pl.String) for at, name in enumerate(TEXTS)}
    binary = [name for name in columns if not name.startswith("p_")]
    return pl.DataFrame(columns | texts).with_columns(pl.col(binary).cast(pl.Boolean))


def constrained(values: np.ndarray, log_probs: np.ndarray) -> np.ndarray:
    """The most probable consistent values given the probabilities of the same pass (Section 4, constrained decoding):
    not offensive; offensive, and no group; or offensive, a group, and the likelier value of in-group language.

    values: (n, 5) 0 or 1, NaN where not reached or not learnt; where `targeted` is, they stay. log_probs: (n, 5, 2)."""
    offensive, targeted, ingroup = (CHOICES.index(name) for name in ("offensive", "targeted", "ingroup"))
    is_known, group = ~np.isnan(values[:, offensive]), log_probs[:, targeted]
    no = np.where(is_known, log_probs[:, offensive, NO], -np.inf)
    yes = np.where(is_known, log_probs[:, offensive, YES], 0.0)
    last = np.nan_to_num(log_probs[:, ingroup]).max(1)
    best = np.stack([no, yes + group[:, NO], yes + group[:, YES] + last]).argmax(0)
    consistent, is_reached = values.copy(), ~np.isnan(group[:, NO])
    consistent[is_reached & is_known, offensive] = best[is_reached & is_known] > 0
    consistent[is_reached, targeted] = np.where(best > 0, best == 2, np.nan)[is_reached]
    consistent[is_reached & (best < 2), ingroup] = np.nan
    return consistent


# Baselines, learnt from the same posts as the models


def predict_baselines(posts: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Classify test posts by simple rules: key, system, and CHOICES (null where training posts have one value). "always
    yes"; "tf-idf": logistic regression on TF-IDF of words and pairs of words."""
    test, training = (posts.filter(split=split) for split in ("test", "train"))
    systems: dict[str, dict[str, pl.Series]] = {"always yes": {}, "tf-idf": {}}
    for name in CHOICES:
        learnt = training.with_columns(truth_of(training, name)).drop_nulls(name)
        always = regressed = np.full(test.height, None)
        if learnt[name].n_unique() == 2:
            words = TfidfVectorizer(ngram_range=(1, 2), min_df=2 if learnt.height > 1000 else 1, sublinear_tf=True)
            vectors = words.fit_transform(learnt["post"].to_list())
            regression = LogisticRegression(C=4.0, max_iter=1000, random_state=seed)
            regression.fit(vectors, learnt[name].to_numpy())
            always, regressed = np.ones(test.height, bool), regression.predict(words.transform(test["post"].to_list()))
        for columns, values in zip(systems.values(), (always, regressed), strict=True):
            columns[name] = pl.Series(values, dtype=pl.Boolean)
    return pl.concat(test.select("key", system=pl.lit(system), **columns) for system, columns in systems.items())


def predict_texts(posts: pl.DataFrame, folds: Sequence[int], predicted: pl.DataFrame) -> pl.DataFrame:
    """Texts of simple rules for the group and the implied statement of test posts with references: key, system, group,
    implied. "commonest": the commonest group and statement; "commonest of the group": the commonest statement of the
    group that the model generates, from `predicted` (key, group)."""
    with_text = posts.filter(pl.col("implied").list.len() > 0)
    tables = [pl.DataFrame(schema=dict.fromkeys(("key", "system", "group", "implied"), pl.String))]
    pairs = [(with_text.filter(pl.col("fold") != fold), with_text.filter(fold=fold)) for fold in folds]
    for train, test in pairs or [(with_text.filter(split="train"), with_text.filter(split="test"))]:
        if train.is_empty() or test.is_empty():
            continue
        group, implied = (_commonest(train.select(one=pl.col(name).explode())) for name in ("groups", "implied"))
        by_group = train.explode("implied", "implied_groups").drop_nulls("implied_groups").group_by("implied_groups")
        of_groups = {str(name): _commonest(part.select(one="implied")) for (name,), part in by_group}
        groups = test.join(predicted.select("key", "group"), on="key", how="left", maintain_order="left")["group"]
        of_group = groups.replace_strict(of_groups, default=implied, return_dtype=pl.String)
        commonest = {"key": test["key"], "system": "commonest", "group": group, "implied": implied}
        tables.append(pl.DataFrame(commonest))
        tables.append(pl.DataFrame({**commonest, "system": "commonest of the group", "group": "", "implied": of_group}))
    return pl.concat(tables)


def _commonest(texts: pl.DataFrame) -> str:
    """The commonest text of the column `one`, of equally common ones the first by letters."""
    return texts.group_by("one").len().sort("len", "one", descending=[True, False])["one"][0]


# Measures: F1 of the positive class (Tables 4 and 7), BLEU-2 and ROUGE-L of texts (Table 5)

MODEL, FOLDS = "model", "model, five folds"
GIVEN = ", given a group"  # ending of systems whose texts do not depend on the model's classifications
FIGURES = {"f1": "F1", "precision": "precision", "recall": "recall"}
TEXT_FIGURES = {"bleu2": "BLEU-2", "rouge_l": "ROUGE-L"}


def classification_table(
    posts: pl.DataFrame, predicted: Mapping[str, pl.DataFrame], baselines: pl.DataFrame, intervals: Bootstrap
) -> pl.DataFrame:
    """A row for each classification and system: variable, system, posts, positive, and FIGURES with _low and _high in
    percent (None without posts, or where the system could not learn it). Below a negative parent, truth and prediction
    are negative. predicted: by system, tables of `predict`."""
    test = posts.filter(split="test")
    systems: dict[str, pl.DataFrame] = {}
    for name, table in predicted.items():
        systems[name] = table.select("key", *CHOICES)
        systems[name + ", constrained"] = table.select("key", **{one: f"constrained_{one}" for one in CHOICES})
    systems |= {str(name): part for (name,), part in baselines.group_by("system", maintain_order=True)}
    rows = []
    for variable in CHOICES:
        true = test.select("key", truth=truth_of(test, variable)).drop_nulls("truth")
        for system, table in systems.items():
            decided = truth_of(table, variable) if table[variable].count() else table[variable]
            known = table.select("key", predicted=decided).drop_nulls("predicted")
            joined = true.join(known, on="key", maintain_order="left")
            row: dict[str, Any] = {"variable": variable, "system": system, "posts": joined.height, "positive": None}
            row |= dict.fromkeys(key for name in FIGURES for key in (name, *bounds(name)))
            if joined.height:
                truth = joined["truth"].to_numpy().astype(bool)
                row |= {"positive": 100 * float(truth.mean())}
                row |= classification(truth, joined["predicted"].to_numpy().astype(bool), intervals)
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def classification(truth: np.ndarray, predicted: np.ndarray, intervals: Bootstrap) -> dict[str, float | None]:
    """F1, precision and recall of the positive class in percent, with _low and _high; None where the denominator is 0:
    precision where nothing is predicted positive; F1 is then 0 if there are positives.

    truth, predicted: (posts,) bool. Posts are resampled: their counts in the four cells are multinomial."""
    cells = np.array([(truth & predicted).sum(), (~truth & predicted).sum(), (truth & ~predicted).sum()])
    shares = [*(cells / len(truth)), 1 - cells.sum() / len(truth)]
    drawn = np.random.default_rng(intervals.seed).multinomial(len(truth), shares, size=intervals.resamples)
    both, wrong, missed = np.vstack([cells, drawn[:, :3]]).T  # as counted, then the resamples
    tails = [50 * (1 - intervals.level), 50 * (1 + intervals.level)]
    row: dict[str, float | None] = {}
    denominators = {"f1": both + (wrong + missed) / 2, "precision": both + wrong, "recall": both + missed}
    for name, denominator in denominators.items():
        values = 100 * both / np.where(denominator > 0, denominator, np.nan)
        known = values[1:][~np.isnan(values[1:])]
        ends = np.percentile(known, tails) if len(known) else [np.nan, np.nan]
        named = zip((name, *bounds(name)), (values[0], *ends), strict=True)
        row |= {key: None if np.isnan(value) else float(value) for key, value in named}
    return row


def text_table(
    posts: pl.DataFrame, predicted: Mapping[str, pl.DataFrame], baselines: pl.DataFrame, intervals: Bootstrap
) -> pl.DataFrame:
    """A row for each text and system: variable (group or implied), system, posts, TEXT_FIGURES in percent with _low and
    _high, generated (percent of posts with a text) and distinct (texts, percent of the posts).

    Posts are test posts with an implied statement; references are all their groups or statements."""
    with_text = posts.filter(pl.col("split") == "test", pl.col("implied").list.len() > 0)
    systems: dict[str, pl.DataFrame] = {}
    for name, table in predicted.items():
        is_targeted = pl.when(pl.col("targeted").eq_missing(True))
        systems[name + GIVEN] = table
        systems[name] = table.with_columns(is_targeted.then(one).otherwise(pl.lit("")).alias(one) for one in TEXTS)
    systems |= {str(name): part for (name,), part in baselines.group_by("system", maintain_order=True)}
    rows = []
    for variable, column in zip(TEXTS, ("groups", "implied"), strict=True):
        for system, table in systems.items():
            references = with_text.select("key", references=column)
            joined = references.join(table.select("key", variable), on="key", maintain_order="left")
            if not joined.height or not (joined[variable] != "").any():
                continue
            scores = text_scores(joined[variable].to_list(), joined["references"].to_list())
            generated, size = joined.filter(pl.col(variable) != "")[variable], joined.height
            row: dict[str, Any] = {"variable": variable, "system": system, "posts": size}
            row |= {"generated": 100 * len(generated) / size, "distinct": 100 * generated.n_unique() / size}
            for at, name in enumerate(TEXT_FIGURES):
                values = scores[:, at].mean(), *intervals.mean(scores[:, at], np.arange(size))
                row |= dict(zip((name, *bounds(name)), values, strict=True))
            rows.append(row)
    names = [*(key for name in TEXT_FIGURES for key in (name, *bounds(name))), "generated", "distinct"]
    schema = {"variable": pl.String, "system": pl.String, "posts": pl.Int64, **dict.fromkeys(names, pl.Float64)}
    return pl.DataFrame(rows, schema=schema).fill_nan(None)


def text_scores(generated: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
    """BLEU-2 and ROUGE-L (F1) of each text against all its references in percent, (texts, 2), 0 for an empty text.

    BLEU-2 is sacrebleu's sentence BLEU with n-grams up to 2 (of a text of one word, up to 1); ROUGE-L is rouge-score's,
    the best reference's. Needs the packages of the extra `frames`."""
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics import BLEU

    bleu, rouge = BLEU(max_ngram_order=2, effective_order=True, lowercase=True), RougeScorer(["rougeL"])
    scores = np.zeros((len(generated), 2))
    for row, (candidate, known) in enumerate(zip(generated, references, strict=True)):
        if candidate:
            best = rouge.score_multi(list(known), candidate)["rougeL"].fmeasure
            scores[row] = bleu.sentence_score(candidate, list(known)).score, 100 * best
    return scores


def as_metrics(classified: pl.DataFrame, texts: pl.DataFrame, calibration: Mapping[str, Any]) -> dict[str, Any]:
    """All figures of both tables under {variable}/{system}/{figure}; the scorer's calibration under scorer/; and f1,
    the mean over classifications of the model's F1 on the paper's split, by which the paper chooses settings."""
    rows = [*classified.rows(named=True), *texts.rows(named=True)]
    metrics = keyed("{variable}/{system}", rows) | {f"scorer/{name}": value for name, value in calibration.items()}
    scores = [score for name in CHOICES if (score := metrics.get(f"{name}/{MODEL}/f1")) is not None]
    return metrics | {"f1": sum(scores) / len(scores) if scores else None}


# The trained model as a scorer


def choose_scorer(posts: pl.DataFrame, predicted: pl.DataFrame, *, folder: Path) -> dict[str, Any]:
    """Write {folder}/scorer.json, and return it with measures of its calibration: the model of the first fold,
    calibrated and measured on the test posts of that fold, which it has not learnt from; without folds the model that
    learnt from training posts, calibrated on dev posts and measured on test posts.

    brier (0 to 1) is of posts that the calibration did not see: in a fold, one half is calibrated by the other.
    brier_constant: of the share of positives as the probability of every post."""
    table = posts.select("key", "split", "fold", truth=truth_of(posts, "targeted")).drop_nulls("truth")
    table = table.join(predicted.select("key", "p_offensive", "p_targeted"), on="key", maintain_order="left")
    model, seen = "models/base", table["split"] == "dev"
    if fold_numbers(posts):
        model, table = "models/fold_0", table.filter(fold=0)
        seen = table["key"].map_elements(lambda key: share_of(key, "half") < 0.5, return_dtype=pl.Boolean)
    parts = table.filter(seen), table.filter(~seen & (table["split"] == "test"))
    otherwise = float(parts[0]["p_targeted"].mean() or 1.0)  # type: ignore[arg-type]
    odds, unseen = (
        log_odds(part["p_offensive"].to_numpy(), part["p_targeted"].to_numpy(), otherwise) for part in parts
    )
    truth, positive = (part["truth"].to_numpy().astype(float) for part in parts)

    def loss(theta: np.ndarray) -> float:
        """Minus the log-likelihood of Platt's scale and shift, with a weak pull to 1 and 0."""
        scaled = theta[0] * odds + theta[1]
        return float(np.logaddexp(0, scaled).sum() - truth @ scaled + (theta[0] - 1) ** 2 / 2 + theta[1] ** 2 / 2)

    scale, shift = map(float, minimize(loss, (1.0, 0.0), method="BFGS").x)
    facts = {"model": model, "scale": scale, "shift": shift, "otherwise": otherwise}
    write(folder / FILE, json.dumps(facts, indent=2) + "\n")
    brier = float(((expit(scale * unseen + shift) - positive) ** 2).mean())
    share = 100 * float(positive.mean())
    return {**facts, "posts": len(positive), "positive": share, "brier": brier, "brier_constant": float(positive.var())}


# The page: the model beside the best baseline, and the figures of all systems

EXAMPLES = 12
Pairs = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of the model and of the best baseline (system, value, low, high) by figure."""

CLASSIFIED = (
    "The positive class on test posts, in percent. “five folds” has learnt from four folds of the test posts and is "
    "measured on the fifth; “constrained” takes the most probable consistent values. “tf-idf” is logistic regression."
)
GENERATED = (
    "Against all references of a test post with an implied statement, mean over posts, in percent. Without “given a "
    "group”, a post that the model finds aimed at no group has an empty text, which counts 0."
)
SCORED = (
    "On {posts} posts that the scorer “frames” has not learnt from, its Brier score is {brier} (of a constant "
    "{brier_constant})."
)
LIMITS = (
    "A label says what annotators, 82 % of them White, might say of a post, not what its author meant. A model may "
    "find African-American English, of which there are few posts, offensive more often.",
    "Used to remove texts, it can silence people who speak of their own group, or who quote what was said to them.",
    "Generated statements are often generic stereotypes. BLEU-2 and ROUGE-L count shared words, not truth.",
    "Published figures are on all posts of the complete data. Whether their BLEU-2 is a mean over posts is not known.",
)


def write_report(
    classified: pl.DataFrame,
    texts: pl.DataFrame,
    posts: pl.DataFrame,
    predicted: pl.DataFrame,
    metrics: Mapping[str, Any],
    *,
    folder: Path,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the page and its tables. predicted: the frames that examples are of; about: further fields of Page."""
    pairs = beside_baselines(classified, texts)
    state, hedge = verdict(pairs)
    words = {name.removeprefix("scorer/"): number(value, 3) for name, value in metrics.items() if "scorer/" in name}
    shown = [text(name, kind="sentence") for name in ("post", "generated", "annotators")]
    examples = examples_of(posts, predicted)
    unseen = Table("By a model that has not learnt from them.", shown, examples, kind="tall")
    numbers = []
    for name, (of_model, best) in [*pairs.items()][:2] + [*pairs.items()][2:][-1:]:
        note = f"[{span(of_model['low'], of_model['high'], 1)}], baseline {best['value']:.1f}"
        numbers.append(Number(f"{name} ↑", f"{of_model['value']:.1f} %", note))
    made = Page(
        state=state,
        hedge=hedge,
        picture=picture(pairs),
        numbers=numbers,
        sections=[
            Section("Classifications", [CLASSIFIED, by_system(classified)]),
            Section("Groups and implied statements", [GENERATED, by_system(texts)]),
            Section("As a scorer", [SCORED.format(**words)]),
            Section("Examples", [Fold(f"{examples.height} test posts, evenly chosen", [unseen], warning=True)]),
        ],
        notices=notices(posts),
        limits=LIMITS,
        tables={"classified": classified, "texts": texts},
        **about,
    )
    page.write(made, folder, "frames.html")
    return {"verdict": f"{state}. {hedge}"}


def notices(posts: pl.DataFrame) -> list[str]:
    """Notices of limits of the figures."""
    test = posts.filter(split="test")
    lacking = [NAMES[name] for name in CHOICES if truth_of(test, name).drop_nulls().n_unique() < 2]
    is_partial = posts["files"].list.contains("frames_test_posts.csv").any()
    conditions = {
        f"These posts have no values of: {', '.join(lacking)}. They are neither learnt nor measured.": lacking,
        "Implied statements exist for original test posts only. They are learnt and measured in five folds of these "
        "posts, which is not the paper's split.": fold_numbers(posts),
        "No file marks posts that target no group. Posts that are not offensive count as such, and so do offensive "
        "test posts of offensive_test.csv that no other file has.": is_partial,
    }
    return [notice for notice, holds in conditions.items() if holds]


def examples_of(posts: pl.DataFrame, predicted: pl.DataFrame) -> pl.DataFrame:
    """Every n-th test post, in the order of keys, with generated texts and references: post, generated, annotators."""
    with_texts = posts.filter(pl.col("split") == "test", pl.col("implied").list.len() > 0)
    texts = predicted.select("key", generated=pl.format("{}: {}", "group", "implied"))
    joined = with_texts.join(texts, on="key", maintain_order="left")
    shown = joined.gather_every(max(1, joined.height // EXAMPLES)).head(EXAMPLES)
    groups, implied = (pl.col(name).list.join("; ") for name in ("groups", "implied"))
    return shown.select("post", "generated", annotators=pl.format("{}: {}", groups, implied))


def beside_baselines(classified: pl.DataFrame, texts: pl.DataFrame) -> Pairs:
    """F1 of the classifications on the paper's split, and BLEU-2 of implied statements."""
    wanted = [(classified, name, MODEL, "f1", "F1") for name in NAMES if name in CHOICES]
    pairs = {}
    for table, variable, system, key, title in [*wanted, (texts, "implied", GIVEN, "bleu2", "BLEU-2")]:
        rows = table.select("variable", "system", value=key, low=f"{key}_low", high=f"{key}_high").drop_nulls("value")
        rows = rows.filter(variable=variable).sort("value", descending=True, maintain_order=True)
        of_model = rows.filter(pl.col("system").str.ends_with(system)).sort("system")  # “five folds” before “given”
        baselines = rows.filter(~pl.col("system").str.starts_with("model"))
        if of_model.height and baselines.height:
            pairs[f"{NAMES[variable]} ({title})"] = [of_model.row(0, named=True), baselines.row(0, named=True)]
    return pairs


def verdict(pairs: Pairs) -> tuple[str, str]:
    """The state and its hedge: where the intervals of the model and of the best baseline are apart."""
    above = [name for name, (of_model, best) in pairs.items() if of_model["low"] > best["high"]]
    below = [name for name, (of_model, best) in pairs.items() if of_model["high"] < best["low"]]
    if not above + below:
        return f"{OPEN}: level with the best baseline", "The intervals overlap. Train longer (frames.epochs)."
    sides = {"Above it": above, "Below it": below}
    named = " ".join(f"{side}: {', '.join(names)}." for side, names in sides.items() if names)
    state = f"{'Beats' if above else 'Below'} the best baseline in {len(above or below)} of {len(pairs)}"
    return state, f"{named} Intervals of 95 % are over posts; there is one training."


def picture(pairs: Pairs) -> Picture | None:
    """The model beside the best baseline."""
    series = {"best baseline": 1, "model": 0}  # the baseline's mark is grey
    rows = [{"name": name, "series": one, **pair[at]} for name, pair in pairs.items() for one, at in series.items()]
    if not rows:
        return None
    values = "; ".join(f"{row['name']}, {row['series']} {row['value']:.1f}" for row in rows)
    drawn = plots.intervals(pl.DataFrame(rows), "% (better →)")
    return Picture("baselines", "frames", "Model and best baseline", f"In percent: {values}", drawn)


def by_system(rows: pl.DataFrame) -> Table:
    """The figures of each variable by system, and below them the published ones (data/frames/published.csv)."""
    titles = {name: title for name, title in {**FIGURES, **TEXT_FIGURES}.items() if name in rows.columns}
    also = frame_of("frames/published.csv").with_columns(system=pl.format("published: {}", "system"))
    also = also.pivot("figure", index=["system", "variable"], values="value")
    known, groups = rows.drop_nulls(next(iter(titles))), {}
    for variable, name in NAMES.items():
        if of_variable := known.filter(variable=variable).to_dicts():
            heading = f"{name.capitalize()}: {number(of_variable[0]['posts'])} test posts"
            groups[heading] = of_variable + also.filter(variable=variable).to_dicts()
    return Table("", [text("system"), *(Column(f"{title} ↑", name) for name, title in titles.items())], groups)
