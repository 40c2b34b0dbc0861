"""COMeT from scratch against warm-started from all-MiniLM-L6-v2: the same decoder, triples, order and steps.

    python benchmarks/warm_start.py [--data ../shared/data] [--epochs 2] [--lr 5e-4]

Each is trained on all of train100k; how well it predicts the 1,200 valid test triples is measured on the way. It
writes its section of RESULTS.md and takes twice the time of a training, some half an hour on two cores."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.load.triples_file import read_triples
from mitigate.measure.quality import bits_per_char, perplexity
from mitigate.probe import comet as probing
from mitigate.probe.likelihood import likelihood
from mitigate.relations import asked_with
from mitigate.store import PartFolder
from mitigate.targets import choose_targets
from mitigate.train import comet as training
from mitigate.train.harness import native_precision
from models.comet import Comet
from models.decoder import Decoder
from models.minilm import locate

PHRASES = asked_with("phrase")
LOOKS = 8  # at the test triples on the way
MILD = (
    ("dog", "CapableOf"), ("teacher", "CapableOf"), ("knife", "UsedFor"), ("bread", "AtLocation"),
    ("rain", "Causes"), ("reading a book", "Causes"), ("student", "Desires"), ("baker", "Desires"),
    ("snow", "HasProperty"), ("winter", "HasProperty"), ("piano", "IsA"), ("oak", "IsA"),
    ("car", "HasA"), ("paper", "MadeOf"), ("wake up", "HasPrerequisite"), ("cook dinner", "HasSubevent"),
    ("wheel", "PartOf"), ("exercise", "MotivatedByGoal"), ("book", "ReceivesAction"), ("garden", "HasA"),
)  # fmt: skip


@dataclass
class Contestant:
    """A COMeT on its way, and how it did: (CPU seconds, steps, perplexity, bits per character)."""

    name: str
    comet: Comet
    looks: list[tuple[float, int, float, float]] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of conceptnet100k/")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, help="if given, training ends there at the latest")
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--warmup", type=float, default=0.05, help="share of the steps")
    parser.add_argument("--targets", type=int, default=48, help="how many, for the share of distinct tails")
    arguments = parser.parse_args()
    folder = arguments.data / "conceptnet100k"
    train = read_triples(folder / "train100k.txt", "train", labelled=False).triples
    test = read_triples(folder / "test.txt", "test", labelled=True).triples.filter("valid")
    settings = training.Settings(
        max_epochs=arguments.epochs, max_steps=arguments.steps, lr=arguments.lr, warmup=arguments.warmup
    )
    warm = Comet.from_encoder(locate())
    torch.manual_seed(settings.seed)
    contestants = [Contestant("warm-started", warm), Contestant("from scratch", untrained_like(warm))]
    for contestant in contestants:
        learn(contestant, train, test, settings)
    num_steps = settings.num_steps(train.height)
    told = {name: value for name, value in asdict(settings).items() if name in ("lr", "batch_size", "warmup", "clip")}
    measured = (
        f"Measured on {machine()}, by `python benchmarks/warm_start.py`: {train.height:,} triples, "
        f"{num_steps:,} steps, "
        + ", ".join(f"{name} {value:g}" for name, value in told.items())
        + f", seed {settings.seed}, {native_precision()}. Perplexity per token and bits per character on the "
        f"{test.height:,} valid test triples; CPU seconds of training "
        "are those of all cores, the looks not counted."
    )
    text = ["## Training: warm-started against from scratch", measured, over_time(contestants)]
    text += [distinct_tails(contestants, arguments.targets), examples(contestants)]
    write_section("warm start", "\n\n".join(text))
    print("\n\n".join(text))


def untrained_like(comet: Comet) -> Comet:
    """A COMeT of the same shape and words, its weights random."""
    return Comet(Decoder(comet.decoder.config), comet.encoding)


def learn(contestant: Contestant, train: pl.DataFrame, test: pl.DataFrame, settings: training.Settings) -> None:
    """Train, looking at the test triples on the way and at the end."""
    steps = settings.num_steps(train.height)
    wanted = iter(sorted({max(1, steps * number // LOOKS) for number in range(1, LOOKS)}))
    due = next(wanted, steps)
    started, looking = time.process_time(), 0.0

    def look(_: dict[str, float], step: int) -> None:
        nonlocal due, looking
        if step < due:
            return
        due = next((later for later in wanted if later > step), steps)
        begun = time.process_time()
        contestant.comet.eval()
        found = likelihood(contestant.comet, test, PHRASES)
        contestant.comet.train()
        figures = perplexity(found) or 0.0, bits_per_char(found) or 0.0
        contestant.looks.append((begun - started - looking, step, *figures))
        print(f"{contestant.name}, step {step}: perplexity {figures[0]:.2f}, {figures[1]:.3f} bits", flush=True)
        looking += time.process_time() - begun

    examples = training.Examples(
        train["head"].to_list(), [PHRASES[relation] for relation in train["relation"]], train["tail"].to_list()
    )
    with tempfile.TemporaryDirectory() as place:
        training.fit(contestant.comet, examples, settings, Path(place), fingerprint=contestant.name, log=look)


def over_time(contestants: Sequence[Contestant]) -> str:
    """The table of all looks."""
    lines = ["| | steps | CPU seconds | perplexity | bits per character |", "|---|---|---|---|---|"]
    for contestant in contestants:
        for seconds, step, ppl, bits in contestant.looks:
            lines.append(f"| {contestant.name} | {step:,} | {seconds:.0f} | {ppl:.2f} | {bits:.3f} |")
    return "\n".join(lines)


def distinct_tails(contestants: Sequence[Contestant], count: int) -> str:
    """How many of the tails said of targets differ, in a line for each."""
    targets = choose_targets("all", pl.DataFrame(), 0).gather_every(max(1, 329 // count))
    lines = []
    for contestant in contestants:
        with tempfile.TemporaryDirectory() as place:
            parts = PartFolder(Path(place))
            probing.probe(contestant.comet, targets, list(PHRASES.items()), parts=parts)
            tails = pl.concat(list(parts))["tail"]
        lines.append(
            f"- {contestant.name}: of {len(tails):,} tails ({targets.height} targets x {len(PHRASES)} relations x 10) "
            f"{tails.n_unique() / len(tails):.1%} are distinct."
        )
    return "\n".join(lines)


def examples(contestants: Sequence[Contestant]) -> str:
    """The first of ten beams of each, side by side."""
    lines = ["| | " + " | ".join(contestant.name for contestant in contestants) + " |", "|---" * 3 + "|"]
    columns = [list(best(contestant.comet)) for contestant in contestants]
    for (head, relation), *tails in zip(MILD, *columns, strict=True):
        lines.append(f"| {head} {PHRASES[relation]} | " + " | ".join(tails) + " |")
    return "\n".join(lines)


def best(comet: Comet) -> Iterator[str]:
    """What a COMeT says first of each mild prompt."""
    prompts = comet.prompts([head for head, _ in MILD], [PHRASES[relation] for _, relation in MILD])
    for found in comet.search(prompts):
        yield comet.decode(found[0].tokens) or "(ends at once)"


if __name__ == "__main__":
    main()
