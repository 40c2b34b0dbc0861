"""Settings of trainings and of the models that are trained or probed. The defaults of trainings are those of the
library; conf/ has those of commands."""

import math
from typing import Annotated, Literal

from pydantic import Field

from mitigate.errors import MitigateError
from mitigate.settings import Name, Parts, Place, Text, fact, group, place, served, setting

MANY = 1_000_000
Whole = Annotated[int, Field(ge=0, le=100_000)]
Precision = Literal["auto", "bf16-mixed", "32-true"]
SEED = "number that fixes all random draws"
CALLS = ("key", "concurrency", "timeout", "tries")  # how an endpoint is called
Prompt = Literal["phrase", "chat", "gen", "text"]
EVERY = "time between checkpoints, in seconds"


PROMPT = (
    "phrase: head and relation; text, of api: the prompt is continued; chat: in the chat template of a causal model; "
    "gen, of a sequence-to-sequence model: head, relation's name and [GEN]; null: as the model was trained"
)


@group("trainer")
class Training:
    """Settings of a training. The defaults suit a warm-started MiniLM; COMeT's own are lr 1e-5 and 100,000 steps."""

    max_epochs: float = served("training epochs; 1.9: the second one ends early", default=2.0, gt=0, le=MANY)
    min_steps: int = fact("fewest training steps: small data is repeated beyond max_epochs", default=1, ge=1, le=10**9)
    max_steps: int | None = served("most training steps; null: max_epochs alone decides", default=None, ge=1, le=10**9)
    batch_size: int = served("triples of a batch", default=64, ge=1, le=100_000)
    lr: float = served("learning rate", default=3e-4, gt=0, le=1)
    warmup: float = served("share of the steps in which the learning rate rises", default=0.002, ge=0, lt=1)
    hold: float | None = fact(
        "share of the steps until which lr stays at its peak; null: it falls", default=None, ge=0, lt=1
    )
    precision: Precision = served("number format of training", default="auto")
    seed: int = fact(SEED, default=1)
    checkpoint_every: float = place(EVERY, default=30.0, gt=0)

    def __post_init__(self) -> None:
        if self.hold is not None and self.hold < self.warmup:
            raise MitigateError(f"trainer.hold={self.hold} must be null or at least trainer.warmup={self.warmup}")

    def planned_steps(self, num_examples: int) -> int:
        """The number of batches with max_epochs times the examples, and at least min_steps."""
        return max(math.ceil(self.max_epochs * num_examples / self.batch_size), self.min_steps)

    def num_steps(self, num_examples: int) -> int:
        """The planned steps, at most max_steps."""
        planned = self.planned_steps(num_examples)
        return planned if self.max_steps is None else min(planned, self.max_steps)

    def ends_by(self, num_examples: int) -> str:
        """The setting that decides the number of steps: "max_epochs", "min_steps" or "max_steps"."""
        planned = self.planned_steps(num_examples)
        if self.num_steps(num_examples) < planned:
            return "max_steps"
        return "max_epochs" if self.max_epochs * num_examples > (planned - 1) * self.batch_size else "min_steps"


@group("trainer")
class Trainer(Training):
    """A training and its devices."""

    accelerator: Text = place("device kind: auto, cpu or gpu")
    devices: Whole | Literal["auto"] | list[Whole] = place("number of devices, or which GPUs")
    strategy: Literal["auto", "ddp", "fsdp"] = place("how several devices share the training")


@group("model.training")
class EmbeddingTraining:
    """Settings of a training of embeddings. The defaults are those of the paper on bias in knowledge-graph embeddings
    (section 2.2) where it gives any: 1,000 negatives, softmax cross-entropy."""

    loss: Literal["shared", "all"] = fact("shared: negatives that a batch shares; all: 1-vs-all", default="shared")
    max_epochs: int = served("training ends after this many epochs at the latest", default=100, ge=1, le=MANY)
    batch_size: int = fact("triples of a batch; with loss=all queries", default=1000, ge=1, le=MANY)
    negatives: int = fact("negatives of a batch", default=1000, ge=1, le=MANY)
    by_frequency: float = fact("share of negatives drawn as often as entities occur", default=0.5, ge=0, le=1)
    learning_rate: float = fact("learning rate of Adagrad at the first step", default=0.1, gt=0, le=100)
    n3: float = fact("weight of the N3 regulariser (Lacroix et al. 2018)", default=0.0, ge=0, le=100)
    evaluate_every: int = fact("epochs from one evaluation on validation triples to the next", default=5, ge=1, le=MANY)
    patience: int = fact(
        "evaluations without a better validation MRR, after which training ends", default=3, ge=1, le=MANY
    )
    seed: int = fact(SEED, default=1)
    checkpoint_every: float = fact(EVERY, default=30.0, gt=0, where=True)


@group("model")
class Model:
    """The settings of all models."""

    name: Name = fact("name of the model, part of the run folder's name")


@group("model")
class Generator(Model):
    """A model that generates tails. layout and relation are null as the model was trained."""

    licence: Text | None = fact("licence of the weights")
    base: Place = setting("pretrained model: a folder, a name on the hub, or a GGUF file")
    trainable: bool = fact("whether the model can be trained")
    layout: Literal["packed", "comet"] | None = served("positions of a triple; null: as it was trained")
    relation: Literal["phrase", "words", "token", "name"] | None = served("its wording; null: as trained")
    folder: Parts = fact("function that finds the weights (_target_) and its arguments", where=["cache", "revision"])
    load: Parts = fact("function that loads the model (_target_) and its arguments")


@group("model")
class WarmStarted(Generator):
    dropout: float = served("share of activations set to 0 in training, of comet_minilm", ge=0, lt=1)


@group("model")
class Original(Generator):
    init: Place = setting("checkpoint of the original COMeT code")


@group("model")
class Tails(Generator):
    path: Place | None = setting("file of tails (head, relation, tail, score), or folder of trained embeddings")


@group("model.lora")
class Lora:
    """Low-rank adapters."""

    rank: int = served("rank of low-rank adapters; 0: none, all weights are trained", ge=0, le=4096)


@group("model")
class Pretrained(Generator):
    """A model of transformers."""

    revision: Text | None = setting("commit, tag or branch on the hub; null: the cached one, else the newest")
    post_train: bool = fact("whether recipe=stories trains the model on data first", default=False)
    prompt: Prompt | None = served(PROMPT)
    system: Text | None = setting("system prompt of a chat; null: none besides that of a chat template", default=None)
    lora: Lora = setting("low-rank adapters")


@group("model")
class Api(Generator):
    """A model behind an OpenAI-compatible address."""

    name: Name | Place = fact("the model's name at the address")
    url: Text = setting("address of an OpenAI-compatible endpoint, up to /v1")
    key: Text | None = place("environment variable with the key of the endpoint; null: no key is sent")
    post_train: bool = fact("whether recipe=stories trains the model on data first")
    prompt: Prompt = served(PROMPT)
    system: Text | None = setting("system prompt of a chat; null: none besides that of a chat template")
    endpoint: Parts = fact("class of the endpoint (_target_) and its arguments", where=CALLS)


Interaction = Literal["transe", "complex", "distmult", "rotate", "transe_l2"]


@group("model")
class Embedding(Model):
    """Embeddings of a knowledge graph."""

    kind: Interaction = fact("interaction of knowledge-graph embeddings")
    dimension: int = served("dimension of knowledge-graph embeddings", ge=1, le=100_000)
    deviation: float = fact("standard deviation of the initial knowledge-graph embeddings", gt=0, le=10)
    training: EmbeddingTraining = setting("training of embeddings")


@group("model")
class Foreign(Model):
    """Embeddings that another program trained."""

    kind: Interaction | None = setting("interaction of knowledge-graph embeddings")
    path: Place | None = setting("folder of trained embeddings")
