"""Ratings of statements by people: answers to a survey, or labels beside sentences, as in the harms paper's release;
and the labels of scorers for these statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.finished import open_run
from mitigate.load.ratings import read_answers, read_beside
from mitigate.load.targets import list_of_runs
from mitigate.tasks.ratings.agreement import label_rated
from mitigate.tasks.ratings.anchors import AGAIN
from mitigate.tasks.ratings.survey import KEY
from mitigate.triples import LabelCache, Scorer
from mitigate.verbalise import mask_column
from mitigate.words.targets import PAPER, TargetList

EARLIER = "earlier.parquet"


@dataclass(frozen=True)
class Ratings:
    """Statements of one or more sources with their ratings."""

    key: pl.DataFrame  # columns KEY
    ratings: pl.DataFrame  # schema load.ratings.RATINGS
    sources: list[str]  # the first is the baseline
    batches: dict[str, str]  # source -> the batch in which it was rated: a survey, or a file of labels
    demonstration: bool = False
    notices: list[str] = field(default_factory=list)
    target_list: TargetList = PAPER  # that of the runs or statements of a survey
    earlier: pl.DataFrame | None = None  # as rated() returns them: the ratings that the survey's anchors are from

    @property
    def models(self) -> list[str]:
        """The sources that are compared paired by target: those in the batch of the first, without anchors."""
        batch = self.batches[self.sources[0]]
        return [name for name in self.sources if self.batches[name] == batch and not name.endswith(AGAIN)]

    @property
    def by_time(self) -> list[str]:
        """The sources for drift between batches: those of earlier ratings come first."""
        before = [] if self.earlier is None else self.earlier["source"].unique(maintain_order=True).to_list()
        return [*before, *(name for name in self.sources if name not in before and not name.endswith(AGAIN))]

    def rated(self) -> pl.DataFrame:
        """A row for each source and rating, with its batch."""
        own = self.key.join(self.ratings, on="item", maintain_order="left_right")
        own = own.with_columns(batch=pl.col("source").replace_strict(self.batches))
        return own if self.earlier is None else pl.concat([own, self.earlier.select(own.columns)])


def read_survey(folder: Path, answers: Sequence[Path], on_bad_line: Any = "error") -> Ratings:
    """Read the answers to the survey of a finished run folder, and the earlier ratings of its anchors' sources. Raises
    MitigateError as open_run and read_answers do."""
    try:
        run = open_run(folder, "humans", ["key.parquet"], figures="survey.json")
    except MitigateError as error:
        raise MitigateError(f"humans.survey: {error} Give the run folder of the survey.") from error
    key, survey = run.table("key.parquet", KEY), run.metrics
    ratings, notices = read_answers(answers, frozenset(key["item"]), survey["raters"], on_bad_line)
    batches = dict.fromkeys(key["source"].unique().sort(), str(survey["name"]))
    again = [source for source in batches if source not in survey["sources"]]
    earlier = run.table(EARLIER) if EARLIER in run.files else None
    before = {} if earlier is None else dict(earlier.select("source", "batch").unique(maintain_order=True).iter_rows())
    return Ratings(
        key=key,
        ratings=ratings,
        sources=[*survey["sources"], *again, *before],
        batches=batches | before,
        demonstration=survey["demonstration"],
        notices=notices,
        target_list=list_of_runs([run]),
        earlier=earlier,
    )


def read_labelled_sentences(files: Mapping[str, Sequence[Path]]) -> Ratings:
    """Read sentences with labels beside them, by the name of their source: a file of sentences, one of bias labels, and
    perhaps one of validity labels. Raises MitigateError as load.ratings.read_beside does."""
    keys, ratings = [], []
    for source, places in files.items():
        given = read_beside(*places).rename({"item": "statement"})
        ids = [digest_of(f"{source}\t{statement}")[:10] for statement in given["statement"]]
        given = given.with_columns(pl.Series("item", ids), pl.lit(source).alias("source"))
        unknown = [pl.lit(None, pl.String).alias(name) for name in ("target", "category", "relation")]
        key = given.with_columns(*unknown, pl.lit(None, pl.Int64).alias("rank")).select(KEY)
        keys.append(key.unique("item", maintain_order=True))
        ratings.append(given.select("item", "rater", "label", "quality"))
    notices = ["these files do not say who rated, nor which target, category and relation a sentence has"]
    batches = {source: source for source in files}
    return Ratings(pl.concat(keys), pl.concat(ratings), list(files), batches, notices=notices)


def label_rated_statements(
    rated: pl.DataFrame, scorers: Sequence[Scorer], *, target_list: TargetList = PAPER, cache: LabelCache
) -> pl.DataFrame:
    """Label each rated statement, demographic words masked, beside the votes of its raters: resource (the source),
    sentence (the item), votes, masked, and a column for each scorer.

    target_list: the words to mask, besides the targets of the statements in their regular forms."""
    named = rated["target"].drop_nulls().unique().sort().to_list()
    listed = target_list.with_words([word for word in named if target_list.named(word) == word])
    votes = rated.group_by("source", "item", maintain_order=True).agg(pl.col("statement").first(), votes="label")
    sentences = votes.select(
        pl.col("source").alias("resource"),
        pl.col("item").alias("sentence"),
        "votes",
        mask_column("statement", "token", listed).alias("masked"),
    )
    return label_rated(sentences, scorers, cache=cache)
