"""Files that people upload: text tables of a limited size, in a folder for each person. A file's name is a name in that
folder and never a path.

Archives are refused, so that none has to be unpacked: gzip alone is, to measure its text, up to the limit."""

import codecs
import os
import re
import secrets
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mitigate.errors import MitigateError
from mitigate.load.table import unpacked

ENDINGS = (".csv", ".tsv", ".jsonl", ".txt")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
COMMON = "_common"  # the folder of those without a name, which no person's name is
MOST_FILES = 1000  # of a person
BLOCK = 1 << 20  # bytes


class TakenError(MitigateError):
    """The error for a name that another file has."""


@dataclass(frozen=True)
class Uploads:
    """The uploaded files below `place`. most: bytes of a file, unpacked too."""

    place: Path
    most: int

    def folder(self, owner: str | None) -> Path:
        """The folder of a person's files."""
        return self.place / (owner or COMMON)

    def files(self, owner: str | None) -> list[dict[str, Any]]:
        """A person's files by name, with their sizes and times."""
        found = [path for path in self.folder(owner).glob("[!.]*") if path.is_file() and not path.is_symlink()]
        return [
            {"name": path.name, "bytes": facts.st_size, "uploaded": facts.st_mtime}
            for path in sorted(found)
            if (facts := path.stat())
        ]

    def remove(self, owner: str | None, name: str) -> bool:
        """Remove a file; False where there is none."""
        if not NAME.fullmatch(name) or not (self.folder(owner) / name).is_file():
            return False
        (self.folder(owner) / name).unlink()
        return True

    def begin(self, owner: str | None, name: str) -> "Upload":
        """An upload to write the content to. Raises MitigateError for a name that is not allowed."""
        check_name(name)
        folder = self.folder(owner)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if len(self.files(owner)) >= MOST_FILES:
            raise MitigateError(f"you have {MOST_FILES:,} files, the most; remove some")
        part = folder / f".{secrets.token_hex(8)}.part"
        opened = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        return Upload(folder / name, self.most, part, os.fdopen(opened, "w+b"))

    def clear(self) -> None:
        """Remove what uploads left that were cut off by the end of a service."""
        for part in self.place.glob("*/.*.part"):
            part.unlink(missing_ok=True)


@dataclass
class Upload:
    """An upload to `path`, written to `part` until it is whole."""

    path: Path
    most: int
    part: Path
    file: BinaryIO

    def keep(self) -> None:
        """Give the file its name. Raises MitigateError for content that is no text, or too much of it when it is
        unpacked, and TakenError."""
        self.file.flush()
        self._check()
        try:
            os.link(self.part, self.path)  # unlike a renaming, it replaces nothing
        except FileExistsError as error:
            message = f"you have a file {self.path.name} already; remove it first, or choose another name"
            raise TakenError(message) from error

    def discard(self) -> None:
        """Remove what is not kept."""
        self.file.close()
        self.part.unlink(missing_ok=True)

    def _check(self) -> None:
        name = self.path.name
        self.file.seek(0)
        try:
            size = self._size()
        except UnicodeDecodeError as error:
            raise MitigateError(f"{name} is not a text in UTF-8; save it as CSV, TSV or JSON lines in UTF-8") from error
        except (OSError, EOFError, zlib.error) as error:
            raise MitigateError(f"{name} cannot be unpacked ({error}); pack it again with gzip") from error
        if not size:
            raise MitigateError(f"{name} is empty")

    def _size(self) -> int:
        """The bytes of the text. Raises MitigateError for zero bytes and too many."""
        name, size = self.path.name, 0
        text = unpacked(name, self.file)
        decoder = codecs.getincrementaldecoder("utf-8")()
        while block := text.read(BLOCK):
            size += len(block)
            if size > self.most:
                raise MitigateError(f"{name} has more than {self.most / 2**20:,.0f} MiB of text when it is unpacked")
            if "\0" in decoder.decode(block):
                raise MitigateError(f"{name} is not a text: it holds zero bytes")
        decoder.decode(b"", final=True)
        return size


def check_name(name: str) -> None:
    """Raise MitigateError for what cannot be the name of an uploaded file."""
    if not NAME.fullmatch(name):
        raise MitigateError(
            "a file's name has letters, digits, dots, dashes and underscores, a letter or digit first, 100 at most; no "
            "folders"
        )
    if not name.removesuffix(".gz").endswith(ENDINGS):
        raise MitigateError(
            f"{name} cannot be uploaded; allowed: {', '.join(ENDINGS)}, each also with .gz; unpack archives, and save "
            "spreadsheets and Parquet files as CSV"
        )
