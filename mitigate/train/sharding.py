"""Each process holds a share of the weights and of the optimizer's state (`trainer=fsdp`)."""

from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.strategies import ModelParallelStrategy
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import fully_shard
from torch.optim import Optimizer

from models.decoder import Decoder


class FullySharded(ModelParallelStrategy):
    """Lightning's strategy for torch's second FSDP. The first, which Lightning calls "fsdp", supports only CUDA and
    flattens parameters, some of which decay and others do not.

    A checkpoint is the same file as that of a single process, so that any other strategy can resume from it."""

    def __init__(self, processes: int) -> None:
        super().__init__(data_parallel_size=processes, tensor_parallel_size=1, save_distributed_checkpoint=False)

    def shard(self, decoder: Decoder) -> None:
        """Shard the decoder: a block is gathered when it is used; weights outside of blocks, mainly the embedding,
        which is also the head, stay gathered from the first layer to the end of the step."""
        for module in (*decoder.blocks, decoder):
            fully_shard(module, mesh=self.device_mesh["data_parallel"])

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        optimizer = getattr(optimizer, "_optimizer", optimizer)  # Lightning wraps it
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        found: Any = get_optimizer_state_dict(self._module, optimizer, options=options)
        whole = found.get("state", {})  # {} but in the first process
        numbered = {number: whole[name] for number, name in enumerate(self._names(optimizer)) if name in whole}
        return {"state": numbered, "param_groups": optimizer.state_dict()["param_groups"]}

    def load_checkpoint(self, checkpoint_path: str | Path, weights_only: bool | None = None) -> dict[str, Any]:
        checkpoint = self.checkpoint_io.load_checkpoint(checkpoint_path)
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(self._module, checkpoint.pop("state_dict"), options=options)
        for optimizer, state in zip(self.optimizers, checkpoint.pop("optimizer_states"), strict=True):
            names = self._names(optimizer)
            groups = [{**g, "params": [names[number] for number in g["params"]]} for g in state["param_groups"]]
            named: Any = {"state": {names[n]: found for n, found in state["state"].items()}, "param_groups": groups}
            set_optimizer_state_dict(self._module, optimizer, named, options=options)
        return checkpoint

    def gather(self) -> None:
        """Give the first process a whole decoder again. The others keep one without content, since their shares are no
        longer used."""
        weights = self.lightning_module_state_dict()
        comet: Any = self._module.model
        with torch.device("meta"):
            comet.decoder = Decoder(comet.decoder.config)
        if self.is_global_zero:
            self._module.load_state_dict(weights, assign=True)

    @property
    def _module(self) -> torch.nn.Module:
        assert self.lightning_module is not None
        return self.lightning_module

    def _names(self, optimizer: Optimizer) -> list[str]:
        """The names of the parameters in the optimizer's order."""
        names = {parameter: name for name, parameter in self._module.named_parameters()}
        return [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]
