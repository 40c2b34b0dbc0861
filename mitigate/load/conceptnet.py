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
from mitigate.load.stream import Chunk, Counts, Loaded, OnBadLine, Streamed, checked, describe, meant, path_of, report
from mitigate.load.table import Block, lines_of, open_table, read_all, text_blocks
from mitigate.load.triples import LABELS, triples_chunk
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
    r'\t\{.*"weight": ?[0-9.eE+-]+ ?[,}](?:.*\})?$'
)
URI = r"^/c/([^/]+)/([^/]+)/?(.*)"


def load(root: str | None = None, cache: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """The four splits as one table. A user's file with one of these names is used unchecked."""
    folder = find(root, cache) or _download(Path(cache or ".") / FOLDER)
    return _of_splits(folder, SPLITS, on_bad_line)


def sample() -> Loaded:
    """The sample corpus: everyday triples written for this project, in ConceptNet's formats. All recipes can be tried
    with it, without data of one's own; it is far too small for claims."""
    splits = {name.replace("train100k", "train"): split for name, split in SPLITS.items()}
    with as_file(files("mitigate").joinpath("data/sample")) as folder:
        return _of_splits(folder, splits, "error")


def _of_splits(folder: Path, splits: dict[str, str], on_bad_line: OnBadLine) -> Loaded:
    parts = [
        read_triples(folder / name, split, labelled=split != "train", on_bad_line=on_bad_line)
        for name, split in splits.items()
    ]
    return Loaded(pl.concat([part.rows for part in parts]), [notice for part in parts for notice in part.notices])


def read_triples(path: Path, split: str, *, labelled: bool, on_bad_line: OnBadLine = "error") -> Loaded:
    """The triples of one file, `.gz` or plain, of lines `relation<TAB>head<TAB>tail`, in training files optionally
    followed by a score, in dev and test files by a 0/1 label.

    A repeated triple of a training file is left out and noted; in labelled files repeats stay, because test sets have a
    few and are compared whole."""
    names = ["relation", "head", "tail"]
    wanted = {name: place for place, name in enumerate([*names, "label"] if labelled else names, start=1)}
    rows, counts = read_all(open_table(path, wanted, separator="\t", widths=(4,) if labelled else (3, 4)))
    blank, known = pl.any_horizontal(pl.col(names).str.strip_chars() == ""), pl.col("relation").is_in(list(relations()))
    report(path, ((row, "a blank field") for row in rows.filter(blank)["row"]), counts)
    unknown = rows.filter(~blank & ~known).select("row", "relation").rows()
    report(path, ((row, f"unknown relation {name!r}") for row, name in unknown), counts)
    good = rows.filter(~blank & known).with_columns(split=pl.lit(split))
    good = good.rename({"label": "valid"}) if labelled else good.with_columns(valid=pl.lit("1"))
    good = meant(path, good, "valid", LABELS, counts)
    notices = describe(counts, on_bad_line)
    if good.is_empty():
        raise MitigateError(f"{path} has no triples; expected lines 'relation<TAB>head<TAB>tail'")
    distinct = good.unique(names, keep="first", maintain_order=True)
    if repeated := good.height - distinct.height:
        notices.append(f"{path}: {counted(repeated, 'repeated triple')} {'kept' if labelled else 'left out'}")
    return Loaded((good if labelled else distinct).select(*TRIPLES), notices)


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


def missing(root: str | None, cache: str | None) -> list[str]:
    """The files that load would download: the address of each, and its path."""
    if find(root, cache):
        return []
    folder = Path(cache or ".") / FOLDER
    return [f"{URL.format(name=name)} to {folder}" for name in SPLITS if not (folder / name).is_file()]


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


def dump(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The English assertions of ConceptNet's dump (5.7, conceptnet-assertions-5.7.0.csv.gz, 34 million lines):
    `edge URI<TAB>/r/Relation<TAB>/c/en/start/...<TAB>/c/en/end/...<TAB>JSON with the weight`; or the edges of a file
    without edge URIs. Underscores are spaces. The same words under several senses (/c/en/nurse/n, /c/en/nurse/v) are
    repeats, and count each; audits read the senses (head_sense, tail_sense). Nine lines of ten are in other languages:
    they are counted, and not parsed."""
    place = path_of(path, "conceptnet")
    if not next(text_blocks(place)).content.startswith(b"/a/"):
        return _edges(place, on_bad_line)

    text = pl.col("text")
    is_whole = text.str.starts_with("/a/") & (text.str.count_matches("\t", literal=True) == 4)
    num_english = pl.when(is_whole).then(text.str.count_matches(ENGLISH, literal=True)).otherwise(2)

    def parse(block: Block) -> Chunk:
        counts = Counts()
        lines = _english(lines_of(block), num_english, counts)
        frame = lines.with_columns(text.str.extract_groups(ASSERTION).alias("parts")).unnest("parts")
        broken = frame.filter(pl.col("head").is_null()).select("row", "text").rows()
        report(place, ((row, f"{line[:60]!r} is not of the form {EXPECTED}") for row, line in broken), counts)
        return triples_chunk(place, frame.drop_nulls("head"), counts)

    return checked(Streamed(place, "triples", lambda: text_blocks(place), parse, EXPECTED, on_bad_line))


def _edges(path: Path, on_bad_line: OnBadLine) -> Streamed:
    """The English edges of a file, or all of a file with plain words; an end without a URI counts as English."""
    table = open_table(path, {"relation": 1, "head": 2, "tail": 3}, separator="\t", widths=(3, 4))
    ends = pl.col("head", "tail")
    num_english = pl.sum_horizontal(ends.str.extract(URI, 1).fill_null("en") == "en")
    words = [pl.coalesce(pl.col(end).str.extract(URI, 2), end).alias(end) for end in ("head", "tail")]

    def parse(block: Block) -> Chunk:
        counts = Counts()
        frame = _english(table.frame(block, counts), num_english, counts)
        return triples_chunk(path, frame.with_columns(*words, ends.str.extract(URI, 3).name.suffix("_sense")), counts)

    return checked(Streamed(path, "triples", table.blocks, parse, "relation<TAB>head<TAB>tail", on_bad_line))


def _english(frame: pl.DataFrame, num_english: pl.Expr, counts: Counts) -> pl.DataFrame:
    """The rows with two English ends; others are counted."""
    found = frame.with_columns(num_english=num_english)
    counts["left out", OTHER_LANGUAGE] += found.filter(num_english=0).height
    counts["left out", ONE_END] += found.filter(num_english=1).height
    return found.filter(pl.col("num_english") > 1)
