"""The texts that the regard classifiers learn from and are measured on."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mitigate.fingerprints import digest_of_values
from mitigate.load.crowd import KNOWLEDGE, read_crowd
from mitigate.load.triples_file import read_triples
from mitigate.relations import comet_relations, relations
from mitigate.targets import targets
from mitigate.train import regard_data
from mitigate.triples import NEUTRAL
from mitigate.verbalise import MASK, mask_column

EMPTY = (
    *("something", "anything", "object", "objects", "item", "it"),
    *("this", "stuff", "someone", "place", "word", "name"),
)


@dataclass(frozen=True)
class Texts:
    """All that is learnt from or measured on."""

    labelled: pl.DataFrame  # text, label, part
    crowd: pl.DataFrame  # resource, sentence, votes, masked
    unlabelled: list[str]

    @property
    def learnt(self) -> pl.DataFrame:
        """Those of labelled that both classifiers of sentences learn from."""
        return self.labelled.filter(pl.col("part").is_in(["train", "valid"]))

    def digest(self) -> str:
        """The hash of their content."""
        return digest_of_values(self.labelled, self.crowd, self.unlabelled)


def read_texts(root: Path) -> Texts:
    """Read everything below a folder that holds regard/, humans/ and conceptnet100k/. What the crowd rated
    is kept out of the labelled texts, however it is masked."""
    crowd = read_crowd(root / "humans", KNOWLEDGE).rename({"sentence": "statement"})
    crowd = crowd.with_columns(masked=mask_column("statement", "token"))
    rated = {*crowd["masked"], *crowd["statement"]}
    for statement in crowd["statement"]:
        rated |= {statement.replace(target, MASK) for target in targets() if target in statement}
    labelled = regard_data.read_labelled(root / "regard", kept_out=rated)
    labelled = pl.concat([labelled, empty_statements()]).unique("text", keep="first", maintain_order=True)
    return Texts(labelled, crowd, sorted(masked_statements(root) - set(labelled["text"]) - rated))


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


def masked_statements(root: Path) -> set[str]:
    """Statements of every third triple of train100k about "this person": with its head and with its tail replaced, and
    for a wide vocabulary its head and tail as merely related."""
    loaded = read_triples(root / "conceptnet100k" / "train100k.txt", "train", labelled=False)
    phrases = {name: relation.phrase for name, relation in relations().items()}
    triples = loaded.triples.gather_every(3).select(
        pl.col("head").str.to_lowercase(),
        pl.col("relation").replace_strict(phrases, return_dtype=pl.String),
        pl.col("tail").str.to_lowercase(),
    )
    return {
        text
        for head, phrase, tail in triples.rows()
        for text in (
            f"{MASK} {phrase} {tail}",
            f"{head} {phrase} {MASK}",
            f"{head} is related to {MASK}",
            f"{tail} is related to {MASK}",
        )
    }
