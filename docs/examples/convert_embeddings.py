"""Embeddings of PyKEEN, PyTorch-BigGraph, OpenKE or LibKGE, converted to a folder that `model=foreign` reads.

    python convert_embeddings.py pykeen DIR OUT             # the folder of PipelineResult.save_to_directory
    python convert_embeddings.py biggraph DIR ENTITIES OUT  # checkpoint_path and entity_path of the configuration
    python convert_embeddings.py openke FILE.ckpt IDS OUT   # IDS: folder with entity2id.txt and relation2id.txt
    python convert_embeddings.py libkge FILE.pt IDS OUT     # IDS: folder with entity_ids.del and relation_ids.del

Run it in the environment that trained them (for biggraph with h5py): it needs that program's classes, numpy and
safetensors, nothing of mitigate. Pickled files can run code: convert only those that you made or trust."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

PYKEEN = {"DistMultInteraction": "distmult", "ComplExInteraction": "complex", "RotatEInteraction": "rotate"}
BIGGRAPH = {"translation": "transe", "diagonal": "distmult", "complex_diagonal": "complex"}
LIBKGE = {"transe": "transe_l1", "distmult": "distmult", "complex": "complex", "rotate": "rotate"}


def pykeen(folder: Path, out: Path) -> None:
    """A trained_model.pkl with its training_triples/."""
    import torch
    from pykeen.triples import TriplesFactory

    model = torch.load(folder / "trained_model.pkl", weights_only=False, map_location="cpu").eval()
    factory = TriplesFactory.from_path_binary(folder / "training_triples")
    name = type(model.interaction).__name__
    kind = f"transe_l{int(model.interaction.p)}" if name == "TransEInteraction" else PYKEEN.get(name)
    with torch.no_grad():
        entities = real(model.entity_representations[0](indices=None))
        relations = real(model.relation_representations[0](indices=None))
    if len(relations) == 2 * len(factory.relation_to_id):  # relation, inverse, relation, inverse, ...
        relations = np.concatenate([relations[0::2], relations[1::2]])
    ids = in_order(factory.entity_to_id), in_order(factory.relation_to_id)
    write(out, f"PyKEEN ({name})", kind, (entities, relations), ids)


def biggraph(folder: Path, entity_folder: Path, out: Path) -> None:
    """A checkpoint with one entity type in one partition and the comparator `dot`."""
    import h5py

    config = json.loads((folder / "config.json").read_text())
    version = (folder / "checkpoint_version.txt").read_text().strip()
    (entity_type,) = config["entities"]
    operator, comparator = config["relations"][0]["operator"], config.get("comparator", "cos")
    with h5py.File(folder / f"embeddings_{entity_type}_0.v{version}.h5") as file:
        entities = file["embeddings"][:]
    with h5py.File(folder / f"model.v{version}.h5") as file:
        if config.get("dynamic_relations"):
            relation_ids = json.loads((entity_folder / "dynamic_rel_names.json").read_text())
            sides = [file[f"model/relations/0/operator/{side}"] for side in ("lhs", "rhs")]
            relations = np.concatenate([parameters(group, operator) for group in sides])
        else:
            relation_ids = [relation["name"] for relation in config["relations"]]
            groups = [file[f"model/relations/{number}/operator/rhs"] for number in range(len(relation_ids))]
            relations = np.stack([parameters(group, operator, of_tail=True) for group in groups])
    ids = json.loads((entity_folder / f"entity_names_{entity_type}_0.json").read_text()), relation_ids
    kind = BIGGRAPH.get(operator) if comparator == "dot" else None
    if kind == "transe" and not config.get("dynamic_relations"):
        kind = "translated_tail"
    write(out, f"PyTorch-BigGraph ({operator}, {comparator})", kind, (entities, relations), ids)


def parameters(group: Any, operator: str, of_tail: bool = False) -> np.ndarray:
    """The parameters of an operator. of_tail: BigGraph applies it to the tail; ComplEx has it at the head, conjugated.
    With dynamic relations BigGraph ranks tails by the head under the operator `lhs`, heads by the tail under `rhs`."""
    if operator == "complex_diagonal":
        return np.concatenate([group["real"][:], group["imag"][:] * (-1 if of_tail else 1)], axis=-1)
    name = operator if operator in group else f"{operator}s"  # plural with dynamic relations
    return group[name][:] if name in group else np.empty(0)


def openke(checkpoint: Path, folder: Path, out: Path) -> None:
    """A checkpoint of ComplEx, TransE or DistMult. The two last have tensors of the same names: for DistMult give
    model.kind=distmult."""
    import torch

    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    is_complex = "ent_re_embeddings.weight" in state
    parts = ("_re", "_im") if is_complex else ("",)
    entities, relations = (
        np.concatenate([state[f"{name}{part}_embeddings.weight"].numpy() for part in parts], 1)
        for name in ("ent", "rel")
    )
    ids = [lines_of(folder / name, id_first=True) for name in ("entity2id.txt", "relation2id.txt")]
    write(out, "OpenKE", "complex" if is_complex else "transe_l1", (entities, relations), ids)


def libkge(checkpoint: Path, folder: Path, out: Path) -> None:
    """A checkpoint of TransE, DistMult, ComplEx or RotatE, also of reciprocal_relations_model."""
    import torch

    stored = torch.load(checkpoint, map_location="cpu", weights_only=False)
    state, config = stored["model"][0], stored["config"]
    name = config.get("model")
    if name == "reciprocal_relations_model":
        name = config.get("reciprocal_relations_model.base_model.type")
    entities, relations = (
        next(value.numpy() for key, value in state.items() if key.endswith(f"_{part}_embedder._embeddings.weight"))
        for part in ("entity", "relation")
    )
    ids = [lines_of(folder / f"{part}_ids.del", id_first=False) for part in ("entity", "relation")]
    write(out, f"LibKGE ({name})", LIBKGE.get(name), (entities, relations), ids)


def lines_of(path: Path, *, id_first: bool) -> list[str]:
    """The ids of OpenKE's lines `id number`, after one with their count, or of LibKGE's `number<TAB>id`."""
    rows = path.read_text(encoding="utf-8").splitlines()
    if id_first:
        return in_order({id_: int(number) for id_, number in (row.rsplit(None, 1) for row in rows[1:])})
    return in_order({id_: int(number) for number, id_ in (row.split("\t", 1) for row in rows)})


def in_order(numbers: dict[str, int]) -> list[str]:
    """Ids by their numbers."""
    return sorted(numbers, key=lambda id_: numbers[id_])


def real(vectors: Any) -> np.ndarray:
    """Vectors as numbers: of complex ones all real parts, then all imaginary parts."""
    array = vectors.detach().numpy()
    return np.concatenate([array.real, array.imag], 1) if np.iscomplexobj(array) else array


def write(out: Path, origin: str, kind: str | None, vectors: Any, ids: Any) -> None:
    """Write the folder that model.path names. vectors, ids: of entities and of relations."""
    if kind is None:
        sys.exit(f"{origin} is not supported")
    out.mkdir(parents=True, exist_ok=True)
    names = ("entities", "relations")
    tensors = {name: np.ascontiguousarray(array, np.float32) for name, array in zip(names, vectors, strict=True)}
    save_file(tensors, out / "vectors.safetensors")
    for name, lines in zip(names, ids, strict=True):
        (out / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / "embeddings.json").write_text(json.dumps({"kind": kind, "origin": origin}, indent=2) + "\n")


if __name__ == "__main__":
    programs: dict[str, Any] = {"pykeen": pykeen, "biggraph": biggraph, "openke": openke, "libkge": libkge}
    if len(sys.argv) < 4 or sys.argv[1] not in programs:
        sys.exit(__doc__)
    programs[sys.argv[1]](*map(Path, sys.argv[2:]))
