"""ConceptNet train100k: where its files are found, and downloads that are checked."""

import gzip
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load import conceptnet

FILES = {
    "train100k.txt": "IsA\tdog\tanimal\t2.58\nUsedFor\tpen\twrite\t1\n",
    "dev1.txt": "IsA\tcat\tanimal\t1\nIsA\tcat\tpen\t0\n",
    "dev2.txt": "IsA\tcow\tanimal\t1\n",
    "test.txt": "IsA\tpig\tanimal\t1\n",
}


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_text(content)
    return folder


def test_the_folder_itself_or_the_one_in_it(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "conceptnet100k")
    for root in (tmp_path / "root", tmp_path / "root" / "conceptnet100k"):
        triples = conceptnet.load(str(root)).rows
        assert triples["split"].to_list() == ["train", "train", "dev", "dev", "dev2", "test"]
        assert triples["valid"].to_list() == [True, True, True, False, True, True]


def test_folders_are_found_in_their_order_and_would_be_downloaded(tmp_path, monkeypatch):
    fill(tmp_path / "conceptnet100k")
    named, variable, cache = (fill(tmp_path / name) for name in ("named", "variable", "cache/conceptnet100k"))
    assert conceptnet.find(None, str(tmp_path / "cache")) == cache
    monkeypatch.setenv("MITIGATE_DATA", str(variable))
    assert conceptnet.find(None, str(tmp_path / "cache")) == variable
    assert conceptnet.find(str(named), str(tmp_path / "cache")) == named


def test_a_folder_that_is_named_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "cache" / "conceptnet100k")
    with pytest.raises(MitigateError, match="data.root=.*absent: train100k.txt is neither in this folder"):
        conceptnet.find(str(tmp_path / "absent"), str(tmp_path / "cache"))

    def unreachable(*_: object, **__: object) -> str:
        raise ConnectionError("no route")

    monkeypatch.setattr("pooch.retrieve", unreachable)
    with pytest.raises(MitigateError) as error:
        conceptnet.load(cache=str(tmp_path))
    for part in ("train100k.txt is not on this machine", "https://ttic", "SHA-256", "conceptnet100k", "data.root=DIR"):
        assert part in str(error.value)


def retrieve(url: str, known_hash: None, name: str, folder: Path, progressbar: bool) -> str:
    """Stands in for the download."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(FILES[name.removesuffix(".gz")].encode()))
    return str(path)


def test_a_download_is_checked_by_its_triples_and_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(MitigateError, match="train100k.txt has the wrong content: SHA-256 .*run the command again"):
        conceptnet.load(cache=str(tmp_path))
    assert list((tmp_path / "conceptnet100k").iterdir()) == []
    lines = {name: content.splitlines() for name, content in FILES.items()}
    frames = {
        name: pl.DataFrame([line.split("\t")[:3] for line in each], schema=["relation", "head", "tail"], orient="row")
        for name, each in lines.items()
    }
    sums = {name: conceptnet.sha256_of_triples(frame) for name, frame in frames.items()}
    monkeypatch.setattr(conceptnet, "SHA256_OF_TRIPLES", sums)
    assert conceptnet.load(cache=str(tmp_path)).rows.height == 6
    assert sorted(path.name for path in (tmp_path / "conceptnet100k").iterdir()) == sorted(FILES)


def test_the_real_files_have_the_known_content(real_data: Path) -> None:
    triples = conceptnet.load(str(real_data)).rows
    for name, split in conceptnet.SPLITS.items():
        found = conceptnet.sha256_of_triples(triples.filter(split=split))
        assert found == conceptnet.SHA256_OF_TRIPLES[name]
