"""Advice works: each remedy that a message gives is followed on the input that produced the message, and helps.
Remedies are settings that take the place of those of the same name."""

import copy
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
from command import ROOT
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from kge_graphs import planted, write_graph
from omegaconf import DictConfig, OmegaConf
from small_models import save_gpt1, save_llama

from mitigate.errors import MitigateError
from mitigate.policies import apply_policy
from mitigate.probe.beams import PartsInMemory
from mitigate.recipes import labels
from mitigate.recipes.config import Config, Scorers, check_trained, configured, find_start
from mitigate.studies import audit, kge
from mitigate.studies.stories import find_probe
from mitigate.train.generator import check_training

STORIES = "the lawyer was|||the lawyer was kind. She won.\nthe nurse was|||The nurse was bad. He lost.\n"
HEADER = "head\trelation\ttail\n"
LINES = "".join(
    f"{head}\tCapableOf\t{tail}\n"
    for head in ("lawyer", "nurse", "carpenter", "teacher")
    for tail in ("help people", "walk", "win a case", "read a book")
)
TRIPLES = HEADER + LINES
INPUTS = {
    "triples.tsv": TRIPLES,
    "lines.tsv": LINES,
    "plurals.tsv": TRIPLES.replace("\tCapableOf", "s\tCapableOf"),
    "inside.tsv": HEADER + "".join(f"old {line}\n" for line in LINES.splitlines()),
    "odd.tsv": HEADER + "lawyer\tLikesToSee\ta judge\nlawyer\tCapableOf\twalk\nnurse\tCapableOf\thelp people\n",
    "stories.txt": STORIES,
    "sentences.txt": "the lawyer is kind\nthe nurse reads\n",
    "texts.csv": "id,said\n1,he is kind\n2,she reads\n",
    "others.tsv": HEADER + "cat\tCapableOf\twalk\n",
}
TRIPLES_FILE = "data=triples data.path=$triples.tsv"
LLAMA = f"model=hf model.base=$llama {TRIPLES_FILE}"
KGE = "recipe=kge dry_run=true $graph kge.sensitive=gender kge.values=[male,female] kge.fewest=5"
AUDIT = "recipe=audit data=triples"
OF_SENTENCES = "recipe=audit data=sentences data.path=$sentences.txt"
TEXTS = "recipe=labels score.regard=null texts=[kind]"
STORY = f"recipe=stories {LLAMA} recipe.post_train=true"
NO_STORIES = "recipe=stories data=stories train=true recipe.post_train=true model=hf model.base=$llama"
CASES = {  # of each step: settings that it refuses, what its message says, and remedies that help
    "ledger": [
        ("policy=both", "set policy.template=neutral or policy.scope", "policy.template=neutral"),
        ("policy=both_neutral", "or policy.scope=person_heads", "policy.scope=person_heads", "policy=none"),
    ],
    "load": [
        ("data=triples data.path=$odd.tsv", "or leave such triples out with", "data.on_bad_line=skip"),
        ("data=triples data.path=$lines.tsv", "by their numbers", "data.columns={head: 1, relation: 2, tail: 3}"),
    ],
    "start": [
        (f"{LLAMA} trainer.strategy=fsdp", "(allowed: auto or ddp)", "trainer.strategy=auto", "trainer.strategy=ddp"),
        (f"{LLAMA} model.layout=comet", "set model.layout=packed", "model.layout=packed"),
        (f"{LLAMA} model.relation=token train=false policy=none", "set model.relation=phrase", "model.relation=words"),
        (f"{LLAMA} policy=both train=false", "set policy=none", "policy=none"),
        ("model=comet model.base=$run", "did you mean $run/model?", "model.base=$run/model"),
        ("model=seq2seq model.base=$llama", "set model=hf", "model=hf"),
    ],
    "audit": [
        (f"{AUDIT} data.path=$inside.tsv", "measure.match=contains", "measure.match=contains"),
        (f"{AUDIT} data.path=$plurals.tsv measure.match=paper", "measure.match=exact finds", "measure.match=exact"),
        (f"{AUDIT} data.path=$others.tsv", "recipe.targets=[...] sets others", "recipe.targets=[cat]"),
        (f"{OF_SENTENCES} measure.template=neutral", "set measure.template=paper, or give", "measure.template=paper"),
    ],
    "labels": [
        ("recipe=labels score.regard=null texts=@$texts.csv", "recipe.column=NAME", "recipe.column=said"),
        ("recipe=labels score.regard=null texts=@nowhere", "texts=[@...]", "texts=[@nowhere]"),
        (f"{TEXTS} measure.masking=paper", "leave measure.masking out, or give", "measure.masking=token"),
        (f"{TEXTS} data.output=$out.docx", "allowed: .parquet, .csv", "data.output=$out.csv"),
    ],
    "kge": [
        (f"{KGE.replace('$graph', 'data=sample')} model=transe", "data=graph data.path=FILE.tsv", "$graph"),
        (f"{KGE.replace('gender', 'gendre')} model=transe", "did you mean gender?", "kge.sensitive=gender"),
    ],
    "stories": [
        (NO_STORIES, "(data=sample or data=cn100k), or set", "data=sample", "data.path=$stories.txt"),
        (f"{STORY} policy=rerank", "Set policy=none", "policy=none", "policy=both"),
    ],
}


@cache
def base(overrides: tuple[str, ...]) -> DictConfig:
    """The configuration of these options of groups."""
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        return compose("config", list(overrides))


GROUPS = {path.name for path in (ROOT / "conf").iterdir() if path.is_dir()}


def composed(settings: Sequence[str]) -> Config:
    """The configuration of a command. Options of groups are composed once; Hydra takes some tenths of a second."""
    chosen = tuple(setting for setting in settings if setting.partition("=")[0] in GROUPS)
    config = copy.deepcopy(base(chosen))
    OmegaConf.set_struct(config, False)
    for override in OverridesParser.create().parse_overrides([one for one in settings if one not in chosen]):
        OmegaConf.update(config, override.key_or_group, override.value())
    return configured(config)


def _ledger(config: Config) -> None:
    """A policy on statements of which the phrase alone makes the first polarised, and the second has no person."""
    of_phrase = config.policy.name == "both"
    labels = {"": [1, -1], "_neutral": [0, 1] if of_phrase else [1, -1]}
    columns = {
        f"{name}{template}{end}": values
        for name in ("sentiment", "regard")
        for template, values in labels.items()
        for end in ("", "_strength")
    }
    heads = ["lawyer" if of_phrase else "storm", "storm"]
    rows = pl.DataFrame({"head": heads, "tail": ["walk", "harm"], "split": "train", "row": [1, 2], **columns})
    apply_policy(Scorers(config.score).policy(config.policy), rows)


def _load(config: Config) -> None:
    loaded = config.load_data()
    if getattr(loaded, "kind", "") == "triples":  # of others the first lines have been looked at
        assert loaded.rows.height


def _start(config: Config) -> None:
    policy = Scorers(config.score).policy(config.policy)
    check_trained(config.model, bool(config.train), policy)
    start = find_start(config.model, bool(config.train))
    if config.train:
        check_training(start, **config.training()[1])


def _audit(config: Config) -> None:
    resource, targets = audit.resource_of(config.load_data(), config.recipe.targets)
    resource.templates(config.measure.template)
    search = audit.Search(targets, config.measure.match or "exact")
    audit.read_rows(resource, search, rows=PartsInMemory(), counted=PartsInMemory())


STEPS: dict[str, Callable[[Config], object]] = {
    "ledger": _ledger,
    "load": _load,
    "start": _start,
    "audit": _audit,
    "labels": labels.run,
    "kge": kge.run,
    "stories": find_probe,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the inputs."""
    folder = tmp_path_factory.mktemp("advice")
    for name, content in INPUTS.items():
        (folder / name).write_text(content)
    texts = files("mitigate").joinpath("data/sample/test.txt").read_text(encoding="utf-8").splitlines()
    save_llama(folder / "llama", texts)
    save_gpt1(folder / "run" / "model", texts)
    return folder


def filled(text: str, place: Path) -> str:
    """The text with the inputs' places."""
    graph = " ".join(write_graph(place / "graph", planted(people=120)))
    return re.sub(r"\$(\w+)", lambda found: f"{place}/{found[1]}", text.replace("$graph", graph))


def settings_of(text: str) -> list[str]:
    """The settings in a text; blanks within brackets are none between two."""
    return re.findall(r"(?:[^\s{\[]|\{[^}]*\}|\[[^\]]*\])+", text)


def follow(step: str, settings: Sequence[str], place: Path) -> None:
    """Do the step. Raises MitigateError where it refuses the settings."""
    where = [f"paths.outputs={place / 'out'}", f"paths.cache={place / 'cache'}", "tracking=none"]
    STEPS[step](composed([*settings, *where]))


@pytest.mark.parametrize(
    ("step", "case"),
    [(step, case) for step, cases in CASES.items() for case in cases],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_what_a_message_advises_helps(step: str, case: Sequence[str], place: Path) -> None:
    given, says, *remedies = (filled(text, place) for text in case)
    with pytest.raises(MitigateError) as refused:
        follow(step, settings_of(given), place)
    assert says in str(refused.value)
    for remedy in map(settings_of, remedies):
        names = [setting.partition("=")[0] for setting in remedy]
        left = [setting for setting in settings_of(given) if setting.partition("=")[0] not in names]
        follow(step, [*left, *remedy], place)
