"""ConceptNet: train100k with its labelled dev1, dev2 and test files (Li et al. 2016), as COMeT trains on it; the sample
corpus in the same form; and the dump of all assertions.

The files of train100k are searched for in the given folder, then in that of MITIGATE_DATA, then in the cache, and are
downloaded last. A download is checked by its triples, whatever its columns and order."""

import gzip
import hashlib
from importlib.resources import as_file, files
from pathlib import Path

import polars as pl
import pooch

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.load.statements import find_root
from mitigate.load.stream import Counts, Loaded, OnBadLine, Streamed, describe, joined, meant, path_of, report
from mitigate.load.table import blocks_of, open_lines, open_table
from mitigate.load.triples import LABELS, as_triples
from mitigate.triples import TRIPLES
from mitigate.words.outside_text import counted
from mitigate.words.relations import relations

FOLDER = "conceptnet100k"
URL = "https://ttic.uchicago.edu/~kgimpel/comsense_resources/{name}.gz"
SPLITS = {"train100k.txt": "train", "dev1.txt": "dev", "dev2.txt": "dev2", "test.txt": "test"}
SHA256_OF_TRIPLES = {
    "train100k.txt": "4754a1a116c03a1e427042f23cf90a358ab1b890f4c8e288b834d651d63bc645",
    "dev1.txt": "8f810548b04b7392076599b4b1fc41a6b7ef00a194b7519fd81ebc030be7739d",
    "dev2.txt": "6de3a4320bd84b85c36e0fe12b827ad116c6e7b1611973cbea8d95e9a64a2a4c",
    "test.txt": "da3ff5892172af764234ca7f64cbe967adc01170b8e345836213b9f02c98ce16",
}

OTHER_LANGUAGE = "neither end is English"
ONE_END = "one end is not English (another language, or an address)"
EXPECTED = "edge URI<TAB>/r/Relation<TAB>/c/en/start<TAB>/c/en/end<TAB>{... weight ...}"
ENGLISH = "\t/c/en/"
ASSERTION = (
    r"^/a/[^\t]*\t/r/(?P<relation>[^\t/]+)[^\t]*\t/c/en/(?P<head>[^\t/]+)/?(?P<head_sense>[^\t]*)"
    r"\t/c/en/(?P<tail>[^\t/]+)/?(?P<tail_sense>[^\t]*)"
    r"\t\{.*\}$"
)


def load(root: str | None = None, cache: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """The four splits as one table. A user's file with one of these names is used unchecked."""
    return _of_splits(find(root, cache) or _download(Path(cache or ".") / FOLDER), SPLITS, on_bad_line)


def sample() -> Loaded:
    """The sample corpus: everyday triples written for this project, in ConceptNet's formats. All recipes can be tried
    with it, without data of one's own; it is far too small for claims."""
    with as_file(files("mitigate").joinpath("data/sample")) as folder:
        return _of_splits(folder, {name.replace("100k", ""): split for name, split in SPLITS.items()}, "error")


def _of_splits(folder: Path, splits: dict[str, str], on_bad_line: OnBadLine) -> Loaded:
    return joined([read_triples(folder / name, split, on_bad_line) for name, split in splits.items()])


def read_triples(path: Path, split: str, on_bad_line: OnBadLine = "error") -> Loaded:
    """The triples of one file, `.gz` or plain, of lines `relation<TAB>head<TAB>tail`, in training files optionally
    followed by a score, in dev and test files by a 0/1 label.

    A repeated triple of a training file is left out and noted; in labelled files repeats stay, because test sets have a
    few and are compared whole."""
    names, is_labelled = ["relation", "head", "tail"], split != "train"
    wanted = {name: place for place, name in enumerate([*names, *["valid"] * is_labelled], start=1)}
    rows, counts = open_table(path, wanted, widths=(4,) if is_labelled else (3, 4)).read()
    good = rows.with_columns(pl.lit(split).alias("split"), *([] if is_labelled else [pl.lit("1").alias("valid")]))
    for name, words in (("relation", {name.lower(): name for name in relations()}), ("valid", LABELS)):
        good = meant(path, good, name, words, counts)
    notices = describe(counts, on_bad_line)
    distinct = good if is_labelled else good.unique(names, keep="first", maintain_order=True)
    if repeated := good.height - distinct.height:
        notices.append(f"{path}: {counted(repeated, 'repeated triple')} left out")
    return Loaded(distinct.select(*TRIPLES), notices)


def find(root: str | None, cache: str | None) -> Path | None:
    """The folder with train100k.txt, or None when it would have to be downloaded.

    Raises MitigateError when a named folder (data.root or MITIGATE_DATA) lacks the file: a user's choice is never
    silently replaced."""
    if place := find_root(root):
        for folder in (place / FOLDER, place):
            if (folder / "train100k.txt").is_file():
                return folder
        raise MitigateError(
            f"data.root={place}: train100k.txt is neither in this folder nor in its folder {FOLDER}/; put "
            f"{', '.join(SPLITS)} there, or leave out the setting, or MITIGATE_DATA, to download them"
        )
    in_cache = Path(cache or ".") / FOLDER
    return in_cache if all((in_cache / name).is_file() for name in SPLITS) else None


def _download(folder: Path) -> Path:
    """Download missing files into the folder, check them, and unpack them."""
    for name in (name for name in SPLITS if not (folder / name).is_file()):
        url = URL.format(name=name)
        try:
            packed = Path(pooch.retrieve(url, None, f"{name}.gz", folder, progressbar=True))
        except Exception as error:  # requests raises many kinds; all mean that the file did not come
            raise MitigateError(
                f"{name} is not on this machine and could not be downloaded from {url} ({type(error).__name__}). Put "
                f"the unpacked file (SHA-256 of its sorted triples {SHA256_OF_TRIPLES[name][:16]}...) into "
                f"{folder.absolute()}, or point to a folder that has it with data.root=DIR or MITIGATE_DATA."
            ) from error
        found, content = sha256_of_triples(read_triples(packed, SPLITS[name]).rows), packed.read_bytes()
        packed.unlink()
        if found != SHA256_OF_TRIPLES[name]:
            raise MitigateError(
                f"the download of {name} has the wrong content: SHA-256 of its sorted triples {found}, expected "
                f"{SHA256_OF_TRIPLES[name]}. The file was deleted; run the command again, or get the file elsewhere."
            )
        write(folder / name, gzip.decompress(content))
    return folder


def sha256_of_triples(triples: pl.DataFrame) -> str:
    """The checksum of a set of triples: of its distinct lines `relation<TAB>head<TAB>tail`, sorted."""
    lines = triples.select(line=pl.concat_str("relation", "head", "tail", separator="\t"))["line"]
    return hashlib.sha256("\n".join(sorted(set(lines))).encode()).hexdigest()


def dump(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The English assertions of ConceptNet's dump (5.7, conceptnet-assertions-5.7.0.csv.gz, 34 million lines), lines
    EXPECTED. The same words under several senses (/c/en/nurse/n, /c/en/nurse/v) are repeats, and count each; audits
    read the senses (head_sense, tail_sense). Nine lines of ten are in other languages: counted, not parsed."""
    place = path_of(path, "conceptnet")
    if not next(blocks_of(place)).content.startswith(b"/a/"):
        raise MitigateError(
            f"{place} does not begin with an assertion of ConceptNet's dump, '{EXPECTED}'; for another table, set "
            "data=triples data.path=FILE 'data.columns={relation: 1, head: 2, tail: 3}'"
        )
    text = pl.col("statement")
    is_whole = text.str.starts_with("/a/") & (text.str.count_matches("\t", literal=True) == 4)
    num_english = pl.when(is_whole).then(text.str.count_matches(ENGLISH, literal=True)).otherwise(2)

    def parse(lines: pl.DataFrame, counts: Counts) -> pl.DataFrame:
        found = lines.with_columns(num_english=num_english)
        counts["left out", OTHER_LANGUAGE] += found.filter(num_english=0).height
        counts["left out", ONE_END] += found.filter(num_english=1).height
        lines = found.filter(pl.col("num_english") > 1)
        frame = lines.with_columns(text.str.extract_groups(ASSERTION).alias("parts")).unnest("parts")
        broken = frame.filter(pl.col("head").is_null()).select("row", "statement").rows()
        report(place, ((row, f"{line[:60]!r} is not of the form {EXPECTED}") for row, line in broken), counts)
        return as_triples(place, frame.drop_nulls("head"), counts)

    return Streamed(place, "triples", open_lines(place), parse, on_bad_line)
