"""A vector for each entity and each relation, and the interaction that scores them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import embedding

from models.kge.complex import ComplEx
from models.kge.distmult import DistMult
from models.kge.interaction import Interaction
from models.kge.rotate import RotatE
from models.kge.transe import TransE, TransEL1, TransEL2
from models.stored_tensors import read_facts

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Kind(NamedTuple):
    """A kind of model."""

    interaction: Any
    reciprocal: bool  # whether heads are predicted as tails of a second, reversed relation (Lacroix et al. 2018)


KINDS = {
    "transe": Kind(TransE, False),
    "complex": Kind(ComplEx, False),
    "transe_l2": Kind(TransEL2, False),
    "distmult": Kind(DistMult, False),
    "complex_n3": Kind(ComplEx, True),
    "rotate": Kind(RotatE, False),
    "transe_l1": Kind(TransEL1, False),
}
COMPLEX = (ComplEx, RotatE)


class Embeddings(nn.Module):
    """Vectors of entities and relations, and their scores. Entities and relations are given as numbers, int64.

    Raises ValueError for a kind that is not in KINDS, or an odd dimension of complex vectors."""

    def __init__(self, kind: str, entities: int, relations: int, dimension: int, init: float = 1e-3) -> None:
        """init: standard deviation of the numbers that training starts from."""
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}; allowed: {', '.join(KINDS)}")
        if KINDS[kind].interaction in COMPLEX and dimension % 2:
            raise ValueError(f"dimension={dimension} must be even: complex numbers have two parts")
        self.facts = {"kind": kind, "entities": entities, "relations": relations, "dimension": dimension}
        self.interaction: Interaction = KINDS[kind].interaction()
        self.reciprocal = KINDS[kind].reciprocal
        self.num_relations = relations
        self.entities = nn.Parameter(torch.randn(entities, dimension) * init)
        self.relations = nn.Parameter(torch.randn(relations * (1 + self.reciprocal), dimension) * init)

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The scores of n triples, (n,)."""
        return self.interaction.score(self.of(heads), self.of_relations(relations), self.of(tails))

    def tails(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The scores of n heads and relations with each entity as the tail, (n, entities)."""
        return self.interaction.tails(self.of(heads), self.of_relations(relations), self.entities)

    def heads(self, relations: Tensor, tails: Tensor) -> Tensor:
        """The scores of n relations and tails with each entity as the head, (n, entities)."""
        if self.reciprocal:
            return self.tails(tails, self.reversed(relations))
        return self.interaction.heads(self.of_relations(relations), self.of(tails), self.entities)

    def beside(self, triples: Tensor, candidates: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The scores of n triples (n, 3) beside those of candidates: the score as `tails` gives it, (n,), and the
        scores with each of m candidates as the tail, (n, m); then the same of heads. Each vector is read once: a
        gradient of all vectors is made for each reading."""
        size = len(triples)
        vectors = self.of(torch.cat([triples[:, 0], triples[:, 2], candidates]))
        heads, tails, others = vectors.split([size, size, len(candidates)])
        relations = self.of_relations(triples[:, 1])
        score = self.interaction.score(heads, relations, tails)
        by_tail = score, self.interaction.tails(heads, relations, others)
        if not self.reciprocal:
            return by_tail, (score, self.interaction.heads(relations, tails, others))
        relations = self.of_relations(self.reversed(triples[:, 1]))
        return by_tail, (
            self.interaction.score(tails, relations, heads),
            self.interaction.tails(tails, relations, others),
        )

    def of(self, entities: Tensor) -> Tensor:
        """The vectors of n entities, (n, dimension)."""
        return embedding(entities, self.entities)  # an index would do, with a slower gradient on CPUs

    def of_relations(self, relations: Tensor) -> Tensor:
        """The vectors of n relations, (n, dimension)."""
        return embedding(relations, self.relations)

    def reversed(self, relations: Tensor) -> Tensor:
        """The relations by which heads are predicted; those themselves where no others were made for it."""
        return relations + self.num_relations if self.reciprocal else relations

    def save(self, folder: Path) -> None:
        """Write the vectors and the facts that loading needs. The names of entities and relations are not written."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.detach().cpu() for name, value in self.named_parameters()}, folder / WEIGHTS)
        (folder / CONFIG).write_text(json.dumps(self.facts, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Embeddings":
        """The model of a folder."""
        network = cls(**read_facts(folder / CONFIG))
        network.load_state_dict(load_file(folder / WEIGHTS))
        return network.eval()
