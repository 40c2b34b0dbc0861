"""A resource as an audit takes it: chunk by chunk, whether it is held in memory or read from a large file; and the
targets to measure over."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import Chunk, Kind, Loaded, Met, Streamed
from mitigate.runs.fingerprints import digest_of_values
from mitigate.tasks.targets import Wanted, targets_of_statements, those_about
from mitigate.triples import TEMPLATES
from mitigate.words.relations import Relation
from mitigate.words.targets import choose_targets
from mitigate.words.texts import counted

Texts = Literal["targets", "all"]
COUNTS = {"kind": pl.String, "what": pl.String, "count": pl.Int64}
ROWS, ABOUT_A_TARGET, STATEMENTS = (
    ("counted", "rows"),
    ("counted", "about a target"),
    ("counted", "statements"),
)
REPEATED = "repeated statement about a target, each of which counts"


@dataclass(frozen=True, eq=False)
class Resource:
    """What is audited."""

    loaded: Loaded | Streamed
    options: Mapping[str, Any] = field(default_factory=dict)  # of the loader of a Streamed, which decide its rows
    splits: str = "train"  # whose valid triples count: "train", or "all"

    @property
    def kind(self) -> Kind:
        """Triples, sentences, or statements whose targets are given."""
        return self.loaded.kind

    @property
    def content(self) -> str:
        """The hash of the rows, or of the file that they are read from."""
        return self.loaded.digest

    @property
    def fingerprint(self) -> str:
        """What decides the rows: the content; of a file also how it is read."""
        if isinstance(self.loaded, Loaded):
            return self.content
        how = (self.loaded.kind, self.loaded.on_bad_line, self.loaded.parse, dict(self.options), self.splits)
        return digest_of_values(self.content, *how, self.own_relations)

    @property
    def own_relations(self) -> tuple[Relation, ...]:
        """Relations that its triples may have besides the project's."""
        return self.loaded.own_relations

    def chunks(self, finished: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, float, Chunk | None]]:
        """As Streamed.chunks, of triples those that count."""
        for number, share, chunk in self.loaded.chunks(finished):
            if chunk is None or self.kind != "triples":
                yield number, share, chunk
            else:
                yield number, share, _counting(chunk, self.splits)

    def templates(self, asked: str | None = None) -> Sequence[str]:
        """The templates to measure with: the one asked for, or all there are. Raises MitigateError for one that there
        is not."""
        there = TEMPLATES if self.kind == "triples" else TEMPLATES[:1]
        if asked is None:
            return there
        if asked not in TEMPLATES:
            raise one_of("measure.template", asked, TEMPLATES)
        if asked not in there:
            raise MitigateError(
                f"measure.template={asked} wants triples: of a plain statement nobody knows which words are a "
                "relation's; say measure.template=paper, or give the triples (data=triples)"
            )
        return (asked,)


def resource_of(
    loaded: Loaded | Streamed,
    wanted: Wanted = None,
    *,
    splits: str = "train",
    options: Mapping[str, Any] | None = None,
) -> tuple[Resource, pl.DataFrame]:
    """What a loader returned as a resource, and the targets (target, category) to measure over.

    wanted: as in targets.choose_targets; None: those named in statements, the 329 for triples. splits: "train", or
    "all" for the valid triples of dev and test too. options: of the loader of a file of any size, such as the names of
    its columns. Raises MitigateError for targets that there are not."""
    if isinstance(loaded, Streamed):
        if wanted == "data":
            raise MitigateError(
                "recipe.targets=data needs a resource that is read whole; leave it out: a target that nothing is said "
                "about is left out of the measures anyway"
            )
        return Resource(loaded, options or {}, splits), choose_targets("all" if wanted is None else wanted)
    if loaded.kind == "statements":
        targets = targets_of_statements(wanted, loaded.rows)
        rows, notices = those_about(loaded.rows, targets)
    else:
        rows, notices = _of_splits(loaded.rows, splits)
        targets = choose_targets("all" if wanted is None else wanted, rows)
    return Resource(replace(loaded, rows=rows, notices=[*loaded.notices, *notices]), splits=splits), targets


def _counting(chunk: Chunk, splits: str) -> Chunk:
    """The chunk with its valid triples of the splits that count; the others are counted as left out."""
    valid = chunk.rows.filter("valid")
    met = Met({("left out", "labelled 0 (not valid)"): chunk.rows.height - valid.height})
    if splits == "all":
        return Chunk(valid, +(chunk.met + met))
    train = valid.filter(split="train")
    for split, count in valid["split"].value_counts().iter_rows():
        if split != "train":
            met["left out", f"valid triples of {split}; filter.splits=all counts them too"] += count
    return Chunk(train, +(chunk.met + met))


def _of_splits(triples: pl.DataFrame, splits: str) -> tuple[pl.DataFrame, list[str]]:
    """The valid triples of the splits, and a notice of those of other splits."""
    valid = triples.filter("valid")
    if splits == "all":
        return valid, []
    others = valid.filter(pl.col("split") != "train")
    if others.is_empty():
        return valid, []
    named = ", ".join(others["split"].unique(maintain_order=True))
    notice = f"{counted(others.height, 'valid triple')} of {named} left out; filter.splits=all counts them too"
    return valid.filter(split="train"), [notice]


def counts_of(rows: pl.DataFrame, found: pl.DataFrame, num_about: int) -> Met:
    """How many rows there were, how many are about a target, and how many statements they make."""
    return Met({ROWS: rows.height, ABOUT_A_TARGET: num_about, STATEMENTS: found.height})


def as_frame(met: Met) -> pl.DataFrame:
    """Counts as a table (kind, what, count)."""
    return pl.DataFrame([(*key, count) for key, count in met.items()], schema=COUNTS, orient="row")


def as_met(parts: Iterable[pl.DataFrame]) -> Met:
    """The sum of tables of counts."""
    total = Met()
    for part in parts:
        for kind, what, count in part.iter_rows():
            total[kind, what] += count
    return total
