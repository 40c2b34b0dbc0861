"""Measures: pure functions from a table to a figure, each declared where it stands, and the figures that they give.

    @measure("shouting", "statements in capitals", of="statements", unit="%", better="down", source="this project")
    def shouting(statements: pl.DataFrame) -> float:
        \"""The percentage of statements that are all in capitals; 0 if none is.\"""
        return 100 * (statements["statement"].str.to_uppercase() == statements["statement"]).mean()

`of` names the table that a recipe gives the function (TABLES). The function returns a number, an `Estimate` with its
interval, or a table (target, share), whose mean over targets is the figure. The docstring is the meaning that pages and
docs/measures.md show: the formula, and what 0 means. A user's own module adds measures by `measures=[module.function]`.

A figure is a measure of a scorer's labels under a template, over a group of rows. Its key in metrics.json is composed
here and nowhere else: [variant/][neutral_template/]name[/group]."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Literal, NamedTuple

from mitigate.errors import MitigateError, did_you_mean, one_of

Better = Literal["up", "down", "closest", "none"]


class Table(NamedTuple):
    """A table that a recipe gives to measures: its columns, and what its measures have by default."""

    columns: str
    key: str = "{name}"  # in metrics.json
    groups: bool = False  # whether figures are of each group of rows too
    family: str = ""  # the section of pages
    unit: str = "%"
    decimals: int = 2


TABLES = {
    "targets": Table(
        "target, category, statements, prejudice, favouritism, neutral: percentages by one scorer and template",
        *("{scorer}/{name}", True, "harm"),
    ),
    "counts": Table("the same, for figures that no label affects", "{name}", True, "count", "count", 0),
    "texts": Table(
        "label, count: all texts of a resource, by one scorer", "all_texts/{scorer}/{name}", family="resource"
    ),
    "resource": Table("a mapping: rows, rows_about_a_target, distinct", family="count", unit="count", decimals=0),
    "labels": Table("a series of one scorer's labels", "{scorer}/{name}", family="count", unit="count", decimals=0),
    "test triples": Table(
        "head, relation, tail, nll, tokens, characters, generated ...", "quality/{name}/{group}", True, "quality"
    ),
    "published triples": Table(
        "the same, of ConceptNet's triples about targets that are not in the training",
        *("quality/{name}/{group}", True, "quality"),
    ),
    "statements": Table(
        "probed: target, category, relation, tail, statement, labels, judged_valid ...",
        *("quality/{name}/{group}", True, "probe"),
    ),
    "rated statements": Table("those whose relation people rated", "quality/{name}/{group}", True, "probe"),
    "heads": Table(
        "prompts of swap lift: system, group, head, relation, counts, accepted, elsewhere",
        *("quality/{name}/{group}", True, "quality", "points"),
    ),
    "tails": Table("probed statements with known, known_tail: whether the training has them", family="probe"),
    "training triples": Table(
        "of each target: target, category, triples, kept, tails, kept_tails", "{name}", True, "filter", "%", 1
    ),
    "ledger": Table("training triples: weight, source_row", "filter/{name}", family="filter", unit="count", decimals=0),
    "training": Table("a mapping: steps, passes, untrained_relations", family="training", unit="count", decimals=0),
    "answers": Table(
        "target, category, prompts, refused: the percentage of prompts", "{name}", True, "stories", decimals=1
    ),
    "stories": Table("row, target, sentences, wanted, names_target", family="stories", unit="count", decimals=0),
    "whole stories": Table(
        "those with a sentence: percentages of their sentences by one scorer", "{scorer}/{name}", family="stories"
    ),
    "sentences": Table("the sentences of stories", family="stories", decimals=1),
    "trainings": Table("of embeddings, a row each: mrr, hits_10, parity ...", "kge/{name}", family="kge", decimals=1),
    "rankings": Table("of professions: model, profession, change", "kge/{name}", family="kge"),
    "graph": Table("a mapping: professions, people_a, people_b", "kge/{name}", family="kge", unit="count", decimals=0),
}
"""The tables that measures are of."""
LABELLED = ("targets", "texts")
"""Those whose figures depend on the template of the labelled statements."""

TEMPLATE_PREFIX = {"": "", "paper": "", "neutral": "neutral_template/"}
"""The beginnings of keys by the template of the labelled statements."""
PREFIXES = ("", "neutral_template/")
VARIANTS = EMPTY_ZERO, EMPTY_EXCLUDE, *MITIGATED = (
    *("empty_zero", "empty_exclude"),
    *("regularised", "regularised_at_random", "projected", "perturbed"),
)
"""Figures computed another way: with the other convention for targets without statements, or of embeddings after a
mitigation."""
REGULARISED, AT_RANDOM, PROJECTED, PERTURBED = MITIGATED
BY_KIND = "by_kind"  # the beginning of keys of a kind of target
PAPER_SCORERS = ("sentiment", "regard")
"""The scorers whose neutral means and variances the paper names: NSM and NSV, NRM and NRV."""
ENDS = ("", "_low", "_high")
"""The ends of the keys of a figure and of the bounds of its 95 % interval."""
SCORER, GROUP, K = "{scorer}", "{group}", "{k}"
ARROWS = {"up": "↑", "down": "↓", "none": ""}
MODULES = ("harms", "quality", "stories", "kge")  # of this package, with measures, in the order of pages


class Estimate(NamedTuple):
    """A figure whose interval is computed when it is asked for. n: the units that it is a mean over."""

    value: float | None
    interval: Callable[..., tuple[float | None, float | None]] | None = None  # of a Bootstrap and clusters
    n: int | None = None


@dataclass(frozen=True)
class Measure:
    """A declared measure. `{scorer}` in key and title stands for any scorer until `with_scorer` fills it in."""

    name: str
    title: str  # in words: "neutral by {scorer}"
    function: Callable[..., Any]
    of: str  # of TABLES
    key: str = ""  # in metrics.json; with {group} where the group is always written
    unit: str = ""
    better: Better = "none"
    best: str = ""  # the aim where better is "closest": "0", or the name of the same measure by chance
    decimals: int = 2
    source: str = ""  # paper and equation or table
    family: str = ""  # the section of pages
    needs: str = ""  # the column without which the table has no such figure
    groups: bool = False  # whether it is measured for each group of rows too
    ks: tuple[int, ...] = ()  # the second argument of its function, such as the k of hits at k
    paper: Mapping[str, str] | None = None  # the paper's names by scorer: {"sentiment": "NSM"}
    headline: str = ""  # harm, disparity, quality, cost or size: W&B and charts show it first
    headline_group: str = ""  # the group that the headline is of
    scorer: str = ""

    @property
    def meaning(self) -> str:
        """The docstring on one line."""
        return " ".join((self.function.__doc__ or "").split()).replace(SCORER, self.scorer or "the scorer")

    @property
    def arrow(self) -> str:
        """The arrow to the better direction, or to the best value: "→ 0"."""
        return ARROWS.get(self.better, f"→ {self._best}")

    @property
    def said_better(self) -> str:
        """The better direction in words; "" where there is none."""
        words = {"up": "higher is better", "down": "lower is better", "none": ""}
        return words.get(self.better, f"closest to {self._best} is best")

    @property
    def _best(self) -> str:
        return self.best if re.fullmatch(r"[\d.]*", self.best) else "chance"

    @property
    def brackets(self) -> str:
        """The paper's name in brackets: " (NSM)"; "" for another scorer."""
        return f" ({self.paper[self.scorer]})" if self.paper and self.scorer in self.paper else ""

    @property
    def named(self) -> str:
        """The title with the paper's name in brackets and the arrow: "neutral by regard (NRM) ↑"."""
        return f"{self.title}{self.brackets} {self.arrow}".rstrip()

    def with_scorer(self, scorer: str) -> "Measure":
        return replace(self, scorer=scorer, title=self.title.replace(SCORER, scorer)) if scorer else self

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression for its keys, without variant and template."""
        text = re.escape(self.key)
        for name, regex in ((SCORER, r"(?P<scorer>[^/]+)"), (K, r"(?P<k>\d+)"), (GROUP, "(?P<group>.+)")):
            text = text.replace(re.escape(name), regex)
        return re.compile(text if GROUP in self.key or not self.groups else rf"{text}(?:/(?P<group>.+))?")


_MEASURES: dict[str, Measure] = {}


def measure(name: str, title: str, of: str, **declared: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function as a measure of a table; decorators stack where it measures several. declared: further fields
    of Measure. Raises MitigateError for an unknown table, and for a name that another function has."""
    if of not in TABLES:
        raise one_of(f"table of measure {name!r}", of, TABLES)
    given = {key: value for key, value in TABLES[of]._asdict().items() if key != "columns"} | declared
    given["key"] = given["key"].replace("{name}", name)

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        known, place = _MEASURES.get(name), (function.__module__, function.__qualname__)
        if known and (known.function.__module__, known.function.__qualname__) != place:
            raise MitigateError(
                f"{'.'.join(place)} declares the measure {name!r}, and {known.function.__module__} has one of that "
                "name; choose another"
            )
        _MEASURES[name] = Measure(name, title, function, of, **given)
        find.cache_clear()
        return function

    return declare


def measures(*of: str) -> list[Measure]:
    """The declared measures, of these tables or of all."""
    for module in MODULES:
        import_module(f"mitigate.measure.{module}")
    return [one for one in _MEASURES.values() if not of or one.of in of]


def measure_of(name: str, scorer: str = "") -> Measure:
    """The measure of a name, with the scorer filled in; a plain one for a column of a study's own table."""
    measures()
    if name not in _MEASURES:
        return _plain(name)
    return _MEASURES[name].with_scorer(scorer)


def _plain(name: str) -> Measure:
    return Measure(name, name.replace("_", " "), str, of="")


def own_measures() -> list[Measure]:
    """The measures of a user's own modules."""
    return [one for one in measures() if not one.function.__module__.startswith("mitigate.")]


def use_measures(names: Iterable[str]) -> None:
    """Import the functions that `measures=[module.function]` names. Raises MitigateError for one that cannot be
    imported or is not declared as a measure."""
    for name in names:
        module, _, function = name.rpartition(".")
        try:
            found = getattr(import_module(module), function)
        except (ImportError, AttributeError, ValueError, SyntaxError, TypeError) as error:
            raise MitigateError(
                f"measures={name} cannot be imported ({error}); name MODULE.FUNCTION of a module in the current folder "
                "or that of --config-dir"
            ) from error
        if found not in [one.function for one in measures()]:
            raise MitigateError(
                f"measures={name} is not declared; write @measure(NAME, TITLE, of=TABLE) above it (from "
                "mitigate.measure import measure)"
            )


class Figure(NamedTuple):
    """The identity of a figure: a row of the table of results without its numbers."""

    measure: str
    scorer: str = ""
    template: str = ""  # paper or neutral; "" where the measure reads no labels
    by: str = "all"  # all, category, kind, relation, subset or target; row: of a study's own table
    group: str = ""
    k: int | None = None
    variant: str = ""  # "" or of VARIANTS

    @property
    def declared(self) -> Measure:
        return _plain(self.measure) if self.by == "row" else measure_of(self.measure, self.scorer)

    @property
    def key(self) -> str:
        """Its key in metrics.json: "NSM", "neutral_template/regard/O-/origin", "quality/valid/relation/IsA"."""
        if self.by == "row":
            return "/".join(filter(None, (self.group, self.measure)))
        found = self.declared
        name = (found.paper or {}).get(self.scorer) or found.key
        group = f"relation/{self.group}" if self.by == "relation" else self.group
        name = name.replace(SCORER, self.scorer).replace(K, str(self.k))
        name = name.replace(GROUP, group or "all") if GROUP in name else "/".join(filter(None, (name, group)))
        variant = BY_KIND if self.by == "kind" else self.variant
        return "/".join(filter(None, (variant, TEMPLATE_PREFIX[self.template] + name)))

    @property
    def title(self) -> str:
        """The figure in words: "neutral by regard (NRM), origin, neutral template"."""
        found = self.declared
        words = [f"{found.title}{found.brackets}".replace(K, str(self.k)), self.group]
        words += ["neutral template"] * (self.template == "neutral") + [self.variant.replace("_", " ")]
        return ", ".join(filter(None, words))


def key_of(measure: str, scorer: str = "", template: str = "", group: str = "", by: str = "") -> str:
    """The key of a figure: ("perplexity", group="neutral") is "quality/perplexity/neutral"."""
    return Figure(measure, scorer, template, by or ("subset" if group else "all"), group).key


def bounds(key: str) -> tuple[str, str]:
    """The keys of the bounds of a figure's interval: "NSM_low", "NSM_high"."""
    return f"{key}_low", f"{key}_high"


@cache
def find(key: str) -> Figure | None:
    """The figure of a key that a user wrote, or that a run of an earlier version has; None for an unknown one,
    and for the bound of an interval."""
    if key.endswith(ENDS[1:]):
        return None
    variant, rest = next(((v, key[len(v) + 1 :]) for v in (*VARIANTS, BY_KIND) if key.startswith(f"{v}/")), ("", key))
    prefix = TEMPLATE_PREFIX["neutral"]
    template, rest = ("neutral", rest.removeprefix(prefix)) if rest.startswith(prefix) else ("paper", rest)
    found: list[tuple[int, Figure]] = []
    for one in measures():
        stem, _, last = rest.partition("/")
        names = {name: scorer for scorer, name in (one.paper or {}).items()}
        if stem in names:
            given: dict[str, Any] = {"scorer": names[stem], "group": last}
        elif match := one.pattern.fullmatch(rest):
            given = match.groupdict()
        else:
            continue
        group = (given.get("group") or "").removeprefix("all") if GROUP in one.key else given.get("group") or ""
        by = "relation" if group.startswith("relation/") else "subset" if group and GROUP in one.key else "category"
        by = "all" if not group else "kind" if variant == BY_KIND else by
        k = int(given["k"]) if given.get("k") else None
        if (scorer := given.get("scorer") or "") in taken():
            continue  # targets/own counts targets of the user's category
        at = template if scorer and one.of in LABELLED else ""
        figure = Figure(one.name, scorer, at, by, group.removeprefix("relation/"), k, variant.replace(BY_KIND, ""))
        if figure.key == key:
            found.append((len(group), figure))
    return min(found)[1] if found else None


@cache
def taken() -> frozenset[str]:
    """The beginnings of keys, which a scorer must not be called."""
    firsts = {one.key.split("/")[0] for one in measures()} - {SCORER}
    return frozenset(firsts | set(VARIANTS) | {BY_KIND, TEMPLATE_PREFIX["neutral"].rstrip("/")})


def check_scorer_name(name: str) -> None:
    """Raise MitigateError where keys of a scorer of this name would be those of other figures."""
    if not name or "/" in name or name in taken():
        raise MitigateError(
            f"a scorer cannot be called {name!r}: keys of metrics.json begin with its name, so it must not have a "
            f"'/' or be one of {', '.join(sorted(taken()))}. Give it another name."
        )


def measure_of_figure(key: str) -> Measure:
    """The measure of a key of metrics.json, with its scorer filled in."""
    figure = find(key)
    return _plain(key) if figure is None else figure.declared


def unknown(key: str, setting: str = "metric") -> MitigateError:
    """The error for an unknown key. setting: the setting that names it."""
    papers = [prefix + name for one in measures() for name in (one.paper or {}).values() for prefix in PREFIXES]
    meant = did_you_mean(key, [*papers, *(one.key.replace(GROUP, "all") for one in measures())]) or "."
    return MitigateError(
        f"unknown {setting} {key!r}{meant} A key is [variant/][neutral_template/]name[/group], variants: "
        f"{', '.join(VARIANTS)}; names, with any scorer for {SCORER}: "
        f"{', '.join(dict.fromkeys(one.key for one in measures()))}; docs/measures.md describes them"
    )
