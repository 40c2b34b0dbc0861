"""The texts that the regard classifiers learn from and are measured on."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.load.crowd import read_crowd
from mitigate.load.harms import GENERICSKB, genericskb
from mitigate.load.identity import masked, read_frames, read_further_terms, read_predicates, read_terms
from mitigate.load.triples_file import read_triples
from mitigate.runs.fingerprints import digest_of_values
from mitigate.train import regard
from mitigate.train import regard as training
from mitigate.train.regard import part_of
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.verbalise import MASK, mask_column
from mitigate.words.relations import comet_relations, relations
from mitigate.words.targets import targets
from mitigate.words.word_forms import any_of, article, with_plurals

EMPTY = (
    *("something", "anything", "object", "objects", "item", "it"),
    *("this", "stuff", "someone", "place", "word", "name"),
)
LEARNT = ("train", "valid")  # parts
THIRDS = 3  # of train100k's triples: one is learnt from, one the gate's threshold is chosen by, one checks the gate
MOST = 12_000  # texts to choose a threshold by, or to check the gate with
LABEL = {"neutral": NEUTRAL, "kind": FAVOURITISM, "unkind": PREJUDICE}
DENIED = {"neutral": "neutral", "kind": "unkind", "unkind": "neutral"}
"""What the denial of a polarity is, as in the frames of mitigate.load.identity."""
TEACHERS_SHARE = 0.5  # of the probabilities that a labelled text is trained towards; the rest is its label's
SINGULAR, BARE = 0.5, 0.2  # shares of the copies with "a term" and "term"; the others have the plural
OF_PAPER = 0.4  # share of the copies with a target of the paper's
PLURAL_VERBS = {"is": "are", "has": "have", "does": "do", "was": "were", "isn't": "aren't"}


@dataclass(frozen=True)
class Texts:
    """All that is learnt from or measured on."""

    labelled: pl.DataFrame  # text, label, part
    crowd: pl.DataFrame  # resource, sentence, votes, masked
    unlabelled: list[str]  # to learn from: statements that were written for it, and of train100k
    choosing: list[str]  # of train100k, not learnt from, by which the gate's threshold is chosen
    checking: pl.DataFrame  # source, text: of neither, with which the gate is checked

    @property
    def learnt(self) -> pl.DataFrame:
        """Those of labelled that both classifiers of sentences learn from."""
        return self.labelled.filter(pl.col("part").is_in(LEARNT))

    def digest(self) -> str:
        """The hash of their content."""
        return digest_of_values(self.labelled, self.crowd, self.unlabelled, self.choosing, self.checking)


def read_texts(root: Path) -> Texts:
    """Read everything below a folder that holds regard/, humans/ and conceptnet100k/, and, to check the gate with,
    GenericsKB's sentences in harms/ where they are there. What the crowd rated is in no text that is learnt from,
    however it is masked, and no such text names a target of part test."""
    crowd = read_crowd(root / "humans").rename({"sentence": "statement"})
    crowd = crowd.with_columns(masked=mask_column("statement", "token"))
    rated = {*crowd["masked"], *crowd["statement"]}
    for statement in crowd["statement"]:
        rated |= {statement.replace(target, MASK) for target in targets() if target in statement}
    labelled = regard.read_labelled(root / "regard", kept_out=rated)
    labelled = pl.concat([labelled, empty_statements()]).unique("text", keep="first", maintain_order=True)
    names = re.compile(any_of([target for target in targets() if part_of(target) == "test"]))
    kept = [part not in LEARNT or not names.search(text) for text, part in labelled.select("text", "part").rows()]
    labelled = labelled.filter(pl.Series(kept))
    written = [text for text in written_statements()["text"] if text not in {*labelled["text"], *rated}]
    triples = read_triples(root / "conceptnet100k" / "train100k.txt", "train", labelled=False).rows
    known = {*labelled["text"], *written} | rated
    parts = []
    for part in range(THIRDS):
        parts.append(sorted(masked_statements(triples.gather_every(THIRDS, part)) - known))
        known.update(parts[-1])
    unlabelled = [text for text in [*written, *parts[0]] if not names.search(text)]
    chance = random.Random(0)
    checking = {
        "ConceptNet train100k": _some(parts[2], chance),
        "GenericsKB": _some([text for text in generics_masked(root) if text not in known], chance),
        "COMeT": crowd.filter(resource="COMeT")["masked"].unique(maintain_order=True).to_list(),
        "BERT's texts, unseen targets": labelled.filter(part="test")["text"].to_list(),
    }
    rows = [(source, text) for source, texts in checking.items() for text in texts]
    checked = pl.DataFrame(rows, schema={"source": pl.String, "text": pl.String}, orient="row")
    return Texts(labelled, crowd, unlabelled, _some(parts[1], chance), checked)


def empty_statements() -> pl.DataFrame:
    """Statements without content, as (text, label, part): neutral, whatever the wording of their relation."""
    phrases = {phrase for relation in comet_relations() for phrase in (relation.phrase, relation.neutral_phrase)}
    texts = [
        text
        for phrase in sorted(phrases)
        for thing in EMPTY
        for text in (f"{MASK} {phrase} {thing}", f"{thing} {phrase} {MASK}")
    ]
    return pl.DataFrame({"text": texts}).with_columns(pl.lit(NEUTRAL, pl.Int8).alias("label"), part=pl.lit("train"))


def masked_statements(triples: pl.DataFrame) -> set[str]:
    """Statements of triples of train100k, whole as the main job scores them, and about "this person": with their head
    and with their tail replaced, and for a wide vocabulary head and tail as merely related."""
    phrases = {name: relation.phrase for name, relation in relations().items()}
    rows = triples.select(
        pl.col("head").str.to_lowercase(),
        pl.col("relation").replace_strict(phrases, return_dtype=pl.String),
        pl.col("tail").str.to_lowercase(),
    ).with_columns(statement=pl.concat_str("head", "relation", "tail", separator=" "))
    rows = rows.with_columns(statement=mask_column("statement", "token"))
    return {
        text
        for head, phrase, tail, statement in rows.rows()
        for text in (
            statement,
            f"{MASK} {phrase} {tail}",
            f"{head} {phrase} {MASK}",
            f"{head} is related to {MASK}",
            f"{tail} is related to {MASK}",
        )
    }


def generics_masked(root: Path) -> list[str]:
    """GenericsKB's sentences about targets, masked; none where their file is not there."""
    if not (root / GENERICSKB).is_file():
        return []
    statements = genericskb(str(root)).rows
    return statements.select(masked=mask_column("statement", "token"))["masked"].unique(maintain_order=True).to_list()


def _some(texts: list[str], chance: random.Random) -> list[str]:
    return chance.sample(texts, min(MOST, len(texts)))


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
