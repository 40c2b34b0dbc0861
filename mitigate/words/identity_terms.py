"""The identity terms and frames of data/identity, and the texts they make: "a gay person is a teacher".

Terms and frames are split by hand: those for training ("train") share no content word with those for testing a scorer
("test")."""

from functools import cache

import polars as pl

from mitigate.files import frame_of
from mitigate.words.word_forms import article, spellings

AXES = ("gender", "sexuality", "disability", "religion", "origin", "age", "body")
POLARITIES = ("neutral", "kind", "unkind")
NUMBERS = ("singular", "plural")
MASKED = "masked"
"""The term of a text whose identity phrase is masked; its axis is null."""

TEXTS = {
    "text": pl.String,
    "term": pl.String,
    "axis": pl.String,
    "term_split": pl.String,  # train, test; null where the phrase is masked
    "frame": pl.String,
    "frame_split": pl.String,
    "pair": pl.Int64,  # the same for the singular and the plural of a frame
    "number": pl.String,
    "polarity": pl.String,
    "negated": pl.Boolean,
}


@cache
def read_terms() -> pl.DataFrame:
    """term ("gay person"), plural, axis, split, alone (the word that names people without "person", or null)."""
    return frame_of("identity/terms.csv", infer_schema=False)


@cache
def read_frames() -> pl.DataFrame:
    """frame, polarity (of POLARITIES), negated (bool), number (of NUMBERS), split, pair."""
    texts = frame_of("identity/frames.csv", infer_schema=False)
    return texts.with_columns(pl.col("negated") == "yes", pl.col("pair").cast(pl.Int64))


@cache
def read_further_terms() -> pl.DataFrame:
    """term, plural, axis (of AXES, or "other"): terms for training only, besides those of read_terms; without words of
    tested terms."""
    return frame_of("identity/further_terms.csv", infer_schema=False)


@cache
def read_predicates() -> pl.DataFrame:
    """affirmed ("is a bully"), denied ("is not a bully"), polarity (of POLARITIES, of the affirmed one): predicates for
    training, without words of tested frames."""
    return frame_of("identity/predicates.csv", infer_schema=False)


@cache
def identity_forms() -> frozenset[str]:
    """The forms of the terms in texts: term and plural, and for a word that names people by itself that word too; with
    hyphens or without."""
    forms: set[str] = set()
    for term, plural, alone in read_terms().select("term", "plural", "alone").iter_rows():
        phrases = [term, plural, *([alone, f"{alone} person", f"{alone} people"] if alone else [])]
        forms.update(written for phrase in phrases for written in spellings(phrase))
    return frozenset(forms)


def identity_texts(mask: str) -> pl.DataFrame:
    """Every term in every frame, and every frame with its identity phrase replaced by the mask (columns TEXTS)."""
    frames = read_frames().select("frame", "split", "pair", "number", "polarity", "negated").rows()
    rows = list[tuple]()
    for term, plural, axis, split in read_terms().select("term", "plural", "axis", "split").iter_rows():
        rows += [(filled(frame[0], term, plural), term, axis, split, *frame) for frame in frames]
    rows += [(masked(frame[0], mask), MASKED, None, None, *frame) for frame in frames]
    return pl.DataFrame(rows, schema=TEXTS, orient="row")


def filled(frame: str, term: str, plural: str) -> str:
    """A frame about a term: "{a} {term} is honest" and "{terms} are honest"."""
    return frame.format(a=article(term), term=term, terms=plural)


def masked(frame: str, mask: str) -> str:
    """A frame whose identity phrase, its article included, is replaced as a demographic word is: "this person is
    honest", "this person are honest"."""
    return frame.replace("{a} {term}", mask).replace("{terms}", mask)
