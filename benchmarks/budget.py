"""How low the perplexity of comet_minilm goes in 15 and in 60 minutes of two cores, and where a whole job's time goes.

    python -m mitigate policy=none experiment=cn100k_cpu data.root=../shared/data
    python -m mitigate policy=none experiment=cn100k_cpu trainer.max_epochs=7 trainer.lr=1e-3 trainer.warmup=0.05 \\
        data.root=../shared/data
    python benchmarks/budget.py --outputs outputs

Reads the finished runs of policy=none on train100k under the folder, and writes its section of RESULTS.md."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section

STAGES = ("score", "train", "probe", "statements", "validity", "likelihood")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=Path, default=Path("outputs"), help="the folder of the run folders")
    arguments = parser.parse_args()
    runs = sorted(finished(arguments.outputs), key=lambda run: run["train"]["steps"])
    if not runs:
        sys.exit(f"no finished run of policy=none on train100k under {arguments.outputs}; see this file's first lines")
    text = [
        "## The whole job on train100k, and how low perplexity goes",
        f"Measured on {machine()}, by `python benchmarks/budget.py`, from finished runs of `policy=none "
        "experiment=cn100k_cpu`. Perplexity per token of MiniLM's vocabulary, END counted, bits per character and "
        "BLEU-2 on the valid test triples; first tails are classified by the shipped plausibility classifier. COMeT on "
        "pretrained GPT-1 reports 4.32 per BPE token and 95.25 % valid by another classifier; tokens differ, so the "
        "two perplexities are not comparable.",
        training(runs),
        "Seconds of each stage, and of all of them:",
        stages(runs),
    ]
    write_section("budget", "\n\n".join(text))
    print("\n\n".join(text))


def finished(outputs: Path) -> list[dict[str, Any]]:
    """The finished runs, each with its metrics, manifest, training and config."""
    found = []
    for folder in sorted(outputs.glob("mitigate-none-cn100k-*")):
        if (folder / "manifest.json").exists():
            run = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("metrics", "manifest", "train")}
            found.append({**run, "config": yaml.safe_load((folder / "config.yaml").read_text())})
    return found


def training(runs: list[dict[str, Any]]) -> str:
    """The table of what each training reached."""
    lines = [
        "| epochs | steps | lr | warmup | dropout | examples/s | training, min | perplexity | bits per character | "
        "BLEU-2 | first tails accepted as plausible, % |",
        "|---" * 11 + "|",
    ]
    for run in runs:
        trainer, trained, metrics = run["config"]["trainer"], run["train"], run["metrics"]
        cells = [
            f"{trainer['max_epochs']}",
            f"{trained['steps']:,}",
            f"{trainer['lr']:g}",
            f"{trainer['warmup']:g}",
            f"{run['config']['model']['load']['dropout']:g}",
            f"{trained['examples_per_second']:.0f}",
            f"{trained['seconds'] / 60:.1f}",
            f"**{metrics['quality/perplexity/all']:.2f}**",
            f"{metrics['quality/bits_per_char/all']:.3f}",
            f"{metrics['quality/bleu2/all']:.1f}",
            f"{metrics['quality/first_valid/all']:.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def stages(runs: list[dict[str, Any]]) -> str:
    """The table of where the time went."""
    lines = [f"| epochs | {' | '.join(STAGES)} | others | all, min | peak memory, GiB |", "|---" * 10 + "|"]
    for run in runs:
        spent = {stage["stage"]: stage["seconds"] for stage in run["manifest"]["stages"]}
        others = sum(seconds for stage, seconds in spent.items() if stage not in STAGES)
        peak = max(stage["peak_memory"] for stage in run["manifest"]["stages"]) / 2**30
        cells = [f"{spent[stage]:.0f}" for stage in STAGES]
        cells += [f"{others:.0f}", f"{sum(spent.values()) / 60:.1f}", f"{peak:.2f}"]
        lines.append(f"| {run['config']['trainer']['max_epochs']} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
