"""The SHA-256 of a file, computed once for as long as the file stays as it is: each network that stands on the encoder
asks for that of its 90 MB."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits. The file is read again when its size, inode or times have
    changed."""
    now = path.stat()
    return _sha256(path.resolve(), now.st_size, now.st_ino, now.st_mtime_ns, now.st_ctime_ns)


@cache
def _sha256(path: Path, *_: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_each(paths: Iterable[Path]) -> str:
    """One hash of several files' hashes, in hexadecimal."""
    return hashlib.sha256(" ".join(map(sha256_of, paths)).encode()).hexdigest()
