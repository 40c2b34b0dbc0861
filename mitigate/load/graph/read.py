"""Readers of triples of ids, and of lines `id<TAB>name`. Each fault is named by file and line."""

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from mitigate.errors import MitigateError
from mitigate.load.graph.graph import Triple
from mitigate.load.lines import OnBadLine, fields, not_opened, read_lines, report_faults, split_lines
from mitigate.words.outside_text import counted

LARGEST_ARCHIVE = 2**28  # bytes when unpacked; FB15k-237 has 24 million


def triples_of(
    content: bytes | None, path: Path | str, separator: str = "\t", on_bad_line: OnBadLine = "error"
) -> tuple[list[Triple], list[str]]:
    """The triples (head, relation, tail) of a file, or of a content that was read already, and notices.

    Raises MitigateError for a file that is missing, unreadable or empty, and, unless on_bad_line is "skip", for lines
    with other than three fields, blank fields, or bytes that are not UTF-8."""
    shown = {"\t": "<TAB>"}.get(separator, separator)
    expected = shown.join(("head", "relation", "tail"))
    rows, notices, faults = _fields(content, path, separator, 3, expected)
    notices += report_faults(faults, on_bad_line)
    if not rows:
        raise MitigateError(f"{path} has no triples; expected lines '{expected}'")
    return [(head, relation, tail) for head, relation, tail in rows], notices


def names_of(path: Path, *, underscores: bool = False) -> dict[str, str]:
    """The name of each id, from lines `id<TAB>name`; the first one where an id is repeated.

    underscores: whether an underscore in a name stands for a space. Raises MitigateError for a file that is missing,
    unreadable or empty, and for bad lines."""
    rows, _, faults = _fields(None, path, "\t", 2, "id<TAB>name")
    report_faults(faults, "error")
    names: dict[str, str] = {}
    for id_, name in rows:
        names.setdefault(id_, name.replace("_", " ") if underscores else name)
    return names


def labels_of(path: Path) -> dict[str, str]:
    """The names in a JSON file of CoDEx's form: {id: {"label": name, ...}, ...}.

    Raises MitigateError for a file that is missing or of another form."""
    try:
        content = json.loads(path.read_bytes())
        return {id_: str(facts["label"]) for id_, facts in content.items()}
    except OSError as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise MitigateError(f'{path} is not of the form {{"P106": {{"label": "occupation"}}, ...}}') from error


def members_of(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The contents of the members of a tar.gz that have these file names, whatever folder they are in.

    Nothing is written to disk, and links are not followed. A sparse member, whose zeros are not in the archive, does
    not count: a few bytes can claim any size. Raises MitigateError for an archive that is missing or damaged, that
    lacks a name or has it twice, or that holds more than LARGEST_ARCHIVE."""
    try:
        with gzip.open(path) as packed:
            unpacked = packed.read(LARGEST_ARCHIVE + 1)
        if len(unpacked) > LARGEST_ARCHIVE:
            raise MitigateError(f"{path} holds more than {LARGEST_ARCHIVE // 2**20} MiB; it is not the published file")
        found = _regular_files(unpacked, path, names)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise not_opened(path, error) or MitigateError(f"{path} cannot be read: {error}") from error
    if missing := [name for name in names if name not in found]:
        raise MitigateError(f"{path} has no file {' and no file '.join(missing)}")
    return found


def _regular_files(unpacked: bytes, path: Path, names: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
        for member in archive:
            name = PurePosixPath(member.name).name
            is_whole = member.isreg() and not member.issparse()
            file = archive.extractfile(member) if name in names and is_whole else None
            if file is None:
                continue
            if name in found:
                raise MitigateError(f"{path} has two files {name}; it is not the published file")
            found[name] = file.read()
    return found


def _fields(
    content: bytes | None, path: Path | str, separator: str, count: int, expected: str
) -> tuple[list[list[str]], list[str], list[str]]:
    """The fields of each good line, notices, and a sentence for each bad line."""
    if content is None:
        lines, notices = read_lines(Path(path), expected)
    else:
        lines, notices = split_lines(content, str(path), expected)
    rows: list[list[str]] = []
    faults: list[str] = []
    for number, written in fields(lines, path, separator, faults):
        parts = [part.strip() for part in written]
        if len(parts) != count:
            faults.append(f"{path}:{number}: {counted(len(parts), 'column')}, expected {count}: {expected}")
        elif not all(parts):
            faults.append(f"{path}:{number}: a blank field")
        else:
            rows.append(parts)
    return rows, notices, faults
