"""Mitigations of bias in embeddings: a penalty in their training, or a change of trained vectors, with its control."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mitigate.files import replacing_folder
from mitigate.measure.base import PERTURBED, PROJECTED, REGULARISED
from mitigate.probe.kge import Attribute
from mitigate.tasks.kge.question import Question
from mitigate.tasks.kge.training import EMBEDDINGS, open_embeddings, summed_direction
from models.kge import DotProduct, Embeddings, TransEL2


@dataclass(frozen=True, eq=False)
class RelationalBias:
    """The penalty of Fair-KGNN (Chuang et al. 2022, Mitigating Relational Bias on Knowledge Graphs) for a dot product:
    how much more value a scores with professions than value b by the path over the attribute and the occupation, over
    the distance between both values, each through a logistic function, as the authors' code has it for DistMult.

    There the sum is over triples of a batch; here each profession counts once."""

    attributes: tuple[Attribute, ...]
    occupation: int
    professions: np.ndarray  # entities
    weight: float

    def __call__(self, network: Embeddings) -> Tensor:
        interaction, device = network.interaction, network.entities.device
        assert isinstance(interaction, DotProduct)
        direction, distance = network.entities.new_zeros(network.entities.shape[1]), network.entities.new_zeros(())
        for part in self.attributes:
            ends = [network.of(torch.from_numpy(entities).to(device)) for entities in (part.values, part.others)]
            own = network.relations[part.relation]
            a, b = (interaction.weight(own.expand_as(vectors), vectors).mean(0) for vectors in ends)
            direction = direction + a - b
            distance = distance + (ends[0].mean(0) - ends[1].mean(0)).square().sum().clamp_min(1e-12).sqrt()
        professions = network.of(torch.from_numpy(self.professions).to(device))
        paths = interaction.weight(network.relations[self.occupation].expand_as(professions), professions) @ direction
        return self.weight * paths.sum().abs().sigmoid() / distance.sigmoid()


def project_out(network: Embeddings, question: Question, seed: int = 0) -> Tensor:
    """Remove the attribute's direction from the vectors of people and professions."""
    entities = network.entities.detach().clone()
    for chosen, direction in zip((question.people, question.entities), directions(network, question), strict=True):
        vectors = entities[torch.from_numpy(chosen)]
        entities[torch.from_numpy(chosen)] = vectors - (vectors @ direction)[:, None] * direction
    return entities


def directions(network: Embeddings, question: Question) -> tuple[Tensor, Tensor]:
    """The directions of people and of professions, (dimension,) of length 1; without them equation 1 is 0.

    With a dot product a person moves along the gradient of m; a profession's score changes by the part of its vector
    along the transformed gradient. With a distance it is the difference between the values moved back by the attribute,
    for professions moved by the occupation: both are a - b for a translation."""
    entities, relations, interaction = network.entities.detach(), network.relations.detach(), network.interaction
    occupation = relations[question.occupation][None]

    def between_values(to_people: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        def vectors_of(relation: int, ends: np.ndarray) -> np.ndarray:
            return to_people(relations[relation].expand(len(ends), -1), entities[torch.from_numpy(ends)]).numpy()

        return torch.from_numpy(summed_direction(question, vectors_of))

    if isinstance(interaction, TransEL2):
        direction = between_values(lambda own, tails: interaction.move_back(tails, own))
        moved = interaction.move(torch.stack([direction, torch.zeros_like(direction)]), occupation.expand(2, -1))
        return _unit(direction), _unit(moved[0] - moved[1])
    assert isinstance(interaction, DotProduct)
    direction = between_values(interaction.weight)
    vector = torch.zeros_like(direction).requires_grad_()
    moved = (interaction.weight(occupation, vector[None])[0] * direction).sum()
    (transformed,) = torch.autograd.grad(moved, vector)  # of what is linear in the vector
    return _unit(direction), _unit(transformed)


def perturb(network: Embeddings, question: Question, seed: int) -> Tensor:
    """Move each vector as far as project moves it, in a direction drawn at random."""
    entities = network.entities.detach()
    far = (project_out(network, question) - entities).norm(dim=1)
    drawn = torch.randn(entities.shape, generator=torch.Generator().manual_seed(seed))
    return entities + far[:, None] * drawn / drawn.norm(dim=1, keepdim=True)


VARIANTS = {"regularise": REGULARISED, "project": PROJECTED, "perturb": PERTURBED}
"""Mitigations, and their names in keys of figures and in folders. perturb is the control of project."""
CHANGES: dict[str, Callable[[Embeddings, Question, int], Tensor]] = {"project": project_out, "perturb": perturb}
"""Changes of trained vectors, by the seed: all entities."""


def change_vectors(
    mitigation: str, question: Question, names: Sequence[str], seed: int, *, folder: Path
) -> dict[str, Any]:
    """Write each model with changed vectors, as `changed_name` names it; returns the mean squared distance by which
    people moved, in percent of their squared length."""
    shares = []
    for number, name in enumerate(names):
        network = open_embeddings(folder, name)
        after = CHANGES[mitigation](network, question, seed + number).detach()
        people = torch.from_numpy(question.people)
        with torch.no_grad():
            moved = (after - network.entities)[people].square().sum()
            shares.append(float(moved / network.entities[people].square().sum()))
            network.entities.copy_(after)
        with replacing_folder(folder / EMBEDDINGS / changed_name(mitigation, name)) as part:
            network.save(part)
    return {"people_moved": 100 * float(np.mean(shares))}


def changed_name(mitigation: str, name: str) -> str:
    """The name of a model after a mitigation."""
    return f"{VARIANTS[mitigation]}_{name}"


def _unit(vector: Tensor) -> Tensor:
    return vector / vector.norm().clamp_min(1e-12)
