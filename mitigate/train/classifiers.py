"""Training of the classifiers that come with the project: heads on people's ratings (people_valid, crowd2),
the networks of plausibility, and those of regard (all-MiniLM-L6-v2, the gate before it, and n-grams)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import torch
from sklearn.metrics import f1_score
from torch import Tensor, nn
from torch.nn import functional as F

from mitigate.models.encoder import pad
from mitigate.models.heads import FOLDS, REGARD, NgramClassifier, ngrams, per_text
from mitigate.models.plausibility import Bilinear
from mitigate.progress import progress
from mitigate.train import harness
from mitigate.train.harness import LOG_EVERY, Batches, Checkpoints, Epochs, Log, TrainingModule, adamw, linear

# Heads: multinomial logistic regression towards the shares of raters

STEPS = 200  # of a search
WARMUP = 0.06  # share of all steps


@dataclass(frozen=True)
class Rows:
    """Training texts of heads, n rows: rated texts, copies of them, and texts whose label is known."""

    texts: Sequence[str]
    shares: np.ndarray  # (n, columns), of raters
    weights: np.ndarray  # (n,): 1 for a rated statement
    subjects: np.ndarray  # (n,): the fold of the target, from 0; -1: every head learns from the row
    folds: np.ndarray  # (n,): the fold of the text, as in subjects

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """The rows of all parts, in their order."""
        columns = ("shares", "weights", "subjects", "folds")
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in columns)
        return cls([text for part in parts for text in part.texts], *joined)


def fit_crossed(rows: Rows, features: np.ndarray, decay: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The weight (FOLDS, FOLDS, width, columns) and bias (FOLDS, FOLDS, columns) of heads on features (n, width). The
    head at (s, t) learns from no row of a subject of fold s or of a text of fold t. decay, steps: see fit_softmax."""
    heads = []
    with progress("train", FOLDS**2, "heads") as advance:
        for subject, fold in product(range(FOLDS), repeat=2):
            kept = (rows.subjects != subject) & (rows.folds != fold)
            heads.append(fit_softmax(features[kept], rows.shares[kept], rows.weights[kept], decay, steps))
            advance(1)
    weights, biases = (np.stack(part) for part in zip(*heads, strict=True))
    return weights.reshape(FOLDS, FOLDS, *weights.shape[1:]), biases.reshape(FOLDS, FOLDS, -1)


def fit_softmax(
    features: np.ndarray, shares: np.ndarray, counts: Sequence[float] | np.ndarray, decay: float, steps: int = STEPS
) -> tuple[np.ndarray, np.ndarray]:
    """The weight (width, columns) and bias (columns,) that minimise the cross-entropy with shares (n, columns), each
    row weighted by counts, plus decay times half the sum of squared weights. The bias does not decay."""
    x, target, count = (torch.tensor(np.asarray(part), dtype=torch.float32) for part in (features, shares, counts))
    # With (3, width) products take a fifth of the time, but sums round otherwise: after 60 steps single labels differ.
    weight = torch.zeros(x.shape[1], target.shape[1], requires_grad=True)
    bias = torch.zeros(target.shape[1], requires_grad=True)

    def loss() -> Tensor:
        likelihood = (target * torch.log_softmax(x @ weight + bias, -1)).sum(-1)
        return -(count * likelihood).sum() + decay * weight.square().sum() / 2

    _minimise([weight, bias], loss, steps)
    return weight.detach().numpy(), bias.detach().numpy()


def calibrate(logits: np.ndarray, shares: np.ndarray) -> tuple[float, np.ndarray]:
    """The slope and the shift (columns,) of logits (n, columns) that bring their softmax closest to the shares."""
    x, target = torch.tensor(logits, dtype=torch.float32), torch.tensor(shares, dtype=torch.float32)
    slope, shift = torch.ones((), requires_grad=True), torch.zeros(x.shape[1], requires_grad=True)
    _minimise([slope, shift], lambda: -(target * torch.log_softmax(slope * x + shift, -1)).sum(), STEPS)
    return float(slope.detach()), shift.detach().numpy()


def _minimise(parameters: list[Tensor], loss: Callable[[], Tensor], steps: int) -> None:
    optimizer = torch.optim.LBFGS(parameters, max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)


# Plausibility: true triples against the same with another head, relation or tail, a third each, as in the labelled
# triples of Li et al. (2016). Other heads and tails are those of all other triples in the batch, so that a phrase is
# encoded once and used in many wrong triples, as often as it occurs in training. Other relations are all relations,
# weighted by their shares in training. A training triple never counts as wrong.


@dataclass(frozen=True)
class Settings:
    """Settings of a training of plausibility. Two terms make the logits depend on this head and tail, and not only on
    how common each is. Echo: a phrase is not head and tail at once. Contrast: the true tail scores above the others of
    the batch for this head, and so does the true head."""

    surroundings: ClassVar = ("checkpoint_every",)
    epochs: int
    learning_rate: float  # reached after the warmup, then falling linearly to 0
    batch_size: int = 512
    echo: float = 0.2  # weight of triples whose tail is their head
    contrast: float = 0.3  # weight of the choice among all tails, and all heads, of a batch
    precision: str = "auto"  # bf16-mixed where the processor computes in it, else 32-true
    seed: int = 1
    checkpoint_every: float = 30.0  # seconds


class Known:
    """The true triples (head, relation, tail) as numbers of phrases and of a network's relations."""

    def __init__(self, triples: pl.DataFrame, relations: Sequence[str]) -> None:
        self.phrases = sorted({*triples["head"], *triples["tail"]})
        number = {phrase: i for i, phrase in enumerate(self.phrases)}
        column = {relation: i for i, relation in enumerate(relations)}
        self.heads = np.array([number[head] for head in triples["head"]])  # (n,)
        self.relations = np.array([column[relation] for relation in triples["relation"]])
        self.tails = np.array([number[tail] for tail in triples["tail"]])
        self.share = np.bincount(self.relations, minlength=len(column)) / len(self.relations)  # (relations,)
        self._keys = np.unique(self._key(self.heads, self.relations, self.tails))

    def holds(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """Return whether each triple is known to be true, bool, with the broadcast shape of the three."""
        keys = self._key(heads, relations, tails)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[places] == keys

    def _key(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        return (heads * len(self.share) + relations) * len(self.phrases) + tails


class PlausibilityTraining(TrainingModule):
    """The loss of a batch, and the optimizer."""

    def __init__(self, network: Bilinear, known: Known, settings: Settings) -> None:
        # All lengths are 0: in batches sorted by length, all wrong answers would be as long as the right one.
        batches = Batches(np.zeros(len(known.heads)), settings.batch_size, settings.seed)
        steps = math.ceil(settings.epochs * len(known.heads) / settings.batch_size)
        learning_rate = linear(settings.learning_rate, WARMUP, steps)
        super().__init__(batches, steps, learning_rate, seed=settings.seed)
        self.network = network
        self.known = known
        self.settings = settings
        self.pieces = network.phrases.encode(known.phrases)

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The mean over the batch of -log p(true) - (sum over head, relation, tail of log(1 - p(other))) / 3, and the
        two further terms by their weights."""
        known = self.known
        heads, relations, tails = known.heads[batch], known.relations[batch], known.tails[batch]
        distinct, places = np.unique(np.concatenate([heads, tails]), return_inverse=True)
        # Rows of a tensor are taken together: autocast to bf16 stacks no rows in half precision.
        pieces = self.pieces
        encoded = pieces[torch.tensor(distinct)] if isinstance(pieces, Tensor) else [pieces[i] for i in distinct]
        vectors = self.network.vectors(encoded)[torch.tensor(places)]  # (2 batch, width)
        head, tail = vectors.chunk(2)  # (batch, width) each
        matrices = self.network.matrices  # (relations, width, width)
        matrix = matrices[torch.tensor(relations)]  # (batch, width, width)
        from_head, to_tail = torch.einsum("ni,nij->nj", head, matrix), torch.einsum("nij,nj->ni", matrix, tail)
        by_tail = (from_head @ tail.T).float()  # (batch, batch): row's head, column's tail
        by_head = (to_tail @ head.T).float()  # (batch, batch): row's tail, column's head
        by_relation = torch.einsum("ni,rij,nj->nr", head, matrices, tail).float()  # (batch, relations)
        other_tails = ~known.holds(heads[:, None], relations[:, None], tails)
        other_heads = ~known.holds(heads, relations[:, None], tails[:, None])
        other_relations = ~known.holds(heads[:, None], np.arange(len(matrices)), tails[:, None]) * known.share
        others = (by_tail, other_tails), (by_head, other_heads), (by_relation, other_relations)
        negative: Any = 0.0
        for logits, weights in others:  # the weighted mean of each row; 0 for a row without weight
            normalised = torch.tensor(weights / np.maximum(weights.sum(1, keepdims=True), 1e-12)).to(logits)
            negative = negative + (F.softplus(logits) * normalised).sum(1)
        loss = F.softplus(-by_tail.diagonal()) + negative / 3
        if self.settings.contrast:
            loss = loss + self.settings.contrast * (choice(by_tail, other_tails) + choice(by_head, other_heads)) / 2
        if self.settings.echo:
            twice = ((from_head * head).sum(1), heads), ((to_tail * tail).sum(1), tails)
            echoes = sum(
                F.softplus(logits.float()) * torch.tensor(~known.holds(phrases, relations, phrases))
                for logits, phrases in twice
            )
            loss = loss + self.settings.echo * echoes / 2
        return loss.mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return adamw(self.parameters(), self.settings.learning_rate, betas=(0.9, 0.98))


def choice(logits: Tensor, others: np.ndarray) -> Tensor:
    """The loss -log softmax of each row's own column among it and the others, (n,). logits: (n, n), a row's own on the
    diagonal; others: the mask of columns that are known to be wrong, bool."""
    compared = torch.tensor(others) | torch.eye(len(logits), dtype=torch.bool)
    return F.cross_entropy(logits.masked_fill(~compared, -torch.inf), torch.arange(len(logits)), reduction="none")


def fit_plausibility(
    network: Bilinear, known: Known, settings: Settings, folder: Path, *, fingerprint: str, log: Log | None = None
) -> dict[str, float]:
    """Train the network in place, resuming from the newest intact checkpoint of the same training in folder. Returns
    steps, seconds (of training, without interruptions), triples_per_second and loss (the mean of the last steps).

    fingerprint: identifies the training. Raises MitigateError when the checkpoint is of another one."""
    module = PlausibilityTraining(network, known, settings)
    counts = harness.fit(
        module,
        precision=settings.precision,
        checkpoints=Checkpoints(folder, fingerprint),
        checkpoint_every=settings.checkpoint_every,
        log=log,
        accelerator="cpu",
    )
    losses = [float(loss) for loss in counts.losses][-(module.steps % LOG_EVERY or LOG_EVERY) :]
    pace = {"seconds": counts.seconds, "triples_per_second": counts.rate(module.steps)}
    return {"steps": module.steps, **pace, "loss": sum(losses) / len(losses)}


# Regard: texts towards probabilities of REGARD, in batches with enough polar texts

NEGATIVE, NEUTRAL, POSITIVE, OTHER = range(len(REGARD))  # the columns
ON_CPU: dict[str, Any] = {"accelerator": "cpu", "deterministic": True}
"""With these, a seed gives the same classifier on all processors of a kind. Training takes minutes: no checkpoints."""
PLAINLY = 0.9  # the least probability of neutral in the texts of which an epoch draws only a share
POOL = 50  # batches sorted by length together: little padding, and still much randomness


def certain(labels: pl.Series) -> np.ndarray:
    """Labels as probabilities, (n, 4) float32."""
    columns = labels.replace_strict({-1: NEGATIVE, 0: NEUTRAL, 1: POSITIVE, 2: OTHER}, return_dtype=pl.Int64)
    return np.eye(len(REGARD), dtype=np.float32)[columns.to_numpy()]


def fit_regard(
    network: nn.Module,
    rows: Sequence[list[int]],
    wanted: np.ndarray,
    settings: Mapping[str, Any],
    *,
    seed: int,
    log: Log | None = None,
) -> None:
    """Train a network, tokens and mask (batch, length) to logits (batch, 4), towards the wanted probabilities (n, 4) of
    n rows of token ids.

    settings: learning_rate, epochs, batch_size, and neutral_share, the share of the plainly neutral texts (19 of 20
    texts are) that is drawn anew for each epoch. With half of them the logits need no offsets: the best ones on part
    valid, when it was held out, changed macro-F1 by less than .01."""
    harness.seed(seed)
    batches = TokenBatches(rows, wanted, settings["batch_size"], settings["neutral_share"], seed)
    module = TokenTraining(network, batches, settings["learning_rate"], settings["epochs"])
    harness.fit(module, precision="auto", log=log, **ON_CPU)
    network.eval()


class TokenTraining(TrainingModule):
    """Cross-entropy of texts with probabilities."""

    def __init__(self, network: nn.Module, batches: "TokenBatches", peak: float, epochs: int) -> None:
        steps, epoch = epochs * len(batches), Epochs(batches, batches.num_drawn / len(batches))
        super().__init__(epoch, steps, linear(peak, WARMUP, steps), seed=None)
        self.network = network

    def training_step(self, batch: tuple[Tensor, Tensor | None, Tensor], _: int) -> Tensor:
        tokens, mask, wanted = batch  # probabilities
        return F.cross_entropy(self.network(tokens, mask).float(), wanted)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # Not fused, and all parameters decay, as in the training of the shipped classifiers.
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return torch.optim.AdamW(trained, lr=self.learning_rate(0), betas=(0.9, 0.98))


class TokenBatches:
    """Batches of token ids with the probabilities wanted, of similar lengths and in another order in each pass. All
    texts that are not plainly neutral are in each pass, and a share of the others."""

    def __init__(
        self, rows: Sequence[list[int]], wanted: np.ndarray, size: int, neutral_share: float, seed: int
    ) -> None:
        self.rows, self.size = rows, size
        self.wanted = torch.tensor(wanted, dtype=torch.float32)
        plain = wanted[:, NEUTRAL] >= PLAINLY
        self.polar, self.neutral = np.flatnonzero(~plain), np.flatnonzero(plain)
        self.num_neutral = round(neutral_share * len(self.neutral))
        self.num_drawn = len(self.polar) + self.num_neutral  # texts in an epoch
        self.chance = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-self.num_drawn // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor | None, Tensor]]:
        drawn = self.chance.choice(self.neutral, self.num_neutral, replace=False)
        order = self.chance.permutation(np.concatenate([self.polar, drawn]))
        pools = [order[start : start + POOL * self.size] for start in range(0, len(order), POOL * self.size)]
        by_length = [index for pool in pools for index in sorted(pool, key=lambda index: len(self.rows[index]))]
        batches = [by_length[start : start + self.size] for start in range(0, len(by_length), self.size)]
        for number in self.chance.permutation(len(batches)):
            tokens, mask = pad([self.rows[index] for index in batches[number]], padding=0)
            yield tokens, mask, self.wanted[batches[number]]


def fit_ngram(
    labelled: pl.DataFrame, taught: pl.DataFrame, settings: Mapping[str, Any], *, seed: int, log: Log | None = None
) -> NgramClassifier:
    """Train on the texts (text, label, part) of part train and on the taught ones (text, probabilities), since a linear
    model has no weight for a word that it has not seen; set offsets by part valid. settings: buckets, batch_size,
    learning_rate, epochs, and decay, the weight of the sum of squares."""
    harness.seed(seed)
    learnt, valid = (labelled.filter(part=part) for part in ("train", "valid"))
    wanted = np.concatenate([certain(learnt["label"]), taught["probabilities"].to_numpy()])
    texts = [*learnt["text"], *taught["text"]]
    batches = NgramBatches(texts, wanted, settings["buckets"], settings["batch_size"], seed)
    module = NgramTraining(batches, wanted.mean(0), settings)
    harness.fit(module, precision="32-true", log=log, **ON_CPU)
    weight = module.weight.weight.detach().numpy() * batches.rarity[:, None]
    classifier = NgramClassifier(weight, module.bias.detach().numpy())
    offsets = best_offsets(classifier.probabilities(valid["text"].to_list()), certain(valid["label"]).argmax(1))
    return NgramClassifier(classifier.weight, classifier.bias + offsets)


class NgramTraining(TrainingModule):
    """Cross-entropy with probabilities; Adam, whose learning rate falls to 0."""

    def __init__(self, batches: "NgramBatches", prior: np.ndarray, settings: Mapping[str, Any]) -> None:
        peak, steps = settings["learning_rate"], settings["epochs"] * len(batches)
        shape = settings["buckets"], len(REGARD)
        size = len(batches.lengths) / len(batches)
        super().__init__(Epochs(batches, size), steps, lambda step: peak * (1 - step / steps), seed=None)
        self.weight = nn.EmbeddingBag(*shape, mode="sum", _weight=torch.zeros(shape))
        self.bias = nn.Parameter(torch.tensor(np.log(prior + 1e-6), dtype=torch.float32))
        self.decay = settings["decay"]

    def training_step(self, batch: tuple[Tensor, ...], _: int) -> Tensor:
        buckets, starts, shares, wanted = batch
        logits = self.weight(buckets, starts, per_sample_weights=shares) + self.bias
        return -(wanted * logits.log_softmax(-1)).sum(-1).mean() + self.decay * self.weight.weight.square().sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate(0))


class NgramBatches:
    """The n-grams of all texts, hashed once, in another order of the texts in each pass. An n-gram counts by its
    rarity, 1 for one of e^2 texts, so that rare ones learn faster; at the end it is part of the weights."""

    def __init__(self, texts: Sequence[str], wanted: np.ndarray, buckets: int, size: int, seed: int) -> None:
        owners, hashed = ngrams(texts, buckets)
        self.buckets = hashed[np.argsort(owners, kind="stable")].astype(np.int32)  # (n-grams,) in order of texts
        self.lengths = np.bincount(owners, minlength=len(texts))  # (texts,) n-grams of each
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.shares = per_text(owners, len(texts))
        frequency = np.bincount(hashed, minlength=buckets)
        self.rarity = ((1 + np.log((1 + len(texts)) / (1 + frequency))) / 3).astype(np.float32)
        self.wanted = torch.tensor(wanted)
        self.size = size
        self.chance = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        order = self.chance.permutation(len(self.lengths))
        for start in range(0, len(order), self.size):
            chosen = order[start : start + self.size]
            lengths, starts = self.lengths[chosen], self.starts[chosen]
            together = np.concatenate([self.buckets[a:b] for a, b in zip(starts, starts + lengths, strict=True)])
            shares = np.repeat(self.shares[chosen], lengths) * self.rarity[together]
            firsts = torch.tensor(np.cumsum(lengths) - lengths)
            yield torch.tensor(together), firsts, torch.tensor(shares), self.wanted[chosen]


def best_offsets(probabilities: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The offsets of the logits, (4,), with the best macro-F1 over negative, neutral and positive: a classifier of such
    rare classes is not best at the most probable class. Other counts as neutral, and keeps its logit."""
    logits = np.log(probabilities + 1e-9)
    wanted = np.where(columns == OTHER, NEUTRAL, columns)

    def score(offsets: np.ndarray) -> float:
        chosen = (logits + offsets).argmax(1)
        return f1_score(wanted, np.where(chosen == OTHER, NEUTRAL, chosen), average="macro")

    grid = product(np.arange(-2, 3.01, 0.25), repeat=2)
    return max((np.array([negative, 0, positive, 0], dtype=np.float32) for negative, positive in grid), key=score)
