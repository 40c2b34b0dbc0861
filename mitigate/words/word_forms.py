"""Forms of words for people, by rule: plurals and singulars, hyphens, blanks, articles and capitals. English only;
irregular plurals are in data/plurals.csv."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

import polars as pl

from mitigate.files import rows_of

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
