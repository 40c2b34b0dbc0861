"""A sweep on triples, targets, a policy and a scorer of one's own, with the comparison at its end."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from command import SMALL, here

from mitigate import fingerprints

TRIPLES = [
    (who, how, what)
    for who in ("deaf person", "enbies", "a roma", "nurse", "lawyer", "dog", "teacher", "river")
    for how in ("mentors", "works with")
    for what in ("a student", "a lazy clerk", "a rude client", "a team")
]
OWN = {
    "own.csv": "target,category,forms\n"
    "deaf person,disability,\nnon-binary person,gender,enby\nroma,origin,\nlaywer,,\n",
    "phrases.csv": "relation,phrase,neutral_phrase\n"
    "mentors,is a great mentor of,is a mentor of\nworks with,works with,\n",
    "mine.tsv": "head\trelation\ttail\n" + "".join("\t".join(triple) + "\n" for triple in TRIPLES),
}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the runs and of their comparison."""
    place = tmp_path_factory.mktemp("own sweep")
    for name, content in OWN.items():
        (place / name).write_text(content)
    mine = [f"data.path={place}/mine.tsv", f"data.relations={place}/phrases.csv", f"probe.targets={place}/own.csv"]
    small = [part for part in SMALL if not part.startswith(("probe.targets", "probe.relations", "trainer.max_steps"))]
    scorers = ["score=study", "score.regard=rude", "score.plausibility=null", "trainer.max_steps=2"]
    scorers += ["score.scorers.rude.words=[lazy,mentor]", "probe.beams=2", "probe.top=2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mitigate.report.page.Report.pictures", [])  # tested by themselves, and take seconds
        outputs = [f"paths.outputs={place}/out", "tracking=none"]
        policies = ["--config-dir", "docs/examples/own", "-m", "policy=none,no_rude_words"]
        assert here(patch, *policies, *scorers, "data=triples", *mine, *small, *outputs) == 0
    yield place / "out"
    sys.modules.pop("study", None)
    fingerprints.forget()


def words(page: Path) -> str:
    text = re.sub(r"<(style|script).*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_comparison_carries_the_scorers_name_and_the_papers_stands_for_sentiment_alone(sweep: Path) -> None:
    (page,) = sweep.glob("compare-*/comparison.html")
    said = words(page)
    assert "neutral by rude, mean, neutral template" in said
    assert "rude: neutral mean ↑" in said
    assert "rude: neutral variance ↓" in said
    assert not re.search(r"NRM|NRV", said)
    assert not re.search(r"\bregard\b", said.split("Provenance")[0])
    facts = json.loads((page.parent / "comparison.json").read_text())
    (contrast,) = facts["contrasts"]
    assert contrast["policy"] == "no_rude_words"
    assert contrast["primary"]["harm"]["figure"] == "neutral_template/rude/neutral_mean"
    rude = contrast["harms"]["neutral_template/rude/neutral_mean"]
    assert (rude["baseline"], rude["value"]) == (50, 50)  # what mentors is worded with is called rude here
    for folder, side in (("none", "baseline"), ("no_rude_words", "value")):
        (metrics,) = sweep.glob(f"mitigate-{folder}-*/metrics.json")
        assert json.loads(metrics.read_text())["neutral_template/rude/neutral_mean"] == pytest.approx(rude[side])


def test_the_commands_of_the_runs_pages_name_the_folder_of_ones_own(sweep: Path) -> None:
    pages = list(sweep.glob("mitigate-*/report.html"))
    assert len(pages) == 2
    for page in pages:
        command = json.loads((page.parent / "manifest.json").read_text())["command"]
        assert shlex.split(command)[3:5] == ["--config-dir", "docs/examples/own"]
        assert "--config-dir docs/examples/own" in words(page)
        assert not re.search(r"NRM|NRV", words(page))


def test_own_targets_are_compared_by_their_words_and_categories(sweep: Path) -> None:
    (page,) = sweep.glob("compare-*/comparison.html")
    said = words(page)
    assert "disability" in said
    assert "4 targets are not in the paper's list: deaf person, non-binary person, roma, laywer." in said
    assert "Non-binary people are missing" not in said
    assert "one target only" in said  # a category of one has no variance
    assert not re.search(r"\bnan\b|None\b", said)
