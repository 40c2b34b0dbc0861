"""Knowledge graphs: the published ones, one's own, and every fault of a file by name."""

import io
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from refusals import refuses

from mitigate.errors import MitigateError
from mitigate.load import graph as graphs
from mitigate.load.graph import Graph, build
from mitigate.settings import CONF

SPLITS = {
    "train": [("ann", "has_job", "nurse"), ("bob", "has_job", "clerk"), ("ann", "knows", "bob")],
    "valid": [("bob", "knows", "ann"), ("ann", "knows", "bob")],
    "test": [("cid", "has_job", "nurse")],
}


def write_tar(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def published(name: str, root: Path | str | None) -> Graph:
    """The graph that conf/data has under a name."""
    settings = yaml.safe_load((CONF / "data" / f"{name}.yaml").read_text())["graph"]
    del settings["_target_"]
    return graphs.published(**settings | {"root": root and str(root)})


def sizes(graph: Graph) -> list[int]:
    return [len(graph.train), len(graph.valid), len(graph.test), len(graph.entities), len(graph.relations)]


def test_a_graph_is_numbers_of_sorted_ids_and_names_are_looked_up():
    graph = build(SPLITS, {"ann": "Ann A.", "cid": "Ann A.", "nurse": "Nurse"}, {"knows": "is acquainted with"})
    assert graph.entities == ("ann", "bob", "cid", "clerk", "nurse")
    assert graph.entity_names == ("Ann A.", "bob", "Ann A.", "clerk", "Nurse")
    assert graph.relation_names == ("has_job", "is acquainted with")
    assert graph.train.tolist() == [[0, 0, 4], [1, 0, 3], [0, 1, 1]]
    assert graph.valid.tolist() == [[1, 1, 0]]  # the other one is a training triple
    assert graph.notices == (
        "valid: 1 triple left out that it or an earlier split has already",
        "1 of 5 entities occur in no training triple",
        "2 of 5 entities have no name: their id is shown",
    )
    assert graph.numbers_of("ann a.", "entity", "kge.values").tolist() == [0, 2]
    assert graph.numbers_of("nurse", "entity", "kge.values").tolist() == [4]
    assert graph.numbers_of("is acquainted with", "relation", "kge.sensitive").tolist() == [1]
    wrong = r"kge.values: the graph has no entity 'Nurs'; did you mean Nurse\?"
    refuses(MitigateError, wrong, graph.numbers_of, "Nurs", "entity", "kge.values")


def test_fb15k237_is_read_from_its_archive(tmp_path):
    folder = tmp_path / "kg" / "fb15k-237"
    folder.mkdir(parents=True)
    files = {f"Release/{split}.txt": "\r\n".join(map("\t".join, rows)).encode() for split, rows in SPLITS.items()}
    write_tar(folder / "FB15k-237.tar.gz", {**files, "../outside.txt": b"x", "Release/README": b"y"})
    (folder / "mid2name.tsv").write_text("ann\tAnn_A.\nbob\tBob\n")
    graph = published("fb15k237", tmp_path)
    assert sizes(graph) == [3, 1, 1, 5, 2]
    assert graph.entity_names[:2] == ("Ann A.", "Bob")
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == []  # nothing was unpacked
    write_tar(folder / "FB15k-237.tar.gz", {"Release/train.txt": files["Release/train.txt"]})
    refuses(MitigateError, r"is damaged \('valid.txt'\); get it again", published, "fb15k237", tmp_path)


def test_qualifiers_of_wd50k_are_dropped_and_counted(tmp_path):
    folder = tmp_path / "kg" / "wd50k"
    folder.mkdir(parents=True)
    for split, rows in SPLITS.items():
        (folder / f"{split}.txt").write_text("".join(",".join(row) + "\n" for row in rows))
    with (folder / "train.txt").open("a") as file:
        file.write("ann,knows,cid,since,1990\nann,knows,cid,since,1991\n")
    (tmp_path / "kg" / "wikidata_labels.tsv").write_text("ann\tAnn\n")
    graph = published("wd50k", tmp_path)
    assert sizes(graph) == [4, 1, 1, 5, 2]  # two statements that differ in qualifiers are one triple
    assert any("qualifiers of 2 lines were dropped" in notice for notice in graph.notices)
    assert graph.entity_names[0] == "Ann"
    (folder / "train.txt").write_text("ann knows cid\n")
    refuses(MitigateError, "train.txt: expected lines 'head,relation,tail'", published, "wd50k", tmp_path)


def test_published_graphs_that_are_missing_say_where_they_are_from(tmp_path, monkeypatch):
    unset = "set data.root, or the variable MITIGATE_DATA, to the folder that contains kg/codex-m/train.txt"
    refuses(MitigateError, unset, published, "codex_m", None)
    monkeypatch.setenv("MITIGATE_DATA", str(tmp_path))
    missing = r"no such file or folder: .*codex-m/train.txt; .*github.com/tsafavi/codex"
    refuses(MitigateError, missing, published, "codex_m", None)


def test_own_triples_are_split_with_all_entities_in_training(tmp_path):
    rng = np.random.default_rng(0)
    drawn = zip(*(rng.integers(0, k, 400) for k in (30, 3, 30)), strict=True)
    rows = {(f"e{h}", f"r{r}", f"e{t}") for h, r, t in drawn}
    rows |= {("only", "once", "here")}
    path = tmp_path / "graphs.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in sorted(rows)))
    (tmp_path / "names.tsv").write_text("e1\tFirst\nr1\tlikes\n")
    graph = graphs.load(str(path), str(tmp_path / "names.tsv"), seed=3)
    held_out = round(0.05 * len(rows))
    assert sizes(graph) == [len(rows) - 2 * held_out, held_out, held_out, len(graph.entities), 4]
    assert set(graph.train[:, [0, 2]].ravel()) == set(range(len(graph.entities)))
    assert graph.entity_names[graph.entities.index("e1")] == "First"
    assert graph.relation_names[graph.relations.index("r1")] == "likes"
    again = graphs.load(str(path), seed=3)
    assert np.array_equal(graph.test, again.test)
    assert not np.array_equal(graph.test, graphs.load(str(path), seed=4).test)
    path.write_text(path.read_text() + "only\tonce\there\n")
    repeated = graphs.load(str(path), seed=3)
    assert np.array_equal(repeated.test, again.test)
    assert any(notice.endswith(f"of {len(rows) + 1:,}") for notice in repeated.notices)


def test_own_folder_and_its_faults(tmp_path):
    for split, rows in SPLITS.items():
        (tmp_path / f"{split}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    assert sizes(graphs.load(str(tmp_path))) == [3, 1, 1, 5, 2]
    (tmp_path / "valid.tsv").unlink()
    refuses(MitigateError, r"has no valid.tsv; expected train, valid and test as .tsv", graphs.load, str(tmp_path))
    refuses(MitigateError, "3 triples, too few to split", graphs.load, str(tmp_path / "train.tsv"))
    refuses(MitigateError, r"set data\.path", graphs.load, None)


PUBLISHED = {  # train, valid, test, entities, relations
    # Toutanova and Chen (2015), table 1
    "fb15k237": [272_115, 17_535, 20_466, 14_541, 237],
    # Safavi and Koutra (2020), table 2
    "codex_m": [185_584, 10_310, 10_311, 17_050, 51],
    # counted in the published files; 676 of 23,860 validation triples are training triples without their qualifiers
    "wd50k": [164_631, 23_860 - 676, 46_023, 41_334, 486],
}


@cache
def real_graph(name: str, root: Path) -> Graph:
    if not (root / "kg").is_dir():
        pytest.skip("needs the folder kg/ in MITIGATE_DATA")
    return published(name, root)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_graphs_have_their_published_sizes(name, real_data):
    assert sizes(real_graph(name, real_data)) == PUBLISHED[name]
