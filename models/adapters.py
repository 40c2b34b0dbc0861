"""Low-rank adapters (Hu et al. 2022) by the library peft: of a model of transformers only small matrices are trained,
beside its own weights, which stay as they are."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import safe_open

from models import hf_layouts
from models.stored_tensors import read_facts

WEIGHTS = "adapter_model.safetensors"
NEEDED = "low-rank adapters need the library peft: pip install 'mitigate[lora]', or set model.lora.rank=0"


@dataclass(frozen=True)
class Adapters:
    """The settings of adapters: which are trained, and how they are saved."""

    rank: int = 8
    alpha: float = 16.0  # what an adapter adds is multiplied by alpha / rank
    dropout: float = 0.0  # of what an adapter reads
    targets: list[str] | None = None  # names of layers; None: all linear ones but the head
    save: Literal["merged", "adapter"] = "merged"  # with the weights of the base, or alone
    base: str | None = None  # what a saved adapter calls the model that it belongs to; None: its folder


def check_targets(folder: Path, targets: Sequence[str] | None) -> None:
    """Check that some layer of the model in a folder has the name of each target. A folder without weights, such as an
    adapter's, is not checked. Raises ValueError for targets without a layer."""
    files = sorted(folder.glob("model*.safetensors"))
    layers: set[str] = set()
    for file in files:
        with safe_open(file, framework="pt") as tensors:
            layers |= {name.rpartition(".")[0] for name in tensors.keys()}  # noqa: SIM118
    called = [target for target in targets or () if not any(f".{layer}".endswith(f".{target}") for layer in layers)]
    if files and called:
        names = sorted({layer.rpartition(".")[2] for layer in layers})
        raise ValueError(
            f"model.load.lora.targets names {', '.join(called)}, and the model in {folder} has no such layer; it has "
            f"{', '.join(names)}"
        )


def begin_adapters(model: Any, adapters: Adapters) -> Any:
    """The model with adapters that change nothing yet, always the same; they alone are trained.

    Raises ValueError without peft, and for targets that the model has not."""
    import torch  # takes a second, which those that only look for adapters do without

    peft = _peft()
    config = peft.LoraConfig(
        task_type="SEQ_2_SEQ_LM" if model.config.is_encoder_decoder else "CAUSAL_LM",
        r=adapters.rank,
        lora_alpha=adapters.alpha,
        lora_dropout=adapters.dropout,
        target_modules=adapters.targets or "all-linear",
        fan_in_fan_out=_stored_turned(model),
    )
    with torch.random.fork_rng(devices=[]), _without_warnings():
        torch.manual_seed(adapters.rank)
        try:
            adapted = peft.get_peft_model(model, config)
        except ValueError as error:
            raise ValueError(f"model.load.lora.targets={adapters.targets}: {error}") from error
    adapted.peft_config["default"].base_model_name_or_path = adapters.base or model.name_or_path
    return adapted


def merged(model: Any) -> Any:
    """The model with its adapters added to the weights, as one of transformers alone."""
    return model.merge_and_unload()


def is_adapter(folder: Path) -> bool:
    """Return whether a folder has the configuration of an adapter."""
    return (folder / hf_layouts.ADAPTER).is_file()


def base_of(folder: Path) -> str:
    """The name or folder of the model that the adapter of a folder belongs to."""
    return str(read_facts(folder / hf_layouts.ADAPTER, ["base_model_name_or_path"])["base_model_name_or_path"])


def load_merged(folder: Path, kind: Any) -> Any:
    """The model of an adapter's folder, in float32, with the adapter added to its weights. kind: AutoModelForCausalLM,
    or another class of these. Raises ValueError without peft and for an adapter that is a pickle, OSError where the
    base is not at hand."""
    import torch

    from models import hub  # these load transformers and the hub's client: a second, for adapters alone
    from models.hub import no_bars

    peft, base = _peft(), hub.locate(base_of(folder))
    hub.refuse_pickles(folder, WEIGHTS)
    with no_bars(), _without_warnings():
        model = hub.opened(kind, base, dtype=torch.float32)
        # peft leaves the base's weights frozen, and they may be trained further.
        return peft.PeftModel.from_pretrained(model, folder).merge_and_unload().requires_grad_(True)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Context without transformers' warnings about a name that peft uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        yield


def _peft() -> Any:
    try:
        import peft
    except ModuleNotFoundError as error:
        raise ValueError(NEEDED) from error
    return peft


def _stored_turned(model: Any) -> bool:
    """Return whether weights are stored as (in, out), as GPT-1's and GPT-2's are."""
    return any(type(module).__name__ == "Conv1D" for module in model.modules())


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
