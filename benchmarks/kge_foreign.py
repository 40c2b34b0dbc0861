"""Embeddings of FB15k-237 by PyKEEN and PyTorch-BigGraph, with the MRR of their own evaluators, for an audit by
recipe=kge with model=foreign (docs/kge.md).

    pip install pykeen
    python benchmarks/kge_foreign.py pykeen --data DIR --out FOLDER
    pip install torchbiggraph h5py "setuptools<80"
    python benchmarks/kge_foreign.py biggraph --data DIR --out FOLDER

DIR is data.root. FOLDER gets the graph as three files, what the program saves, and `converted/`, which model.path
names. One thread."""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mitigate.load.graph.published import fb15k237

CONVERTER = Path(__file__).parents[1] / "docs" / "examples" / "convert_embeddings.py"
SPLITS = ("train", "valid", "test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=["pykeen", "biggraph"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, help="12 for pykeen, 4 for biggraph")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    files = write_graph(given.data, given.out)
    converted = given.out / "converted"
    if given.program == "pykeen":
        arguments = [pykeen(files, given.out / "pykeen", given.epochs or 12)]
    else:
        arguments = biggraph(files, given.out, given.epochs or 4)
    subprocess.run([sys.executable, CONVERTER, given.program, *arguments, converted], check=True)
    print(f"model=foreign model.path={converted}")


def pykeen(files: list[Path], out: Path, epochs: int) -> Path:
    """ComplEx of 50 complex numbers, cross-entropy over all tails of a head and relation. Returns where it is saved."""
    from pykeen.pipeline import pipeline
    from pykeen.triples import TriplesFactory

    training = TriplesFactory.from_path(files[0])
    ids = {"entity_to_id": training.entity_to_id, "relation_to_id": training.relation_to_id}
    validation, testing = (TriplesFactory.from_path(file, **ids) for file in files[1:])
    start = {"entity_initializer": "xavier_normal", "relation_initializer": "xavier_normal"}
    result = pipeline(
        **{"training": training, "validation": validation, "testing": testing},
        **{"model": "ComplEx", "model_kwargs": {"embedding_dim": 50, **start}, "loss": "CrossEntropyLoss"},
        **{"optimizer": "Adam", "optimizer_kwargs": {"lr": 0.003}, "training_loop": "lcwa"},
        training_kwargs={"num_epochs": epochs, "batch_size": 512},
        evaluation_kwargs={"batch_size": 512},
        **{"random_seed": 1, "device": "cpu", "use_tqdm": False},
    )
    print("MRR by PyKEEN:", result.get_metric("both.realistic.inverse_harmonic_mean_rank"))
    result.save_to_directory(out)
    return out


def biggraph(files: list[Path], out: Path, epochs: int) -> list[Path]:
    """ComplEx of dimension 100 with dynamic relations, softmax. Its log has the MRR. Returns the checkpoint and the
    entities."""
    import attr
    from torchbiggraph.config import ConfigSchema
    from torchbiggraph.converters.import_from_tsv import convert_input_data
    from torchbiggraph.eval import do_eval
    from torchbiggraph.filtered_eval import FilteredRankingEvaluator
    from torchbiggraph.train import train
    from torchbiggraph.util import SubprocessInitializer, setup_logging

    setup_logging()
    edges = [str(out / "edges" / name) for name in SPLITS]
    relation: dict[str, Any] = {"name": "all", "lhs": "all", "rhs": "all", "operator": "complex_diagonal"}
    config = ConfigSchema.from_dict(
        {
            **{"entity_path": str(out / "entities"), "edge_paths": edges, "checkpoint_path": str(out / "biggraph")},
            **{"entities": {"all": {"num_partitions": 1}}, "relations": [relation], "dynamic_relations": True},
            **{
                "dimension": 100,
                "global_emb": False,
                "comparator": "dot",
                "loss_fn": "softmax",
                "lr": 0.1,
                "num_epochs": epochs,
            },
            **{"num_uniform_negs": 200, "num_batch_negs": 50, "eval_fraction": 0, "workers": 1},
        }
    )
    columns = {"lhs_col": 0, "rel_col": 1, "rhs_col": 2, "dynamic_relations": True}
    convert_input_data(config.entities, config.relations, config.entity_path, config.edge_paths, files, **columns)
    processes = SubprocessInitializer()
    train(attr.evolve(config, edge_paths=edges[:1]), subprocess_init=processes)
    relations = [attr.evolve(relation, all_negs=True) for relation in config.relations]
    measured = attr.evolve(config, edge_paths=edges[2:], relations=relations, num_uniform_negs=0)
    do_eval(measured, evaluator=FilteredRankingEvaluator(measured, edges[::-1]), subprocess_init=processes)
    return [out / "biggraph", out / "entities"]


def write_graph(data: Path, out: Path) -> list[Path]:
    """FB15k-237 as three files of ids: head, relation, tail."""
    graph = fb15k237(str(data))
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{split}.txt" for split in SPLITS]
    for file, triples in zip(files, (graph.train, graph.valid, graph.test), strict=True):
        lines = (f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n" for h, r, t in triples)
        file.write_text("".join(lines), encoding="utf-8")
    return files


if __name__ == "__main__":
    main()
