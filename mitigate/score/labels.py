"""Labels for a column of texts: each distinct text is looked up in the cache once, then scored if it is not there."""

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.progress import notice, progress
from mitigate.score.user_scorer import OwnScorer, described, own_errors_explained
from mitigate.stages import is_own
from mitigate.triples import (
    FAVOURITISM,
    NEUTRAL,
    OTHER,
    PREJUDICE,
    TEMPLATES,
    LabelCache,
    Labels,
    Scorer,
    label_columns,
)

LABELS = (PREJUDICE, NEUTRAL, FAVOURITISM, OTHER)
ROUNDING = 1e-6  # by which a difference of two probabilities may exceed 1
PIECE = 2048  # texts scored at once; a scorer may set fewer as `piece`
MANY, TRIED = 5_000, 64  # texts from which on the time is told beforehand, by the pace of a few of middle length
EVERY = 5.0  # seconds between two writes to the cache, the most that a killed run loses; few large writes are faster


class NothingCached:
    """An empty label cache (the Protocol `LabelCache`): every text is scored."""

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        """Return that no text has a label, with empty labels."""
        size = len(texts)
        return np.zeros(size, dtype=bool), Labels(np.zeros(size, dtype=np.int8), np.zeros(size, dtype=np.float32))

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        """Store nothing."""


NOTHING_CACHED = NothingCached()
SEPARATOR = "\t"  # between the parts of a text that is a triple, or a statement with its target
STATEMENT = ("statement", "sentence")
"""The column of texts as people read them, in triples and sentences and in rated sentences."""


@runtime_checkable
class Explains(Protocol):
    """A scorer that explains its labels in words."""

    def explain(self, texts: Sequence[str]) -> list[str]: ...


@runtime_checkable
class LabelsPieces(Protocol):
    """A scorer that labels several pieces of the texts at once, and yields their labels as they are ready."""

    def each(self, pieces: Sequence[list[str]]) -> Iterator[tuple[int, Labels]]: ...


def label_column(texts: pl.Series, scorer: Scorer, cache: LabelCache) -> Labels:
    """The labels of n texts in their order, (n,) each; repeats are scored once."""
    distinct = texts.unique(maintain_order=True)
    label, strength = _label_distinct(distinct.to_list(), scorer, cache)
    places = texts.replace_strict(distinct, pl.arange(len(distinct), eager=True))
    position = places.cast(pl.Int64).to_numpy()  # without texts, polars keeps the type of the texts
    return Labels(label[position], strength[position])


def text_for(scorer: Scorer, statements: pl.DataFrame, template: str = "paper") -> pl.Series:
    """The texts that a scorer reads: the masked statement in that template's wording; for a scorer with `reads =
    "statement"`, which needs the group, the statement itself where there is one."""
    if getattr(scorer, "reads", "masked") == "statement":
        return statements[next((name for name in STATEMENT if name in statements.columns), "masked")]
    return statements["masked" if template == "paper" else f"masked_{template}"]


def with_explanations(statements: pl.DataFrame, scorer: Scorer) -> pl.DataFrame:
    """The statements, with the column {scorer}_why of a scorer that explains its labels: the explanation of a polarised
    label, null elsewhere."""
    if not (isinstance(scorer, Explains) and callable(scorer.explain)):
        return statements
    texts = text_for(scorer, statements)
    polar = texts.filter(statements[scorer.name].is_in([PREJUDICE, FAVOURITISM])).unique(maintain_order=True)
    pieces = [polar[start : start + PIECE].to_list() for start in range(0, len(polar), PIECE)]
    why: list[str] = []
    with progress(f"explain {scorer.name}", len(polar), "texts") as advance:
        for piece in pieces:
            with own_errors_explained(scorer, piece):
                found = list(scorer.explain(list(piece)))
            if len(found) != len(piece) or not all(isinstance(one, str) for one in found):
                raise fault(scorer, f"explain: expected {len(piece):,} texts, one for each text; found {_short(found)}")
            why += found
            advance(len(piece))
    explained = pl.DataFrame({"_text": polar, f"{scorer.name}_why": pl.Series(why, dtype=pl.String)})
    joined = statements.with_columns(_text=texts).join(explained, on="_text", how="left", maintain_order="left")
    is_polar = pl.col(scorer.name).is_in([PREJUDICE, FAVOURITISM])
    return joined.with_columns(pl.when(is_polar).then(f"{scorer.name}_why")).drop("_text")


def with_labels(statements: pl.DataFrame, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """The statements (columns masked, masked_neutral) with the scorer's labels and strengths under both
    templates. Texts that are the same under both are scored once. A scorer that reads the statement itself has the same
    labels under both."""
    size = len(statements)
    both = label_column(pl.concat([text_for(scorer, statements, name) for name in TEMPLATES]), scorer, cache)
    columns = []
    for template, rows in zip(TEMPLATES, (slice(0, size), slice(size, None)), strict=True):
        label, strength = label_columns(scorer.name, template)
        columns += [pl.Series(label, both.label[rows]), pl.Series(strength, both.strength[rows])]
    return statements.with_columns(columns)


def with_answers(
    rows: pl.DataFrame,
    where: pl.Expr,
    parts: Sequence[pl.Expr],
    scorer: Scorer,
    cache: LabelCache,
    names: tuple[str, str],
) -> pl.DataFrame:
    """The rows with two columns of these names: whether a scorer of texts with several parts, joined by SEPARATOR,
    accepts each (bool), and its probability; both null for rows where `where` is false. Each distinct text is
    classified once."""
    numbered = rows.with_row_index("_place")
    joined = pl.concat_str([part.str.replace_all(SEPARATOR, " ", literal=True) for part in parts], separator=SEPARATOR)
    texts = numbered.filter(where).select("_place", joined.alias("_text"))
    said = label_column(texts["_text"], scorer, cache)
    accepted, probability = names
    found = texts.select("_place", pl.Series(accepted, said.label == 1), pl.Series(probability, said.strength))
    return numbered.join(found, on="_place", how="left", maintain_order="left").drop("_place")


@runtime_checkable
class Asks(Protocol):
    """A scorer that asks a language model about each text, which takes time or money. `failures` counts texts that it
    abstained on, by reason."""

    @property
    def asks(self) -> str:
        """The model, or its address."""
        ...

    @property
    def sends(self) -> bool:
        """Return whether texts are sent to an address."""
        ...

    def failures(self, texts: Sequence[str]) -> dict[str, int]: ...


def unlabelled(texts: pl.Series, scorer: Scorer, cache: LabelCache) -> tuple[int, int]:
    """The number of distinct texts without a cached label, and of all distinct texts."""
    distinct = texts.unique(maintain_order=True).to_list()
    return int((~cache.get(_key(scorer, cache), distinct)[0]).sum()), len(distinct)


def _key(scorer: Scorer, cache: LabelCache) -> str:
    """The key of the scorer's labels in a cache; computing it may read large weights."""
    return "" if cache is NOTHING_CACHED else scorer.fingerprint


def _label_distinct(texts: list[str], scorer: Scorer, cache: LabelCache) -> Labels:
    key = _key(scorer, cache)
    is_cached, labels = cache.get(key, texts)
    missing = sorted(np.flatnonzero(~is_cached).tolist(), key=lambda i: len(texts[i]))  # less padding in batches
    size = getattr(scorer, "piece", PIECE)
    pieces = [missing[start : start + size] for start in range(0, len(missing), size)]
    if len(missing) > MANY and not isinstance(scorer, Asks):
        tried, began = [texts[i] for i in missing[len(missing) // 2 :][:TRIED]], monotonic()
        with own_errors_explained(scorer, tried):
            scorer(tried)
        minutes = (monotonic() - began) / TRIED * len(missing) / 60
        if minutes > 1:
            notice(f"{scorer.name} labels {len(missing):,} texts, which takes about {minutes:.0f} minutes.")
    unkept, kept_at = list[int](), monotonic()

    def keep() -> None:
        cache.put(key, [texts[i] for i in unkept], Labels(labels.label[unkept], labels.strength[unkept]))
        unkept.clear()

    try:
        with progress(f"score {scorer.name}", len(missing), "texts") as advance:
            for number, said in _each(scorer, [[texts[i] for i in rows] for rows in pieces]):
                rows = pieces[number]
                labels.label[rows], labels.strength[rows] = said
                unkept += rows
                advance(len(rows))
                if monotonic() - kept_at > EVERY:
                    keep()
                    kept_at = monotonic()
    finally:
        if unkept:
            keep()
    return labels


def _each(scorer: Scorer, pieces: Sequence[list[str]]) -> Iterator[tuple[int, Labels]]:
    """Yield the number of each piece of texts with its labels."""
    if isinstance(scorer, LabelsPieces):
        yield from scorer.each(pieces)
        return
    for number, texts in enumerate(pieces):
        with own_errors_explained(scorer, texts):
            said = scorer(list(texts))
        yield number, checked(scorer, said, texts)


def checked(scorer: Scorer, said: object, texts: Sequence[str]) -> Labels:
    """Check a scorer's labels of the texts and return them. Raises MitigateError for anything but Labels of each text:
    labels of LABELS, and strengths from -1 to 1, from which a policy makes weights; for a user's own scorer also for a
    label against the sign of its strength."""
    wanted = f"expected Labels(label, strength), two arrays of {len(texts):,}, one value for each text"
    if not isinstance(said, tuple) or len(said) != 2:
        raise fault(scorer, f"{wanted}; found {_short(said)}")
    label, strength = (_numbers(scorer, wanted, name, part) for name, part in zip(Labels._fields, said, strict=True))
    if label.shape != (len(texts),) or strength.shape != (len(texts),):
        raise fault(scorer, f"{wanted}; found {_short(said)}")
    is_right = np.isin(label, LABELS) & (np.abs(strength) <= 1 + ROUNDING)  # false for NaN
    if isinstance(scorer, OwnScorer):
        is_right &= ~((np.abs(label) == 1) & (label * np.nan_to_num(strength) < 0))
    rules = ": labels -1, 0, 1 or 2, and strengths from -1 to 1, of the label's sign or 0"
    if not is_right.all():
        at = int(np.argmin(is_right))
        raise fault(scorer, f"{wanted}{rules}; found {label[at]} and {strength[at]:g} for {texts[at][:60]!r}")
    return Labels(label.astype(np.int8), strength.astype(np.float32).clip(-1, 1) + np.float32(0))  # -0.0 becomes 0.0


def _numbers(scorer: Scorer, wanted: str, name: str, part: Any) -> np.ndarray:
    """The labels or strengths as an array of numbers. Raises MitigateError for anything else."""
    remedy = " (of a tensor: tensor.detach().float().cpu().numpy())" if hasattr(part, "detach") else ""
    try:
        array = np.asarray(part)
    except (TypeError, ValueError, RuntimeError) as error:
        raise fault(scorer, f"{wanted}; its {name} is not an array: {str(error)[:80]}{remedy}") from error
    if np.ma.is_masked(part) or array.dtype.kind not in "iuf":
        kind = "masked" if np.ma.is_masked(part) else array.dtype
        raise fault(scorer, f"{wanted}; its {name} must be numbers, not {kind}: {_short(part)}")
    return array


def fault(scorer: Scorer, what: str) -> MitigateError:
    """The error for a scorer that breaks the Protocol Scorer."""
    is_users = isinstance(scorer, OwnScorer) or is_own(scorer)
    remedy = f" Correct {described(scorer)}, or leave the scorer out" if is_users else ""
    return MitigateError(f"scorer {scorer.name}: {what}.{remedy}")


def _short(found: object) -> str:
    return " ".join(str(found).split())[:60]
