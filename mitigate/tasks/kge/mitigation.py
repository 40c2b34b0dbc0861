"""Two mitigations: embeddings of a graph whose professions are downsampled to parity, and embeddings from which the
attribute is projected out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mitigate.runs.files import replacing_folder
from mitigate.tasks.kge.graphs import Triples, downsample
from mitigate.tasks.kge.question import Question
from mitigate.tasks.kge.training import EMBEDDINGS, open_embeddings, summed_direction
from models.kge.embeddings import Embeddings
from models.kge.interaction import DotProduct
from models.kge.transe import TransEL2

MITIGATIONS = ("downsample", "project")


def downsampled(triples: Triples, question: Question, seed: int) -> Triples:
    """Downsample the training triples so that the same share of both groups holds each profession."""
    return downsample(triples, question.occupation, question.entities, question.group_a, question.group_b, seed)


def project_out(question: Question, names: Sequence[str], into: Sequence[str], *, folder: Path) -> dict[str, Any]:
    """Write each model without the attribute's direction in the vectors of people and professions, under another name;
    returns the mean share of a person's squared length that was removed, in percent."""
    shares = []
    for name, other in zip(names, into, strict=True):
        network = open_embeddings(folder, name)
        of_people, of_professions = directions(network, question)
        with torch.no_grad():
            people, professions = torch.from_numpy(question.people), torch.from_numpy(question.entities)
            before = network.entities[people]
            after = remove_direction(before, of_people)
            network.entities[people] = after
            network.entities[professions] = remove_direction(network.entities[professions], of_professions)
        shares.append(float(1 - after.square().sum() / before.square().sum()))
        with replacing_folder(folder / EMBEDDINGS / other) as part:
            network.save(part)
    return {"taken_from_people": 100 * float(np.mean(shares))}


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


def remove_direction(vectors: Tensor, direction: Tensor) -> Tensor:
    """Remove from the vectors (n, dimension) their part along a direction of length 1."""
    return vectors - (vectors @ direction)[:, None] * direction


def _unit(vector: Tensor) -> Tensor:
    return vector / vector.norm().clamp_min(1e-12)
