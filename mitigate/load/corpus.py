"""Triples of a file, and those that a generator is trained and tested on, with their splits and all relations of its
prompts. Test triples for a resource without its own are drawn by whole heads, so that training has no triple with a
test triple's head."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.load import conceptnet
from mitigate.load.stream import Loaded, Streamed, first
from mitigate.stages import digest_of_values
from mitigate.words.outside_text import counted
from mitigate.words.relations import Relation, comet_relations, named, with_own

NAMES = ["head", "relation", "tail"]
FEW = 30  # test triples; with fewer, a figure on them depends on which were drawn
SEED = 1  # of the draw of held-out heads


@dataclass(frozen=True)
class Corpus:
    """Triples with their splits, and the relations of the run."""

    triples: pl.DataFrame
    own_relations: Sequence[Relation]  # a user's own, with their phrases
    relations: Sequence[Relation]  # that are probed
    further: Sequence[Relation]  # that the generator is prompted with besides COMeT's 34, or in their place
    comet: bool  # whether it is prompted with COMeT's 34
    held_out: str  # a sentence on triples held out for test; "" where there are none
    notices: Sequence[str]

    @property
    def facts(self) -> dict[str, str]:
        """Splits and a user's relations, for the record of a run."""
        counts = self.triples["split"].value_counts().sort("split").iter_rows()
        own = [f"{one.name}: “{one.phrase}”, neutral “{one.neutral_phrase}”" for one in self.own_relations]
        by_split = ", ".join(f"{split} {count:,}" for split, count in counts)
        found = {"triples by split": by_split, "held out": self.held_out, "own relations": "; ".join(own)}
        return {name: text for name, text in found.items() if text}


def corpus_of(
    loaded: object,
    wanted: Sequence[str] | None = None,
    *,
    only_in_data: bool = False,
    comet: bool = True,
    holdout: float | None = None,
) -> Corpus:
    """The corpus of the triples that a loader returned.

    wanted: names of the relations to probe; None: COMeT's 34, or with only_in_data those of the training triples.
    comet: False for a resource with relations of its own, such as ATOMIC: the generator is not asked about COMeT's 34.
    holdout: the share of triples to hold out for test where there are no splits, and half as many for dev, by head.

    Raises MitigateError for anything but triples, for relations without a phrase, and where no triple trains."""
    resource = triples_of(loaded)
    own, available = resource.own_relations, with_own(resource.own_relations)
    in_training = relations_in_training(resource.rows)
    triples, held_out, notices = resource.rows, "", list(resource.notices)
    if holdout is None or triples["split"].n_unique() > 1:
        train, test = (triples.filter("valid", split=split).select(NAMES).unique() for split in ("train", "test"))
        if test.is_empty():
            notices.append("The data has no test triples; nothing is measured on them.")
        elif both := test.join(train, on=NAMES, how="semi").height:
            notices.append(f"{both:,} of {test.height:,} distinct test triples are training triples too.")
    elif holdout and triples["head"].n_unique() > 1:
        triples, held_out = hold_out(triples, holdout)
        notices.append(held_out)
    else:
        why = f"can be held out for test: all have one head, “{triples['head'][0]}”"
        why = why if holdout else "are held out for test (data.holdout=0)"
        notices.append(f"No triples {why}; nothing is measured on test triples.")
    comets = {relation.name for relation in comet_relations()}
    if wanted is None:
        wanted = [name for name in available if name in (in_training if only_in_data else comets)]
    relations = named(list(dict.fromkeys(wanted)), available)
    if not relations:
        raise MitigateError("probe.relations is empty; list at least one relation, or set null for all")
    used = {*wanted, *triples["relation"]} - (comets if comet else set())
    further = [one for name, one in available.items() if name in used or (comet and one in own)]
    repeats = triples.filter("valid", split="train").select(NAMES)
    if count := repeats.height - repeats.n_unique():
        notices.append(f"{counted(count, 'repeated training triple')}; all are counted and trained on.")
    if single := [one.name for one in own if one.phrase == one.neutral_phrase and not one.comet_words]:
        notices.append(f"Relations with a single wording, also used as the neutral one: {', '.join(single)}.")
    if unseen := [one.name for one in relations if one.name not in in_training]:
        notices.append(f"Probed relations without training triples: {first(unseen, ', ')}.")
    return Corpus(triples, own, relations, further, comet, held_out, notices)


def triples_of(loaded: object) -> Loaded | Streamed:
    """Return what a loader returned, if it is triples. Raises MitigateError for anything else."""
    if not isinstance(loaded, Loaded | Streamed) or loaded.kind == "statements":
        raise MitigateError(
            "the data has no triples, and this recipe trains on triples; set data=sample, data=cn100k or data=atomic, "
            "or give your own: data=triples data.path=FILE"
        )
    return loaded


def relations_in_training(triples: pl.DataFrame) -> set[str]:
    """The relations of the triples that can be trained on. Raises MitigateError where there is none."""
    if found := set(triples.filter("valid", split="train")["relation"]):
        return found
    counts = ", ".join(f"{split} {count:,}" for split, count in triples["split"].value_counts(sort=True).iter_rows())
    raise MitigateError(f"the data has no training triples (by split: {counts or 'none'}); give triples of split train")


def hold_out(triples: pl.DataFrame, share: float) -> tuple[pl.DataFrame, str]:
    """The triples with all triples of some heads moved from split train to test, and of others to dev; and a sentence.

    Heads are drawn in an order that SEED fixes, each if the share of test stays at most this one, and that of dev at
    most half of it; where all heads have more, the one with the fewest triples is held out for test."""
    counts = triples.filter(split="train")["head"].value_counts().sort("head")
    total, left = int(counts["count"].sum()), counts[np.random.default_rng(SEED).permutation(counts.height).tolist()]
    splits, sizes = dict[str, str](), {"test": 0, "dev": 0}
    for split, most in (("test", share * total), ("dev", min(share, 1 - share) / 2 * total)):
        for head, count in left.iter_rows():
            if head not in splits and sizes[split] + count <= most:
                splits[head] = split
                sizes[split] += count
        if split == "test" and not splits:
            head, sizes[split] = counts.sort("count", "head").row(0)
            splits = {head: split}
    of_head = pl.col("head").replace_strict(splits, default="train", return_dtype=pl.String)
    moved = triples.with_columns(split=pl.when(pl.col("split") == "train").then(of_head).otherwise("split"))
    heads = f"{list(splits.values()).count('test'):,} of {counts.height:,} heads"
    return moved, (
        f"The data has no test triples of its own: {sizes['test']:,} of {total:,} triples "
        f"({100 * sizes['test'] / total:.1f} %) are held out, all triples of {heads}, drawn by chance; "
        f"{sizes['dev']:,} others are for dev."
    ) + " Figures on so few are uncertain." * (sizes["test"] < FEW)


def sample_triples() -> pl.DataFrame:
    """Return the sample corpus, columns TRIPLES, with the splits train, dev, dev2 and test. It is small and was written
    for demonstrations: figures of it are not findings."""
    return conceptnet.sample().rows


def digest_of_relations(own: Sequence[Relation]) -> bytes:
    """The hash of a user's own relations with their wordings, which affect labels; b"" where there are none. The same
    triples in other words are another run."""
    return digest_of_values(list(own)).encode() if own else b""
