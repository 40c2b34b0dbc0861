"""Triples that a generator is trained and tested on, with their splits and all relations of its prompts: ConceptNet's
train100k with its labelled dev1, dev2 and test files (Li et al. 2016), as COMeT trains on it; the sample corpus in the
same form; the dump of all assertions; and triples of a file.

The files of train100k are searched for in the given folder, then in that of MITIGATE_DATA, then in the cache, and are
downloaded last. Test triples for a resource without its own are drawn by whole heads, so that training has no triple
with a test triple's head."""

import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import polars as pl
import pooch

from mitigate.errors import MitigateError, counted
from mitigate.files import write
from mitigate.load.statements import find_root
from mitigate.load.stream import Counts, Loaded, OnBadLine, Streamed, decoded, describe, first, joined, path_of, report
from mitigate.load.table import blocks_of, open_lines, open_table
from mitigate.load.triples import LABELS, as_triples
from mitigate.stages import digest_of_values
from mitigate.triples import TRIPLES
from mitigate.words.relations import Relation, comet_relations, named, relations, with_own

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
        good = decoded(path, good, name, words, counts)
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
        try:
            digest, content = sha256_of_triples(read_triples(packed, SPLITS[name]).rows), packed.read_bytes()
        finally:
            packed.unlink()  # pooch downloads no file that is there
        if digest != SHA256_OF_TRIPLES[name]:
            raise MitigateError(
                f"the download of {name} has the wrong content: SHA-256 of its sorted triples {digest}, expected "
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
    read the senses (head_sense, tail_sense)."""
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
        lines = lines.with_columns(num_english=num_english)
        counts["left out", OTHER_LANGUAGE] += lines.filter(num_english=0).height
        counts["left out", ONE_END] += lines.filter(num_english=1).height
        english = lines.filter(pl.col("num_english") > 1)
        frame = english.with_columns(text.str.extract_groups(ASSERTION).alias("parts")).unnest("parts")
        broken = frame.filter(pl.col("head").is_null()).select("row", "statement").rows()
        report(place, ((row, f"{line[:60]!r} is not of the form {EXPECTED}") for row, line in broken), counts)
        return as_triples(place, frame.drop_nulls("head"), counts)

    return Streamed(place, "triples", open_lines(place), parse, on_bad_line)


# The triples of a run


NAMES = ["head", "relation", "tail"]
FEW = 30  # test triples; with fewer, a figure on them depends on which were drawn
SEED = 1  # of the draw of held-out heads


@dataclass(frozen=True)
class Corpus:
    """Triples with their splits, and the relations of the run."""

    triples: pl.DataFrame
    own_relations: Sequence[Relation]  # a user's own, with their phrases
    relations: Sequence[Relation]  # that are probed
    further: Sequence[Relation]  # that the generator is prompted with besides COMeT's 34, or in their place
    comet: bool  # whether it is prompted with COMeT's 34
    held_out: str  # a sentence on triples held out for test; "" where there are none
    notices: Sequence[str]

    @property
    def facts(self) -> dict[str, str]:
        """Splits and a user's relations, for the record of a run."""
        counts = self.triples["split"].value_counts().sort("split").iter_rows()
        own = [f"{one.name}: “{one.phrase}”, neutral “{one.neutral_phrase}”" for one in self.own_relations]
        by_split = ", ".join(f"{split} {count:,}" for split, count in counts)
        facts = {"triples by split": by_split, "held out": self.held_out, "own relations": "; ".join(own)}
        return {name: text for name, text in facts.items() if text}


def corpus_of(
    loaded: object,
    wanted: Sequence[str] | None = None,
    *,
    only_in_data: bool = False,
    comet: bool = True,
    holdout: float | None = None,
) -> Corpus:
    """The corpus of the triples that a loader returned.

    wanted: names of the relations to probe; None: COMeT's 34, or with only_in_data those of the training triples.
    comet: False for a resource with relations of its own, such as ATOMIC: the generator is not asked about COMeT's 34.
    holdout: the share of triples to hold out for test where there are no splits, and half as many for dev, by head.

    Raises MitigateError for anything but triples, for relations without a phrase, and where no triple trains."""
    resource = triples_of(loaded)
    own, available = resource.own_relations, with_own(resource.own_relations)
    in_training = relations_in_training(resource.rows)
    triples, held_out, notices = resource.rows, "", list(resource.notices)
    if holdout is None or triples["split"].n_unique() > 1:
        train, test = (triples.filter("valid", split=split).select(NAMES).unique() for split in ("train", "test"))
        if test.is_empty():
            notices.append("The data has no test triples; nothing is measured on them.")
        elif both := test.join(train, on=NAMES, how="semi").height:
            notices.append(f"{both:,} of {test.height:,} distinct test triples are training triples too.")
    elif holdout and triples["head"].n_unique() > 1:
        triples, held_out = hold_out(triples, holdout)
        notices.append(held_out)
    else:
        why = f"can be held out for test: all have one head, “{triples['head'][0]}”"
        why = why if holdout else "are held out for test (data.holdout=0)"
        notices.append(f"No triples {why}; nothing is measured on test triples.")
    comets = {relation.name for relation in comet_relations()}
    if wanted is None:
        wanted = [name for name in available if name in (in_training if only_in_data else comets)]
    relations = named(list(dict.fromkeys(wanted)), available)
    if not relations:
        raise MitigateError("probe.relations is empty; list at least one relation, or set null for all")
    used = {*wanted, *triples["relation"]} - (comets if comet else set())
    further = [one for name, one in available.items() if name in used or (comet and one in own)]
    repeats = triples.filter("valid", split="train").select(NAMES)
    if count := repeats.height - repeats.n_unique():
        notices.append(f"{counted(count, 'repeated training triple')}; all are counted and trained on.")
    if single := [one.name for one in own if one.phrase == one.neutral_phrase and not one.comet_words]:
        notices.append(f"Relations with a single wording, also used as the neutral one: {', '.join(single)}.")
    if unseen := [one.name for one in relations if one.name not in in_training]:
        notices.append(f"Probed relations without training triples: {first(unseen, ', ')}.")
    return Corpus(triples, own, relations, further, comet, held_out, notices)


def triples_of(loaded: object) -> Loaded | Streamed:
    """Return what a loader returned, if it is triples. Raises MitigateError for anything else."""
    if not isinstance(loaded, Loaded | Streamed) or loaded.kind == "statements":
        raise MitigateError(
            "the data has no triples, and this recipe trains on triples; set data=sample, data=cn100k or data=atomic, "
            "or give your own: data=triples data.path=FILE"
        )
    return loaded


def relations_in_training(triples: pl.DataFrame) -> set[str]:
    """The relations of the triples that can be trained on. Raises MitigateError where there is none."""
    if trained := set(triples.filter("valid", split="train")["relation"]):
        return trained
    counts = ", ".join(f"{split} {count:,}" for split, count in triples["split"].value_counts(sort=True).iter_rows())
    raise MitigateError(f"the data has no training triples (by split: {counts or 'none'}); give triples of split train")


def hold_out(triples: pl.DataFrame, share: float) -> tuple[pl.DataFrame, str]:
    """The triples with all triples of some heads moved from split train to test, and of others to dev; and a sentence.

    Heads are drawn in an order that SEED fixes, each if the share of test stays at most this one, and that of dev at
    most half of it; where all heads have more, the one with the fewest triples is held out for test."""
    counts = triples.filter(split="train")["head"].value_counts().sort("head")
    total, left = int(counts["count"].sum()), counts[np.random.default_rng(SEED).permutation(counts.height).tolist()]
    splits, sizes = dict[str, str](), {"test": 0, "dev": 0}
    for split, most in (("test", share * total), ("dev", min(share, 1 - share) / 2 * total)):
        for head, count in left.iter_rows():
            if head not in splits and sizes[split] + count <= most:
                splits[head] = split
                sizes[split] += count
        if split == "test" and not splits:
            head, sizes[split] = counts.sort("count", "head").row(0)
            splits = {head: split}
    of_head = pl.col("head").replace_strict(splits, default="train", return_dtype=pl.String)
    moved = triples.with_columns(split=pl.when(pl.col("split") == "train").then(of_head).otherwise("split"))
    heads = f"{list(splits.values()).count('test'):,} of {counts.height:,} heads"
    return moved, (
        f"The data has no test triples of its own: {sizes['test']:,} of {total:,} triples "
        f"({100 * sizes['test'] / total:.1f} %) are held out, all triples of {heads}, drawn by chance; "
        f"{sizes['dev']:,} others are for dev."
    ) + " Figures on so few are uncertain." * (sizes["test"] < FEW)


def sample_triples() -> pl.DataFrame:
    """Return the sample corpus, written for demonstrations: columns TRIPLES, splits train, dev, dev2 and test."""
    return sample().rows


def digest_of_relations(own: Sequence[Relation]) -> bytes:
    """The hash of a user's own relations with their wordings, which affect labels; b"" where there are none. The same
    triples in other words are another run."""
    return digest_of_values(list(own)).encode() if own else b""
