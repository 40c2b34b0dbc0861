"""Targets that are also words for something else, such as turkey, polish and guard (data/ambiguous.csv), and the rules
that tell the two apart: capitals, verbs, fixed phrases, and the sense in ConceptNet's URIs."""

from functools import cache

import polars as pl

from mitigate.package_data import rows_of
from mitigate.words.targets import kinds
from mitigate.words.word_forms import with_plurals

NAMED = 5  # words in a notice
GONE = "-"  # in place of a word about something else
BEFORE_A_VERB = "to|can|could|will|would|may|might|must|should|shall|not|don't|they|we|you|i|he|she|it|who|which"
SENSES = {  # kind of target -> the domains of WordNet that a noun about it has; of other kinds every one
    "people": ("person", "group"),
    "professions": ("person", "group"),
    "locations": ("location", "group"),
}
NO_NOUN = ("v", "r")  # parts of speech of ConceptNet that no target is: verb, adverb


@cache
def ambiguous(rule: str = "") -> dict[str, str]:
    """Target -> another meaning that no rule excludes; with a rule, all targets that it is for."""
    return {
        row["target"]: row["other"]
        for row in rows_of("ambiguous.csv")
        if (row["rule"] == rule if rule else row["other"])
    }


@cache
def _phrases() -> str:
    phrases = (phrase for row in rows_of("ambiguous.csv") for phrase in row["phrases"].split(";") if phrase)
    forms = sorted({form for phrase in phrases for form in with_plurals(phrase)}, key=len, reverse=True)
    return rf"(?i)\b(?:{'|'.join(form.replace(' ', '[ -]?') for form in forms)})\b"


def without_others(texts: pl.Series) -> pl.Series:
    """The texts without the words that the rules take for something else. Capitals count where a text has any."""
    words = [row["target"] for row in rows_of("ambiguous.csv")]
    at = texts.str.contains_any(words, ascii_case_insensitive=True).fill_null(False).arg_true()
    if at.is_empty():
        return texts
    names, verbs = ("|".join(ambiguous(rule)) for rule in ("capital", "verb"))
    text = pl.col(texts.name)
    cased = text.str.replace_all(rf"\b(?:{names})\b", GONE)
    plain = pl.when(text != text.str.to_lowercase()).then(cased).otherwise(text).str.replace_all(_phrases(), GONE)
    plain = plain.str.replace_all(rf"(?i)\b({BEFORE_A_VERB}) (?:{verbs})(?:e?s)?\b", f"$1 {GONE}")
    return texts.scatter(at, texts.gather(at).to_frame().select(plain).to_series())


def in_sense(target: pl.Expr, sense: pl.Expr) -> pl.Expr:
    """The target, or null where the sense, the end of a URI such as "n/wn/animal", is of something else."""
    kind = target.replace_strict(kinds(), default="", return_dtype=pl.String)
    domain = sense.str.extract(r"^n/wn/(\w+)")
    fits = [(kind != name) | domain.is_in(list(domains)) for name, domains in SENSES.items()]
    is_other = sense.str.split("/").list.first().is_in(NO_NOUN) | ~(domain.is_null() | pl.all_horizontal(fits))
    return pl.when(is_other.fill_null(False)).then(None).otherwise(target)


def share(statements: pl.DataFrame) -> tuple[float, pl.DataFrame]:
    """The percentage of statements whose target is ambiguous, and these targets (target, statements, other), the most
    frequent first. statements: columns target and statements, their number."""
    known = pl.DataFrame(list(ambiguous().items()), ["target", "other"], orient="row")
    found = statements.select("target", "statements").join(known, on="target").filter(pl.col("statements") > 0)
    ordered = found.sort("statements", "target", descending=[True, False])
    return 100 * int(found["statements"].sum()) / max(1, int(statements["statements"].sum())), ordered


def notice(statements: pl.DataFrame) -> list[str]:
    """The share of ambiguous matches in a sentence."""
    percentage, found = share(statements)
    most = [f"{target} {count:,} ({other})" for target, count, other in found.head(NAMED).iter_rows()]
    rest = f" and {found.height - NAMED} others" if found.height > NAMED else ""
    return [
        f"{percentage:.1f} % of statements are about a word that can mean something else: {', '.join(most)}{rest}. "
        "Read some of them, or leave the words out with recipe.targets=FILE.csv."
    ] * bool(most)
