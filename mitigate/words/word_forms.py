"""Forms of words for people, by rule: plurals and singulars, hyphens, blanks, articles and capitals; and identity
terms. English only; irregular plurals are in data/plurals.csv.

The identity terms and frames of data/identity make texts such as "a gay person is a teacher". They are split by hand:
those for training ("train") share no content word with those for testing a scorer ("test")."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

import polars as pl

from mitigate.files import frame_of, rows_of

BLANK = "[ _\u2010\u2011-]"  # matches a blank of a form in a text; with the hyphens of Unicode
EXACT = "\0"  # in the place of a blank of a form that is a blank in a text
EDGE = r"\b"  # of a word
ARTICLE = r"^(?:an?|the) "
VOWEL_SOUND = (  # the beginnings of words that take "an"
    r"(?!eu|ewe|onc?e\b|uni(?!n|m|de)|us[eu]|uk|uti|uto|ubi|ug[ao]|u[iy]g|ur[aeiou])[aeiou]|hour|honest|honou?r|heir"
)


def plain(word: str) -> str:
    """The word in the form of lists: without capitals, with single blanks, also in place of underscores."""
    return " ".join(str(word).replace("_", " ").lower().split())


def with_plurals(word: str) -> Iterator[str]:
    """Yield the word and its plurals: nurse, nurses; secretary, secretaries; policeman, policemen; trans person, trans
    people."""
    yield word
    if word.endswith(("s", "x", "ch", "sh")):
        yield word + "es"
    elif re.search(r"[^aeiou]y$", word):
        yield word[:-1] + "ies"
    else:
        yield word + "s"
    yield from (word.removesuffix(one) + many for one, many in _irregular() if word.endswith(one))


def article(phrase: str) -> str:
    """The indefinite article before a phrase, by the sound that it begins with: an old person, an hour, a ukrainian."""
    return "an" if re.match(VOWEL_SOUND, phrase.lower()) else "a"


def inflections(word: str) -> Iterator[str]:
    """Yield the word, its plurals, and its possible singulars: trans women, trans woman."""
    yield from with_plurals(word)
    yield from (word.removesuffix(many) + one for one, many in _irregular() if word.endswith(many))
    if re.search(r"[^aeiou]ies$", word):
        yield word[:-3] + "y"
    elif re.search(r"[^siu]s$", word):
        yield word[:-1]
    if re.search(r"(?:s|x|ch|sh)es$", word):
        yield word[:-2]


def spellings(form: str) -> Iterator[str]:
    """Yield the spellings of a form, as `unhyphenated` returns them: "non-binary" as "non binary" and as "nonbinary"; a
    form that begins with "a" or "an" also without it."""
    for written in dict.fromkeys((form, re.sub("^an? ", "", form))):
        yield written.replace("-", " ")
        yield written.replace("-", "")


def unhyphenated(text: str) -> str:
    """A text in the form of spellings: without capitals, with single blanks, also in place of hyphens."""
    return plain(re.sub(BLANK, " ", text))


def unhyphenated_column(text: pl.Expr) -> pl.Expr:
    """The texts of a column in the form of `unhyphenated`."""
    return text.str.to_lowercase().str.replace_all(f"{BLANK}+", " ").str.strip_chars()


@cache
def pattern(forms: frozenset[str], exact: frozenset[str] = frozenset()) -> str:
    """A regular expression for any of the forms as whole words, the longest first, in capitals or not. Where a form
    begins or ends in a sign, as "lgbtq+" does, anything may stand beside the sign. A blank in a form may be an
    underscore or a hyphen in a text; in those of `exact` it is a blank."""
    signs = tuple(form for form in forms | exact if not re.fullmatch(r"\w(?:.*\w)?", form))
    plain, parts = list[str](), list[str]()
    for form in sorted(forms | exact, key=lambda form: (-len(form), form)):
        written = form.replace(" ", EXACT) if form in exact else form
        if form.startswith(signs):  # also "lgbtq+ person"
            before, after = (EDGE if re.match(r"\w", letter) else "" for letter in (form[0], form[-1]))
            parts.append(f"{before}{_any([written])}{after}")
        else:
            plain.append(written)
    return "(?i)" + "|".join([*parts, rf"\b(?:{_any(plain)})\b"])


def _any(ends: Iterable[str]) -> str:
    """A regular expression for any of the ends of forms, the longest first. Common beginnings are written once: with
    thousands of separate forms polars takes minutes."""
    following = dict[str, list[str]]()
    for end in ends:
        following.setdefault(end[:1], []).append(end[1:])
    if EXACT in following and " " in following:  # a text could go on in two ways
        following[EXACT] += following[" "]
    written = {" ": BLANK, EXACT: " "}
    rest = [written.get(one, re.escape(one)) + _any(following[one]) for one in sorted(following) if one]
    if not rest or (len(rest) == 1 and "" not in following):
        return "".join(rest)
    return f"(?:{'|'.join(rest)})" + "?" * ("" in following)


def anywhere(forms: Iterable[str]) -> str:
    """A regular expression for the forms, also within words."""
    return "(?i)" + "|".join(re.escape(form).replace(r"\ ", BLANK) for form in forms)


def any_of(words: Iterable[str]) -> str:
    """A regular expression for any of the words, and their plurals, as whole words."""
    return pattern(frozenset(form for word in words for form in with_plurals(word)))


@cache
def _irregular() -> tuple[tuple[str, str], ...]:
    """(singular, plural) of the ends of words."""
    return tuple((row["singular"], row["plural"]) for row in rows_of("plurals.csv"))


# Identity terms


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
    found: set[str] = set()
    for term, plural, alone in read_terms().select("term", "plural", "alone").iter_rows():
        phrases = [term, plural, *([alone, f"{alone} person", f"{alone} people"] if alone else [])]
        found.update(written for phrase in phrases for written in spellings(phrase))
    return frozenset(found)


def identity_texts(mask: str) -> pl.DataFrame:
    """Every term in every frame, and every frame with its identity phrase replaced by the mask (columns TEXTS)."""
    of_frame = ("frame", "split", "pair", "number", "polarity", "negated")
    rows = list[tuple]()
    frames = [
        (frame["frame"], tuple(frame[name] for name in of_frame)) for frame in read_frames().iter_rows(named=True)
    ]
    for term in read_terms().iter_rows(named=True):
        about = (term["term"], term["axis"], term["split"])
        rows += [(filled(frame, term["term"], term["plural"]), *about, *facts) for frame, facts in frames]
    rows += [(masked(frame, mask), MASKED, None, None, *facts) for frame, facts in frames]
    return pl.DataFrame(rows, schema=TEXTS, orient="row")


def filled(frame: str, term: str, plural: str) -> str:
    """A frame about a term: "{a} {term} is honest" and "{terms} are honest"."""
    return frame.format(a=article(term), term=term, terms=plural)


def masked(frame: str, mask: str) -> str:
    """A frame whose identity phrase, its article included, is replaced as a demographic word is: "this person is
    honest", "this person are honest"."""
    return frame.replace("{a} {term}", mask).replace("{terms}", mask)
