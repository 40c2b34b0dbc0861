"""How a word for people may be written, by rule: plurals and singulars, hyphens, blanks, articles and capitals. English
only; plurals that are not regular are in data/plurals.csv."""

import csv
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

ARTICLE = r"^(?:an?|the) "
VOWEL_SOUND = r"(?!eu|ewe|onc?e\b|uni(?!n|m)|us[eu]|uk|uti|uto)[aeiou]|hour|honest|honou?r|heir"
"""How a word begins that "an" stands before."""


def plain(word: str) -> str:
    """The word as lists have it: without capitals, with single blanks, also in place of underscores."""
    return " ".join(str(word).replace("_", " ").lower().split())


def with_plurals(word: str) -> Iterator[str]:
    """The word and its plurals: nurse, nurses; secretary, secretaries; policeman, policemen; trans person, trans
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
    """The word, its plurals, and what it may be the plural of: trans women, trans woman."""
    yield from with_plurals(word)
    yield from (word.removesuffix(many) + one for one, many in _irregular() if word.endswith(many))
    if re.search(r"[^aeiou]ies$", word):
        yield word[:-3] + "y"
    elif re.search(r"[^siu]s$", word):
        yield word[:-1]
    if re.search(r"(?:s|x|ch|sh)es$", word):
        yield word[:-2]


def spellings(form: str) -> Iterator[str]:
    """How a form may be written, in the way of `unhyphenated`: "non-binary" as "non binary" and as "nonbinary"; what
    begins with "a" or "an" also without it."""
    for written in dict.fromkeys((form, re.sub("^an? ", "", form))):
        yield written.replace("-", " ")
        yield written.replace("-", "")


def unhyphenated(text: str) -> str:
    """A text as spellings are looked up: without capitals, with single blanks, also in place of hyphens."""
    return plain(text.replace("-", " "))


@cache
def pattern(forms: frozenset[str], exact: frozenset[str] = frozenset()) -> str:
    """A regular expression for any of the forms as whole words, the longest first, in capitals or not. A blank in a
    form may be an underscore or a hyphen in a text; in those of `exact` it is a blank."""
    ordered = sorted(forms | exact, key=lambda form: (-len(form), form))
    escaped = {form: re.escape(form) if form in exact else _escaped(form) for form in ordered}
    words = [escaped.pop(form) for form in ordered if re.fullmatch(r"\w(?:.*\w)?", form)]
    others = list(escaped.values())  # "lgbtq+" ends in no word
    return "(?i)" + "|".join([*others, *([rf"\b(?:{'|'.join(words)})\b"] if words else [])])


def anywhere(forms: Iterable[str]) -> str:
    """The same of forms that may also stand within words."""
    return "(?i)" + "|".join(map(_escaped, forms))


def any_of(words: Iterable[str]) -> str:
    """A regular expression for any of the words, and their plurals, as whole words."""
    return pattern(frozenset(form for word in words for form in with_plurals(word)))


def _escaped(form: str) -> str:
    return re.escape(form).replace(r"\ ", "[ _-]")


@cache
def _irregular() -> tuple[tuple[str, str], ...]:
    """(singular, plural) of the ends of words."""
    with files("mitigate").joinpath("data/plurals.csv").open(encoding="utf-8") as lines:
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return tuple((row["singular"], row["plural"]) for row in rows)
