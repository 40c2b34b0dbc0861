"""Writing a finished file whole or not at all."""

import os
from pathlib import Path


def save(path: Path, content: str | bytes) -> Path:
    """Replace `path` by the content; a reader, or a kill, never meets half of it. Folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
