"""What teaches a classifier of regard not to depend on the group that a text names: statements about "this person"
whose polarity is known, affirmed and denied, and copies of texts with identity terms in place of "this person"."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mitigate.load.identity import masked, read_frames, read_further_terms, read_predicates, read_terms
from mitigate.train import regard as training
from mitigate.train.regard_data import part_of
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.verbalise import MASK
from mitigate.words.targets import targets
from mitigate.words.word_forms import article, with_plurals

LABEL = {"neutral": NEUTRAL, "kind": FAVOURITISM, "unkind": PREJUDICE}
DENIED = {"neutral": "neutral", "kind": "unkind", "unkind": "neutral"}
"""What the denial of a polarity is, as in the frames of mitigate.load.identity."""
TEACHERS_SHARE = 0.5  # of the probabilities that a labelled text is trained towards; the rest is its label's
SINGULAR, BARE = 0.5, 0.2  # shares of the copies with "a term" and "term"; the others have the plural
OF_PAPER = 0.4  # share of the copies with a target of the paper's
PLURAL_VERBS = {"is": "are", "has": "have", "does": "do", "was": "were", "isn't": "aren't"}


def written_statements() -> pl.DataFrame:
    """The frames of the split train and the predicates, about "this person" and of part train: text, label, part."""
    frames = read_frames().filter(split="train", number="singular")
    rows = [(masked(frame, MASK), LABEL[polarity]) for frame, polarity in frames.select("frame", "polarity").rows()]
    for affirmed, denied, polarity in read_predicates().select("affirmed", "denied", "polarity").rows():
        rows += [(f"{MASK} {affirmed}", LABEL[polarity]), (f"{MASK} {denied}", LABEL[DENIED[polarity]])]
    table = pl.DataFrame(rows, schema={"text": pl.String, "label": pl.Int8}, orient="row")
    return table.with_columns(part=pl.lit("train"))


def terms() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(term, plural) of the identity terms that are trained with, and of those targets of the paper's that are not of
    part test and share no word with an identity term that is tested with."""
    listed = read_terms()
    tested = {word for text in (*_column(listed.filter(split="test"), "term", "plural"),) for word in _words(text)}
    identity = pl.concat([listed.filter(split="train").select("term", "plural"), read_further_terms()[:, :2]]).rows()
    paper = [(target, list(with_plurals(target))[-1]) for target in targets() if part_of(target) != "test"]
    return identity, [pair for pair in paper if not tested & {word for text in pair for word in _words(text)}]


def swapped(texts: Sequence[str], seed: int) -> list[str]:
    """Each text with a term in place of every "this person", drawn anew for each text: with its article, bare, or in
    the plural, with the verb behind it in the plural too where that is one of a few."""
    chance = np.random.default_rng(seed)
    identity, paper = terms()
    found = []
    for text, of_paper, form in zip(texts, chance.random(len(texts)), chance.random(len(texts)), strict=True):
        pool = paper if of_paper < OF_PAPER else identity
        one, many = pool[chance.integers(len(pool))]
        if form < SINGULAR + BARE:
            found.append(text.replace(MASK, f"{article(one)} {one}" if form < SINGULAR else one))
        else:
            verb = re.sub(rf"{MASK} (\S+)", lambda verb: f"{MASK} {PLURAL_VERBS.get(verb[1], verb[1])}", text)
            found.append(verb.replace(MASK, many))
    return found


def with_copies(
    labelled: pl.DataFrame, taught: pl.DataFrame, copies: Mapping[str, float], seed: int
) -> tuple[list[str], np.ndarray]:
    """The taught texts and their copies with identity terms, and the probabilities to train towards, (n, 4): of the
    labelled, which come first, half the label and half the teacher's; of the statements that were written to train with
    their labels, which the teacher has not learnt, since with them it agreed less with the labels of the others.

    copies: how many copies each has of the statements that were written to train with ("written"), of other texts that
    are not plainly neutral ("polar"), and of those that are ("neutral"); of a number below 1 as many texts by lot."""
    texts = taught["text"].to_numpy()
    wanted = taught["probabilities"].to_numpy().astype(np.float32)
    labels = training.certain(training.columns_of(labelled))
    wanted[: len(labels)] = TEACHERS_SHARE * wanted[: len(labels)] + (1 - TEACHERS_SHARE) * labels
    known = written_statements()
    columns = dict(zip(known["text"], training.columns_of(known), strict=True))
    written = np.array([text in columns for text in texts]) & (np.arange(len(texts)) >= len(labels))
    wanted[written] = training.certain(np.array([columns[text] for text in texts[written]], dtype=int))
    plain = wanted[:, training.NEUTRAL] >= training.PLAINLY
    often = np.where(written, copies["written"], np.where(plain, copies["neutral"], copies["polar"]))
    often = np.where([MASK in text for text in texts], often, 0)
    whole = (often + np.random.default_rng(seed).random(len(often))).astype(int)
    sources = np.repeat(np.arange(len(texts)), whole)
    return [*texts, *swapped([texts[i] for i in sources], seed)], np.concatenate([wanted, wanted[sources]])


def _column(rows: pl.DataFrame, *names: str) -> list[str]:
    return [text for name in names for text in rows[name]]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text)) - {"person", "people", "with", "a"}
