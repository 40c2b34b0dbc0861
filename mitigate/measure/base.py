"""Measures: pure functions from a table to a figure, each declared where it stands, and the figures that they give.

    @measure("shouting", "statements in capitals", of="statements", unit="%", better="down", source="this project")
    def shouting(statements: pl.DataFrame) -> float:
        \"""The percentage of statements that are all in capitals; 0 if none is.\"""
        return 100 * (statements["statement"].str.to_uppercase() == statements["statement"]).mean()

`of` names the table that a recipe gives the function (TABLES). The function returns a number, an `Estimate` with its
interval, or a table (target, share), whose mean over targets is the figure. The docstring is the meaning that pages and
docs/measures.md show: the formula, and what 0 means. A user's own module adds measures by `measures=[module.function]`.

A figure is a measure of a scorer's labels under a template, over a group of rows. Its key in metrics.json:
[variant/][neutral_template/]name[/group]."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Literal, NamedTuple

from mitigate.errors import MitigateError, did_you_mean, one_of

Better = Literal["up", "down", "none"]


class Table(NamedTuple):
    """A table that a recipe gives to measures: its columns, and what its measures have by default."""

    columns: str
    key: str = "{name}"  # in metrics.json
    groups: bool = False  # whether figures are of each group of rows too
    family: str = ""  # the section of pages
    unit: str = "%"
    decimals: int = 2


QUALITY = "quality/{name}/{group}"
TABLES = {
    "targets": Table(
        "target, category, statements, prejudice, favouritism, neutral: percentages by one scorer and template",
        *("{scorer}/{name}", True, "harm"),
    ),
    "counts": Table("the same, for figures that no label affects", "{name}", True, "count", "count", 0),
    "numbers": Table("numbers by their names, which recipes count", family="count", unit="count", decimals=0),
    "test triples": Table("head, relation, tail, nll, tokens, nll_unigram ...", QUALITY, True, family="quality"),
    "statements": Table(
        "probed: target, category, relation, tail, statement, labels, judged_valid ...", QUALITY, True, "probe"
    ),
    "rated statements": Table("those whose relation people rated", QUALITY, True, "probe"),
    "heads": Table(
        "prompts of swap lift: system, group, head, relation, counts, accepted, elsewhere",
        *(QUALITY, True, "quality", "points"),
    ),
    "tails": Table("the same, of all of them together", family="probe"),
    "training triples": Table("of each target: target, category, triples, kept", "{name}", True, "filter", "%", 1),
    "answers": Table(
        "target, category, prompts, refused: the percentage of prompts", "{name}", True, "stories", decimals=1
    ),
    "whole stories": Table(
        "those with a sentence: percentages of their sentences by one scorer", "{scorer}/{name}", family="stories"
    ),
    "trainings": Table("of embeddings, a row each: mrr, hits_10, parity ...", "kge/{name}", family="kge", decimals=1),
    "rankings": Table("of professions: model, profession, change", "kge/{name}", family="kge"),
}
"""The tables that measures are of."""

TEMPLATE_PREFIX = {"": "", "paper": "", "neutral": "neutral_template/"}
"""The beginnings of keys by the template of the labelled statements."""
VARIANTS = REGULARISED, AT_RANDOM, PROJECTED, PERTURBED = (
    *("regularised", "regularised_at_random", "projected", "perturbed"),
)
"""Figures of embeddings after a mitigation, or its control."""
PAPER_SCORERS = ("sentiment", "regard")
"""The scorers whose neutral means and variances the paper names: NSM and NSV, NRM and NRV."""
ENDS = ("", "_low", "_high")
"""The ends of the keys of a figure and of the bounds of its 95 % interval."""
SCORER, GROUP = "{scorer}", "{group}"
MODULES = ("harms", "quality", "stories", "kge")  # of this package, with measures, in the order of pages


class Estimate(NamedTuple):
    """A figure whose interval is computed when it is asked for. n: the units that it is a mean over."""

    value: float | None
    interval: Callable[..., tuple[float | None, float | None]] | None = None  # of a Bootstrap and clusters
    n: int | None = None


@dataclass(frozen=True)
class Measure:
    """A declared measure. `{scorer}` in key, title and meaning stands for any scorer until with_scorer fills it in."""

    name: str
    title: str  # in words: "neutral by {scorer}"
    function: Callable[..., Any]
    of: str  # of TABLES
    meaning: str = ""
    key: str = ""  # in metrics.json; with {group} where the group is always written
    unit: str = ""
    better: Better = "none"
    decimals: int = 2
    source: str = ""  # paper and equation or table
    family: str = ""  # the section of pages
    needs: str = ""  # the column without which the table has no such figure
    groups: bool = False  # whether it is measured for each group of rows too
    paper: Mapping[str, str] | None = None  # the paper's names by scorer: {"sentiment": "NSM"}
    headline: str = ""  # harm, disparity, quality, cost or size: W&B and charts show it first
    headline_group: str = ""  # the group that the headline is of
    scorer: str = ""

    @property
    def arrow(self) -> str:
        """The arrow to the better direction."""
        return {"up": "↑", "down": "↓", "none": ""}[self.better]

    @property
    def long_title(self) -> str:
        """The title with the paper's name in brackets: "neutral by regard (NRM)"."""
        name = (self.paper or {}).get(self.scorer)
        return f"{self.title} ({name})" if name else self.title

    @property
    def named(self) -> str:
        """The long title with the arrow: "neutral by regard (NRM) ↑"."""
        return f"{self.long_title} {self.arrow}".rstrip()

    def with_scorer(self, scorer: str) -> "Measure":
        title, meaning = (text.replace(SCORER, scorer or "the scorer") for text in (self.title, self.meaning))
        return replace(self, scorer=scorer, title=title if scorer else self.title, meaning=meaning)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression for its keys, without variant and template."""
        text = re.escape(self.key)
        for name, regex in ((SCORER, r"(?P<scorer>[^/]+)"), (GROUP, "(?P<group>.+)")):
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
        meaning = " ".join((function.__doc__ or "").split())
        _MEASURES[name] = Measure(name, title, function, of, **{"meaning": meaning, **given})
        find.cache_clear()
        return function

    return declare


def number(name: str, title: str, meaning: str, **declared: Any) -> None:
    """Declare a number that recipes count and give by its name, in the table `numbers`."""
    measure(name, title, "numbers", meaning=meaning, **declared)(lambda numbers: numbers[name])


def measures(*of: str) -> list[Measure]:
    """The declared measures, of these tables or of all."""
    for module in MODULES:
        import_module(f"mitigate.measure.{module}")
    return [one for one in _MEASURES.values() if not of or one.of in of]


def measure_of(name: str, scorer: str = "") -> Measure:
    """The measure of a name, with the scorer filled in; a plain one for a column of a study's own table."""
    measures()
    return _MEASURES[name].with_scorer(scorer) if name in _MEASURES else _plain(name)


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
    by: str = "all"  # all, category, relation, subset or target; row: of a study's own table
    group: str = ""
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
        name = ((found.paper or {}).get(self.scorer) or found.key).replace(SCORER, self.scorer)
        group = f"relation/{self.group}" if self.by == "relation" else self.group
        name = name.replace(GROUP, group or "all") if GROUP in name else "/".join(filter(None, (name, group)))
        return "/".join(filter(None, (self.variant, TEMPLATE_PREFIX[self.template] + name)))

    @property
    def title(self) -> str:
        """The figure in words: "neutral by regard (NRM), origin, neutral template"."""
        words = [self.declared.long_title, self.group]
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
    """The figure of a key of metrics.json, of an earlier version too; None for an unknown key and for a bound."""
    if key.endswith(ENDS[1:]):
        return None
    start, _, rest = key.partition("/")
    variant, rest = (start, rest) if start in VARIANTS else ("", key)
    template = "neutral" if rest.startswith(TEMPLATE_PREFIX["neutral"]) else "paper"
    stem, slash, last = rest.removeprefix(TEMPLATE_PREFIX[template]).partition("/")
    stem = paper_names().get(stem, stem)
    found = []
    for one in measures():
        match = one.pattern.fullmatch(stem + slash + last)
        given = {name: value or "" for name, value in match.groupdict().items()} if match else {}
        if match is None or (scorer := given.get("scorer", "")) in taken():
            continue  # targets/own counts targets of the user's category
        group = given.get("group", "")
        group = group.removeprefix("all") if GROUP in one.key else group
        by = "relation" if group.startswith("relation/") else "subset" if GROUP in one.key else "category"
        at = template if one.of == "targets" else ""
        figure = Figure(one.name, scorer, at, by if group else "all", group.removeprefix("relation/"), variant)
        found += [figure] if figure.key == key else []
    return min(found, key=lambda one: len(one.group), default=None)


def paper_names() -> dict[str, str]:
    """The paper's names of figures, and what stands for them elsewhere: "NSM" -> "sentiment/neutral_mean"."""
    return {name: f"{scorer}/{one.name}" for one in measures() for scorer, name in (one.paper or {}).items()}


@cache
def taken() -> frozenset[str]:
    """The beginnings of keys, which a scorer must not be called."""
    firsts = {one.key.split("/")[0] for one in measures()} - {SCORER}
    return frozenset(firsts | {*VARIANTS, TEMPLATE_PREFIX["neutral"].rstrip("/")})


def check_scorer_name(name: str) -> None:
    """Raise MitigateError where keys of a scorer of this name would be those of other figures."""
    if not name or "/" in name or name in taken():
        raise MitigateError(
            f"a scorer cannot be called {name!r}: keys of metrics.json begin with its name, so it must not have a "
            f"'/' or be one of {', '.join(sorted(taken()))}. Give it another name."
        )


def unknown(key: str, setting: str = "metric") -> MitigateError:
    """The error for an unknown key. setting: the setting that names it."""
    known = [prefix + name for name in paper_names() for prefix in ("", TEMPLATE_PREFIX["neutral"])]
    known += [one.key.replace(GROUP, "all") for one in measures()]
    meant = did_you_mean(key, known) or "."
    return MitigateError(f"unknown {setting} {key!r}{meant} docs/measures.md has all keys, such as NSM and {known[-1]}")
