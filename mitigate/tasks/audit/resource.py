"""Resources of audits, in chunks, held in memory or read from a large file; the targets to measure over; and counts of
rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import Chunk, Counts, Kind, Loaded, Streamed
from mitigate.load.targets import Wanted, targets_of_statements, those_about
from mitigate.stages import digest_of_values
from mitigate.triples import TEMPLATES
from mitigate.words.outside_text import counted
from mitigate.words.targets import choose_targets

Texts = Literal["targets", "all"]
COUNTS = {"kind": pl.String, "what": pl.String, "count": pl.Int64}
ROWS, ABOUT_A_TARGET, STATEMENTS = (("counted", what) for what in ("rows", "about a target", "statements"))
REPEATED = "repeated statement about a target, each of which counts"


@dataclass(frozen=True, eq=False)
class Resource:
    """A resource to audit."""

    loaded: Loaded | Streamed
    options: Mapping[str, Any] = field(default_factory=dict)  # of the loader of a Streamed, which decide its rows
    splits: str = "train"  # whose valid triples count: "train", or "all"

    @property
    def kind(self) -> Kind:
        """Triples, sentences, or statements whose targets are given."""
        return self.loaded.kind

    @property
    def fingerprint(self) -> str:
        """The hash of what decides the rows: the content, and for a file the settings of reading it."""
        if isinstance(self.loaded, Loaded):
            return self.loaded.digest
        how = (self.loaded.kind, self.loaded.on_bad_line, self.loaded.parse, dict(self.options), self.splits)
        return digest_of_values(self.loaded.digest, *how, self.loaded.own_relations)

    def chunks(self, finished: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, float, Chunk | None]]:
        """Yield chunks as Streamed.chunks, of triples those that count."""
        for number, share, chunk in self.loaded.chunks(finished):
            if chunk is not None and self.kind == "triples":
                chunk = _counting(chunk, self.splits)
            yield number, share, chunk

    def templates(self, template: str | None = None) -> Sequence[str]:
        """The templates to measure with: the given one, or all of the resource. Raises MitigateError for another."""
        there = TEMPLATES if self.kind == "triples" else TEMPLATES[:1]
        if template is None:
            return there
        if template not in TEMPLATES:
            raise one_of("measure.template", template, TEMPLATES)
        if template not in there:
            raise MitigateError(
                f"measure.template={template} needs triples: a plain statement does not mark the words of its "
                "relation; set measure.template=paper, or give the triples (data=triples)"
            )
        return (template,)


def resource_of(
    loaded: Loaded | Streamed, wanted: Wanted = None, *, splits: str = "train", options: Mapping[str, Any] | None = None
) -> tuple[Resource, pl.DataFrame]:
    """Return a resource of what a loader returned, and the targets (target, category) to measure over.

    wanted: as in words.targets.choose_targets; None: those named in statements, the 329 for triples. splits: "train",
    or "all" for the valid triples of dev and test too. options: of the loader of a file of any size, such as the names
    of its columns. Raises MitigateError for targets that do not exist."""
    if isinstance(loaded, Streamed):
        if wanted == "data":
            raise MitigateError(
                "recipe.targets=data needs a resource that is read as a whole; leave it out: the measures skip "
                "targets without statements"
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
    """Keep the valid triples of the splits that count, and count the others as left out."""
    valid = chunk.rows.filter("valid")
    left_out = Counts({("left out", "labelled 0 (not valid)"): chunk.rows.height - valid.height})
    if splits == "all":
        return Chunk(valid, +(chunk.counts + left_out))
    train = valid.filter(split="train")
    for split, count in valid["split"].value_counts().iter_rows():
        if split != "train":
            left_out["left out", f"valid triples of {split}; filter.splits=all counts them too"] += count
    return Chunk(train, +(chunk.counts + left_out))


def _of_splits(triples: pl.DataFrame, splits: str) -> tuple[pl.DataFrame, list[str]]:
    """Select the valid triples of the splits; with a notice of those of other splits."""
    valid = triples.filter("valid")
    if splits == "all":
        return valid, []
    others = valid.filter(pl.col("split") != "train")
    if others.is_empty():
        return valid, []
    named = ", ".join(others["split"].unique(maintain_order=True))
    notice = f"{counted(others.height, 'valid triple')} of {named} left out; filter.splits=all counts them too"
    return valid.filter(split="train"), [notice]


def counts_table(counts: Counts) -> pl.DataFrame:
    """Return counts as a table (kind, what, count)."""
    return pl.DataFrame([(*key, count) for key, count in counts.items()], schema=COUNTS, orient="row")


def sum_counts(parts: Iterable[pl.DataFrame]) -> Counts:
    """Sum tables of counts."""
    total = Counts()
    for part in parts:
        for kind, what, count in part.iter_rows():
            total[kind, what] += count
    return total
