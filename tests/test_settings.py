"""All settings stand in one description, and what does not fit it is told before the first stage."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from command import here
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from mitigate.errors import MitigateError
from mitigate.settings import TYPES, check, settings

CONF = Path(__file__).parents[1] / "conf"
LEFT_OPEN = (  # by some groups, for the user to say
    *("model.base=DIR", "model.init=FILE", "model.name=NAME", "model.url=https://HOST/v1"),
    "compare.runs=[DIR]",
)
OPTIONS = {
    group.name: [option.stem for option in sorted(group.glob("*.yaml"))]
    for group in sorted(CONF.iterdir())
    if group.is_dir() and group.name not in ("hydra", "sweep")  # Hydra's own settings, and a file of W&B
}
FREE = ("mapping", "mapping to numbers")  # whose keys may be the user's own
NUMBERS = ("whole number", "number")
RIGHT: dict[str, Any] = {  # a value of each type, where no range or list of words decides
    "true or false": False,
    "text": "",
    "name": "a-1_b.c",
    "path": "../a b",
    "function": "package.module.function",
    "list of texts": ["a b", ""],
    "list of names": ["a", "b"],
    "list of paths": ["a/b"],
    "list of whole numbers": [0, 1],
    "mapping": {"a": "b"},
    "mapping to numbers": {"a": 1, "b/c": -1.5},
    "null": None,
}
WRONG: dict[str, list[Any]] = {  # values of no type but those that stand behind them
    "whole number": ["abc", "5", "", 1e30, 1.5, float("nan"), True, None, [1], {"a": 1}],
    "number": ["abc", "0.5", "", float("inf"), float("nan"), True, None, [0.5], {"a": 1}],
    "true or false": ["yes", "", 0, 1, 1e30, None, [True], {"a": True}],
    "word": ["no such word", "", -1, 0, 1e30, None, {"a": "b"}],
    "text": [-1, 0, 1e30, True, None, [1], {"a": "b"}],
    "name": ["../x", "a/b", ".hidden", "", "a b", "a\n", "a" * 51, -1, 1e30, True, None, ["../x"], {"a": "b"}],
    "path": ["", " ", "a\0b", -1, 1e30, True, None, [1], {"a": "b"}],
    "function": ["abc", "os.", "os getcwd.x", "", -1, 0, 1e30, True, None, ["a.b"], {"a": "b"}],
    "list of texts": ["abc", -1, 0, 1e30, True, None, [1], [None], [["a"]], {"a": "b"}],
    "list of names": ["abc", -1, 0, 1e30, True, None, [1], ["a", "../x"], {"a": "b"}],
    "list of paths": ["abc", -1, 0, 1e30, True, None, [1], [""], {"a": "b"}],
    "list of whole numbers": ["abc", 1e30, True, None, ["a"], [0.5], [-1], {"a": 1}],
    "mapping": ["abc", -1, 0, 1e30, True, None, [1]],
    "mapping to numbers": ["abc", -1, 0, 1e30, True, None, [1], {"a": "b"}, {"a": True}],
    "null": ["abc", -1, 0, 1e30, True, [1], {"a": "b"}],
}
COMMANDS = [
    ("probe.max_length=-1", "probe.max_length=-1 must be a whole number from 1 to 512"),
    ("probe.max_length=0", "probe.max_length=0 must be a whole number from 1 to 512"),
    ("probe.max_length=100000", "probe.max_length=100000 must be a whole number from 1 to 512"),
    ("probe.max_length=abc", "probe.max_length=abc must be a whole number from 1 to 512"),
    ("probe.top=1e9 probe.beams=1e9", "probe.beams=1000000000.0 must be a whole number from 1 to 1,000"),
    ("probe.beams=null", "probe.beams=null must be a whole number from 1 to 1,000"),
    ("trainer.lr=abc", "trainer.lr=abc must be a number above 0 and at most 1"),
    ("recipe.run=os.getcwd", "recipe.run: os.getcwd takes no argument 'config'; it takes: none"),
    ("recipe.run=os.path.abspath", "recipe.run: os.path.abspath takes no argument 'config'; it takes: path"),
    ("recipe.run=mitigate.absent.run", "recipe.run._target_=mitigate.absent.run cannot be imported"),
    ("recipe.run=nonsense", "recipe.run=nonsense must be the dotted name of a function"),
    ("recipe.run=null", "recipe.run=null must be the dotted name of a function"),
    ("seed=abc", "seed=abc must be a whole number from 0 to 4,294,967,295"),
    ("seed=-1", "seed=-1 must be a whole number from 0 to 4,294,967,295"),
    ("seed=1e30", "seed=1e+30 must be a whole number from 0 to 4,294,967,295"),
    ("measure.resamples=-1", "measure.resamples=-1 must be a whole number from 1 to 100,000"),
    ("measure.empty_targets=foo", "unknown measure.empty_targets 'foo'; allowed: exclude, zero"),
    ("tracking.mode=foo", "unknown tracking.mode 'foo'; allowed: auto, online, offline, none"),
    ("score.regard=5", "score.regard=5 must be a name: letters, digits, dash, underscore and dot"),
    ("policy.template=foo", "unknown policy.template 'foo'; allowed: paper, neutral"),
    ("policy.scope=foo", "unknown policy.scope 'foo'; allowed: all, person_heads, targets"),
    ("data.on_bad_line=foo", "unknown data.on_bad_line 'foo'; allowed: error, skip"),
    ("policy.name=../x", "policy.name=../x must be a name: letters, digits"),
    ("data.name=..", "data.name=.. must be a name: letters, digits"),
    ("dry_run=maybe", "unknown dry_run 'maybe'; allowed: true, false"),
]


def composed(*overrides: str) -> dict[str, Any]:
    """The configuration with what groups leave open filled in, as a plain dict."""
    with initialize_config_dir(str(CONF), version_base=None):
        config = compose("config", list(overrides))
    for override in LEFT_OPEN:
        key, value = override.split("=")
        part, name = key.split(".")
        if part in config and OmegaConf.is_missing(config[part], name):
            OmegaConf.update(config, key, [value] if value.startswith("[") else value)
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    return plain


def leaves(node: Any, path: str = "") -> Iterator[str]:
    """The keys of all values, and of the parts that are described as a whole."""
    if path in settings() or not isinstance(node, dict):
        yield path
    if isinstance(node, dict):
        for name, part in node.items():
            yield from leaves(part, f"{path}.{name}" if path else name)


def is_described(key: str) -> bool:
    """Whether a key is described, or stands in a part whose keys may be the user's own."""
    *parts, _ = key.split(".")
    around = [settings().get(".".join(parts[:depth])) for depth in range(1, len(parts) + 1)]
    return key in settings() or any(part and set(part.types) & set(FREE) for part in around)


def nested(key: str, value: Any) -> dict[str, Any]:
    """{"probe": {"beams": value}} of "probe.beams"."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def out_of_range(key: str) -> Iterator[Any]:
    """The numbers nearest outside the range of a setting, or of the numbers of a list."""
    for sign, bound in settings()[key].bounds:
        step = {">": 0, "<": 0, ">=": -1, "<=": 1}[sign]
        types = settings()[key].types
        if "list of whole numbers" in types:
            yield [int(bound) + step]
        else:
            yield int(bound) + step if types[0] == "whole number" else bound + step


def values_of_wrong_type(key: str) -> list[Any]:
    """Values that are of none of a setting's types."""
    first, *others = settings()[key].types
    return [value for value in WRONG[first] if all(any(same(value, wrong) for wrong in WRONG[name]) for name in others)]


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and str(one) == str(other)


def test_every_setting_is_described_and_its_default_is_allowed() -> None:
    """Composing takes seconds: each option of each group is in one configuration, with options of other groups, which
    are independent of it."""
    named = {group: [f"{group}={option}" for option in options] for group, options in OPTIONS.items()}
    experiments = named.pop("experiment")  # which choose options themselves
    classifiers = named.pop("classifier")
    named["recipe"].remove("recipe=classifier")  # which needs one of them
    alone = [("recipe=classifier", classifier) for classifier in classifiers]
    together = [*zip(experiments, strict=True), *alone, *zip_longest(*named.values())]
    configurations = {chosen: composed(*filter(None, chosen)) for chosen in together}
    chosen = {option for options in configurations for option in options}
    assert {"recipe=stories", "policy=swap", "experiment=paper", "trainer=fsdp"} <= chosen
    for option, config in configurations.items():
        assert [key for key in leaves(config) if not is_described(key)] == [], option
        check(config)
    there = {key for config in configurations.values() for key in leaves(config)}
    assert set(settings()) - there == set()
    for setting in settings().values():
        assert set(setting.types) <= set(TYPES), setting.key
        assert bool(setting.words) == ("word" in setting.types), setting.key
        assert setting.meaning, setting.key
        assert not setting.meaning.endswith("."), setting.key
        assert not setting.bounds or set(setting.types) & {*NUMBERS, "list of whole numbers"}, setting.key


def right(key: str) -> Iterator[Any]:
    """Values of all types of a setting, its words, and the ends of its range."""
    setting = settings()[key]
    yield from (RIGHT[name] for name in setting.types if name in RIGHT)
    yield from setting.words
    for bound in (int(bound) for sign, bound in setting.bounds if "=" in sign):
        yield [bound] if "list of whole numbers" in setting.types else bound
    if setting.types[0] == "number":
        yield (
            0 if any((sign == "<" and bound <= 1) or bound < 1 for sign, bound in setting.bounds if "<" in sign) else 1
        )


def test_values_of_each_setting_are_allowed_by_type_and_range_and_others_named() -> None:
    for key in settings():
        for value in right(key):
            check(nested(key, value))
        wrong = [*values_of_wrong_type(key), *out_of_range(key)]
        assert len(wrong) >= 3, key
        for value in wrong:
            refused(key, value)


def refused(key: str, value: Any) -> None:
    with pytest.raises(MitigateError) as told:
        check(nested(key, value))
    assert key in str(told.value), value
    assert settings()[key].meaning in str(told.value), value
    assert "\n" not in str(told.value), value


def test_all_faults_are_named_together_and_other_settings_left_alone() -> None:
    written = {"seed": "abc", "policy": {"seed": "${seed}"}, "probe": {"top": 0, "beams": 10}}
    with pytest.raises(MitigateError) as told:
        check({"seed": "abc", "policy": {"seed": "abc"}, "probe": {"top": 0, "beams": 10}}, written)
    assert str(told.value) == (
        "2 settings are wrong:\n"
        "  seed=abc must be a whole number from 0 to 4,294,967,295 (number that fixes all random draws)\n"
        "  probe.top=0 must be a whole number from 1 to 1,000 (tails that are kept of each beam search)"
    )
    check({"seed": 1, "mine": {"anything": object()}, "policy": {"strength": "own"}, "compare": {}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"recipe": {"minilm": 5}},
            "recipe.minilm=5 must be a group of settings; set one of them, such as recipe.mini",
        ),
        ({"measure": {"resamples": 1e3}}, "; write measure.resamples=1000"),
        ({"data": {"name": 2024}}, "; for a name of digits write 'data.name=\"2024\"'"),
        ({"data": {"title": ["\x1b[31m"]}}, 'data.title=["\\u001b[31m"] must be a text'),
        ({"paths": {"outputs": " "}}, "must be a path or name that is not empty"),
        ({"trainer": {"warmup": 1}}, "trainer.warmup=1 must be a number at least 0 and below 1"),
        ({"trainer": {"max_steps": 0}}, "must be a whole number from 1 to 1,000,000,000, or null"),
        (
            {"humans": {"pay": ["x" * 100]}},
            f"humans.pay=[{'x' * 59}... must be a text, without control characters, or null",
        ),
    ],
)
def test_the_message_says_what_to_do(given: dict[str, Any], message: str) -> None:
    with pytest.raises(MitigateError) as told:
        check(given)
    assert message in str(told.value)


def keys_of(overrides: str) -> set[str]:
    return {part.partition("=")[0] for part in overrides.split()}


def commands() -> list[dict[str, str]]:
    """The settings of COMMANDS with their messages, in as few commands as can be given: faults are told together. A
    recipe that cannot be run is told by itself."""
    found: list[dict[str, str]] = []
    for given, message in COMMANDS:
        taken = keys_of(given) | {"recipe.run"}
        free = [one for one in found if not keys_of(" ".join(one)) & taken and "recipe.run" not in keys_of(given)]
        if not free:
            found.append({})
        (free or found[-1:])[0][given] = message
    return found


@pytest.mark.parametrize("dry_run", [[], ["dry_run=true"]], ids=["run", "dry_run"])
@pytest.mark.parametrize("messages", commands(), ids=lambda messages: next(iter(messages)))
def test_the_command_names_faults_before_the_first_stage(messages, dry_run, tmp_path, capsys, monkeypatch) -> None:
    dry_run = [] if "dry_run=maybe" in messages else dry_run
    places = (f"paths.outputs={tmp_path}/runs/out", f"paths.cache={tmp_path}/c")
    assert here(monkeypatch, *" ".join(messages).split(), *dry_run, *places) == 2
    said, faults = capsys.readouterr()
    assert [message for message in messages.values() if message not in faults] == []
    assert "Traceback" not in faults
    assert said == ""
    assert list(tmp_path.iterdir()) == []
