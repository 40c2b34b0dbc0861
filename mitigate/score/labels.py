"""Labels for a column of texts: each distinct text is looked up in the cache once, then scored if it is not there."""

from collections.abc import Iterator, Sequence
from time import monotonic

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.progress import notice, progress
from mitigate.score.base import OwnScorer, call_scorer
from mitigate.stages import is_own, name_of
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
from mitigate.words.outside_text import counted

LABELS = (PREJUDICE, NEUTRAL, FAVOURITISM, OTHER)
ROUNDING = 1e-6  # by which a difference of two probabilities may exceed 1
PIECE = 2048  # texts scored at once; a scorer may set fewer as `piece`
MANY, TRIED = 5_000, 64  # texts from which on the time is told beforehand, by the pace of a few of middle length
EVERY = 5.0  # seconds between two writes to the cache, the most that a killed run loses; few large writes are faster
LONG = 40  # words; the longest statement that people rated has 19 (harms paper), the longest of train100k about 30
SEPARATOR = "\t"  # between the parts of a text that is a triple, or a statement with its target
STATEMENT = ("statement", "sentence")
"""The column of texts as people read them, in triples and sentences and in rated sentences."""


class NothingCached:
    """An empty label cache (the Protocol `LabelCache`): every text is scored."""

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        """Return that no text has a label, with empty labels."""
        size = len(texts)
        return np.zeros(size, dtype=bool), Labels(np.zeros(size, dtype=np.int8), np.zeros(size, dtype=np.float32))

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        """Store nothing."""


NOTHING_CACHED = NothingCached()


def long_texts(texts: pl.Series) -> list[str]:
    """A notice where texts are longer than those that scorers are made for and were measured on."""
    words = texts.str.count_matches(r"\S+")
    long = words.filter(words > LONG).to_list()
    if not long:
        return []
    has = "has" if len(long) == 1 else "have"
    return [
        f"{len(long):,} of {counted(len(words), 'text')} {has} more than {LONG} words, up to {max(long):,}. The "
        "scorers are made for single statements: sentiment adds up all words, so that a long text tends to an extreme, "
        "and classifiers read the beginning of a text. Give its sentences one by one."
    ]


def label_column(texts: pl.Series, scorer: Scorer, cache: LabelCache) -> Labels:
    """The labels of n texts in their order, (n,) each; repeats are scored once."""
    distinct = texts.unique(maintain_order=True)
    label, strength = _label_distinct(distinct.to_list(), scorer, cache)
    places = texts.replace_strict(distinct, pl.arange(len(distinct), eager=True))
    position = places.cast(pl.Int64).to_numpy()  # without texts, polars keeps the type of the texts
    return Labels(label[position], strength[position])


def _label_distinct(texts: list[str], scorer: Scorer, cache: LabelCache) -> Labels:
    key = "" if cache is NOTHING_CACHED else scorer.fingerprint  # which may read large weights
    is_cached, labels = cache.get(key, texts)
    # Texts of one length need less padding, and what the longest free is large enough for the others.
    missing = sorted(np.flatnonzero(~is_cached).tolist(), key=lambda i: -len(texts[i]))
    size = getattr(scorer, "piece", PIECE)
    pieces = [missing[start : start + size] for start in range(0, len(missing), size)]
    if len(missing) > MANY and not hasattr(scorer, "asks"):
        tried, began = [texts[i] for i in missing[len(missing) // 2 :][:TRIED]], monotonic()
        call_scorer(scorer, scorer, tried)
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
    """Yield the number of each piece of texts with its labels. A scorer with a method `each` labels several at once."""
    if hasattr(scorer, "each"):
        yield from scorer.each(pieces)
        return
    for number, texts in enumerate(pieces):
        yield number, checked(scorer, call_scorer(scorer, scorer, texts), texts)


def checked(scorer: Scorer, said: object, texts: Sequence[str]) -> Labels:
    """Check a scorer's labels of the texts and return them. Raises MitigateError for anything but Labels of each text;
    for a user's own scorer also for a label against the sign of its strength."""
    wanted = (
        f"expected Labels(label, strength), two arrays of {len(texts):,}: labels -1, 0, 1 or 2, and strengths from -1 "
        "to 1, of the label's sign or 0"
    )
    try:
        label, strength = map(np.asarray, said)  # type: ignore[call-overload]
        is_right = np.isin(label, LABELS) & (np.abs(strength) <= 1 + ROUNDING)  # false for NaN
        if isinstance(scorer, OwnScorer):
            is_right &= ~((np.abs(label) == 1) & (label * np.nan_to_num(strength) < 0))
        if not label.shape == strength.shape == (len(texts),):
            raise ValueError(" ".join(str(said).split())[:60])
    except (TypeError, ValueError, RuntimeError) as error:  # not two arrays of numbers
        raise fault(scorer, f"{wanted}; found {error}") from error
    if not is_right.all():
        at = int(np.argmin(is_right))
        raise fault(scorer, f"{wanted}; found {label[at]} and {strength[at]:g} for {texts[at][:60]!r}")
    return Labels(label.astype(np.int8), strength.astype(np.float32).clip(-1, 1) + np.float32(0))  # -0.0 becomes 0.0


def fault(scorer: Scorer, what: str) -> MitigateError:
    """The error for a scorer that breaks the Protocol Scorer."""
    is_users = isinstance(scorer, OwnScorer) or is_own(scorer)
    remedy = f" Correct {name_of(getattr(scorer, 'labels', scorer))}, or leave the scorer out" if is_users else ""
    return MitigateError(f"scorer {scorer.name}: {what}.{remedy}")


def text_for(scorer: Scorer, statements: pl.DataFrame, template: str = "paper") -> pl.Series:
    """The texts that a scorer reads: the masked statement in that template's wording; for a scorer with `reads =
    "statement"`, which needs the group, the statement itself where there is one."""
    if getattr(scorer, "reads", "masked") == "statement":
        return statements[next((name for name in STATEMENT if name in statements.columns), "masked")]
    return statements["masked" if template == "paper" else f"masked_{template}"]


def with_labels(statements: pl.DataFrame, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """The statements (masked; of triples also masked_neutral) with the scorer's labels and strengths under each
    template that they have. Texts that are the same under both are scored once. A scorer that reads the statement
    itself has the same labels under both."""
    size, templates = len(statements), TEMPLATES if "masked_neutral" in statements.columns else TEMPLATES[:1]
    found = label_column(pl.concat([text_for(scorer, statements, name) for name in templates]), scorer, cache)
    for place, template in enumerate(templates):
        rows, (label, strength) = slice(place * size, (place + 1) * size), label_columns(scorer.name, template)
        columns = pl.Series(label, found.label[rows]), pl.Series(strength, found.strength[rows])
        statements = statements.with_columns(*columns)
    return statements


def with_explanations(statements: pl.DataFrame, scorer: Scorer) -> pl.DataFrame:
    """The statements, with the column {scorer}_why of a scorer that explains its labels (`explain`): the explanation of
    a polarised label, null elsewhere."""
    if not hasattr(scorer, "explain"):
        return statements
    texts, is_polar = text_for(scorer, statements), pl.col(scorer.name).is_in([PREJUDICE, FAVOURITISM])
    polar = texts.filter(statements.select(is_polar).to_series()).unique(maintain_order=True)
    why = list(call_scorer(scorer, scorer.explain, polar.to_list())) if len(polar) else []
    if len(why) != len(polar) or not all(isinstance(one, str) for one in why):
        raise fault(scorer, f"explain: expected {len(polar):,} texts, one for each text; found {why[:3]}")
    explained = pl.DataFrame({"_text": polar, f"{scorer.name}_why": pl.Series(why, dtype=pl.String)})
    joined = statements.with_columns(_text=texts).join(explained, on="_text", how="left", maintain_order="left")
    return joined.with_columns(pl.when(is_polar).then(f"{scorer.name}_why")).drop("_text")


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


# A test by common words of whether texts are English: scorers know English only, and "die" is a German article


FIRST = 1000  # texts
FEW_OTHERS = 0.05  # share of other texts that needs no notice
QUOTED = 60  # characters of a text in the notice
ENGLISH = (
    "the an of and to in is are was were be been it its that this these he she they his her their with for on at by "
    "from not have has had does did you your we our who which or but if can will would what when there than so because"
)
OTHERS = (
    "der das und ist nicht ein eine sie den dem mit sind wir ich le les une est et du qui pas dans sont je nous el los "
    "las una es por para del muy il lo gli di che non per della sono um uma não em são het een van niet och att är nie"
)


def not_english(texts: pl.Series) -> list[str]:
    """A notice where more than a few of the first texts have more common words of other languages than of English, or
    are mostly in another script."""
    first = texts.drop_nulls().head(FIRST).alias("text").to_frame()
    lower, text = pl.col("text").str.to_lowercase(), pl.col("text")
    english, others = (lower.str.count_matches(rf"\b(?:{words.replace(' ', '|')})\b") for words in (ENGLISH, OTHERS))
    other_script = text.str.count_matches(r"\p{L}") > 2 * text.str.count_matches(r"\p{Latin}")
    found = first.filter((others > english) | other_script)["text"]
    if len(found) <= FEW_OTHERS * first.height:
        return []
    return [
        f"{len(found):,} of the first {first.height:,} texts do not look English, such as {found[0][:QUOTED]!r}. The "
        "scorers know English only; leave such texts out."
    ]
