"""Labels for a column of texts: each distinct text is looked up in the cache once, then scored if it is not there, in
this process or by several workers with Ray Data.

The cache serves all runs. A label is used only when its checksum matches, so that a damaged file costs time and never
changes a figure. Each worker loads the same scorer once, and labels a piece of the texts at a time; the fingerprint
shows that a worker's scorer is the same."""

import json
import logging
import os
import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, check_installed, counted
from mitigate.progress import notice, progress
from mitigate.score.base import OwnScorer, call_scorer
from mitigate.stages import PROCESS, is_own, name_of
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
EVERY = 5.0  # seconds between two writes to the cache, the most that a killed run loses
LONG = 40  # words; the longest statement that people rated has 19 (harms paper), the longest of train100k about 30
SEPARATOR = "\t"  # between the parts of a text that is a triple, or a statement with its target
STATEMENT = ("statement", "sentence")  # the column of texts as people read them; "sentence" where they are rated


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
    unsaved, saved_at = list[int](), monotonic()

    def save() -> None:
        cache.put(key, [texts[i] for i in unsaved], Labels(labels.label[unsaved], labels.strength[unsaved]))
        unsaved.clear()

    try:
        with progress(f"score {scorer.name}", len(missing), "texts") as advance:
            for number, of_piece in _each(scorer, [[texts[i] for i in rows] for rows in pieces]):
                rows = pieces[number]
                labels.label[rows], labels.strength[rows] = of_piece
                unsaved += rows
                advance(len(rows))
                if monotonic() - saved_at > EVERY:
                    save()
                    saved_at = monotonic()
    finally:
        if unsaved:
            save()
    return labels


def _each(scorer: Scorer, pieces: Sequence[list[str]]) -> Iterator[tuple[int, Labels]]:
    """Yield the number of each piece of texts with its labels. A scorer with a method `each` labels several at once."""
    if hasattr(scorer, "each"):
        yield from scorer.each(pieces)
        return
    for number, texts in enumerate(pieces):
        yield number, checked(scorer, call_scorer(scorer, scorer, texts), texts)


def checked(scorer: Scorer, answer: object, texts: Sequence[str]) -> Labels:
    """Check what a scorer returned for the texts, and return it as Labels. Raises MitigateError for anything but Labels
    of each text; for a user's own scorer also for a label against the sign of its strength."""
    expected = (
        f"expected Labels(label, strength), two arrays of {len(texts):,}: labels -1, 0, 1 or 2, and strengths from -1 "
        "to 1, of the label's sign or 0"
    )
    try:
        label, strength = map(np.asarray, answer)  # type: ignore[call-overload]
        is_right = np.isin(label, LABELS) & (np.abs(strength) <= 1 + ROUNDING)  # false for NaN
        if isinstance(scorer, OwnScorer):
            is_right &= ~((np.abs(label) == 1) & (label * np.nan_to_num(strength) < 0))
        if not label.shape == strength.shape == (len(texts),):
            raise ValueError(" ".join(str(answer).split())[:60])
    except (TypeError, ValueError, RuntimeError) as error:  # not two arrays of numbers
        raise fault(scorer, f"{expected}; found {error}") from error
    if not is_right.all():
        at = int(np.argmin(is_right))
        raise fault(scorer, f"{expected}; found {label[at]} and {strength[at]:g} for {texts[at][:60]!r}")
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
    labels = label_column(pl.concat([text_for(scorer, statements, name) for name in templates]), scorer, cache)
    for place, template in enumerate(templates):
        rows, (label, strength) = slice(place * size, (place + 1) * size), label_columns(scorer.name, template)
        columns = pl.Series(label, labels.label[rows]), pl.Series(strength, labels.strength[rows])
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
    labels = label_column(texts["_text"], scorer, cache)
    accepted, probability = names
    answers = texts.select("_place", pl.Series(accepted, labels.label == 1), pl.Series(probability, labels.strength))
    return numbered.join(answers, on="_place", how="left", maintain_order="left").drop("_place")


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
    foreign = first.filter((others > english) | other_script)["text"]
    if len(foreign) <= FEW_OTHERS * first.height:
        return []
    return [
        f"{len(foreign):,} of the first {first.height:,} texts do not look English, such as {foreign[0][:QUOTED]!r}. "
        "The scorers know English only; leave such texts out."
    ]


# Many workers


class OnWorkers:
    """The scorer. A single piece of texts is labelled here, since no worker would be faster.

    load: makes the scorer in a worker. Ray is the cluster of the variable RAY_ADDRESS, else this machine's cores, in a
    Ray that ends with this process. Raises MitigateError when Ray is not installed."""

    def __init__(self, here: Scorer, load: Callable[[], Scorer], workers: int) -> None:
        check_installed("score.engine=ray", "ray", "ray")
        self.name, self.fingerprint = here.name, here.fingerprint
        for attribute in ("reads", "explain"):  # explanations come from the scorer in this process
            if hasattr(here, attribute):
                setattr(self, attribute, getattr(here, attribute))
        self._here, self._load, self._workers = here, load, workers

    def __call__(self, texts: Sequence[str]) -> Labels:
        return self._here(texts)

    def each(self, pieces: Sequence[Sequence[str]]) -> Iterator[tuple[int, Labels]]:
        """Yield the number of each piece with its labels, in the order of completion."""
        if len(pieces) < 2:  # none where all labels are cached: Ray is not started
            yield from enumerate(map(self, pieces))
            return
        data = connected(self._workers).data
        blocks = [pl.DataFrame({"piece": number, "text": texts}).to_arrow() for number, texts in enumerate(pieces)]
        labelled = data.from_arrow(blocks).map_batches(
            Worker,
            fn_constructor_args=(self._load, self.fingerprint),
            compute=data.ActorPoolStrategy(size=self._workers),
            num_cpus=1,
            batch_size=None,  # a piece at a time, as without workers: a text's label may depend on its batch
        )
        try:
            for batch in labelled.iter_batches(batch_size=None):
                for number in np.unique(batch["piece"]):  # Ray may have joined small ones
                    rows = batch["piece"] == number
                    yield int(number), Labels(batch["label"][rows], batch["strength"][rows])
        except Exception as error:
            cause: BaseException = error  # a worker's own error is among the causes
            while cause.__cause__ is not None and not isinstance(cause, MitigateError):
                cause = cause.__cause__
            raise cause from error


class Worker:
    """The part in a process of Ray: one scorer, and batches of texts."""

    def __init__(self, load: Callable[[], Scorer], fingerprint: str) -> None:
        self.scorer = load()
        if self.scorer.fingerprint != fingerprint:
            raise MitigateError(
                f"the scorer {self.scorer.name} of a worker has the fingerprint {self.scorer.fingerprint[:16]}, "
                f"expected {fingerprint[:16]}, that of this machine. All machines need the same version of mitigate "
                "and the same weights"
            )

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        texts = batch["text"].tolist()
        labels = checked(self.scorer, self.scorer(texts), texts)
        return {"piece": batch["piece"], "label": labels.label, "strength": labels.strength}


def connected(workers: int) -> Any:
    """The module `ray`, connected. Raises MitigateError where there are too few cores for the workers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray reports its use to its makers
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors are exceptions too
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False  # the project's own shows progress
    if not ray.is_initialized():
        place = os.environ.get("RAY_ADDRESS") or "local"
        modules = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # workers find the modules of this process
        of_local = {"num_cpus": workers, "include_dashboard": False, "runtime_env": {"env_vars": modules}}
        options: dict[str, Any] = of_local if place == "local" else {}
        try:
            ray.init(place, log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # Ray has no class of its own for these
            ray.shutdown()
            raise MitigateError(f"Ray cannot be reached at {place} (docs/scorers.md): {error}") from error
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < workers:
        raise MitigateError(f"score.workers={workers}, but Ray has {cores} cores; each worker takes one")
    return ray


# The cache


PAGES = 256 * 2**20  # bytes: a large write changes pages all over the file
TABLE = """CREATE TABLE IF NOT EXISTS labels
    (text TEXT PRIMARY KEY, label INTEGER, strength REAL, checksum INTEGER) WITHOUT ROWID"""
SELECT = "SELECT text, label, strength, checksum FROM labels WHERE text IN (SELECT value FROM json_each(?))"
AT_ONCE = 2**12  # texts looked up at once, as JSON, of which SQLite takes 10^9 bytes
FAULTS = (OSError, sqlite3.Error, UnicodeDecodeError)  # the last for bytes that SQLite quotes in a message
Row = tuple[str, int, float]  # text, label, strength

_announced: set[Path] = set()  # folders of which this process has shown a fault


class LabelStore:
    """The label cache (the Protocol `LabelCache`): a SQLite file for each scorer fingerprint, safe to be used by
    several processes at once and open to any SQLite browser.

    Each row has a checksum of its own, compared whenever it is read: SQLite's `PRAGMA quick_check` does not notice a
    changed label. Where the file is damaged or the folder cannot be written to, one line says so, and new labels stay
    in memory, for this object only; so do those of a user's own scorer without a version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._memory: dict[str, dict[str, Row]] = {}

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        """The mask of texts with labels, and their labels."""
        is_cached = np.zeros(len(texts), dtype=bool)
        labels = Labels(np.zeros(len(texts), dtype=np.int8), np.zeros(len(texts), dtype=np.float32))
        place = {text: i for i, text in enumerate(texts)}
        memory = self._memory.get(fingerprint, {})
        rows = self._read(fingerprint, texts) + [memory[text] for text in memory.keys() & place.keys()]
        for text, label, strength in rows:
            i = place.get(text)
            if i is not None:  # SQLite's JSON ends a text where it has a zero byte, and finds the one that ends there
                is_cached[i], labels.label[i], labels.strength[i] = True, label, strength
        return is_cached, labels

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        """Store the labels."""
        rows = list(zip(texts, labels.label.tolist(), labels.strength.tolist(), strict=True))
        if fingerprint.startswith(PROCESS) or not self._write(self._file(fingerprint), rows):
            self._memory.setdefault(fingerprint, {}).update((row[0], row) for row in rows)

    def _write(self, file: Path, rows: Sequence[Row]) -> bool:
        """Return whether the rows could be written."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(file, timeout=120)) as database, database:
                with suppress(sqlite3.OperationalError):  # another process is at it, and SQLite does not wait here
                    database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=NORMAL")  # a kill loses nothing, a power cut the last writes
                database.execute(f"PRAGMA cache_size=-{PAGES // 1024}")
                database.execute(TABLE)
                values = ((*row, _sum(row)) for row in rows)
                database.executemany("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?)", values)
        except FAULTS as error:
            _announce(file, error)
            return False
        return True

    def _read(self, fingerprint: str, texts: Sequence[str]) -> list[Row]:
        """The stored rows of these texts with the right checksum."""
        file = self._file(fingerprint)
        try:
            if not file.exists():
                return []
            with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=120)) as database:
                parts = (json.dumps([*texts[start : start + AT_ONCE]]) for start in range(0, len(texts), AT_ONCE))
                rows = [row for part in parts for row in database.execute(SELECT, [part])]
            return [row[:3] for row in rows if _sum(row[:3]) == row[3]]
        except FAULTS as error:
            _announce(file, error)
            return []

    def _file(self, fingerprint: str) -> Path:
        return self.folder / f"{fingerprint[:16]}.sqlite"


def _announce(file: Path, error: Exception) -> None:
    """Say once in a process and for a folder that labels cannot be stored or read."""
    if file.parent not in _announced:
        _announced.add(file.parent)
        reason = error.strerror if isinstance(error, OSError) else error
        notice(
            f"the label cache {file} cannot be used ({reason}): texts are labelled again, and their labels are lost "
            "when this process ends; free some space, delete the file if it is damaged, or choose another place with "
            "paths.cache=DIR"
        )


def _sum(row: Row) -> int:
    """CRC-32 of the row: at 4 bytes, a changed row has it by chance once in 4 billion."""
    return zlib.crc32(repr(row).encode())
