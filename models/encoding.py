"""Text to token ids and back, with the tokens a generator gives a meaning to: start, end and padding."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer
from tokenizers.processors import TemplateProcessing

from mitigate.models.stored_tensors import read_facts, write_facts

TOKENIZER, CONFIG = "tokenizer.json", "tokenizer_config.json"


class Encoding:
    """A tokenizer that adds no tokens of its own to a text."""

    def __init__(self, tokenizer: Tokenizer, *, start: int | None, end: int, pad: int) -> None:
        self.tokenizer = tokenizer
        self.start = start  # put before every prompt, if there is one
        self.end = end
        self.pad = pad
        tokenizer.no_padding()
        tokenizer.no_truncation()

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.get_vocab_size(with_added_tokens=True)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, lower-cased if the tokenizer does so."""
        return [found.ids for found in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Clean text; start, end and padding are left out."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True).strip()

    def add(self, tokens: Sequence[str]) -> None:
        """Add special tokens, which the tokenizer finds wherever they occur in a text."""
        self.tokenizer.add_special_tokens([AddedToken(token, special=True) for token in tokens])

    @classmethod
    def load(cls, folder: Path) -> "Encoding":
        """The encoding of a generator's folder: its end token is the config's eos_token, its start what the
        tokenizer itself puts before a text. A tokenizer without an end token, as GPT-1's, is given <END>."""
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        config = read_facts(folder / CONFIG)
        before = tokenizer.encode("").ids
        end = _named(config, "eos_token") or "<END>"
        if tokenizer.token_to_id(end) is None:
            tokenizer.add_special_tokens([AddedToken(end, special=True)])
        pad = _named(config, "pad_token") or end
        return cls(tokenizer, start=before[0] if before else None, end=_id(tokenizer, end), pad=_id(tokenizer, pad))

    @classmethod
    def of_encoder(cls, folder: Path) -> "Encoding":
        """The encoding of a BERT-type encoder, made a generator's: [CLS] starts, [SEP] ends."""
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        start, end, pad = (_id(tokenizer, token) for token in ("[CLS]", "[SEP]", "[PAD]"))
        tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", start)])
        return cls(tokenizer, start=start, end=end, pad=pad)

    def save(self, folder: Path) -> None:
        """Write the tokenizer as AutoTokenizer reads it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(str(folder / TOKENIZER))
        tokens = {"eos_token": self.end, "pad_token": self.pad}
        if self.start is not None:
            tokens["bos_token"] = self.start
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{role: self.tokenizer.id_to_token(token) for role, token in tokens.items()},
            "model_input_names": ["input_ids", "attention_mask"],  # token types would stop `generate`
            "clean_up_tokenization_spaces": False,
        }
        write_facts(folder / CONFIG, config)


def _id(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    if found is None:
        raise ValueError(f"the tokenizer has no token {token!r}, which its config names")
    return found


def _named(config: dict, role: str) -> str | None:
    """A special token's text, which older configs wrap in an object."""
    token = config.get(role)
    return token["content"] if isinstance(token, dict) else token
