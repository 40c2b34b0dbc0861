"""Phrases as word pieces of a BERT-type encoder, with no tokens added."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

Pieces = Sequence[int]
LONGEST = 32  # word pieces of a phrase that are read; the longest of train100k has 32


class PieceReader:
    """A function that cuts phrases into the word pieces of an encoder's tokenizer."""

    def __init__(self, encoder_folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(encoder_folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)
        self.start, self.end, self.unknown = (self._piece(name) for name in ("[CLS]", "[SEP]", "[UNK]"))

    def __call__(self, phrases: Sequence[str]) -> list[list[int]]:
        """The pieces of each phrase; of one that has none, that it is unknown."""
        found = self.tokenizer.encode_batch_fast(list(phrases), add_special_tokens=False)
        return [encoded.ids or [self.unknown] for encoded in found]

    def _piece(self, name: str) -> int:
        piece = self.tokenizer.token_to_id(name)
        if piece is None:
            raise ValueError(f"the tokenizer has no piece {name}: it is not that of a BERT-type encoder")
        return piece
