"""The metrics of metrics.json: names, units, better directions, and the composition and parsing of keys, all from
data/metrics.csv. Only this module composes or parses a key.

A key is [variant/][neutral_template/]stem[/part][_low|_high], such as "neutral_template/NSM/origin_low". The stem is a
row of the table; for a scorer without names in the paper, it begins with the scorer: "ngram/O-". The part is a
category, a subset of held-out triples, or a kind of target. Keys of recipes that train or check scorers themselves
(agreement, regard, plausibility) are not metrics of statements and not in the table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from string import Formatter
from typing import Any, Literal, TypeVar, get_args

from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.package_data import rows_of

Value = TypeVar("Value")
Better = Literal["up", "down", "closest", "none"]
Share = Literal["neutral", "prejudice", "favouritism", "polarised", "statements"]
Statistic = Literal[
    "mean",
    "variance",
    "pooled",
    "corrected",
    "probable",
    "largest",
    "p90",
    "all texts",
    "rank correlation",
    "stories",
    "by chance",
    "p",
    "texts",
]

TEMPLATE_PREFIX = {"paper": "", "neutral": "neutral_template/"}
"""The beginnings of keys: NSM under the paper template is "NSM", under the neutral one "neutral_template/NSM"."""

MITIGATED = REGULARISED, PROJECTED, PERTURBED = "regularised", "projected", "perturbed"
"""Variants of the metrics of embeddings, after a mitigation."""

VARIANTS = FREQUENT_RELATIONS, EMPTY_ZERO, EMPTY_EXCLUDE, BY_KIND, *_ = (
    "frequent_relations",
    "empty_zero",
    "empty_exclude",
    "by_kind",
    *MITIGATED,
)
"""Variants of the metrics: without relations rare in training; with the other convention for targets without
statements (zero, exclude); for each kind of target instead of each category; of embeddings after a mitigation."""

ENDS = ("", "_low", "_high")
"""The ends of the keys of a figure and of the bounds of its 95 % interval."""

Rows = Literal[
    "test triples", "statements", "rated statements", "heads", "published triples", "training triples by target"
]
"""The rows that measures are of: one table each."""
TEST_TRIPLES, PROBED, RATED, HEADS, PUBLISHED, TRAINING_BY_TARGET = ROWS_OF_MEASURES = get_args(Rows)

CATEGORY = "{category}"
SCORER = "{scorer}"
"""The placeholder of any scorer in the table."""

LONGEST_STEM = 3  # words between slashes

REPRESENTATION = "D_R"
TARGETS, EMPTY_TARGETS, STATEMENTS = "targets", "empty_targets", "statements"
ROWS, ROWS_ABOUT_A_TARGET = "rows", "rows_about_a_target"
DISTINCT_TAILS, SHARED_TAILS, EMPTY_TAILS = "distinct_tails", "shared_tails", "empty_tails"
TRAINING_STEPS, TRAINING_PASSES, UNTRAINED_RELATIONS = "training/steps", "training/passes", "untrained_relations"
NOVELTY = NEW_TRIPLES, NEW_TAILS, NEW_DISTINCT_TAILS = "novelty/T_sro", "novelty/T_o", "novelty/U_o"
FILTER = KEPT, DROPPED, ADDED, WEIGHT = "filter/kept", "filter/dropped", "filter/added", "filter/weight"
STORIES, UNTOLD_STORIES, SHORT_STORIES = "stories", "stories/untold", "stories/short"
SENTENCES_PER_STORY, NAMING_TARGET = "sentences_per_story", "naming_target"
DISTINCT_SENTENCES = "distinct_sentences"
HELD_OUT = "held_out"

PAPER_SCORERS = ("sentiment", "regard")
"""The scorers whose neutral means and variances the paper names: NSM and NSV, NRM and NRV."""

PLAUSIBLE = "valid"  # the same for generated statements about targets
PEOPLE_VALID = "people_valid"  # the part of these that people would call valid
SWAP_LIFT = "swap_lift"
BASELINE_LIFTS = ("echo", "constants", "random", "oracle")
"""Generators with which swap lift is compared; `lift_of` names their figures."""
ABOUT_PERPLEXITY, ABOUT_BITS, ABOUT_TRIPLES = "about_perplexity", "about_bits_per_char", "about_triples"
EMBEDDINGS = "kge"  # the family of the figures of knowledge-graph embeddings
KGE_MRR, KGE_CORRELATION = "kge/mrr", "kge/rank_correlation"
KGE_AGREEMENT, KGE_SHARED, KGE_MODELS = "kge/seeds/agreement", "kge/seeds/shared_ends", "kge/models/agreement"
KGE_PAIR_CORRELATION, KGE_PAIR_AGREEMENT = "kge/pairs/rank_correlation", "kge/pairs/agreement"
KGE_PROFESSIONS, KGE_TRAININGS = "kge/professions", "kge/trainings"
KGE_PEOPLE_A, KGE_PEOPLE_B = "kge/people_a", "kge/people_b"
COVERAGE, TAIL_COVERAGE, LEAST_COVERAGE = "coverage/triples", "coverage/tails", "coverage/least"


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table. `{scorer}` in key, name and meaning stands for any scorer, until `metric` fills it in."""

    key: str  # the stem: "NSM", "quality/perplexity", "{scorer}/O-"
    symbol: str  # short, as in the paper: "NSM", "O−"
    name: str
    share: str  # of labels: neutral, prejudice, favouritism, polarised; "" where it is not about labels
    statistic: str  # of that share: mean or variance over targets, pooled over statements ...
    scorer: str  # of the metric; "" for none, or for any
    templates: bool  # whether it is measured under both templates
    part: str  # after the stem: "" none, "category", "group" (always there)
    rows: str  # that its function reads, of Rows; "" for none
    function: str  # of measure.quality, such as "perplexity"; "" where no function of rows alone gives the figure
    needs: str  # the column without which the rows have no such figure
    has_interval: bool
    unit: str
    better: Better
    best: str  # the aim where better is "closest": a number, or the key of the same figure by chance
    decimals: int  # as shown
    family: str
    source: str  # paper and equation or table
    meaning: str

    def may_have(self, part: str) -> bool:
        """Return whether its keys may have this part, or none."""
        return bool(part) if self.part == "group" else bool(part) <= bool(self.part)

    @property
    def arrow(self) -> str:
        """The arrow to the better direction, or to the best value, "→ 0"; "" where there is none."""
        return {"up": "↑", "down": "↓", "none": "", "closest": f"→ {self._best}"}[self.better]

    @property
    def said_better(self) -> str:
        """The better direction in words: "higher is better", "closest to chance is best"; "" where there is none."""
        words = {"up": "higher is better", "down": "lower is better", "none": ""}
        return words.get(self.better, f"closest to {self._best} is best")

    @property
    def _best(self) -> str:
        return "chance" if "/" in self.best else self.best

    @property
    def title(self) -> str:
        """The paper's name, "NSM", or for another scorer "ngram: neutral mean"."""
        return f"{self.scorer}: {self.symbol}" if self.scorer in self.key.split("/") else self.symbol

    @property
    def named(self) -> str:
        """The name with its arrow: "perplexity ↓"."""
        return f"{self.name} {self.arrow}".rstrip()


@dataclass(frozen=True, slots=True)
class Key:
    """The parts of a key. str(key) is the key itself; parse(text) is its inverse."""

    stem: str
    part: str = ""
    end: str = ""  # of ENDS
    template: str = "paper"
    variant: str = ""  # "" or of VARIANTS

    def __str__(self) -> str:
        variant = f"{self.variant}/" if self.variant else ""
        return f"{variant}{TEMPLATE_PREFIX[self.template]}{with_part(self.stem, self.part)}{self.end}"

    @property
    def metric(self) -> Metric:
        return metric(self.stem)


@cache
def table() -> dict[str, Metric]:
    """The rows of data/metrics.csv by stem, in its order."""
    found = [
        Metric(
            **{name: row[name] for name in row.keys() - {"templates", "interval", "better", "decimals"}},
            better=_directions().get(row["better"], "closest"),
            best="" if row["better"] in _directions() else row["better"],
            templates=row["templates"] == "yes",
            has_interval=row["interval"] == "yes",
            decimals=int(row["decimals"]),
        )
        for row in rows_of("metrics.csv")
    ]
    return {row.key: row for row in found}


@dataclass(frozen=True, slots=True)
class Group:
    """A group of rows that figures are of. `{category}` and `{relation}` stand for any."""

    rows: str  # of Rows
    group: str  # the part of a key: "neutral"
    title: str  # in tables; "" where they do not show it


@cache
def groups(rows: str) -> dict[str, Group]:
    """The groups of these rows by name, from data/groups.csv, in its order."""
    return {row["group"]: Group(**row) for row in rows_of("groups.csv") if row["rows"] == rows}


def titles_of_groups(rows: Iterable[str], categories: Iterable[str]) -> dict[str, str]:
    """The groups of these rows that tables show, and their titles."""
    found: dict[str, str] = {}
    names = list(categories)
    for group in (group for name in rows for group in groups(name).values() if group.title):
        for category in names if CATEGORY in group.group else [""]:
            found.setdefault(group.group.format(category=category), group.title.format(category=category))
    return found


def of_rows(*rows: str) -> list[Metric]:
    """The metrics of these rows."""
    return [row for row in table().values() if row.rows in rows]


@cache
def metric(stem: str) -> Metric:
    """The metric of a stem, "NSM" or "ngram/O-", with the scorer filled in. Raises MitigateError for an unknown one."""
    row = _row_of(stem)
    if row is None:
        raise one_of("metric", stem, table())
    if SCORER not in row.key:
        return row
    scorer = stem.split("/")[row.key.split("/").index(SCORER)]
    words = {name: getattr(row, name).replace(SCORER, scorer) for name in ("name", "meaning")}
    return replace(row, key=stem, scorer=scorer, **words)


def parse(key: str) -> Key:
    """The parts of a key. Raises MitigateError for an unknown key.

    A category must not end in "_low" or "_high", as the bound of an interval does."""
    found = find(key)
    if found is None:
        raise unknown(key)
    return found


def unknown(key: str, setting: str = "metric") -> MitigateError:
    """The error for an unknown key. setting: the setting that names it."""
    known = [prefix + stem for stem in table() if SCORER not in stem for prefix in TEMPLATE_PREFIX.values()]
    parts = [f"{stem}/{part}" for stem in known for part in ("all", "neutral") if stem.startswith("quality/")]
    meant = did_you_mean(key, [*known, *parts]) or "."
    return MitigateError(
        f"unknown {setting} {key!r}{meant} A key is [variant/][neutral_template/]metric[/part][_low|_high], variants: "
        f"{', '.join(VARIANTS)}; metrics, with any scorer for {SCORER}: {', '.join(table())}"
    )


@cache
def find(key: str) -> Key | None:
    """The parts of a key, or None for an unknown one: a metrics.json may be of another recipe."""
    rest, variant, template = key, "", "paper"
    for name in VARIANTS:
        if rest.startswith(f"{name}/"):
            rest, variant = rest.removeprefix(f"{name}/"), name
    if rest.startswith(TEMPLATE_PREFIX["neutral"]):
        rest, template = rest.removeprefix(TEMPLATE_PREFIX["neutral"]), "neutral"
    for end in (*ENDS[1:], ""):
        if not rest.endswith(end):
            continue
        stem, part = _split(rest.removesuffix(end))
        row = _row_of(stem)
        if row is None:
            continue
        is_allowed = (row.has_interval or not end) and (row.templates or template == "paper")
        if row.may_have(part) and is_allowed and not rest.removesuffix(end).endswith("/"):
            return Key(stem, part, end, template, variant)
    return None


def better(key: str) -> Better:
    """The better direction: "up", "down", "closest" or "none". Raises MitigateError for an unknown key."""
    return parse(key).metric.better


def title(key: str) -> str:
    """A key in words: "NSM, origin, neutral template"; with the bound of an interval and the variant, if any."""
    found = parse(key)
    words = [found.metric.title, found.part]
    words += ["neutral template" if found.template == "neutral" else "", found.variant.replace("_", " ")]
    words += [{"": "", "_low": "lower bound", "_high": "upper bound"}[found.end]]
    return ", ".join(filter(None, words))


def identity_key(scorer: str, figure: str, part: str, number: str = "both") -> str:
    """The key of a figure of the identity-term test, in metrics of recipes that check or train scorers:
    "regard/identity/unseen/false_positives", "regard/identity/unseen/plural/false_positives_largest"."""
    return "/".join([scorer, "identity", part, *([] if number == "both" else [number]), figure])


def harm_key(
    scorer: str, statistic: Statistic, share: Share = "neutral", template: str = "paper", part: str = ""
) -> str:
    """The key of a figure of a scorer's labels: ("regard", "mean") is "NRM", ("ngram", "mean") "ngram/neutral_mean",
    ("ngram", "variance", "prejudice", "neutral", "origin") "neutral_template/ngram/D_O-/origin".

    Raises MitigateError for a share without the statistic, and for a scorer with the name of another metric's
    beginning."""
    return TEMPLATE_PREFIX[template] + with_part(_harm_stem(scorer, statistic, share), part)


def quality_key(measure: str, part: str = "all") -> str:
    """The key of a measure of quality, such as PLAUSIBLE or SWAP_LIFT: "quality/perplexity/neutral"."""
    return with_part(quality(measure).key, part)


def kge_key(figure: str) -> str:
    """The key of a figure of knowledge-graph embeddings: "kge/hits_10", "kge/parity"."""
    return f"kge/{figure}"


def lift_of(baseline: str) -> str:
    """The measure of quality that is the swap lift of one of BASELINE_LIFTS: "swap_lift_echo"."""
    return f"{SWAP_LIFT}_{baseline}"


def quality(measure: str) -> Metric:
    """The metric of a measure of quality. Raises MitigateError for an unknown one."""
    measures = [stem.removeprefix("quality/") for stem in table() if stem.startswith("quality/")]
    if measure not in measures:
        raise one_of("measure of quality", measure, measures)
    return table()[f"quality/{measure}"]


def relation_part(relation: str) -> str:
    """The part of a key for a single relation: "relation/IsA" of "quality/valid/relation/IsA"."""
    return f"relation/{relation}"


def relation_of(key: str) -> str | None:
    """The relation of a figure; None where it is about several."""
    kind, _, name = parse(key).part.partition("/")
    return name if kind == "relation" and name else None


def unknown_relations(metrics: Mapping[str, object]) -> list[str]:
    """The probed relations that the plausibility classifier does not cover, because it was not trained on them."""
    prefix = quality_key(PLAUSIBLE, relation_part(""))
    missing = [key for key, value in metrics.items() if key.startswith(prefix) and value is None]
    return [relation for key in missing if not parse(key).end and (relation := relation_of(key))]


def with_part(key: str, part: str) -> str:
    """A key without interval of a part: ("NSM", "origin") is "NSM/origin", ("NSM", "") "NSM"."""
    return f"{key}/{part}" if part else key


def bounds(key: str) -> tuple[str, str]:
    """The keys of the lower and the upper bound of a figure's interval: "NSM_low", "NSM_high"."""
    return f"{key}_low", f"{key}_high"


def prefixed(metrics: Mapping[str, Value], template: str = "paper", variant: str = "") -> dict[str, Value]:
    """The values under the keys of a template and of a variant: {"neutral_template/NSM": ...}."""
    if variant and variant not in VARIANTS:
        raise one_of("variant of metrics", variant, VARIANTS)
    prefix = (f"{variant}/" if variant else "") + TEMPLATE_PREFIX[template]
    return {prefix + key: value for key, value in metrics.items()}


def scorers(keys: Iterable[str]) -> list[str]:
    """The scorers that have a neutral mean over all targets among these keys, the paper's first."""
    found = dict.fromkeys(
        key.metric.scorer
        for key in filter(None, map(find, keys))
        if not (key.variant or key.part or key.end)
        and (key.metric.share, key.metric.statistic) in (("neutral", "mean"), ("neutral", "variance"))
    )
    return [name for name in PAPER_SCORERS if name in found] + [name for name in found if name not in PAPER_SCORERS]


def _directions() -> dict[str, Better]:
    return {direction: direction for direction in get_args(Better)}


@cache
def _harm_stem(scorer: str, statistic: Statistic, share: Share) -> str:
    row = _any_scorer(share, statistic)
    own = next((one for one in _of_labels() if one.scorer == scorer and _kind(one) == _kind(row)), None)
    if own is not None:
        return own.key
    if not scorer or "/" in scorer or scorer in _taken():
        raise MitigateError(
            f"a scorer cannot be called {scorer!r}: keys of metrics.json begin with its name, so it must not have a "
            f"'/' or be one of {', '.join(sorted(_taken()))}. Give it another name."
        )
    return row.key.replace(SCORER, scorer)


def _any_scorer(share: str, statistic: str) -> Metric:
    rows = [row for row in _of_labels() if not row.scorer]
    found = next((row for row in rows if _kind(row) == (share, statistic)), None)
    if found is None:
        raise one_of("metric of labels", f"{share}, {statistic}", (", ".join(_kind(row)) for row in rows))
    return found


@cache
def _of_labels() -> tuple[Metric, ...]:
    return tuple(row for row in table().values() if row.share)


def _kind(row: Metric) -> tuple[str, str]:
    return row.share, row.statistic


@cache
def _taken() -> frozenset[str]:
    """The beginnings of other metrics' keys, which are not allowed as names of scorers."""
    firsts = {stem.split("/")[0] for stem in table()} - {SCORER}
    return frozenset(firsts | set(VARIANTS) | {TEMPLATE_PREFIX["neutral"].rstrip("/")})


@cache
def _row_of(stem: str) -> Metric | None:
    """The table's row of a stem, without its scorer filled in; None for an unknown stem."""
    if SCORER not in stem and stem in table():
        return table()[stem]
    for row in _of_labels():
        scorer = _scorer_in(stem, row.key) if SCORER in row.key else ""
        has_own = any(one.scorer == scorer and _kind(one) == _kind(row) for one in _of_labels())
        if scorer and not has_own and scorer not in _taken():
            return row
    return None


def _scorer_in(stem: str, pattern: str) -> str:
    """The scorer at a pattern's `{scorer}` in a stem; "" where the stem does not match."""
    pairs = list(zip(stem.split("/"), pattern.split("/"), strict=False))
    if stem.count("/") != pattern.count("/") or any(mine != theirs and theirs != SCORER for mine, theirs in pairs):
        return ""
    return next(mine for mine, theirs in pairs if theirs == SCORER)


def _split(text: str) -> tuple[str, str]:
    """The longest stem at the beginning of the text and the part after it; the whole text where there is none."""
    segments = text.split("/")
    for length in range(min(LONGEST_STEM, len(segments)), 0, -1):
        stem = "/".join(segments[:length])
        if _row_of(stem) is not None:
            return stem, "/".join(segments[length:])
    return text, ""


def keyed(place: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of rows that `place` does not name, each under a key that begins with it: "{source}/{figure}" gives
    keys such as "COMeT/kappa/low"."""
    names = {name for _, name, *_ in Formatter().parse(place)}
    return {f"{place.format(**row)}/{name}": row[name] for row in rows for name in row if name not in names}
