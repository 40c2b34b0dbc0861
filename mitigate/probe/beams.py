"""Probe of a generator: the best tails of every target and relation (harms paper, Section 4.1), what a policy reads to
choose among them, and the likelihood of other tails.

The prompts are divided into parts of fixed size, so that memory stays bounded and a killed probe resumes with the
missing parts, with the same result."""

import copy
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, Protocol, Self

import numpy as np
import polars as pl
import torch
from torch import Tensor

from mitigate.errors import MitigateError, one_of
from mitigate.models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG, Beam, tagged
from mitigate.progress import progress
from mitigate.score.labeller import Labeller
from mitigate.score.plausibility import with_people_valid
from mitigate.train.base_model import Start
from mitigate.triples import HELD_OUT, PROBED, Parts, Scorer
from mitigate.words.prompts import kind_of
from mitigate.words.relations import heads_about, heads_of_relations, prompt_phrases
from mitigate.words.targets import PAPER, TargetList, choose_targets

Precision = Literal["fp32", "bf16"]
PART = 544  # prompts: 16 targets x 34 relations, a few seconds on two cores
CPU_ROWS = 680  # beams at a time
PROMPTS = {**{name: PROBED[name] for name in ("target", "category", "head", "relation")}, "phrase": pl.String}
EVENTS = {"target": pl.String, "relation": pl.String, "head": pl.String}
BATCH = 128  # triples; about 460 rows of logits, 56 MB at 30,522 words


class Generator(Protocol):
    """A generator of tails: a COMeT, or any language model with the same prompts. Both are torch modules. Prompts and
    tails are lists of tokens, tails with their end."""

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]: ...

    def tails(self, tails: Sequence[str]) -> list[list[int]]: ...

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first."""

    def decode(self, tail: Sequence[int]) -> str: ...

    def bfloat16(self) -> Self: ...

    def to(self, device: str) -> Self: ...


class PartsInMemory(dict[int, pl.DataFrame]):
    """Parts (the Protocol `Parts`) in memory, lost when the process ends."""

    def save(self, number: int, frame: pl.DataFrame) -> None:
        """Keep a part."""
        self[number] = frame

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in sorted(self.keys()))


def probe_generator(
    generator: Generator | Start,
    targets: pl.DataFrame | Sequence[str],
    phrases: Mapping[str, str] | Sequence[str] | None = None,
    *,
    beams: int = 10,
    top: int = 10,
    max_length: int = 15,
    precision: Precision = "fp32",
    parts: Parts | None = None,
    device: str = "cpu",
    heads: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The best tails of every target and relation (columns PROBED), in the order of targets, relations, heads, ranks.

    targets: (target, category), or words. phrases: the wording of each relation, by name; or names of relations; None:
    all that the generator was trained with. Of `beams` beams of at most max_length tokens the best `top` are kept.
    parts: store of finished parts, which survives a kill. heads: (target, relation, head), the heads in place of a
    target, such as events that name it (event_heads).

    Raises MitigateError for settings that do not fit together, for unknown relations, and for no target or relation."""
    parts = PartsInMemory() if parts is None else parts
    if not isinstance(targets, pl.DataFrame):
        targets = choose_targets(targets)
    if not isinstance(phrases, Mapping):
        wordings = generator.phrases if isinstance(generator, Start) else prompt_phrases("phrase")
        names = list(wordings) if phrases is None else phrases
        if unknown := next((name for name in names if name not in wordings), None):
            raise one_of("relation", unknown, wordings)
        phrases = {name: wordings[name] for name in names}
    check_search(beams, top)
    events: dict[tuple[str, str], list[str]] = {}
    for target, relation, head in () if heads is None else heads.select("target", "relation", "head").iter_rows():
        events.setdefault((target, relation), []).append(head)
    rows_of = [
        (target, category, head, relation, phrase)
        for target, category in targets.select("target", "category").iter_rows()
        for relation, phrase in phrases.items()
        for head in events.get((target, relation), [target])
    ]
    prompts = pl.DataFrame(rows_of, schema=PROMPTS, orient="row")
    if prompts.is_empty():
        raise MitigateError("the probe has no targets or no relations; give at least one of each")
    model: Any = generator.load() if isinstance(generator, Start) else generator
    if precision == "bf16":
        model = copy.deepcopy(model).bfloat16()
    pieces = {number: prompts[start : start + PART] for number, start in enumerate(range(0, prompts.height, PART))}
    missing = [number for number in pieces if number not in parts]
    done = prompts.height - sum(pieces[number].height for number in missing)
    model, rows = model.to(device), CPU_ROWS if device == "cpu" else PART * beams
    with progress("probe", prompts.height, "prompts", done=done) as advance:
        for number in missing:
            piece = pieces[number]
            tokens = model.prompts(piece["head"].to_list(), piece["phrase"].to_list())
            try:
                results = model.search(tokens, beams=beams, max_length=max_length, rows=rows)
            except ValueError as error:
                raise MitigateError(f"the probe cannot run: {error} (probe.max_length={max_length})") from error
            kept = [result[:top] for result in results]
            best = [beam for result in kept for beam in result]
            tails = piece[[place for place, result in enumerate(kept) for _ in result]].select(
                "target",
                "category",
                "head",
                "relation",
                pl.Series("tail", [model.decode(beam.tokens) for beam in best]),
                pl.Series("rank", [rank for result in kept for rank in range(1, len(result) + 1)]),
                pl.Series("log_prob", [beam.log_prob for beam in best]),
                pl.Series("score", [beam.score for beam in best]),
            )
            parts.save(number, tails.cast(pl.Schema(PROBED)))
            advance(piece.height)
    return pl.concat([*parts])


def check_search(beams: int, top: int) -> None:
    """Raise MitigateError for numbers of a probe that do not fit together."""
    if not 1 <= top <= beams:
        raise MitigateError(f"probe.top={top} must be at least 1 and at most probe.beams={beams}")


def find_device(device: str) -> str:
    """The device of a probe; "auto" is the GPU where there is one. Raises MitigateError for a GPU that is not there."""
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise MitigateError("probe.device=cuda: PyTorch finds no GPU on this machine; set probe.device=cpu or auto")
    return "cuda" if has_gpu and device != "cpu" else "cpu"


def held_out_prompts(
    triples: pl.DataFrame, target_list: TargetList, relations: Iterable[str], size: int, seed: int = 1
) -> pl.DataFrame:
    """Prompts (head, relation) of `size` heads of valid test triples that are not targets, drawn by seed, in the order
    of the file; all where there are fewer. Only the given relations count."""
    valid = triples.filter(pl.col("split") == "test", "valid", pl.col("relation").is_in(list(relations)))
    others = valid.filter(~target_list.target_of(pl.col("head")).is_in(list(target_list.categories)))
    heads = others["head"].unique().sort()
    drawn = heads.gather(np.random.default_rng(seed).permutation(len(heads))[:size].tolist())
    return others.filter(pl.col("head").is_in(drawn.implode())).select("head", "relation").unique(maintain_order=True)


def probe_heads(generator: Start, prompts: pl.DataFrame, *, device: str = "cpu", **search: Any) -> pl.DataFrame:
    """The generator's best tails (columns PROBED, each head as `target`, of the category HELD_OUT) for the prompts
    (head, relation). search: beams, top, max_length and precision of the probe."""
    model, tails = generator.load(), [pl.DataFrame(schema=PROBED)]
    for (relation,), rows in prompts.group_by("relation", maintain_order=True):
        heads = rows.select(target="head", category=pl.lit(HELD_OUT))
        phrase = {str(relation): generator.phrases[str(relation)]}
        tails.append(probe_generator(model, heads, phrase, device=device, **search))
    return pl.concat(tails)


def event_heads(about: pl.DataFrame, relations: Iterable[str], target_list: TargetList = PAPER) -> pl.DataFrame:
    """Events that name each target (target, category), as heads for each relation (columns EVENTS), in the order of
    targets, relations, events. Relations whose heads are not events have no rows."""
    kinds = {name: heads_of_relations().get(name, "object") for name in relations}
    rows = [
        (target, relation, head)
        for target, category in about.select("target", "category").iter_rows()
        for relation, heads in kinds.items()
        for head in heads_about(target, category, kind_of(target, target_list), heads)
    ]
    return pl.DataFrame(rows, schema=EVENTS, orient="row")


def with_contrast(
    tails: pl.DataFrame, generator: Any, phrases: Mapping[str, str] | None = None, *, device: str = "cpu"
) -> pl.DataFrame:
    """Add `contrast` to tails (head, relation, tail): the log-probability after the neutral control token less that
    after the polarised one; 0 for heads without a token. generator: a Start, or a loaded one with the wording of
    relations in its prompts."""
    if isinstance(generator, Start):
        generator, phrases = generator.load().to(device), generator.phrases
    assert phrases is not None
    heads = [head.replace(NEUTRAL_TAG, POLARISED_TAG, 1) for head in tagged(tails["head"].to_list(), generator.tags)]
    polarised = tails.with_columns(head=pl.Series(heads, dtype=pl.String))
    neutral_nll, polarised_nll = (
        pl.Series(nll_of_tails(generator, rows, phrases), dtype=pl.Float64) for rows in (tails, polarised)
    )
    return tails.with_columns(contrast=polarised_nll - neutral_nll)


def label_candidates(probed: pl.DataFrame, labeller: Labeller, critic: Scorer | None = None) -> pl.DataFrame:
    """Label what probe_generator returns; with a critic also by what people would call valid (with_people_valid)."""
    tails = labeller.label(probed)
    return tails if critic is None else with_people_valid(tails, critic, labeller.target_list, cache=labeller.cache)


# The likelihood of other tails. Totals are stored for each triple, so that a subset's perplexity is the exponential of
# its own tokens' mean.


def held_out_likelihood(generator: Generator | Start, labelled: pl.DataFrame, *, device: str = "cpu") -> pl.DataFrame:
    """Add to the valid test triples (head, relation, tail, split, valid, and other columns) `nll`, minus the
    log-likelihood in nats of the tail and its end token given head and phrase; `tokens`, their number, the end
    included; and `nll_unigram`, the same by how often each token occurs in the training tails, where each known token
    counts once more, and all unknown ones once. A tail longer than a COMeT reads is scored on its first 15 tokens."""
    held_out, phrases = labelled.filter("valid", split="test"), prompt_phrases("phrase")
    model: Any = generator
    if isinstance(generator, Start):
        model, phrases = generator.load(), generator.phrases
    model = model.to(device)
    counts = Counter(chain.from_iterable(model.tails(labelled.filter(split="train")["tail"].to_list())))
    total = counts.total() + len(counts) + 1
    tails = model.tails(held_out["tail"].to_list())
    unigram = [sum(math.log(total / (counts[token] + 1)) for token in tail) for tail in tails]
    return held_out.with_columns(
        nll=pl.Series(nll_of_tails(model, held_out, phrases), dtype=pl.Float64),
        tokens=pl.Series([len(tail) for tail in tails], dtype=pl.UInt32),
        nll_unigram=pl.Series(unigram, dtype=pl.Float64),
    )


@torch.inference_mode()
def nll_of_tails(generator: Generator, triples: pl.DataFrame, phrases: Mapping[str, str]) -> list[float]:
    """Minus the log-likelihood in nats of each triple's tail and its end token. Raises MitigateError for a relation
    that has no phrase."""
    if unknown := next((name for name in triples["relation"] if name not in phrases), None):
        raise one_of("relation", unknown, phrases)
    prompts = generator.prompts(triples["head"].to_list(), [phrases[relation] for relation in triples["relation"]])
    tails = generator.tails(triples["tail"].to_list())
    totals = [math.nan] * len(tails)
    order = sorted(range(len(tails)), key=prompts.__getitem__)  # equal prompts are computed once
    with progress("likelihood", len(tails), "triples") as advance:
        for start in range(0, len(tails), BATCH):
            batch = order[start : start + BATCH]
            nll = generator.nll([prompts[row] for row in batch], [tails[row] for row in batch]).double()
            for row, tokens in zip(batch, nll.split([len(tails[row]) for row in batch]), strict=True):
                totals[row] = tokens.sum().item()
            advance(len(batch))
    return totals
