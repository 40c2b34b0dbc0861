"""Writing files whole or not at all: a reader, or a kill, never meets half of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mitigate.errors import MitigateError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file to write to, which takes the place of `path` once it is on disk. Folders are made.

    Raises MitigateError when the disk is full or the folder cannot be written to; `path` is then as it was."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise MitigateError(
            f"cannot write {path} ({error.strerror}); make room, or choose another place with paths.outputs=DIR and "
            "paths.cache=DIR. What is finished is kept, and the same command goes on from there."
        ) from error
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, content: bytes | str) -> Path:
    """Replace `path` by the content, text as UTF-8."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path
