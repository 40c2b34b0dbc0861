"""The 329 demographic targets of the harms paper (Tables 14 and 15) with their four categories, from data/targets.csv;
a user's choice of targets; and the list of a run, which knows the forms of the paper's targets and of a user's own. The
list is made once, so that a text has the same label everywhere.

Not every target is a person ("church", "greece"), and the paper's list has no word for non-binary people.

Some targets are also words for something else, such as turkey, polish and guard (data/ambiguous.csv). Capitals, verbs,
fixed phrases and the sense in ConceptNet's URIs tell the two apart."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, counted, one_of
from mitigate.files import rows_of
from mitigate.words.word_forms import (
    ARTICLE,
    any_of,
    anywhere,
    inflections,
    pattern,
    plain,
    spellings,
    unhyphenated,
    unhyphenated_column,
    with_plurals,
)

CATEGORIES = ("origin", "gender", "religion", "profession")
KINDS = ("people", "locations", "professions", "others")  # of targets; each has its prompts for stories
TARGETS: dict[str, pl.DataType] = {
    "target": pl.String(),
    "category": pl.String(),
    "forms": pl.List(pl.String()),  # further forms, besides those by rule
    "group": pl.String(),  # policy=swap exchanges targets within it
    "cluster": pl.String(),  # the word of which it is an inflection
    "kind": pl.String(),  # of KINDS
}
"""The columns of chosen targets. Those after the category are null unless a CSV file gives them."""
LISTED = ("all", "data")
PARTS = ("all", "neutral", "polar", "held_out")  # of figures beside the categories
ARTICLES = ("", "a ", "an ", "the ")
MISSPELT = 0.8  # of difflib's ratio: laywer is lawyer, and roma is not oman
CHECKED = 1000  # words of a user's own
NAMED = 10  # targets in a sentence; others are counted


@cache
def targets() -> dict[str, str]:
    """Target -> category, in the paper's order."""
    return {row["target"]: row["category"] for row in rows_of("targets.csv")}


@cache
def kinds() -> dict[str, str]:
    """Target -> its kind, of KINDS, for the paper's 329."""
    return {row["target"]: row["kind"] for row in rows_of("targets.csv")}


@cache
def clusters() -> dict[str, str]:
    """Target of the paper's -> the word that stands for its cluster: for inflections of one word (hers -> she), and for
    a country and its people (french -> france). From data/clusters.csv."""
    return {row["target"]: row["cluster"] for row in rows_of("clusters.csv")}


@cache
def target_of(statement: str) -> str | None:
    """Find the target of a statement: the one that it begins with, after an article; else the one that it ends with, as
    the tail of a triple; else the first in it. None for a statement without a target."""
    statement = statement.strip(" .")
    matches = list(re.finditer(any_of(targets()), statement))
    if not matches:
        return None
    first, last = matches[0], matches[-1]
    is_subject = statement[: first.start()].lower() in ARTICLES
    form = last[0] if last.end() == len(statement) and not is_subject else first[0]
    return next((target for target in targets() if re.fullmatch(any_of([target]), form)), None)


def ordered(categories: Iterable[str]) -> list[str]:
    """Each category once: the paper's four in its order, then a user's."""
    given = set(categories)
    return [name for name in CATEGORIES if name in given] + sorted(given - set(CATEGORIES))


def choose_targets(
    wanted: str | Path | Sequence[str], triples: pl.DataFrame | None = None, fewest: int = 1
) -> pl.DataFrame:
    """The targets to probe (columns TARGETS): the paper's ("all"), those of them that are the whole head or tail of at
    least `fewest` training triples ("data"), those of a list, or those of a CSV file, in both of which "all" and "data"
    may stand too. A target of the paper's keeps its category; any other word of a list is of category "own".

    A file has a column `target`, and optionally `category`, `forms` (further forms, separated by semicolons), `group`,
    `cluster` and `kind`. Raises MitigateError for an empty choice, an unreadable file, a wrong kind or category, and a
    target with different facts in two rows."""
    if isinstance(wanted, str | Path):
        frame = as_targets([str(wanted)]) if wanted in LISTED else _read(Path(wanted))
    else:
        frame = as_targets([plain(word) for word in wanted])
    for name in LISTED:
        if name in frame["target"]:
            listed = as_targets(targets())
            if name == "data" and triples is not None:
                head, tail = (triples.filter(split="train")[end].str.to_lowercase() for end in ("head", "tail"))
                about = pl.concat([head, tail.filter(head != tail)]).alias("target").value_counts()
                often = about.filter(pl.col("count") >= fewest)["target"]
                listed = listed.filter(pl.col("target").is_in(often.implode()))
            frame = pl.concat([frame.filter(pl.col("target") != name), listed])
    frame = frame.filter(pl.col("target") != "").unique("target", keep="first", maintain_order=True)
    if frame.is_empty():
        why = "names no target" if wanted != "data" else "finds none of the paper's targets as a head or tail"
        raise MitigateError(f"probe.targets={wanted} {why}; allowed: all, data, a list of words, a CSV file")
    return frame


def as_targets(words: Sequence[str] | dict[str, str]) -> pl.DataFrame:
    """Words, or words with their categories, in the columns TARGETS."""
    given = words if isinstance(words, dict) else {}
    rows = [(word, given.get(word) or targets().get(word, "own"), *[None] * 4) for word in words]
    return pl.DataFrame(rows, schema=TARGETS, orient="row")


def not_listed(chosen: pl.DataFrame) -> list[str]:
    """The chosen targets that are not in the paper's list, in their order."""
    return [word for word in chosen["target"].unique(maintain_order=True) if word not in targets()]


def check_spelling(wanted: str | Path | Sequence[str]) -> None:
    """Raise MitigateError for words of a choice (choose_targets) that are not in the paper's list and resemble one that
    is, without a plural's s; of the first words, since each takes 2 ms."""
    own = [] if isinstance(wanted, str) and wanted in LISTED else not_listed(choose_targets(wanted))
    near = {word: get_close_matches(word.removesuffix("s"), targets(), n=1, cutoff=MISSPELT) for word in own[:CHECKED]}
    if guesses := [f"{word}: did you mean {nearest[0]}?" for word, nearest in near.items() if nearest]:
        raise MitigateError(
            f"{', '.join(guesses)} probe.new_targets=true keeps {'it' if len(guesses) == 1 else 'them'}"
        )


def notice_of_own(chosen: pl.DataFrame) -> list[str]:
    """A sentence that names the chosen targets outside the paper's list, if there are any."""
    own = not_listed(chosen)
    return [f"{counted(len(own), 'target')} not in the paper's list: {named(own)}"] * bool(own)


def named(words: Sequence[str]) -> str:
    """The words as a list in a sentence; of many, the first NAMED and the number of others."""
    rest = len(words) - NAMED
    return ", ".join(words[:NAMED]) + (f" and {rest:,} others" if rest > 1 else f", {words[-1]}" if rest == 1 else "")


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        if path.suffix == "":
            raise one_of("probe.targets", str(path), ["all", "data", "a list such as [lawyer,nurse]", "FILE.csv"])
        raise MitigateError(f"probe.targets: no such file: {path}; give a CSV file with a column 'target'")
    try:
        table = pl.read_csv(path, infer_schema=False).rename(plain)
    except pl.exceptions.PolarsError as error:
        raise MitigateError(f"{path} cannot be read as a CSV file in UTF-8: {str(error).splitlines()[0]}") from error
    if "target" not in table.columns:
        raise MitigateError(
            f"{path} has no column 'target' (found: {', '.join(table.columns)}); its first line must name it. Or name "
            "the targets in the command: probe.targets=[lawyer,nurse]"
        )
    rows, faults = dict[str, tuple](), list[str]()
    for number, row in enumerate(table.iter_rows(named=True), start=2):
        given = {column: plain(row.get(column) or "") or None for column in ("group", "cluster", "kind")}
        word = plain(row["target"] or "")
        category = (row.get("category") or "").strip() or targets().get(word, "own")
        category = plain(category) if plain(category) in CATEGORIES else category
        forms = [form for form in map(plain, (row.get("forms") or "").split(";")) if form]
        facts = (word, category, forms or None, *given.values())
        if given["kind"] not in (None, *KINDS):
            faults.append(f"line {number}: {one_of('kind', given['kind'], KINDS)}")
        elif category in PARTS or category.endswith(("_low", "_high")):
            faults.append(f"line {number}: figures have other parts called {category!r}; choose another category")
        elif rows.setdefault(word, facts) != facts and word:
            faults.append(f"line {number}: an earlier line has other facts of the target {word!r}; leave one of them")
    if faults:
        raise MitigateError("\n  ".join(f"{path}: {fault}" for fault in faults))
    return pl.DataFrame(list(rows.values()), schema=TARGETS, orient="row")


@dataclass(frozen=True)
class Target:
    """A target of a run's own, or one of the paper's with further facts."""

    word: str
    category: str
    forms: tuple[str, ...] = ()  # as given by the user
    group: str | None = None
    cluster: str | None = None
    kind: str | None = None

    @property
    def is_listed(self) -> bool:
        """Return whether it is in the paper's list."""
        return self.word in targets()

    @cached_property
    def written(self) -> frozenset[str]:
        """Its spellings, besides the word in the paper's list."""
        words = self.forms if self.is_listed else (self.word, *self.forms)
        return frozenset(written for word in words for form in inflections(word) for written in spellings(form))


@dataclass(frozen=True)
class TargetList:
    """The paper's targets and a run's own.

    The paper's are masked with their plurals and, as in the paper, matched without them: "lawyers" is not about a
    lawyer. Own targets are masked and matched in all their forms: given ones, plurals and singulars, with hyphens or
    without, after an article."""

    own: tuple[Target, ...] = ()

    @cached_property
    def categories(self) -> dict[str, str]:
        """Target -> category."""
        return targets() | {target.word: target.category for target in self.own}

    @cached_property
    def forms(self) -> frozenset[str]:
        """All forms that are masked."""
        listed = (form for word in targets() for form in with_plurals(word))
        return frozenset(listed).union(*(target.written for target in self.own))

    @cached_property
    def pattern(self) -> str:
        """A regular expression for any of the forms as whole words."""
        return pattern(self.forms)

    @cached_property
    def own_forms(self) -> dict[str, str]:
        """Form -> own target. A form that is itself a target belongs to it; given forms come before those by rule."""
        by_rule = {form: target.word for target in reversed(self.own) for form in target.written}
        given = {form: target.word for target in self.own for word in target.forms for form in spellings(word)}
        words = {form: target.word for target in self.own if not target.is_listed for form in spellings(target.word)}
        return {form: word for form, word in (by_rule | given | words).items() if form not in targets()}

    @cached_property
    def every_form(self) -> dict[str, str]:
        """Form -> target, of the paper's targets too: plurals and singulars by rule, those of places and of names that
        are also other words left out (omen, polishes)."""
        single = {row["target"] for row in rows_of("ambiguous.csv") if row["rule"] == "capital"}
        single |= {word for word, kind in kinds().items() if kind == "locations"}
        by_rule = {form: word for word in targets() if word not in single for form in inflections(word)}
        return by_rule | {word: word for word in targets()} | self.own_forms

    @cached_property
    def whole(self) -> dict[str, str]:
        """Text -> the target that it names as a whole, with an article or without."""
        written = {form.replace(" ", between): word for between in "- " for form, word in self.every_form.items()}
        return {f"{article}{form}": word for article in ARTICLES for form, word in written.items()}

    @cached_property
    def substrings(self) -> dict[str, re.Pattern[str]]:
        """Own target -> a regular expression for its forms, also within words."""
        forms: dict[str, list[str]] = {target.word: [target.word] * target.is_listed for target in self.own}
        for form in sorted(self.own_forms, key=lambda form: (-len(form), form)):
            forms[self.own_forms[form]].append(form)
        return {word: re.compile(anywhere(written)) for word, written in forms.items()}

    @cached_property
    def groups(self) -> dict[str, str]:
        """Own target -> the group within which it is swapped: the given one, else its category."""
        return {t.word: t.group or t.category for t in self.own if t.group or not t.is_listed}

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Own target -> its kind, where one is given or it is a profession."""
        kind_of = {t.word: t.kind or ("professions" if t.category == "profession" else None) for t in self.own}
        return {word: kind for word, kind in kind_of.items() if kind}

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Target -> the word it is an inflection of, as given or by rule: trans women -> trans woman."""
        cluster_of, word_of = dict(clusters()), {word: word for word in targets()}
        for target in self.own:
            words = [word_of[form] for form in sorted(target.written) if word_of.get(form, target.word) != target.word]
            if target.cluster or (words and not target.is_listed):
                cluster_of[target.word] = target.cluster or cluster_of.get(words[0], words[0])
            word_of = dict.fromkeys(spellings(target.word), target.word) | word_of  # earlier words keep their forms
        return cluster_of

    @cached_property
    def digest(self) -> str:
        """The hash that represents it in fingerprints."""
        return sha256(json.dumps([asdict(target) for target in self.own]).encode()).hexdigest()

    def table(self, chosen: pl.DataFrame | None = None) -> pl.DataFrame:
        """Chosen targets, by default the run's own, with all facts, as in a CSV file that choose_targets reads."""
        own = {target.word: target for target in self.own}
        chosen = as_targets({target.word: target.category for target in self.own}) if chosen is None else chosen
        rows = [own.get(word) or Target(word, category) for word, category in chosen["target", "category"].iter_rows()]
        return pl.DataFrame(
            [(t.word, t.category, "; ".join(t.forms) or None, t.group, t.cluster, t.kind) for t in rows],
            schema=dict.fromkeys(TARGETS, pl.String),
            orient="row",
        )

    def with_words(self, words: Sequence[str]) -> "TargetList":
        """The list with further words as targets without other facts."""
        listed = {target.word for target in self.own}
        further = list_of(as_targets([word for word in words if word not in listed])).own
        return TargetList((*self.own, *further))

    def target_of(self, text: pl.Expr, literal: bool = True) -> pl.Expr:
        """The target that a text names, in lower case; any other text in lower case. literal: whether the paper's
        targets are only themselves, as in the paper, and have no plural."""
        lower = text.str.to_lowercase()
        if not literal:
            return lower.replace(self.whole)
        if not self.own_forms:
            return lower
        bare = unhyphenated_column(text)
        own = [
            form.replace_strict(self.own_forms, default=None, return_dtype=pl.String)
            for form in (bare, bare.str.replace(ARTICLE, ""))
        ]
        return pl.coalesce(*own, lower)

    def named(self, text: str) -> str:
        """The target that a single text names, with underscores as blanks; see target_of."""
        bare = unhyphenated(text)
        return self.own_forms.get(bare) or self.own_forms.get(re.sub(ARTICLE, "", bare)) or plain(text)

    def found_in(self, texts: pl.Series, among: Sequence[str], literal: bool = True) -> pl.DataFrame:
        """The places of the texts that name one of these targets (at, target), in their order: the paper's as whole
        words, with `literal` without plurals, own ones in all their forms; of two that overlap the one that begins
        first, and of those that begin together the longest."""
        words = texts.str.to_lowercase().str.extract_all(self.pattern_among(among, literal))
        texts_with_forms = pl.DataFrame({"target": words}).with_row_index("at").filter(pl.col("target").list.len() > 0)
        places = texts_with_forms.explode("target")
        forms = places["target"].unique().to_list()
        named = [self.named(form) if literal else self.every_form.get(unhyphenated(form), form) for form in forms]
        return places.with_columns(pl.col("target").replace(forms, named))

    def pattern_among(self, among: Sequence[str], literal: bool = True) -> str:
        """A regular expression for these targets in texts."""
        words, forms = set(among), self.own_forms if literal else self.every_form
        own = frozenset(form for form, word in forms.items() if word in words)
        return pattern(own, frozenset(word for word in among if word in targets()) if literal else frozenset())


PAPER = TargetList()


def list_of(chosen: pl.DataFrame | str | Path | Sequence[str]) -> TargetList:
    """The list of a run: the paper's targets and the chosen ones.

    chosen: the result of choose_targets, or its argument. Raises MitigateError for a form that is given to two
    targets."""
    frame = chosen if isinstance(chosen, pl.DataFrame) else choose_targets(chosen)
    facts = ("group", "cluster", "kind")
    rows = [
        Target(row["target"], row["category"], tuple(row.get("forms") or ()), *map(row.get, facts))
        for row in frame.iter_rows(named=True)
    ]
    own = tuple(target for target in rows if target != Target(target.word, targets().get(target.word, "")))
    given = {word: word for word in (*targets(), *(target.word for target in own))}
    for target in own:
        for form in target.forms:
            if (other := given.setdefault(form, target.word)) != target.word:
                raise MitigateError(
                    f"probe.targets: the form {form!r} is given to {other!r} and to {target.word!r}; leave it with one "
                    "of them"
                )
    return TargetList(own)


# Targets with another meaning


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
    rows = [row for row in rows_of("ambiguous.csv") if (row["rule"] == rule if rule else row["other"])]
    return {row["target"]: row["other"] for row in rows}


@cache
def _phrases() -> str:
    phrases = (phrase for row in rows_of("ambiguous.csv") for phrase in row["phrases"].split(";") if phrase)
    forms = sorted({form for phrase in phrases for form in with_plurals(phrase)}, key=len, reverse=True)
    return rf"(?i)\b(?:{'|'.join(form.replace(' ', '[ -]?') for form in forms)})\b"


def without_other_senses(texts: pl.Series) -> pl.Series:
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
    return texts.clone().scatter(at, texts.gather(at).to_frame().select(plain).to_series())


def in_sense(target: pl.Expr, sense: pl.Expr) -> pl.Expr:
    """The target, or null where the sense, the end of a URI such as "n/wn/animal", is of something else."""
    kind = target.replace_strict(kinds(), default="", return_dtype=pl.String)
    domain = sense.str.extract(r"^n/wn/(\w+)")
    fits = [(kind != name) | domain.is_in(list(domains)) for name, domains in SENSES.items()]
    is_other = sense.str.split("/").list.first().is_in(NO_NOUN) | ~(domain.is_null() | pl.all_horizontal(fits))
    return pl.when(is_other.fill_null(False)).then(None).otherwise(target)


def ambiguity_notice(statements: pl.DataFrame) -> list[str]:
    """A notice of the percentage of statements whose target is ambiguous, with these targets, the most frequent first.
    statements: columns target and statements, their number."""
    meanings = pl.DataFrame(list(ambiguous().items()), ["target", "other"], orient="row")
    counts = statements.select("target", "statements").join(meanings, on="target").filter(pl.col("statements") > 0)
    if counts.is_empty():
        return []
    percentage = 100 * int(counts["statements"].sum()) / int(statements["statements"].sum())
    ordered = counts.sort("statements", "target", descending=[True, False]).iter_rows()
    words = named([f"{target} {count:,} ({other})" for target, count, other in ordered])
    return [
        f"{percentage:.1f} % of statements are about a word that can mean something else: {words}. "
        "Read some of them, or leave the words out with recipe.targets=FILE.csv."
    ]
