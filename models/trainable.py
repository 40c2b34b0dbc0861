"""The weights of a model of transformers that are trained, and the options that save memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from models.adapters import Adapters, begin_adapters, merged


@dataclass(frozen=True)
class Learning:
    """All weights, or adapters; with checkpointing the activations of a layer are computed again when its gradient is,
    and not kept."""

    adapters: Adapters | None = None  # None: all weights
    checkpointing: bool = False

    @classmethod
    def of(cls, lora: Mapping[str, Any] | None, checkpointing: bool) -> "Learning":
        """lora: the fields of Adapters; of rank 0, all weights."""
        return cls(Adapters(**lora) if lora and lora["rank"] else None, checkpointing)

    def begin(self, model: Any) -> Any:
        """The model to train. Raises ValueError as begin_adapters."""
        return begin_adapters(model, self.adapters) if self.adapters else model

    def begin_steps(self, model: Any) -> None:
        """Switch checkpointing on, in the process that trains: the model cannot be sent to another one then."""
        if not self.checkpointing:
            return
        if hasattr(model, "activation_checkpointing_enable"):  # the other name is that of earlier versions
            model.activation_checkpointing_enable({"use_reentrant": False})
        else:
            model.gradient_checkpointing_enable({"use_reentrant": False})

    def end(self, model: Any) -> Any:
        """The model to save."""
        return merged(model) if self.adapters and self.adapters.save == "merged" else model


WHOLE = Learning()
