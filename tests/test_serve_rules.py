"""What may be submitted to the service, and what is refused by construction."""

from pathlib import Path
from typing import Any

import pytest
from command import composed
from served import finished_run

from mitigate.recipes.config import plain
from mitigate.serve.rules import RECIPES, Rules, allowed
from mitigate.settings import CONF, WrongError, settings

OWN = Path("/absent")


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    place = tmp_path_factory.mktemp("rules")
    (place / "root").mkdir()
    (place / "root" / "triples.csv").write_text("head,relation,tail\n")
    (place / "secret.csv").write_text("not for others")
    (place / "root" / "link.csv").symlink_to(place / "secret.csv")
    for policy in ("none", "both"):
        finished_run(place / "it's out", f"mitigate-{policy}", {})
    return Rules(CONF, place / "it's out", {"tracking.mode": "none"}, [place / "root"])


def faults(rules: Rules, recipe: str, overrides: dict[str, Any]) -> list[str]:
    with pytest.raises(WrongError) as refused:
        rules.arguments(recipe, overrides, OWN)
    return list(refused.value.faults.values())


def test_a_submission_becomes_arguments_that_compose_to_what_was_said(rules: Rules) -> None:
    overrides = {"policy": "both", "seed": 7, "trainer.lr": 1e-05, "score.regard": None, "recipe.shown": "nurse"}
    overrides |= {"probe.targets": ["lawyer", "women's rights activist"], "probe.relations": ["CapableOf"]}
    arguments = rules.arguments("mitigate", overrides, OWN)
    assert arguments[:2] == ["recipe=mitigate", "policy=both"]
    config = plain(composed(*arguments))
    assert (config["policy"]["name"], config["seed"], config["trainer"]["lr"]) == ("both", 7, 1e-05)
    assert config["probe"]["targets"] == ["lawyer", "women's rights activist"]
    assert (config["score"]["regard"], config["recipe"]["shown"]) == (None, ["nurse"])
    assert (config["paths"]["outputs"], config["tracking"]["mode"]) == (str(rules.outputs), "none")


def test_every_recipe_of_the_list_composes_and_options_need_nothing_more(rules: Rules) -> None:
    for recipe in RECIPES:
        runs = {"compare.runs": ["mitigate-none", "mitigate-both"]} if recipe == "compare" else {}
        assert f"recipe={recipe}" in rules.arguments(recipe, runs, OWN)
    options = Rules(CONF, rules.outputs).options()
    assert {"none", "both", "cn100k", "triples"} <= {*options["policy"], *options["data"]}
    assert {"comet_minilm", "transe"} <= set(options["model"])
    of_folders = {"hf", "seq2seq", "comet", "comet_original", "cn100k_lm"}  # model.base=??? names a folder
    assert not of_folders & {*options["model"], *options["experiment"]}
    assert not {"api", "foreign", "tails"} & set(options["model"])  # an address, and paths


def test_files_and_runs_are_those_of_the_service(rules: Rules) -> None:
    path = composed(*rules.arguments("audit", {"data": "triples", "data.path": "triples.csv"}, OWN)).data.path
    assert path == str(rules.roots[0].resolve() / "triples.csv")
    assert f"texts=@{path}" in rules.arguments("labels", {"texts": "triples.csv"}, OWN)
    assert faults(rules, "audit", {"data": "triples", "data.path": "gone.csv"})[0].startswith("data.path: you uploaded")
    compared = composed(*rules.arguments("compare", {"compare.runs": ["mitigate-none", "mitigate-both"]}, OWN))
    assert list(compared.compare.runs) == [str(rules.outputs / "mitigate-none"), str(rules.outputs / "mitigate-both")]
    for word, read in (("lawyer", ["lawyer"]), ("all", "all")):  # a word alone is no file
        assert composed(*rules.arguments("mitigate", {"probe.targets": word}, OWN)).probe.targets == read


def test_all_faults_are_reported_together_and_no_scorer_opens_an_address(rules: Rules) -> None:
    found = faults(rules, "mitigat", {"policy": "bohth", "seed": -1, "trainer.lr": "fast", "trainer.learning": 1})
    assert found[0] == f"unknown recipe 'mitigat' (did you mean mitigate?); allowed: {', '.join(RECIPES)}"
    assert found[1].startswith("unknown policy 'bohth' (did you mean both?); allowed: balance, both")
    assert found[2] == "seed=-1 must be a whole number from 0 to 4,294,967,295 (number that fixes all random draws)"
    assert found[3] == "trainer.lr=fast must be a number above 0 and at most 1 (learning rate)"
    assert found[4].startswith("'trainer.learning' cannot be set in this service; see its list of settings")
    assert len(found) == 5
    for key, value in (("score.extra", ["ngram", "judge"]), ("score.regard", "judge"), ("policy.scorers", ["judge"])):
        (found,) = faults(rules, "mitigate", {key: value})
        assert found == f"{key}: judge sends texts to an address, which no job of this service does"
    assert "kge.seeds" in faults(rules, "mitigate", {"kge.seeds": 1})[0]  # a setting of another option


KEYS = (
    *("policy._target_", "data.load._target_", "recipe.run", "model.folder._target_", "score.scorers", "hydra.run.dir"),
    *("paths.outputs", "paths.cache", "data.root", "data.output", "ask.run", "recipe.probes", "", "score.judge.url"),
    *("model.init", "score.bert.model", "tracking.mode", "recipe", "hydra/launcher", "+x", "~policy", "model.url"),
    *("policy.scorers.0", "probe.targets ", "probe.device", "trainer.devices", "a\ud800", "x" * 5000),
)


@pytest.mark.parametrize("key", KEYS)
def test_keys_that_name_code_places_or_devices_cannot_be_said(rules: Rules, key: str) -> None:
    (found,) = faults(rules, "mitigate", {key: "os.getcwd"})
    assert "cannot be set in this service; see its list of settings" in found
    assert len(found.encode()) < 200


CODE = {"_target_": "os.getcwd"}
VALUES: dict[str, list[Any]] = {
    "probe.targets": ["/etc/passwd", ["../secret.csv"], ["${oc.env:HOME}"], ["lawyer", CODE], []],
    "policy": ["../recipe/ask", "both,none", ["none", "both"], CODE],
    "model": ["comet"],
    "score.regard": ["${oc.env:HOME}"],
    "seed": [True, CODE, "1,2", 10**400],
    "trainer.lr": [float("nan")],
    "data.path": ["../secret.csv", "link.csv", "/etc/passwd", "absent.csv", 5, "a" * 300, "a/" * 3000, "\ud800"],
    "compare.runs": ["../out", ["/etc"], [], [CODE], ["mitigate-none", ".serve"], "a" * 300],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values])
def test_values_that_are_no_plain_values_are_refused(rules: Rules, key: str, value: Any) -> None:
    (found,) = faults(rules, "mitigate", {"data": "triples", key: value} if key == "data.path" else {key: value})
    assert found.startswith((key, f"unknown {key}"))


SAFE = {"whole number", "number", "true or false", "word", "null", "name", "list of names", "list of whole numbers"}
"""Types of settings whose values can be no path and no code."""


def test_the_list_holds_described_settings_that_can_be_no_path_and_no_code() -> None:
    for key, takes in allowed().items():
        assert takes in ("value", "words", "file", "words or file", "columns"), key
        if takes == "value":
            assert set(settings()[key].types) <= SAFE, key
    files = [key for key, takes in allowed().items() if "file" in takes]
    assert set(files) == {"texts", "recipe.targets", "data.path", "data.relations", "probe.targets", "recipe.prompts"}
