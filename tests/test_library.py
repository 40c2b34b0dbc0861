"""The library as users meet it: its names, its examples, a scorer and a recipe of one's own."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from refusals import refuses
from small_models import save_gpt1

import mitigate
from mitigate.errors import MitigateError

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
HEAVY = ("torch", "transformers", "pytorch_lightning", "hydra", "wandb", "polars", "numpy")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of docs/examples, to run and to edit."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def python(folder: Path, *arguments: str) -> str:
    """What Python prints, run in a folder; fails where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-W", "error", *arguments]
    found = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_importing_and_sentiment_load_no_heavy_package_and_no_network(tmp_path: Path) -> None:
    script = f"""if True:
        import sys, mitigate
        dir(mitigate)
        print([name for name in {HEAVY} if name in sys.modules])
        from mitigate.score.labeller import label_statements
        from mitigate.score.lexicon import Vader
        labelled = label_statements(mitigate.sample_triples().head(50), [Vader()])
        mitigate.measure_harms(mitigate.apply_policy(mitigate.Drop("mine", ["sentiment"]), labelled))
        print([name for name in ("torch", "transformers", "hydra", "wandb") if name in sys.modules])
        mitigate.label(["a kind text"], ["sentiment"])
        print("torch" in sys.modules)"""
    assert python(tmp_path, "-c", script).splitlines() == ["[]", "[]", "False"]


def test_every_public_name_is_documented_and_typed() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    for name in mitigate.__all__:
        thing = getattr(mitigate, name)
        assert inspect.getdoc(thing), name
        assert f"`{name}`" in page, name
        if inspect.isfunction(thing):
            signature = inspect.signature(thing)
            assert inspect.Parameter.empty not in [p.annotation for p in signature.parameters.values()], name
            assert signature.return_annotation is not inspect.Signature.empty, name


def test_scripts_filter_ones_own_triples_and_by_a_scorer_of_ones_own(folder: Path) -> None:
    """Two processes start, which takes seconds: scripts are run as users run them."""
    found = python(folder, "own_triples.py", "triples.csv")
    means = re.findall(r"NSM (\w+): ([\d.]+) % \(95 % interval ([\d.]+) to ([\d.]+)\)", found)
    assert [name for name, *_ in means] == ["before", "after"]
    (before, low, high), (after, *_) = (map(float, numbers) for _, *numbers in means)
    assert 0 < low < before < high < 100
    assert before < after
    dropped, rows = map(int, re.findall(r"(\d+) of (\d+) triples are dropped", found)[0])
    assert 0 < dropped < rows
    assert "words -1" in python(folder, "own_scorer.py")


def test_the_examples_of_the_documentation_run(folder: Path) -> None:
    """Those of README and of the library's page in one process, as one reads them."""
    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/library.md"))
    blocks = re.findall(r"```python\n(.*?)```", readme.replace("docs/examples/", "") + page, re.DOTALL)
    assert len(blocks) == 6
    (folder / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    found = python(folder, "page.py")
    assert re.match(r"\d+ of 192 triples kept\n", found)
    assert re.search(r"\d+ of 192 triples are kept\nNSM [\d.]+ % \(95 % interval [\d.]+ to [\d.]+\)", found)
    assert re.search(r"\d outputs/mitigate-both_neutral-triples-comet_minilm-seed1-\w+/report.html\n", found)
    assert list(folder.glob("outputs/*/model/config.json"))


def test_a_recipe_of_ones_own_is_cached_until_its_version_changes(folder: Path) -> None:
    """Three processes start, which takes seconds: an edited module is read anew by a new one alone."""
    start = ["-m", "mitigate", "--config-dir", "conf", "recipe=toy", "data=triples", "data.path=triples.csv"]

    def run() -> str:
        return python(folder, *start, "tracking=none", "paths.outputs=out")

    (said,) = re.findall(r"[\d.]+ % of 192 statements are neutral", run())
    source = (folder / "toy.py").read_text(encoding="utf-8")
    (folder / "toy.py").write_text(source.replace("and count.", "and count them."), encoding="utf-8")
    second = run()
    assert "complete: nothing to do" in second
    assert said in second
    (folder / "toy.py").write_text(source.replace("100 * (", "1000 * (").replace('"1"', '"2"'), encoding="utf-8")
    (tenfold,) = re.findall(r"([\d.]+) % of 192 statements are neutral", run())
    assert float(tenfold) == pytest.approx(10 * float(said.split()[0]), abs=1)


def test_a_function_is_a_scorer() -> None:
    found = mitigate.make_scorer(lambda texts: [-1, 2, 0], "words")(["a", "a b", "a b c"])
    assert (found.label.tolist(), found.strength.tolist()) == ([-1, 2, 0], [-1, 0, 0])


def test_rows_are_texts_or_triples_and_others_are_refused() -> None:
    assert [mitigate.label(rows, "sentiment").height for rows in ([], "the nurse lies")] == [0, 1]
    triples = pl.DataFrame({"head": ["a"], "relation": ["Capableof"], "tail": ["b"]})
    refuses(MitigateError, "has no phrase.*mean CapableOf", mitigate.label, triples, "sentiment")
    refuses(MitigateError, "has no column 'target'", mitigate.label, ["he lies"], "sentiment", masking="paper")
    refuses(MitigateError, "must hold a text in each row", mitigate.label, [None], "sentiment")


def test_a_scorer_of_a_role_is_the_configured_one_and_results_need_a_run_folder() -> None:
    assert mitigate.scorer("regard", regard="keyword").name == "keyword"
    refuses(MitigateError, "score.regard and score.extra are all empty", mitigate.scorer, "regard", regard=None)
    refuses(MitigateError, "recipe=labels leaves no run", mitigate.run, "labels", texts=["a"], **{"score.regard": None})


def test_harms_of_ones_own_scorer_and_what_is_missing() -> None:
    """A nurse's two statements: one of them prejudice; a man's one is neutral."""
    triples = pl.DataFrame({"head": ["nurse", "nurse", "man"], "relation": "IsA", "tail": ["cruel", "kind", "kind"]})
    labelled = mitigate.label(triples, [mitigate.make_scorer(lambda texts: [-("cruel" in t) for t in texts], "words")])
    harms = mitigate.measure_harms(labelled, intervals=mitigate.Bootstrap(resamples=50, seed=1))
    assert (harms["words/neutral_mean"], harms["words/O-"]) == (75, 25)
    assert harms["words/neutral_mean_low"] <= 75 <= harms["words/neutral_mean_high"]
    unknown = "unknown scorer 'regard'; allowed: words"
    refuses(MitigateError, unknown, mitigate.measure_harms, labelled, scorers=["regard"])


def test_a_generator_is_trained_and_probed_of_plain_arguments(tmp_path: Path) -> None:
    triples = mitigate.sample_triples().filter(pl.col("split") != "dev2").head(40)
    ledger = mitigate.apply_policy(mitigate.Policy("none"), triples)
    start = mitigate.open_generator(save_gpt1(tmp_path / "gpt1", triples["tail"].to_list()))
    settings = mitigate.TrainingSettings(max_steps=2, batch_size=8)
    facts = mitigate.train_generator(ledger, start, settings, model=tmp_path / "model")
    assert facts["steps"] == 2
    again = mitigate.train_generator(ledger, start, settings, model=str(tmp_path / "again"))
    assert again["train_loss"] == facts["train_loss"]
    generator = mitigate.open_generator(tmp_path / "model")
    assert generator.weights == mitigate.open_generator(tmp_path / "again").weights != start.weights
    probed = mitigate.probe_generator(generator, ["lawyer", "nurse"], ["IsA"], beams=2, top=2, max_length=3)
    rows = [(target, "profession", "IsA", rank) for target in ("lawyer", "nurse") for rank in (1, 2)]
    assert probed.select("target", "category", "relation", "rank").rows() == rows
    unknown = triples.with_columns(relation=pl.lit("Foo"), split=pl.lit("test"))
    refuses(MitigateError, "unknown relation 'Foo'", mitigate.held_out_likelihood, generator, unknown)
    refuses(MitigateError, "is not a folder, is not in the hub's cache", mitigate.open_generator, "no/such-model")
