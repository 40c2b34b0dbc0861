"""The base of all policies, which keeps everything, and of those that read the labels of triples and tails."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import reduce
from typing import Annotated, Any, ClassVar, Literal, Self

import polars as pl
from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from mitigate.errors import MitigateError
from mitigate.settings import Name, WrongError, fact, faults_of
from mitigate.triples import FAVOURITISM, PREJUDICE, PROBED, kind_of_reason, label_columns
from mitigate.words.targets import PAPER, TargetList

STRICT = ConfigDict(strict=True, extra="forbid")
PROMPT = ("target", "relation", "head")

Control = Annotated[bool, Field(description="whether it acts on as many at random, drawn by seed: the control")]
Seed = Annotated[int, fact("number that fixes what is drawn at random", ge=0, le=2**32 - 1)]
Template = Annotated[
    Literal["paper", "neutral"],
    Field(description="wording whose labels count; neutral: no label comes from the relation's phrase"),
]


@dataclass(frozen=True, config=STRICT)
class Policy:
    """Keeps every triple and every tail: the baseline, and the base of all policies."""

    name: Annotated[Name, fact("name of the policy, part of the run folder's name")]
    group: ClassVar[str] = "policy"

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, values: Any, build: Callable[[Any], Self]) -> Self:
        """Raise MitigateError that names all faults."""
        try:
            return build(values)
        except ValidationError as error:
            if not hasattr(values, "args"):  # no call, but a value in place of a policy
                raise
            names = (field.name for field in fields(cls))
            given = dict(zip(names, values.args, strict=False)) | (values.kwargs or {})
            raise WrongError(faults_of(cls, given, error)) from None

    @property
    def parts(self) -> tuple["Policy", ...]:
        """The policy itself, or the parts of the two policies that it is made of."""
        return (self,)

    @property
    def reads(self) -> list[str]:
        """The scorers whose labels it reads."""
        return list(dict.fromkeys(name for part in self.parts for name in getattr(part, "scorers", ())))

    @property
    def filters(self) -> bool:
        """Return whether the policy changes the training triples: drops, weighs, adds or marks some."""
        return any(type(part).filter is not Policy.filter for part in self.parts)

    def tags(self, target_list: TargetList = PAPER) -> str | None:
        """The regular expression of the heads that get a control token; None where no triple does."""
        return None

    def filter(self, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
        """The ledger: the labelled triples with `weight` (float32), the `reason` for it, and `source_row`; after them
        the triples that the policy adds, with null as `row` and the row that they are made from as `source_row`.

        labelled: what label_statements returns for triples (head, relation, tail). Without `split`, all are training
        triples; without `row`, they are numbered from 1. target_list: targets of the policy's scope and swaps."""
        if "row" not in labelled.columns:
            labelled = labelled.with_row_index("row", offset=1)
        split = [] if "split" in labelled.columns else [pl.lit("train").alias("split")]
        kept = {"weight": pl.lit(1.0, pl.Float32), "reason": pl.lit("kept"), "source_row": pl.lit(None, pl.UInt32)}
        return labelled.with_columns(*split, **kept)

    def choose(self, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
        """The `top` tails of each target, relation and head (columns PROBED, beam_rank), best first. candidates:
        labelled tails, of a probe of more than these for a policy that chooses among them."""
        return reorder(candidates, [], top)


@dataclass(frozen=True, config=STRICT)
class Scored(Policy):
    """A policy that reads labels: a statement is polarised if any of its scorers says so."""

    scorers: Annotated[
        tuple[Name, ...],
        Field(min_length=1, strict=False, description="scorers whose labels it reads, any of score.scorers among them"),
    ] = ("sentiment", "regard")
    template: Template = "neutral"

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The columns of labels and of strengths that it reads, by scorer."""
        return [label_columns(scorer, self.template) for scorer in self.scorers]

    def finding(self) -> pl.Expr:
        """The polarised labels by scorer, such as "sentiment +1, regard -1"; "" where all are neutral."""
        findings = []
        for scorer, (label, _) in zip(self.scorers, self.columns, strict=True):
            sign = pl.when(pl.col(label) == PREJUDICE).then(pl.lit("-1")).otherwise(pl.lit("+1"))
            findings.append(pl.when(_is_polar(label)).then(pl.concat_str(pl.lit(f"{scorer} "), sign)))
        return pl.concat_str(findings, separator=", ", ignore_nulls=True)

    def polarised(self) -> pl.Expr:
        """Return whether any scorer's label is polarised."""
        return self.finding() != ""

    def direction(self) -> pl.Expr:
        """The strength of the strongest polarised label, below 0 for prejudice and above for favouritism; 0 where all
        are neutral. Of two equally strong, that of the scorer named first."""
        strengths = [
            pl.when(_is_polar(label)).then(pl.col(label) * pl.col(strength).abs().cast(pl.Float64)).otherwise(0.0)
            for label, strength in self.columns
        ]
        return reduce(lambda one, two: pl.when(two.abs() > one.abs()).then(two).otherwise(one), strengths)


def _is_polar(column: str) -> pl.Expr:
    return pl.col(column).is_in([PREJUDICE, FAVOURITISM])


def reorder(candidates: pl.DataFrame, keys: Sequence[pl.Expr], top: int) -> pl.DataFrame:
    """The rows of PROBED for the `top` tails of each target, relation and head by rising keys, the first key first;
    equal ones keep their order. `beam_rank` is the rank before."""
    numbered = candidates.with_row_index("place").with_columns(beam_rank="rank")
    ordered = numbered.sort(pl.col("place").first().over(PROMPT), *keys, "beam_rank")
    ranked = ordered.with_columns(rank=pl.int_range(1, pl.len() + 1).over(PROMPT).cast(PROBED["rank"]))
    return ranked.filter(pl.col("rank") <= top).select(*PROBED, "beam_rank")


def apply_policy(policy: Policy, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """The ledger of a policy (Policy.filter). Raises MitigateError when no training triple is left."""
    ledger = policy.filter(labelled, target_list)
    check_left(policy, ledger)
    return ledger


def check_left(policy: Policy, ledger: pl.DataFrame) -> None:
    """Raise MitigateError when no training triple is left."""
    train = ledger.filter(split="train")
    if (train["weight"] > 0).any():
        return
    if train.is_empty():
        raise MitigateError("there is no training triple; give triples of the split train")
    counts = train.select(kind_of_reason(pl.col("reason")))["reason"].value_counts()
    raise MitigateError(
        f"policy {policy.name!r} drops every training triple: "
        f"{', '.join(f'{reason} {count:,}' for reason, count in sorted(counts.rows()))}. Nothing is left to train on; "
        "set policy.template=neutral or policy.scope=person_heads, or choose another policy, such as policy=none"
    )
