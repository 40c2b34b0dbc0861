"""The model that a training or a probe starts from: its folder, its loader, and its prompts for relations; with checks
of heads and relations."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from tokenizers import Tokenizer

from mitigate.errors import MitigateError
from mitigate.load.tails import check_relations
from mitigate.stages import digest_of_values
from mitigate.words.outside_text import counted
from mitigate.words.relations import Relation, prompt_phrases
from models.digests import sha256_of
from models.encoding import TOKENIZER, Encoding
from models.hf_layouts import CONFIG, LAYOUTS, base_of, is_adapter
from models.stored_tensors import read_facts
from models.tail_prompts import HEAD_TOKENS, RELATION_TOKENS, TAIL_TOKENS, Layout, Regimen, regimen

AROUND = 16  # tokens and bytes that may stand around head and relation, such as " [GEN]" and <s>
MODEL_FILES = {".json", ".jinja", ".safetensors", ".txt", ".model"}  # in a Hugging Face folder, the files of the model


@dataclass(frozen=True)
class Start:
    """A model that can be loaded."""

    code: Callable[..., Any]  # loads it, given folder and options
    folder: Path
    weights: str  # a hash of its files
    regimen: Regimen
    options: Mapping[str, Any] = field(default_factory=dict)
    further: Sequence[Relation] = ()  # relations that it is prompted with besides COMeT's 34
    comet: bool = True  # whether it is prompted with COMeT's 34 at all

    @property
    def phrases(self) -> dict[str, str]:
        """The text in its prompts for each relation, by name: in training, in the probe and on held-out triples."""
        return prompt_phrases(self.regimen.relation, self.further, comet=self.comet)

    @property
    def fingerprint(self) -> str:
        """Hash of all that decides what it generates, wherever its files are."""
        options = {name: value for name, value in self.options.items() if name != "checkpoint"}
        return digest_of_values(self.code, self.weights, self.regimen, options, self.further, self.comet)

    def load(self) -> Any:
        """Load the model. Raises MitigateError where its files cannot be used."""
        try:
            return self.code(folder=self.folder, **self.options)
        except (ValueError, OSError) as error:
            raise MitigateError(str(error)) from error

    def trained(self, code: Callable[..., Any], folder: Path, weights: str) -> "Start":
        """The trained model: prompted the same way, loaded from a folder of its own."""
        return Start(code, folder, weights, self.regimen, further=self.further, comet=self.comet)


def find_start(
    code: Callable[..., Any],
    folder: Path,
    *,
    layout: Layout | None = None,
    relation: str | None = None,
    train: bool = True,
    options: Mapping[str, Any] | None = None,
    further: Sequence[Relation] = (),
    comet: bool = True,
) -> Start:
    """Find the model in a Hugging Face folder, or a file of tails, loaded by code(folder=..., **options), such as
    models.comet.Comet.load.

    layout and relation: of its prompts; None: as it was trained. train: whether it will be trained; otherwise it can
    learn no new words. Of the options, `checkpoint` names a file that belongs to the model. further: relations that it
    is prompted with besides COMeT's 34, or with comet=False in their place.

    Raises MitigateError where it was trained with other prompts, or cannot be prompted so."""
    try:
        how = regimen(folder, layout, relation)
    except ValueError as error:
        raise MitigateError(str(error)) from error
    wordings = prompt_phrases(how.relation, further, comet=comet)
    by_words = how.relation == "token" and not train and not folder.is_file()  # a file of tails names relations itself
    if by_words and regimen(folder).relation != "token":
        raise MitigateError(
            "model.relation=token needs a token for each relation, and this model has none and is not trained here "
            "(train=false); set model.relation=phrase or model.relation=words"
        )
    if by_words:
        added = json.loads((folder / TOKENIZER).read_text(encoding="utf-8")).get("added_tokens", [])
        wanted = {wordings[relation.name] for relation in further}
        if unknown := sorted(wanted - {token["content"] for token in added}):
            raise MitigateError(
                f"the model in {folder} has no token for the relations {', '.join(unknown)}: it was trained without "
                "them, with model.relation=token. Train a model with them (train=true), or leave them out"
            )
    options = options or {}
    if folder.is_file():
        check_relations(folder, further)
    return Start(code, folder, _content(folder, options.get("checkpoint")), how, options, further, comet)


def check_length(start: Start, longest: int) -> None:
    """Raise MitigateError where a COMeT has fewer positions than prompts with tails of `longest` tokens may need. Other
    models read all of a head: check_heads."""
    from models.comet import Comet  # loads PyTorch, which those that load no model do without

    if getattr(start.code, "__self__", None) is not Comet:
        return
    try:
        config = read_facts(start.folder / CONFIG)
    except (ValueError, OSError) as error:
        raise MitigateError(str(error)) from error
    positions = config.get("n_positions", config.get("max_position_embeddings"))
    needed = 1 + HEAD_TOKENS + RELATION_TOKENS + longest - 1  # that of the last token of a tail is never read
    if isinstance(positions, int) and 0 < positions < needed:  # anything else is reported when it is loaded
        raise MitigateError(
            f"probe.max_length={longest} must be at most {longest - needed + positions}: with heads and relations of "
            f"up to {HEAD_TOKENS + RELATION_TOKENS} tokens texts have {needed}, and the model in {start.folder} has "
            f"{positions} positions"
        )


def check_heads(start: Start, pairs: pl.DataFrame, longest: int) -> None:
    """Raise MitigateError for heads that are too long for a model of transformers, which reads all of a head, together
    with their relation and a tail: one in training, or one of `longest` tokens. pairs: (head, relation). The model is
    loaded only where texts have so many bytes that they might have too many tokens."""
    path = start.folder / CONFIG
    if not _reads_all(start) or not path.is_file():
        return  # a COMeT, which cuts heads, or a file of tails
    config = read_facts(path)
    positions = config.get("max_position_embeddings", config.get("n_positions"))
    if not isinstance(positions, int):
        return
    phrases = pl.col("relation").replace_strict(dict(start.phrases), default="", return_dtype=pl.String)
    text, around = pl.col("head").str.len_bytes() + phrases.str.len_bytes(), AROUND
    if start.options.get("prompt") == "chat":  # which has the text twice
        from models.hf import (
            chat_prompt,  # loads transformers, which other models do without
            load_tokenizer,
        )

        text = 2 * text
        around = len(chat_prompt(load_tokenizer(start.folder), "", start.options.get("system")).encode())
    size = text + max(longest, TAIL_TOKENS + 1) + around
    rows = pairs.filter(size > positions).unique(["head", "relation"], keep="first", maintain_order=True)
    if rows.is_empty():
        return
    generator = start.load()
    if (limit := generator.positions) is None:
        return
    prompts = generator.prompts(rows["head"].to_list(), [start.phrases[relation] for relation in rows["relation"]])
    row = max(range(len(prompts)), key=lambda row: len(prompts[row]))
    size_of_longest = len(prompts[row])
    if (needed := generator.needed(size_of_longest, TAIL_TOKENS + 1)) > limit:
        number = sum(generator.needed(len(prompt), TAIL_TOKENS + 1) > limit for prompt in prompts)
        raise MitigateError(
            f"the model in {start.folder} has {limit} positions, too few for {number} of the heads with their "
            f"relation: {needed} are needed for {rows['head'][row][:60]!r} with {rows['relation'][row]} and a tail of "
            f"{TAIL_TOKENS + 1} tokens. Shorten these heads or leave them out, or use a model with more positions"
        )
    if (needed := generator.needed(size_of_longest, longest)) > limit:
        raise MitigateError(
            f"probe.max_length={longest} must be at most {longest - needed + limit}: {needed} positions are needed for "
            f"the longest head with its relation, {size_of_longest} tokens, and such a tail, and the model in "
            f"{start.folder} has {limit}"
        )


def origin_facts(start: Start) -> dict[str, str]:
    """The commit on the hub that the weights come from, if they do, for a run's provenance."""
    from models.hub import commit_of  # loads huggingface_hub, which other models do without

    commit = commit_of(start.folder)
    return {"commit of the base model": commit} if commit else {}


def cut_notices(start: Start, probed: pl.DataFrame, triples: pl.DataFrame) -> list[str]:
    """Notices of texts that the model reads in part: heads of prompts, and heads and tails of training
    triples. probed: (target, head); triples: those that are trained, (head, tail).

    A COMeT reads HEAD_TOKENS of a head, a model of transformers all; of a tail each learns TAIL_TOKENS."""
    if not (start.folder / TOKENIZER).is_file():
        return []  # a file of tails, or a tokenizer of another kind
    found = []
    heads = {} if _reads_all(start) else _longer(start.folder, probed["head"], HEAD_TOKENS)
    if heads:
        shown = ", ".join(repr(text[:60]) for text in [*heads][:3]) + ", ..." * (len(heads) > 3)
        found.append(
            f"{counted(len(heads), 'head')} of the probe {'is' if len(heads) == 1 else 'are'} longer than the "
            f"{HEAD_TOKENS} tokens that the model reads of a head, and cut: {shown}."
        )
    read: dict[tuple[int, ...], list[str]] = {}
    for target, head in probed.select("target", "head").unique(maintain_order=True).iter_rows():
        if head in heads and target not in (same := read.setdefault(tuple(heads[head][:HEAD_TOKENS]), [])):
            same.append(target)
    found += [
        f"The first {HEAD_TOKENS} tokens of {' and '.join(map(repr, targets))} are the same, and the model reads no "
        "more: it generates the same tails for them. Choose targets that differ within these tokens."
        for targets in read.values()
        if len(targets) > 1
    ]
    cut, limits = [], {"tail": TAIL_TOKENS} if _reads_all(start) else {"head": HEAD_TOKENS, "tail": TAIL_TOKENS}
    for name, most in limits.items():
        longer = _longer(start.folder, triples[name], most)
        if rows := int(triples[name].is_in(list(longer)).sum()):
            cut.append(f"{counted(rows, name)} to {most} tokens")
    if cut:
        found.append(f"Of {counted(triples.height, 'training triple')} some are cut: {', '.join(cut)}.")
    return found


def _reads_all(start: Start) -> bool:
    """Return whether the model is one of transformers, which reads all of a head."""
    return hasattr(getattr(start.code, "__self__", None), "needed")


def _longer(folder: Path, texts: pl.Series, most: int) -> dict[str, list[int]]:
    """The texts of more tokens, with their tokens. A token has a byte at least, so that short texts are skipped."""
    long = texts.filter(texts.str.len_bytes() > most).unique(maintain_order=True).to_list()
    words = Encoding(Tokenizer.from_file(str(folder / TOKENIZER)), start=None, end=0, pad=0)
    return {text: ids for text, ids in zip(long, words.encode(long), strict=True) if len(ids) > most}


def check_distinct_relations(start: Start) -> None:
    """Raise MitigateError for further relations that have the same tokens in prompts as another relation: the model
    reads only the first few of a phrase. Loads the model if it has further relations."""
    if not start.further or start.regimen.relation == "token":
        return
    wordings = start.phrases
    prompts = start.load().prompts(["a"] * len(wordings), list(wordings.values()))
    names: dict[tuple[int, ...], list[str]] = {}
    for name, prompt in zip(wordings, prompts, strict=True):
        names.setdefault(tuple(prompt), []).append(name)
    further = {relation.name for relation in start.further}
    if same := [found for found in names.values() if len(found) > 1 and further & set(found)]:
        listed = "; ".join(", ".join(f"{name} ({wordings[name]!r})" for name in found) for found in same)
        raise MitigateError(
            f"these relations have phrases with the same first {RELATION_TOKENS} tokens, and the generator reads no "
            f"more: {listed}. Give them phrases that differ within these tokens, or set model.relation=token, or with "
            "data=atomic model.relation=words"
        )


def _content(folder: Path, checkpoint: str | Path | None) -> str:
    """The hash of a model's files; an adapter's includes those of its base."""
    here = [folder] if folder.is_file() else sorted(folder.iterdir())
    files = here if folder.is_file() else [path for path in here if path.suffix in MODEL_FILES]
    found = hashlib.sha256()
    for path in [*files, Path(checkpoint)] if checkpoint else files:
        found.update(f"{path.name} {sha256_of(path)}\n".encode())
    if is_adapter(folder) and Path(base_of(folder)).is_dir():
        found.update(_content(Path(base_of(folder)), None).encode())
    return found.hexdigest()


def kind_of(folder: Path) -> Any:
    """The class of what is in a Hugging Face folder, by its config.json: a generator that was trained here as what it
    was trained; of other models those that our decoder computes as a Comet, the rest as a sequence-to-sequence or
    language model.

    Raises OSError without a config.json, and ValueError for one that is no JSON."""
    config = read_facts(folder / CONFIG)
    ours = {layout.fixed["model_type"] for layout in LAYOUTS.values()}
    is_comet = "comet_layout" in config or ("comet_relation" not in config and config.get("model_type") in ours)
    if is_comet and not config.get("is_encoder_decoder"):
        from models.comet import Comet  # loads PyTorch

        return Comet
    # Loading transformers takes five seconds, which a Comet does without.
    from models.hf import LanguageModel, Seq2Seq

    return Seq2Seq if config.get("is_encoder_decoder") else LanguageModel
