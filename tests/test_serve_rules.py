"""What may be submitted to the service, and what is refused by construction."""

from pathlib import Path
from typing import Any

import pytest
from command import composed

from mitigate.errors import MitigateError
from mitigate.recipes.job import plain
from mitigate.serve.allowed_jobs import RECIPES, RefusedError, Rules, allowed
from mitigate.settings import settings

CONF = Path(__file__).parents[1] / "conf"
GIVEN = {"paths.outputs": "/srv/it's here", "tracking.mode": "none", "data.root": "/srv/data"}


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    root = tmp_path_factory.mktemp("root")
    (root / "triples.csv").write_text("head,relation,tail\n")
    (root.parent / "secret.csv").write_text("not for others")
    (root / "link.csv").symlink_to(root.parent / "secret.csv")
    return Rules(CONF, GIVEN, [root])


def faults(rules: Rules, recipe: str, overrides: dict[str, Any]) -> list[str]:
    with pytest.raises(RefusedError) as refused:
        rules.arguments(recipe, overrides)
    return refused.value.faults


def test_a_submission_becomes_arguments_that_compose_to_what_was_said(rules: Rules) -> None:
    overrides = {"policy": "both", "seed": 7, "trainer.lr": 1e-05, "score.regard": None, "recipe.shown": "nurse"}
    overrides |= {"probe.targets": ["lawyer", "women's rights activist"], "probe.relations": ["CapableOf"]}
    arguments = rules.arguments("mitigate", overrides)
    assert arguments[:3] == ["recipe=mitigate", "policy=both", "seed=7"]
    config = plain(composed(*arguments))
    assert (config["policy"]["name"], config["seed"], config["trainer"]["lr"]) == ("both", 7, 1e-05)
    assert config["probe"]["targets"] == ["lawyer", "women's rights activist"]
    assert (config["score"]["regard"], config["recipe"]["shown"]) == (None, ["nurse"])
    assert (config["paths"]["outputs"], config["tracking"]["mode"]) == ("/srv/it's here", "none")
    assert config["data"]["root"] == "/srv/data"


def test_every_recipe_of_the_list_composes_and_options_need_nothing_more(rules: Rules) -> None:
    for recipe in RECIPES:
        assert f"recipe={recipe}" in rules.arguments(recipe, {})
    options = rules.options()
    assert {"none", "both", "both_neutral"} <= set(options["policy"])
    assert {"sample", "cn100k"} <= set(options["data"])
    assert {"comet_minilm", "transe"} <= set(options["model"])
    assert not {"hf", "seq2seq", "comet", "comet_original"} & set(options["model"])  # model.base=??? names a folder
    assert not {"api", "foreign", "tails"} & set(options["model"])  # an address, and paths


def test_stories_take_uploaded_prompts_and_no_scorer_opens_an_address(rules: Rules) -> None:
    arguments = rules.arguments("stories", {"recipe.prompts": "triples.csv", "recipe.most_prompts": 3})
    assert f"recipe.prompts='{(rules.roots[0] / 'triples.csv').resolve()}'" in arguments
    for key, value in (("score.extra", ["ngram", "judge"]), ("score.regard", "judge"), ("policy.scorers", ["judge"])):
        assert faults(rules, "mitigate", {key: value}) == [
            f"{key}: judge sends texts to an address, which no job of this service does"
        ]
    assert "score.extra=['ngram','keyword']" in rules.arguments("mitigate", {"score.extra": ["ngram", "keyword"]})
    for key in ("score.judge.url", "score.judge.model", "recipe.instruction", "model.path", "model.url"):
        assert "cannot be set in this service" in faults(rules, "stories", {key: "x"})[0]


def test_all_faults_are_told_together(rules: Rules) -> None:
    found = faults(rules, "mitigat", {"policy": "bohth", "seed": -1, "trainer.lr": "fast", "trainer.learning": 1})
    assert len(found) == 5
    assert found[0] == f"unknown recipe 'mitigat' (did you mean mitigate?); allowed: {', '.join(RECIPES)}"
    assert found[1].startswith("unknown policy 'bohth' (did you mean both?); allowed: balance, both")
    assert found[2] == "seed=-1 must be a whole number from 0 to 4,294,967,295 (number that fixes all random draws)"
    assert found[3] == "trainer.lr=fast must be a number above 0 and at most 1 (learning rate)"
    assert found[4].startswith("'trainer.learning' cannot be set in this service; the list of settings has those")


KEYS = (
    *("policy._target_", "data.load._target_", "recipe.run", "model.folder._target_", "score.scorers", "hydra.run.dir"),
    *("paths.outputs", "paths.cache", "data.root", "data.output", "compare.runs", "ask.run", "recipe.probes", ""),
    *("model.base", "model.init", "score.bert.model", "tracking.mode", "recipe", "hydra/launcher", "+x", "~policy"),
    *("policy.scorers.0", "probe.targets ", "probe.device", "trainer.devices", "a\ud800", "x" * 5000),
)


@pytest.mark.parametrize("key", KEYS)
def test_keys_that_name_code_places_or_devices_cannot_be_said(rules: Rules, key: str) -> None:
    (found,) = faults(rules, "mitigate", {key: "os.getcwd"})
    assert "cannot be set in this service; the list of settings has those that can" in found
    assert len(found.encode()) < 200


CODE = {"_target_": "os.getcwd"}
LONG = ["a" * 300, "a/" * 3000]
VALUES: dict[str, list[Any]] = {
    "probe.targets": ["/etc/passwd", ["../secret.csv"], ["${oc.env:HOME}"], ["lawyer", CODE], []],
    "policy": ["../recipe/ask", "both,none", ["none", "both"]],
    "model": ["hf"],
    "score.regard": ["${oc.env:HOME}"],
    "seed": [True, CODE, "1,2", 10**400],
    "trainer.lr": [float("nan")],
    "data.path": ["../secret.csv", "link.csv", "/etc/passwd", "absent.csv", "$HOME", 5, *LONG, "\ud800"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values])
def test_values_that_are_no_plain_values_are_refused(rules: Rules, key: str, value: Any) -> None:
    (found,) = faults(rules, "mitigate", {"data": "triples", key: value} if key == "data.path" else {key: value})
    assert found.startswith((key, f"unknown {key}"))


def test_files_are_in_the_folders_of_the_service_and_a_word_alone_is_no_file(rules: Rules) -> None:
    given = {"data": "triples", "data.path": "triples.csv"}
    path = composed(*rules.arguments("audit", given)).data.path
    assert path == str(Path(rules.roots[0]).resolve() / "triples.csv")
    (found,) = faults(Rules(CONF), "audit", given)
    assert found == "data.path names a file, and this service was given no folder of files (serve.roots)"
    for word, read in (("lawyer", ["lawyer"]), ("all", "all")):
        assert composed(*rules.arguments("mitigate", {"probe.targets": word})).probe.targets == read


def test_a_setting_of_another_option_and_an_error_of_hydra_are_faults(rules: Rules) -> None:
    (found,) = faults(rules, "mitigate", {"kge.seeds": 1})
    assert found == "kge.seeds is not a setting of recipe=mitigate; leave it out, or choose another option"
    with pytest.raises(MitigateError, match="absent"):
        rules.checked(["policy=absent"], {})


SAFE = {"whole number", "number", "true or false", "word", "null", "name", "list of names", "list of whole numbers"}
"""Types of settings whose values can be no path and no code."""


def test_the_list_holds_described_settings_that_can_be_no_path_and_no_code() -> None:
    for key, takes in allowed().items():
        assert key in settings(), key
        assert takes in ("value", "words", "file", "words or file", "columns", "model"), key
        if takes == "value":
            assert set(settings()[key].types) <= SAFE, key
    files = [key for key, takes in allowed().items() if "file" in takes]
    assert set(files) == {"texts", "recipe.targets", "data.path", "data.relations", "probe.targets", "recipe.prompts"}
