"""The hash of a file, kept while the file stays as it is."""

import hashlib
import os
from pathlib import Path

import pytest

from models import digests
from models.digests import sha256_of


def test_it_is_computed_once_for_a_file_that_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"first")
    assert sha256_of(path) == hashlib.sha256(b"first").hexdigest()
    monkeypatch.setattr(digests.hashlib, "file_digest", lambda *_: pytest.fail("read again"))
    assert sha256_of(path) == hashlib.sha256(b"first").hexdigest()


def test_another_content_of_the_same_size_and_date_is_read(tmp_path: Path) -> None:
    path, other = tmp_path / "weights", tmp_path / "new"
    path.write_bytes(b"first")
    sha256_of(path)
    other.write_bytes(b"later")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert sha256_of(path) == hashlib.sha256(b"later").hexdigest()
    path.write_bytes(b"third, and longer")
    assert sha256_of(path) == hashlib.sha256(b"third, and longer").hexdigest()
