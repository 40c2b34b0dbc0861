"""Forms of words for people, by rule: plurals and singulars, hyphens, blanks, articles and capitals. English only;
irregular plurals are in data/plurals.csv."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import TypeVar

import polars as pl

from mitigate.package_data import rows_of

LARGEST = 50_000  # characters of a pattern for polars, which refuses those that take more than 10 MiB
BLANKS = " _\u2010\u2011-"  # with the hyphens of Unicode, one of which never breaks
BLANK = f"[{BLANKS}]"  # matches a blank of a form in a text
EDGE = r"\b"  # of a word
ARTICLE = r"^(?:an?|the) "
VOWEL_SOUND = (
    r"(?!eu|ewe|onc?e\b|uni(?!n|m|de)|us[eu]|uk|uti|uto|ubi|ug[ao]|u[iy]g|ur[aeiou])[aeiou]|hour|honest|honou?r|heir"
)
"""The beginnings of words that take "an"."""


Text = TypeVar("Text", pl.Expr, pl.Series)


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
    folded = {letter: letter.casefold() for form in forms | exact for letter in form}
    parts = {form: tuple(c if len(folded[c]) > 1 else folded[c] for c in form) for form in forms | exact}
    parts |= {form: tuple(BLANK if part == " " else part for part in parts[form]) for form in forms - exact}
    others = {form for form in parts if not re.fullmatch(r"\w(?:.*\w)?", form)}
    others |= {form for form in parts if any(form[:end] in others for end in range(1, len(form)))}  # "lgbtq+ person"
    parts |= {form: (*parts[form], EDGE) for form in others if re.match(r"\w", form[-1:])}
    begun = {form for form in others if re.match(r"\w", form)}
    kinds = [(EDGE, begun, ""), ("", others - begun, ""), (EDGE, parts.keys() - others, EDGE)]
    return "(?i)" + "|".join(before + _any({parts[form] for form in of}) + after for before, of, after in kinds if of)


def _any(forms: Collection[tuple[str, ...]], start: int = 0) -> str:
    """A regular expression for any of the forms, from this part on, the longest first. Common beginnings are written
    once: polars takes minutes for thousands of separate forms, or refuses them."""
    common = []
    while True:
        following: dict[str, list[tuple[str, ...]]] = {}
        for form in forms:
            if len(form) > start:
                following.setdefault(form[start], []).append(form)
        is_whole = any(len(form) == start for form in forms)
        if is_whole or len(following) != 1:
            break
        common.append(_escaped_part(*following))
        start += 1
    if BLANK in following and not following.keys().isdisjoint(BLANKS):  # one text could go on in two ways
        blank = following.pop(BLANK)
        following |= {part: [*following.get(part, []), *blank] for part in BLANKS}
    ordered = sorted(following.items(), key=lambda item: (item[0] == EDGE, item))  # what goes on, before what ends
    rest = "|".join(_escaped_part(part) + _any(longer, start + 1) for part, longer in ordered)
    return "".join(common) + (f"(?:{rest})" if rest else "") + ("?" if rest and is_whole else "")


def _escaped_part(part: str) -> str:
    return part if part in (BLANK, EDGE) else re.escape(part)


def contains(text: Text, words: str) -> Text:
    """Return whether the regular expression matches in a text, as text.str.contains. words: a pattern of any length, as
    `pattern` returns it."""
    if len(words) <= LARGEST:
        return text.str.contains(words)
    search = re.compile(words).search
    return text.map_elements(lambda found: search(found) is not None, return_dtype=pl.Boolean)


def extract_all(text: Text, words: str) -> Text:
    """All matches of the regular expression in a text, as text.str.extract_all. words: as in `contains`."""
    if len(words) <= LARGEST:
        return text.str.extract_all(words)
    find = re.compile(words).findall
    return text.map_elements(lambda found: pl.Series(find(found), dtype=pl.String), return_dtype=pl.List(pl.String))


def replace_all(text: Text, words: str, by: str) -> Text:
    """A text with all matches of the regular expression replaced, as text.str.replace_all. words: as in `contains`."""
    if len(words) <= LARGEST:
        return text.str.replace_all(words, by)
    replace = re.compile(words).sub
    return text.map_elements(lambda found: replace(by, found), return_dtype=pl.String)


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
