"""Texts that the regard classifiers are trained and measured on."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.load.conceptnet import read_triples
from mitigate.load.ratings import read_crowd
from mitigate.load.statements import GENERICSKB, harms_genericskb
from mitigate.train import regard as training
from mitigate.train.regard import part_of
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.verbalise import MASK, mask_column
from mitigate.words.identity_terms import masked, read_frames, read_further_terms, read_predicates, read_terms
from mitigate.words.relations import comet_relations, relations
from mitigate.words.targets import targets
from mitigate.words.word_forms import any_of, article, with_plurals

EMPTY = (
    *("something", "anything", "object", "objects", "item", "it"),
    *("this", "stuff", "someone", "place", "word", "name"),
)
LEARNT = ("train", "valid")  # parts
THIRDS = 3  # of train100k's triples: for training, for the gate's threshold, and for checking the gate
MOST = 12_000  # texts to choose a threshold by, or to check the gate with
LABEL = {"neutral": NEUTRAL, "kind": FAVOURITISM, "unkind": PREJUDICE}
DENIED = {"neutral": "neutral", "kind": "unkind", "unkind": "neutral"}
"""Polarity of a denied statement, as in the frames of mitigate.words.identity_terms."""
TEACHERS_SHARE = 0.5  # of the training probabilities of a labelled text; the rest is its label's
SINGULAR, BARE = 0.5, 0.2  # shares of the copies with "a term" and "term"; the others have the plural
OF_PAPER = 0.4  # share of the copies with a target of the paper
PLURAL_VERBS = {"is": "are", "has": "have", "does": "do", "was": "were", "isn't": "aren't"}


@dataclass(frozen=True)
class Texts:
    """Texts for training and measuring."""

    labelled: pl.DataFrame  # text, label, part
    crowd: pl.DataFrame  # resource, sentence, votes, masked
    unlabelled: list[str]  # for training: written statements, and those of train100k
    choosing: list[str]  # of train100k, not in training, for the gate's threshold
    checking: pl.DataFrame  # source, text: in neither, for checking the gate

    @property
    def learnt(self) -> pl.DataFrame:
        """The labelled texts that both classifiers of sentences learn from."""
        return self.labelled.filter(pl.col("part").is_in(LEARNT))


def read_texts(root: Path) -> Texts:
    """Read the texts below a folder that holds regard/, humans/ and conceptnet100k/, and, for checking the gate,
    GenericsKB's sentences in harms/ if they exist. No training text is a statement that the crowd rated, however
    masked, or names a target of part test."""
    crowd = read_crowd(root / "humans").rename({"sentence": "statement"})
    crowd = crowd.with_columns(masked=mask_column("statement", "token"))
    rated = {*crowd["masked"], *crowd["statement"]}
    for statement in crowd["statement"]:
        rated |= {statement.replace(target, MASK) for target in targets() if target in statement}
    labelled = training.read_labelled(root / "regard", kept_out=rated)
    labelled = pl.concat([labelled, empty_statements()]).unique("text", keep="first", maintain_order=True)
    names = re.compile(any_of([target for target in targets() if part_of(target) == "test"]))
    kept = [part not in LEARNT or not names.search(text) for text, part in labelled.select("text", "part").rows()]
    labelled = labelled.filter(pl.Series(kept))
    written = [text for text in written_statements()["text"] if text not in {*labelled["text"], *rated}]
    triples = read_triples(root / "conceptnet100k" / "train100k.txt", "train", labelled=False).rows
    taken = {*labelled["text"], *written} | rated
    parts = []
    for part in range(THIRDS):
        parts.append(sorted(masked_statements(triples.gather_every(THIRDS, part)) - taken))
        taken.update(parts[-1])
    unlabelled = [text for text in [*written, *parts[0]] if not names.search(text)]
    chance = random.Random(0)
    checking = {
        "ConceptNet train100k": _some(parts[2], chance),
        "GenericsKB": _some([text for text in generics_masked(root) if text not in taken], chance),
        "COMeT": crowd.filter(resource="COMeT")["masked"].unique(maintain_order=True).to_list(),
        "BERT's texts, unseen targets": labelled.filter(part="test")["text"].to_list(),
    }
    rows = [(source, text) for source, texts in checking.items() for text in texts]
    checked = pl.DataFrame(rows, schema={"source": pl.String, "text": pl.String}, orient="row")
    return Texts(labelled, crowd, unlabelled, _some(parts[1], chance), checked)


def empty_statements() -> pl.DataFrame:
    """Statements without content, neutral whatever the wording of their relation: (text, label, part)."""
    phrases = {phrase for relation in comet_relations() for phrase in (relation.phrase, relation.neutral_phrase)}
    pairs = [pair for thing in EMPTY for pair in ((MASK, thing), (thing, MASK))]
    texts = [f"{head} {phrase} {tail}" for phrase in sorted(phrases) for head, tail in pairs]
    return pl.DataFrame({"text": texts}).with_columns(pl.lit(NEUTRAL, pl.Int8).alias("label"), part=pl.lit("train"))


def masked_statements(triples: pl.DataFrame) -> set[str]:
    """Statements of triples of train100k: whole, as the main job scores them; about "this person", with the head or the
    tail replaced; and, for a wide vocabulary, of head and tail as related to "this person"."""
    phrases = {name: relation.phrase for name, relation in relations().items()}
    phrase = pl.col("relation").replace_strict(phrases, return_dtype=pl.String)
    head, tail = (pl.col(end).str.to_lowercase() for end in ("head", "tail"))
    anyone, related = pl.lit(MASK), pl.lit("is related to")
    whole = pl.concat_str(head, phrase, tail, separator=" ").alias("statement")
    others = [(anyone, phrase, tail), (head, phrase, anyone), (head, related, anyone), (tail, related, anyone)]
    found = set(triples.select(whole).select(mask_column("statement", "token")).to_series())
    return found.union(*(triples.select(pl.concat_str(parts, separator=" ")).to_series() for parts in others))


def generics_masked(root: Path) -> list[str]:
    """Read GenericsKB's sentences about targets, masked; none without their file."""
    if not (root / GENERICSKB).is_file():
        return []
    statements = harms_genericskb(str(root)).rows
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
    """(term, plural) of the identity terms of training, and of the paper's targets that are not of part test and share
    no word with an identity term of testing."""
    listed = read_terms()
    names = listed.filter(split="test").select("term", "plural").rows()
    tested = {word for pair in names for text in pair for word in _words(text)}
    identity = pl.concat([listed.filter(split="train").select("term", "plural"), read_further_terms()[:, :2]]).rows()
    paper = [(target, list(with_plurals(target))[-1]) for target in targets() if part_of(target) != "test"]
    return identity, [pair for pair in paper if not tested & {word for text in pair for word in _words(text)}]


def swapped(texts: Sequence[str], seed: int) -> list[str]:
    """Put a term in place of every "this person", drawn for each text: with its article, bare, or in the plural, and
    then with the plural of the verb behind it if it is a common one."""
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


def with_copies(labelled: pl.DataFrame, taught: pl.DataFrame, copies: Mapping[str, float], seed: int) -> pl.DataFrame:
    """Add to the taught texts (text, probabilities) their copies with identity terms, with training probabilities: for
    labelled texts, which come first, half the label and half the teacher's; for statements written for training their
    labels, since the teacher, which agreed less with the other labels when trained on them, was not.

    copies: numbers of copies of each statement written for training ("written"), of other texts that are not plainly
    neutral ("polar"), and of plainly neutral ones ("neutral"); of a fraction, copies of as large a share of the texts,
    drawn at random."""
    texts = taught["text"].to_numpy()
    wanted = taught["probabilities"].to_numpy().astype(np.float32)
    labels = training.certain(training.columns_of(labelled))
    wanted[: len(labels)] = TEACHERS_SHARE * wanted[: len(labels)] + (1 - TEACHERS_SHARE) * labels
    statements = written_statements()
    columns = dict(zip(statements["text"], training.columns_of(statements), strict=True))
    written = np.array([text in columns for text in texts]) & (np.arange(len(texts)) >= len(labels))
    wanted[written] = training.certain(np.array([columns[text] for text in texts[written]], dtype=int))
    plain = wanted[:, training.NEUTRAL] >= training.PLAINLY
    often = np.where(written, copies["written"], np.where(plain, copies["neutral"], copies["polar"]))
    often = np.where([MASK in text for text in texts], often, 0)
    whole = (often + np.random.default_rng(seed).random(len(often))).astype(int)
    sources = np.repeat(np.arange(len(texts)), whole)
    every = [*texts, *swapped([texts[i] for i in sources], seed)]
    return pl.DataFrame({"text": every, "probabilities": np.concatenate([wanted, wanted[sources]])})


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text)) - {"person", "people", "with", "a"}
