"""Run folders that a version left, kept as data of a test: the next version has to open them.

    python tests/kept_runs.py      writes tests/runs/VERSION: two runs of the main job with tiny generators

Pages, pictures and files of status are left out."""

import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from killing import call, forked
from recipe_commands import SMALL, generator, written
from small_models import save_llama

from mitigate import __version__

RUNS = Path(__file__).with_name("runs")
LEFT_OUT = shutil.ignore_patterns("*.html", "plots", "wandb", ".lock", "status.json", "parts")


def main() -> None:
    kept = RUNS / __version__
    shutil.rmtree(kept, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        lines = files("mitigate").joinpath("data/sample/train.txt").read_text(encoding="utf-8").splitlines()[::16]
        triples = written(place / "few.tsv", "relation\thead\ttail\n" + "\n".join(lines))
        of_generator = ["data=triples", f"data.path={triples}", *generator(place, "hf", save_llama)]
        asked = {
            "none": [*of_generator, "policy=none"],
            "both": [*of_generator, "policy=both"],
        }
        for name, arguments in asked.items():
            outputs = place / name
            where = [f"paths.outputs={outputs}", f"paths.cache={place / 'cache'}"]
            line = [*arguments, *SMALL, *where]
            if forked(lambda line=line: call(line), place / "said"):
                sys.exit((place / "said").read_text())
            shutil.copytree(next(outputs.iterdir()), kept / name, ignore=LEFT_OUT)


if __name__ == "__main__":
    main()
