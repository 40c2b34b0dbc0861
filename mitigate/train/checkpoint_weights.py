"""The weights in a checkpoint: only those that are trained. Frozen weights, such as those of the base of low-rank
adapters, are in memory before training resumes; the checkpoint has their checksum."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from mitigate.errors import MitigateError

LISTED = 3  # names in a message


def frozen(network: nn.Module) -> dict[str, Tensor]:
    """The weights that are not trained, by all names that state_dict has for them: tied ones have several."""
    named = network.named_parameters(remove_duplicate=False)
    return {name: parameter.detach() for name, parameter in named if not parameter.requires_grad}


def checksum(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of names and weights, the same on all devices."""
    found = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        found.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def without_frozen(weights: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """The part of a network's state_dict that training may change: trained weights, and buffers."""
    left_out = frozen(network)
    return {name: tensor for name, tensor in weights.items() if name not in left_out}


def with_frozen(weights: Mapping[str, Tensor], network: nn.Module, path: Path) -> dict[str, Tensor]:
    """The trained weights of the checkpoint at this path, completed by the network's own frozen weights.
    Raises MitigateError where the names or the shapes are not those of the network."""
    own = network.state_dict()
    expected = without_frozen(own, network)
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    faults = [
        *(f"{name} is missing" for name in expected if name not in shapes),
        *(f"{name} is not trained here" for name in shapes if name not in expected),
        *(
            f"{name} has the shape {shapes[name]} and here {tuple(tensor.shape)}"
            for name, tensor in expected.items()
            if name in shapes and shapes[name] != tensor.shape
        ),
    ]
    if faults:
        more = f"; and {len(faults) - LISTED} more" if len(faults) > LISTED else ""
        raise misfit(path, f"{'; '.join(faults[:LISTED])}{more}")
    return {**own, **weights}


def misfit(path: Path, fault: str) -> MitigateError:
    """The error for a checkpoint that is of another model than the one in training."""
    return MitigateError(
        f"the checkpoint {path} does not fit this model ({fault}). Start from the model and the adapters of that "
        f"training, or delete the folder {path.parent} to train from the beginning."
    )
