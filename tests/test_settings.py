"""Every key of conf/ is a field of a class, and a wrong value is told in a sentence before the first stage: by the
command, and by the class's constructor."""

from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest
from command import composed, here

from mitigate.recipes.config import plain
from mitigate.settings import all_settings, settings

CONF = Path(__file__).parents[1] / "conf"
OPTIONS = {
    group.name: [option.stem for option in sorted(group.glob("*.yaml"))]
    for group in sorted(CONF.iterdir())
    if group.is_dir() and group.name not in ("hydra", "sweep")  # Hydra's own settings, and a file of W&B
}
LEFT_OPEN = {  # by options, for the user to say
    **{f"model={name}": ["model.base=DIR"] for name in ("hf", "seq2seq", "comet")},
    "model=comet_original": ["model.init=FILE"],
    "model=api": ["model.name=NAME", "model.url=https://HOST/v1"],
    "recipe=compare": ["compare.runs=[DIR]"],
    "recipe=ask": ["ask.run=DIR"],
    "recipe=share": ["share.run=DIR", "share.repo=NAME"],
    "experiment=cn100k_lm": ["model.base=DIR"],
}
WHOLE = "must be a whole number from"
NAME = "must be a name: letters, digits, dash, underscore and dot"
PATH = "must be a path or name that is not empty and has no control characters"
# a wrong setting, and how the sentence about it begins
WRONG = [
    ("probe.beams=0", f"probe.beams=0 {WHOLE} 1 to 1,000 (beam width)"),
    ("probe.relations=[../x]", "probe.relations=[../x] must be a list of names such as [a,b], or null"),
    ("trainer.lr=fast", "trainer.lr=fast must be a number above 0 and at most 1 (learning rate)"),
    ("trainer.batch_size=64.0", f"trainer.batch_size=64.0 {WHOLE} 1 to 100,000 (triples of a batch)"),
    ("measure.masking=tokens", "unknown measure.masking 'tokens' (did you mean token?); allowed: token, paper (how"),
    ("tracking.model=5", "tracking.model=5 must be true or false (whether the trained model is uploaded)"),
    ("data.name=..", f"data.name=.. {NAME}"),
    ("score.regard=5", f"score.regard=5 {NAME}, no dot first, 50 characters at most, or null"),
    ("score.judge.model=5", f"score.judge.model=5 {PATH}, or null"),
    ("score.judge=5", "score.judge=5 must be a group of settings; set one of them, such as score.judge.model=..."),
    ('paths.outputs="a\tb"', f'paths.outputs="a\\tb" {PATH}'),
    ("seed=-1", f"seed=-1 {WHOLE} 0 to 4,294,967,295 (number that fixes all random draws)"),
]


def key_of(given: str) -> str:
    return given.partition("=")[0]


def commands() -> list[dict[str, str]]:
    """The wrong settings in as few commands as can be given: faults are told together."""
    found: list[dict[str, str]] = []
    for given, sentence in WRONG:
        free = [one for one in found if key_of(given) not in map(key_of, one)]
        if not free:
            found.append({})
        (free or found[-1:])[0][given] = sentence
    return found


@pytest.mark.parametrize("wrong", commands(), ids=lambda wrong: next(iter(wrong)))
def test_the_command_names_all_faults_before_the_first_stage(wrong, tmp_path, capsys, monkeypatch) -> None:
    places = {"paths.outputs": f"{tmp_path}/runs", "paths.cache": f"{tmp_path}/c"}
    places = {key: place for key, place in places.items() if key not in map(key_of, wrong)}
    given = [one for one in wrong if key_of(one) != "score.judge"]  # whose settings others repeat
    assert here(monkeypatch, *given, *(f"{key}={place}" for key, place in places.items())) == 2
    said, faults = capsys.readouterr()
    assert [wrong[one] for one in given if wrong[one] not in faults] == []
    assert said == ""
    assert list(tmp_path.iterdir()) == []


def leaves(node: Any, path: str = "") -> Iterator[str]:
    """The keys of all values, and of the parts that are fields as a whole."""
    if path in all_settings() or not isinstance(node, dict):
        yield path
    elif isinstance(node, dict):
        for name, part in node.items():
            yield from leaves(part, f"{path}.{name}" if path else name)


def test_every_key_of_the_configuration_is_a_field_and_its_default_is_allowed() -> None:
    """Composing takes seconds: each option of each group is in one configuration, with options of other groups, which
    are independent of it."""
    named = {group: [f"{group}={option}" for option in options] for group, options in OPTIONS.items()}
    experiments, classifiers = named.pop("experiment"), named.pop("classifier")
    named["recipe"].remove("recipe=classifier")  # which needs one of them
    alone = [("recipe=classifier", classifier) for classifier in classifiers]
    together = [*zip(experiments, strict=True), *alone, *zip_longest(*named.values())]
    there: set[str] = set()
    for chosen in together:
        left_open = [LEFT_OPEN[option] for option in chosen if option in LEFT_OPEN]
        there |= set(leaves(plain(composed(*filter(None, chosen), *chain(*left_open)))))
    nested = ("call.", "policy.first.", "policy.second.")  # the latter are policies too
    others = {key for key in there if "_target_" not in key and not key.startswith(nested)} - set(all_settings())
    assert others == {"experiment"} & others
    assert {key for key in settings() if key not in there} == set()
    for one in settings().values():
        assert one.meaning, one.key
        assert not one.meaning.endswith("."), one.key
