"""The texts that the regard classifiers learn from and are measured on."""

import random
import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mitigate.load.crowd import read_crowd
from mitigate.load.harms import GENERICSKB, genericskb
from mitigate.load.triples_file import read_triples
from mitigate.runs.fingerprints import digest_of_values
from mitigate.tasks.regard import copies
from mitigate.train import regard_data
from mitigate.train.regard_data import part_of
from mitigate.triples import NEUTRAL
from mitigate.verbalise import MASK, mask_column
from mitigate.words.relations import comet_relations, relations
from mitigate.words.targets import targets
from mitigate.words.word_forms import any_of

EMPTY = (
    *("something", "anything", "object", "objects", "item", "it"),
    *("this", "stuff", "someone", "place", "word", "name"),
)
LEARNT = ("train", "valid")  # parts
THIRDS = 3  # of train100k's triples: one is learnt from, one the gate's threshold is chosen by, one checks the gate
MOST = 12_000  # texts to choose a threshold by, or to check the gate with


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
    labelled = regard_data.read_labelled(root / "regard", kept_out=rated)
    labelled = pl.concat([labelled, empty_statements()]).unique("text", keep="first", maintain_order=True)
    names = re.compile(any_of([target for target in targets() if part_of(target) == "test"]))
    kept = [part not in LEARNT or not names.search(text) for text, part in labelled.select("text", "part").rows()]
    labelled = labelled.filter(pl.Series(kept))
    written = [text for text in copies.written_statements()["text"] if text not in {*labelled["text"], *rated}]
    triples = read_triples(root / "conceptnet100k" / "train100k.txt", "train", labelled=False).triples
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
    statements = genericskb(str(root)).statements
    return statements.select(masked=mask_column("statement", "token"))["masked"].unique(maintain_order=True).to_list()


def _some(texts: list[str], chance: random.Random) -> list[str]:
    return chance.sample(texts, min(MOST, len(texts)))
