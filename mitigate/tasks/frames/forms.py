"""Forms on posts: posts as examples, training, and filled forms as frames. Forms are trained on the training split, and
then, if implied statements exist for test posts alone, on four fifths of these posts for each of five folds."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.tasks.frames.posts import FOLDS, share_of
from mitigate.train.frames import Settings, fit
from mitigate.words.frames import CHOICES, NAMES, PARENTS, TEXTS, Frame, consistent, most_probable, token
from models import minilm
from models.encoding import Encoding
from models.form import NO, UNKNOWN, YES, Example, Field, Filled, Form, Reads, fill_in
from models.hf_layouts import read_settings

FIELDS = [
    Field(name, PARENTS.get(name), tuple(token(name, value) for value in (False, True, None) if name in CHOICES))
    for name in (*CHOICES[:-1], *TEXTS, CHOICES[-1])
]
"""Equation 1: lewd, offensive, intent, group targeted; targeted group, implied statement; in-group language."""

MOST_ALTERNATIVES = 4
VALUE = {False: NO, True: YES, None: UNKNOWN}
BASE = "base"
SHORTER = 1 / 3
"""Posts without implied statements that a fold is trained on, as a share of those that have some."""


def start_form(start: str | None, folder: Path | None, reads: str, known: Sequence[str], dropout: float = 0.1) -> Form:
    """Build an untrained form: "minilm" starts from all-MiniLM-L6-v2, "model" from the GPT-1 or GPT-2 in the folder.
    Raises MitigateError where these are missing or incomplete."""
    facts: dict[str, Any] = {"reads": reads, "known": list(known)}
    with _weights_faults(folder):
        if start == "minilm":
            return Form.from_encoder(minilm.locate(folder), FIELDS, dropout, **facts)
        assert folder is not None
        return Form.from_language_model(folder, FIELDS, dropout, **facts)


def check_start(start: str, folder: Path | None) -> None:
    """Raise MitigateError where a form cannot start from the folder, without reading a language model's weights."""
    with _weights_faults(folder):
        if start == "minilm":
            minilm.locate(folder)
        elif folder is not None:
            read_settings(folder)
            Encoding.load(folder)


@contextmanager
def _weights_faults(folder: Path | None) -> Iterator[None]:
    """Context that turns any error into a MitigateError about the folder."""
    try:
        yield
    except Exception as error:  # the tokenizers library raises no narrower one
        where = "" if folder is None else f"={folder}"
        raise MitigateError(
            f"frames.weights{where} cannot be loaded ({error}); set it to weights that fit frames.start"
        ) from error


def learnable_choices(posts: pl.DataFrame) -> list[str]:
    """The classifications with both values in the posts; no other can be learnt."""
    return [name for name in CHOICES if posts[name].drop_nulls().n_unique() == 2]


def examples(form: Form, posts: pl.DataFrame) -> list[Example]:
    """Make an example of each post. A missing parent that must be positive, since a child has a value, is read as
    positive and has no loss; other missing values have no loss either."""
    rows = posts.rows(named=True)
    texts = form.read(posts["post"].to_list())
    pairs = [_alternatives(row) for row in rows]
    flat = [text or "" for row in pairs for pair in row for text in pair]
    encoded = iter(form.encoding.encode(flat))
    found = []
    for row, text, alternatives in zip(rows, texts, pairs, strict=True):
        frame = consistent(Frame(**{name: row[name] for name in CHOICES}))
        learnt = "ingroup" in form.known and frame.ingroup is not None
        last = VALUE[frame.ingroup] if "ingroup" in form.known else UNKNOWN
        branches = [([next(encoded) for _ in TEXTS], last, learnt) for _ in alternatives]
        found.append(Example(text, *_choices(frame, form), branches))
    return found


def _choices(frame: Frame, form: Form) -> tuple[list[int], list[bool]]:
    """The value of each choice before the texts, and whether it is learnt."""
    given = {name: getattr(frame, name) for name in CHOICES[:-1]}
    read = dict(given)
    for name, parent in PARENTS.items():
        if name in CHOICES[:-1] and given[name] is True and read[parent] is None:
            read[parent] = True
        if name in CHOICES[:-1] and given[parent] is False:
            read[name] = False
    values = [VALUE[read[name]] if name in form.known else UNKNOWN for name in CHOICES[:-1]]
    return values, [name in form.known and given[name] is not None for name in CHOICES[:-1]]


def _alternatives(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The groups and statements to learn: none under a negative parent."""
    if row["targeted"] is not True:
        return []
    pairs = list(zip(row["implied_groups"], row["implied"], strict=True)) or [(group, "") for group in row["groups"]]
    return [(group or "", implied) for group, implied in pairs][:MOST_ALTERNATIVES]


def fill_posts(
    form: Form, posts: Sequence[str], *, samples: int = 0, seed: int = 1, always: bool = False
) -> pl.DataFrame:
    """A row for each post (SCHEMA): the five classifications as decoded (null where not reached or not learnt) and as
    the most probable consistent ones given the probabilities of the same pass (constrained_NAME), group, implied, the
    probability of each positive value (p_NAME; null where it was not reached), and log_prob of the texts.

    samples: 0 is greedy; else the likeliest of so many drawn candidates. always: texts are generated for every
    frame."""
    texts = form.read(list(posts))
    filled = fill_in(form, texts, always=always)
    for number in range(samples):
        chances = np.random.default_rng([seed, number]).random((len(texts), 2 * (form.longest_text + 1)))
        drawn = fill_in(form, texts, chances=chances, always=always)
        pairs = zip(filled, drawn, strict=True)
        filled = [max(pair, key=lambda one: one.text_log_prob) for pair in pairs] if number else drawn
    return pl.DataFrame([_row(form, one) for one in filled], schema=SCHEMA, orient="row")


SCHEMA: dict[str, Any] = {
    **dict.fromkeys(CHOICES, pl.Boolean),
    **{f"constrained_{name}": pl.Boolean for name in CHOICES},
    **dict.fromkeys(TEXTS, pl.String),
    **{f"p_{name}": pl.Float64 for name in CHOICES},
    "log_prob": pl.Float64,
}


def _row(form: Form, filled: Filled) -> tuple[Any, ...]:
    frames = [frame_of(form, filled, constrained) for constrained in (False, True)]
    log_probs = dict(zip(form.ids, filled.log_probs[:, YES], strict=True))
    return (
        *(getattr(frame, name) for frame in frames for name in CHOICES),
        *map(form.encoding.decode, filled.texts),
        *(None if np.isnan(log_probs[name]) else float(np.exp(log_probs[name])) for name in CHOICES),
        filled.text_log_prob,
    )


def frame_of(form: Form, filled: Filled, constrained: bool) -> Frame:
    """The frame of a filled form. constrained: Section 4's search among consistent values."""
    meaning = {number: value for value, number in VALUE.items()}
    values = {name: meaning[value] for name, value in zip(form.ids, filled.choices, strict=True)}
    frame = Frame(**values, **dict(zip(TEXTS, map(form.encoding.decode, filled.texts), strict=True)))  # type: ignore[arg-type]
    if constrained:
        pairs = zip(form.ids, filled.log_probs, strict=True)
        log_probs = {name: (float(no), float(yes)) for name, (no, yes) in pairs if not np.isnan(yes)}
        frame = most_probable(frame, log_probs=log_probs)
    return consistent(frame)


def described(frame: Frame) -> str:
    """A frame in words: "offensive, group targeted: women; women are less qualified"."""
    words = [NAMES[name] for name in CHOICES if getattr(frame, name)]
    return "; ".join(filter(None, [", ".join(words), frame.group, frame.implied]))


@dataclass(frozen=True)
class Start:
    """A form before training."""

    kind: str  # minilm, or model: the GPT-1 or GPT-2 of a folder
    reads: Reads
    dropout: float = 0.1
    weights: str = ""  # the hash of the folder's weights


def train_base(
    posts: pl.DataFrame, start: Start, settings: Settings, *, folder: Path, weights: Path | None = None, **how: Any
) -> dict[str, Any]:
    """Train on the posts of the split `train` and save in {folder}/models/base. weights: the folder that the start is
    read from. how: fingerprint, accelerator and log, as train.frames.fit takes them. Text fields allow the words of all
    posts' groups and statements, without learning their use."""
    form = start_form(start.kind, weights, start.reads, learnable_choices(posts), start.dropout)
    form.restrict([text for column in ("groups", "implied") for row in posts[column] for text in row])
    learnt = examples(form, posts.filter(pl.col("split") == "train"))
    return _fitted(form, learnt, settings, BASE, folder, **how)


def train_fold(posts: pl.DataFrame, fold: int, settings: Settings, *, folder: Path, **how: Any) -> dict[str, Any]:
    """Train {folder}/models/base further on test posts of all other folds and save in {folder}/models/fold_{fold}:
    those with implied statements, and a third as many of the others. how: as train_base."""
    form = Form.load(folder / "models" / BASE)
    learnt = examples(form, fold_posts(posts, fold))
    return _fitted(form, learnt, settings, f"fold_{fold}", folder, **how)


def fold_posts(posts: pl.DataFrame, fold: int) -> pl.DataFrame:
    """The posts that a fold's model learns from."""
    others = posts.filter(pl.col("fold").is_not_null(), pl.col("fold") != fold)
    has_implied = pl.col("implied").list.len() > 0
    implied, rest = others.filter(has_implied), others.filter(~has_implied)
    order = rest["key"].map_elements(lambda key: share_of(key, "drawn"), return_dtype=pl.Float64)
    return pl.concat([implied, rest[order.arg_sort().head(round(SHORTER * implied.height))]])


def needs_folds(posts: pl.DataFrame) -> bool:
    """Return whether implied statements exist for test posts alone."""
    implied = posts.filter(pl.col("implied").list.len() > 0)
    return implied.height > 0 and (implied["split"] == "test").all()


def fold_numbers(posts: pl.DataFrame) -> list[int]:
    """The folds to train; none where training posts have implied statements."""
    return list(range(FOLDS)) if needs_folds(posts) else []


def _fitted(form: Form, learnt: list[Any], settings: Settings, name: str, folder: Path, **how: Any) -> dict[str, Any]:
    fitted = fit(form, learnt, settings, folder / "checkpoints" / name, **how)
    with replacing_folder(folder / "models" / name) as part:
        form.save(part)
    return {**fitted._asdict(), "learnt": [choice for choice in CHOICES if choice in form.known]}
