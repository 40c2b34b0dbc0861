"""The demographic words of a run: the paper's 329 targets and the run's own, each with its category and further forms.
It is made once at the start and used by masking, match, policies, clusters and stories, so that a text has the same
label everywhere."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.words.targets import TARGETS, as_targets, choose_targets, clusters, targets
from mitigate.words.word_forms import (
    ARTICLE,
    anywhere,
    extract_all,
    inflections,
    pattern,
    plain,
    spellings,
    unhyphenated,
    with_plurals,
)


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

    @property
    def pattern(self) -> str:
        """A regular expression for any of the forms as whole words."""
        return pattern(self.forms)

    @cached_property
    def spelt(self) -> dict[str, str]:
        """Form -> own target. A form that is itself a target belongs to it; given forms come before those by rule."""
        by_rule = {form: target.word for target in reversed(self.own) for form in target.written}
        given = {form: target.word for target in self.own for word in target.forms for form in spellings(word)}
        words = {form: target.word for target in self.own if not target.is_listed for form in spellings(target.word)}
        return {form: word for form, word in (by_rule | given | words).items() if form not in targets()}

    @cached_property
    def substrings(self) -> dict[str, re.Pattern[str]]:
        """Own target -> a regular expression for its forms, also within words."""
        forms: dict[str, list[str]] = {target.word: [target.word] * target.is_listed for target in self.own}
        for form in sorted(self.spelt, key=lambda form: (-len(form), form)):
            forms[self.spelt[form]].append(form)
        return {word: re.compile(anywhere(written)) for word, written in forms.items()}

    @cached_property
    def groups(self) -> dict[str, str]:
        """Own target -> the group within which it is swapped: the given one, else its category."""
        return {t.word: t.group or t.category for t in self.own if t.group or not t.is_listed}

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Own target -> its kind, where one is given or it is a profession."""
        found = {t.word: t.kind or ("professions" if t.category == "profession" else None) for t in self.own}
        return {word: kind for word, kind in found.items() if kind}

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Target -> the word it is an inflection of, as given or by rule: trans women -> trans woman."""
        found, seen = dict(clusters()), {word: word for word in targets()}
        for target in self.own:
            known = [seen[form] for form in sorted(target.written) if form in seen and seen[form] != target.word]
            if target.cluster or (known and not target.is_listed):
                found[target.word] = target.cluster or found.get(known[0], known[0])
            seen |= {form: target.word for form in spellings(target.word) if form not in seen}
        return found

    @cached_property
    def content(self) -> bytes:
        """The content that identifies it; empty where a run has no targets of its own."""
        return json.dumps([asdict(target) for target in self.own]).encode() if self.own else b""

    def table(self, chosen: pl.DataFrame) -> pl.DataFrame:
        """Chosen targets with all their facts, as in a CSV file that choose_targets reads."""
        own = {target.word: target for target in self.own}
        rows = [own.get(word) or Target(word, category) for word, category in chosen["target", "category"].iter_rows()]
        return pl.DataFrame(
            [(t.word, t.category, "; ".join(t.forms) or None, t.group, t.cluster, t.kind) for t in rows],
            schema=dict.fromkeys(TARGETS, pl.String),
            orient="row",
        )

    def with_words(self, words: Sequence[str]) -> "TargetList":
        """The list with further words as targets without other facts."""
        mine = {target.word for target in self.own}
        own = list_of(as_targets([word for word in words if word not in mine])).own
        return TargetList((*self.own, *own))

    @property
    def own_table(self) -> pl.DataFrame:
        """The run's own targets with all their facts, as `table`."""
        return self.table(as_targets({target.word: target.category for target in self.own}))

    def target_of(self, text: pl.Expr) -> pl.Expr:
        """The target that a text names, in lower case; any other text in lower case."""
        lower = text.str.to_lowercase()
        if not self.spelt:
            return lower
        bare = lower.str.replace_all(r"[ _-]+", " ").str.strip_chars()
        own = [
            form.replace_strict(self.spelt, default=None, return_dtype=pl.String)
            for form in (bare, bare.str.replace(ARTICLE, ""))
        ]
        return pl.coalesce(*own, lower)

    def named(self, text: str) -> str:
        """The target that a single text names, with underscores as blanks; see target_of."""
        bare = unhyphenated(text)
        return self.spelt.get(bare) or self.spelt.get(re.sub(ARTICLE, "", bare)) or plain(text)

    def found_in(self, text: pl.Expr, among: Sequence[str]) -> pl.Expr:
        """The list of these targets that a text names: the paper's as whole words, own ones in all their forms; of two
        that overlap the one that begins first, and of those that begin together the longest."""
        found = extract_all(text.str.to_lowercase(), self.pattern_among(among))
        return found.list.eval(self.target_of(pl.element())) if self.spelt else found

    @cached_property
    def pattern_in_texts(self) -> str:
        """A regular expression for all targets in texts."""
        return self.pattern_among(list(self.categories))

    def pattern_among(self, among: Sequence[str]) -> str:
        """A regular expression for these targets in texts."""
        words = set(among)
        own = frozenset(form for form, word in self.spelt.items() if word in words)
        return pattern(own, frozenset(word for word in among if word in targets()))


PAPER = TargetList()


def list_of(chosen: pl.DataFrame | str | Path | Sequence[str]) -> TargetList:
    """The list of a run: the paper's targets and the chosen ones.

    chosen: the result of choose_targets, or its argument. Raises MitigateError for a form that is given to two
    targets."""
    frame = chosen if isinstance(chosen, pl.DataFrame) else choose_targets(chosen)
    rows = frame.select(column for column in TARGETS if column in frame.columns).rows(named=True)
    found = [
        Target(
            row["target"], row["category"], tuple(row.get("forms") or ()), *map(row.get, ("group", "cluster", "kind"))
        )
        for row in rows
    ]
    own = tuple(target for target in found if target != Target(target.word, targets().get(target.word, "")))
    if faults := list(_shared(own)):
        raise MitigateError(f"probe.targets: {'; '.join(faults)}")
    return TargetList(own)


def _shared(own: Sequence[Target]) -> Iterator[str]:
    """Yield a fault for each form of several targets."""
    given: dict[str, str] = {}
    for target in own:
        for form in target.forms:
            other = given.setdefault(form, target.word)
            if other != target.word:
                yield f"the form {form!r} is given to {other!r} and to {target.word!r}; leave it with one of them"
            if form != target.word and form in {*targets(), *(mine.word for mine in own)}:
                yield f"the form {form!r} of {target.word!r} is itself a target; leave it out of the forms"
