"""A small command of every recipe that leaves a run folder, on made-up input: what is killed, damaged and refused space
in tests of all of them."""

import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from classifier_data import write_crowd, write_plausibility, write_regard
from frames_corpus import write_corpus
from kge_graphs import SMALL as SMALL_KGE
from kge_graphs import planted, write_graph
from small_models import save_bart, save_llama

from mitigate.load.ratings import RESOURCES

SMALL = [
    *("trainer.max_steps=4", "trainer.batch_size=16", "trainer.checkpoint_every=1000", "probe.targets=[lawyer,nurse]"),
    *("probe.relations=[IsA,CapableOf]", "probe.max_length=4", "measure.resamples=100", "tracking=none"),
]
STATEMENTS = "lawyer\tthe lawyer is kind\nnurse\tthe nurse is bad\nlawyer\tthe lawyer is a person\n" * 40
STORIES = "the lawyer was|||the lawyer was kind. She won.\nthe nurse was|||The nurse was bad. He lost.\n"
SENTENCES = "".join(f"the {who} is kind\n" * 3 for who in ("lawyer", "nurse", "man"))
LABELS = "1\n2\n2\n" * 3


def arguments_of(name: str, place: Path) -> list[str]:
    """The command of COMMANDS, whose input is written to `place`. What it compares lies there already
    (make_compared)."""
    place.mkdir(parents=True, exist_ok=True)
    return [*COMMANDS[name](place), *SMALL]


def statements(place: Path) -> list[str]:
    """The settings that name a file of statements."""
    return ["data=statements", f"data.path={written(place / 'statements.tsv', STATEMENTS)}"]


def stories(place: Path) -> list[str]:
    return ["recipe=stories", "data=stories", f"data.path={written(place / 'stories.txt', STORIES)}"]


def humans(place: Path) -> list[str]:
    sentences, labels = written(place / "sentences.txt", SENTENCES), written(place / "labels.txt", LABELS)
    return ["recipe=humans", f"humans.sentences={sentences}", f"humans.bias_labels={labels}"]


def agreement(place: Path) -> list[str]:
    (place / "humans").mkdir(exist_ok=True)
    for resource in RESOURCES:
        written(place / "humans" / f"{resource}_sentences.txt", SENTENCES)
        written(place / "humans" / f"{resource}_bias_labels.txt", LABELS)
    return ["recipe=agreement", f"data.root={place}"]


def compare(place: Path) -> list[str]:
    return ["recipe=compare", f"compare.runs=[{place}/compared/0,{place}/compared/1]"]


def generator(place: Path, name: str, save: Callable[[Path, list[str]], Path]) -> list[str]:
    """The settings of a small random model in a format of transformers, which is written once."""
    base = place / "base"
    if not base.exists():
        save(base, files("mitigate").joinpath("data/sample/test.txt").read_text(encoding="utf-8").splitlines())
    return [f"model={name}", f"model.base={base}", "policy=both"]


def kge(place: Path) -> list[str]:
    asked = ["recipe=kge", "model=transe", "kge.sensitive=gender", "kge.values=[male,female]", *SMALL_KGE]
    mine = ["kge.seeds=1", "kge.mitigations=[regularise]", "kge.fewest=5"]
    return [*asked, *write_graph(place / "graph", planted(people=120)), *mine]


def frames(place: Path) -> list[str]:
    shutil.rmtree(place / "corpus", ignore_errors=True)
    few = ["frames.epochs=2", "++frames.fold_epochs=1"]
    return ["recipe=frames", *write_corpus(place / "corpus"), *few]


def once(place: Path, write: Callable[[Path], Path]) -> Path:
    """A folder that is written unless it is there."""
    return place if place.exists() else write(place)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "mitigate": lambda place: ["policy=both"],
    "audit": lambda place: ["recipe=audit", *statements(place)],
    "stories": stories,
    "stories_trained": lambda place: ["recipe=stories", "policy=none", "recipe.max_tokens=8"],
    "humans": humans,
    "survey": lambda place: ["recipe=humans", *statements(place)],
    "agreement": agreement,
    "filter": lambda place: ["recipe=filter", "policy=both"],
    "compare": compare,
    "labels": lambda place: ["recipe=labels", *statements(place)],
    "seq2seq": lambda place: generator(place, "seq2seq", save_bart),
    "language_model": lambda place: generator(place, "hf", save_llama),
    "kge": kge,
    "frames": frames,
    "crowd": lambda place: ["recipe=classifier", "classifier=crowd", f"data.root={once(place / 'data', write_crowd)}"],
    "plausibility": lambda place: [
        *("recipe=classifier", "classifier=plausibility"),
        f"data.root={once(place / 'data', write_plausibility)}",
    ],
    "regard": lambda place: [
        *("recipe=classifier", "classifier=regard"),
        f"data.root={once(place / 'data', write_regard)}",
    ],
}


def compared(name: str, place: Path) -> list[list[str]]:
    """The commands of the runs that a comparison reads."""
    if name == "compare":
        return [[f"policy={policy}", *SMALL] for policy in ("none", "both")[: 2 if name == "compare" else 1]]
    return []


def make_compared(name: str, place: Path, run: Callable[[list[str]], int]) -> None:
    """Has these runs made, and leaves them where COMMANDS expects them."""
    for number, arguments in enumerate(compared(name, place)):
        assert run([*arguments, f"paths.outputs={place}/made-{number}"]) == 0
        shutil.copytree(next((place / f"made-{number}").glob("[!.]*")), place / "compared" / str(number))
