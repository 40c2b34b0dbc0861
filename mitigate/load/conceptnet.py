"""ConceptNet train100k with its labelled dev1, dev2 and test files (Li et al. 2016), as COMeT trains on it.

The files are searched for in the given folder, then in that of MITIGATE_DATA, then in the cache, and are downloaded
last. A download is checked by its triples, whatever its columns and order."""

import gzip
import hashlib
import os
from pathlib import Path

import polars as pl
import pooch

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.load.conceptnet_format import read_triples
from mitigate.load.lines import OnBadLine
from mitigate.load.stream import Loaded

FOLDER = "conceptnet100k"
URL = "https://ttic.uchicago.edu/~kgimpel/comsense_resources/{name}.gz"
SPLITS = {"train100k.txt": "train", "dev1.txt": "dev", "dev2.txt": "dev2", "test.txt": "test"}
SHA256_OF_TRIPLES = {
    "train100k.txt": "4754a1a116c03a1e427042f23cf90a358ab1b890f4c8e288b834d651d63bc645",
    "dev1.txt": "8f810548b04b7392076599b4b1fc41a6b7ef00a194b7519fd81ebc030be7739d",
    "dev2.txt": "6de3a4320bd84b85c36e0fe12b827ad116c6e7b1611973cbea8d95e9a64a2a4c",
    "test.txt": "da3ff5892172af764234ca7f64cbe967adc01170b8e345836213b9f02c98ce16",
}


def load(root: str | None = None, cache: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """The four splits as one table. A user's file with one of these names is used unchecked.

    Raises MitigateError when the files are missing and cannot be downloaded."""
    folder = find(root, cache) or _download(Path(cache or ".") / FOLDER)
    parts = [
        read_triples(folder / name, split, labelled=split != "train", on_bad_line=on_bad_line)
        for name, split in SPLITS.items()
    ]
    return Loaded(pl.concat([part.rows for part in parts]), [notice for part in parts for notice in part.notices])


def find(root: str | None, cache: str | None) -> Path | None:
    """The folder with train100k.txt, or None when it would have to be downloaded.

    Raises MitigateError when a named folder (data.root or MITIGATE_DATA) lacks the file: a user's choice is never
    silently replaced."""
    for setting, place in (("data.root", root), ("MITIGATE_DATA", os.environ.get("MITIGATE_DATA"))):
        if place:
            return _holding(Path(place), setting)
    in_cache = Path(cache or ".") / FOLDER
    return in_cache if all((in_cache / name).is_file() for name in SPLITS) else None


def missing(root: str | None, cache: str | None) -> list[str]:
    """The files that load would download: the address of each, and its path."""
    if find(root, cache):
        return []
    folder = Path(cache or ".") / FOLDER
    return [f"{URL.format(name=name)} to {folder}" for name in SPLITS if not (folder / name).is_file()]


def _holding(place: Path, setting: str) -> Path:
    if not place.is_dir():
        raise MitigateError(f"{setting}={place}: no such folder")
    for folder in (place / FOLDER, place):
        if (folder / "train100k.txt").is_file():
            return folder
    raise MitigateError(
        f"{setting}={place}: train100k.txt is neither in this folder nor in its folder {FOLDER}/; put "
        f"{', '.join(SPLITS)} there, or leave the setting out to download them"
    )


def _download(folder: Path) -> Path:
    """Download missing files into the folder, check them, and unpack them."""
    for name in SPLITS:
        url, path = URL.format(name=name), folder / name
        if path.is_file():
            continue
        try:
            packed = Path(pooch.retrieve(url, None, f"{name}.gz", folder, progressbar=True))
        except Exception as error:  # requests raises many kinds; all mean that the file did not come
            raise MitigateError(
                f"{name} is not on this machine and could not be downloaded from {url} ({type(error).__name__}). Put "
                f"the unpacked file (SHA-256 of its sorted triples {SHA256_OF_TRIPLES[name][:16]}...) into "
                f"{folder.absolute()}, or point to a folder that has it with data.root=DIR or MITIGATE_DATA."
            ) from error
        try:
            loaded = read_triples(packed, SPLITS[name], labelled=SPLITS[name] != "train")
            if (found := sha256_of_triples(loaded.rows)) != SHA256_OF_TRIPLES[name]:
                packed.unlink(missing_ok=True)
                raise MitigateError(
                    f"the download of {name} has the wrong content: SHA-256 of its sorted triples {found}, expected "
                    f"{SHA256_OF_TRIPLES[name]}. The file was deleted; run the command again, or get the file from "
                    "elsewhere."
                )
            write(path, gzip.decompress(packed.read_bytes()))
        except (MitigateError, FileNotFoundError):
            if not path.is_file():  # or another process has unpacked it meanwhile, and removed what was packed
                raise
        packed.unlink(missing_ok=True)
    return folder


def sha256_of_triples(triples: pl.DataFrame) -> str:
    """The checksum of a set of triples: of its distinct lines `relation<TAB>head<TAB>tail`, sorted."""
    lines = triples.select(line=pl.concat_str("relation", "head", "tail", separator="\t"))["line"]
    return hashlib.sha256("\n".join(sorted(set(lines))).encode()).hexdigest()
