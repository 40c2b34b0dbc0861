"""recipe=audit from the command line: a file of one's own, labels given in it, triples, and the paper's ConceptNet."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from command import here

from mitigate.label_cache import LabelStore
from mitigate.load import harms
from mitigate.match import about_targets
from mitigate.measure.resource import figures
from mitigate.measure.tally import per_target, tally
from mitigate.recipes.audit import recipe as audit_recipe
from mitigate.score.labels import label_column
from mitigate.score.vader import Vader
from mitigate.targets import choose_targets
from mitigate.tasks.audit.paper import paper_figures
from mitigate.tracking import NoTracking
from mitigate.verbalise import verbalise

STATEMENTS = (
    "lawyer\tthe lawyer is a thief\nlawyer\tthe lawyer is late\nnurse\tthis nurse is kind\ngamer\ta gamer sits\n"
)


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the recipe; returns the exit status, what was printed, and the run folder."""

    def run(*overrides: str) -> tuple[int, str, str, Path]:
        outputs = tmp_path / "outputs"
        places = (f"paths.outputs={outputs}", f"paths.cache={tmp_path}/cache", "tracking=none")
        status = here(monkeypatch, "recipe=audit", *places, "score.regard=ngram", "measure.resamples=100", *overrides)
        folders = sorted(outputs.iterdir()) if outputs.exists() else [outputs]
        return (status, *capsys.readouterr(), folders[-1])

    return run


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are tested by themselves, and take seconds."""
    monkeypatch.setattr("mitigate.report.audit.Audit.pictures", [])


def written(tmp_path: Path, content: str) -> str:
    path = tmp_path / "mine.tsv"
    path.write_text(content, encoding="utf-8")
    return f"data.path={path}"


def test_the_same_triples_in_other_words_are_another_audit(audit, tmp_path: Path) -> None:
    mine = written(tmp_path, "head\trelation\ttail\nlawyer\tHelpsWith\tgood work\nnurse\tHelpsWith\tcrime\n")
    for phrase in ("helps with", "is helpful for"):
        relations = tmp_path / "relations.csv"
        relations.write_text(f"relation,phrase\nHelpsWith,{phrase}\n")
        arguments = ("data=triples", mine, f"data.relations={relations}", "recipe.targets=[lawyer,nurse]")
        assert audit(*arguments, "score.regard=null")[0] == 0
    folders = (tmp_path / "outputs").iterdir()
    assert sorted((folder / "statements.tsv").read_text().split("\n")[1] for folder in folders) == [
        "lawyer\tlawyer helps with good work",
        "lawyer\tlawyer is helpful for good work",
    ]


def test_a_file_of_statements(audit, tmp_path: Path) -> None:
    status, said, _, folder = audit("data=statements", written(tmp_path, STATEMENTS), "score.extra=[keyword]")
    assert status == 0
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["targets"], metrics["statements"], metrics["rows_about_a_target"]) == (3, 4, 4)
    assert metrics["D_R"] == pytest.approx(2 / 9)  # of 2, 1 and 1
    assert metrics["NSM"] == 50  # lawyer 50, nurse 0, gamer 100
    assert metrics["NSM/profession"] == 25
    assert metrics["NSM/own"] == 100
    assert metrics["sentiment/O-"] == pytest.approx(50 / 3)
    assert metrics["sentiment/polarised"] == 50
    assert metrics["keyword/neutral_mean"] is not None
    assert metrics["NSM_low"] <= 50 <= metrics["NSM_high"]
    assert not any(key.startswith(("neutral_template/", "empty_zero/")) for key in metrics)  # nothing to say there
    assert "  note: 1 target is not in the paper's list: gamer\n" in said
    table = pl.read_csv(folder / "tables" / "targets_sentiment.csv")
    assert table.filter(target="lawyer")["prejudice"].item() == 50
    assert "\\toprule" in (folder / "tables" / "targets_regard.tex").read_text()
    page = (folder / "audit.html").read_text()
    assert "content warning" in page
    assert "the lawyer is a thief" in page
    assert "keyword" in page


def test_labels_that_depend_on_an_identity_word_are_named(audit, tmp_path: Path) -> None:
    mine = written(tmp_path, "nurse\tthe nurse met overweight people\nlawyer\tthe lawyer met people\n")
    _, said, _, folder = audit("data=statements", mine, "score.regard=null")
    notice = "1 of 2 labels of sentiment depend on an identity word: with the word masked, the text has another label"
    assert f"  note: {notice} (overweight people (1))" in said
    assert notice in (folder / "audit.html").read_text(encoding="utf-8")


def test_a_complete_audit_that_wandb_hands_out_is_recorded_whole(audit, tmp_path: Path, monkeypatch) -> None:
    recorded: list[object] = []
    monkeypatch.setattr(NoTracking, "summarise", lambda self, metrics: recorded.append(metrics["size/statements"]))
    monkeypatch.setattr(NoTracking, "table", lambda self, name, frame: recorded.append((name, frame.height > 3)))
    mine = ("data=statements", written(tmp_path, STATEMENTS), "tracking.statements=true")
    audit(*mine)
    whole = [4, ("metrics", True), ("statements", True)]
    assert recorded == whole
    monkeypatch.setenv("WANDB_SWEEP_ID", "abcd1234")
    _, said, _, _ = audit(*mine)
    assert said.count("cached") == 5
    assert recorded == 2 * whole


def test_labels_given_in_the_file_are_counted_and_no_scorer_is_asked(audit, tmp_path: Path) -> None:
    content = "target\tstatement\tHuman\nlawyer\tlies\t-1\nlawyer\twins\t2\nnurse\tcares\t1\n"
    status, _, _, folder = audit("data=statements", written(tmp_path, content), "data.label_column=Human")
    assert status == 0
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["human/neutral_mean"] == 25  # of 50 and 0
    assert metrics["human/D_O+"] == 2500  # of 0 and 100
    assert "NSM" not in metrics
    assert not (tmp_path / "cache").exists()


def test_targets_without_statements_are_counted_by_both_conventions(audit, tmp_path: Path) -> None:
    arguments = ("data=statements", written(tmp_path, STATEMENTS), "recipe.targets=[lawyer,nurse,italy,gamer]")
    _, _, _, folder = audit(*arguments)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["NSM"], metrics["empty_zero/NSM"], metrics["empty_targets"]) == (50, 37.5, 1)
    assert metrics["D_R"] == pytest.approx(0.5)  # of 2, 1, 0 and 1
    assert (
        "Nothing is said about 1 of 4 targets (italy): they have no percentage" in (folder / "audit.html").read_text()
    )


def test_triples_are_audited_in_both_wordings_and_an_audit_goes_on_where_it_stopped(audit, tmp_path: Path) -> None:
    status, told, _, folder = audit("data=sample", "measure=paper")
    assert status == 0
    left_out = "600 valid triples of dev, dev2, test left out; filter.splits=all counts them too"
    assert left_out in told
    assert left_out in (folder / "audit.html").read_text()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["neutral_template/NSM"] > metrics["NSM"]  # capable, motivated ... praise
    assert metrics["empty_exclude/NSM"] >= metrics["NSM"]
    said = pl.concat([pl.read_parquet(part) for part in sorted((folder / "statements").iterdir())])
    assert said.height == metrics["statements"]
    assert "DEMONSTRATION" in (folder / "audit.html").read_text()
    (folder / "manifest.json").unlink()
    (folder / "report.json").unlink()
    _, again, _, _ = audit("data=sample", "measure=paper")
    assert again.count("cached") == 4


def metrics_told(said: str) -> dict:
    """Those of the run whose folder is named in what was printed."""
    (folder,) = (line.split()[-1] for line in said.splitlines() if "run folder" in line)
    return json.loads((Path(folder) / "metrics.json").read_text())


def test_one_wording_alone_is_measured_when_asked_for(audit) -> None:
    settings = ["data=sample", "score.regard=null", "recipe.targets=[doctor,nurse]"]
    both, neutral = (metrics_told(audit(*settings, *more)[1]) for more in ([], ["measure.template=neutral"]))
    assert {key for key in both if key not in neutral} >= {"NSM", "NSV", "sentiment/O-"}
    assert {key: both[key] for key in neutral} == neutral


def test_targets_inside_phrases_are_found_when_wished(audit) -> None:
    exact, within = (
        metrics_told(audit("data=sample", f"measure.match={match}", "recipe.targets=[doctor,nurse]")[1])
        for match in ("exact", "contains")
    )
    assert within["rows_about_a_target"] == exact["rows_about_a_target"] + 2  # "become nurse" and "tooth doctor"


@pytest.mark.parametrize(
    ("content", "overrides", "message"),
    [
        ("nurse cares\n", [], "1 column, expected 2 separated by a tab: target, statement"),
        ("", [], "mine.tsv is empty; expected lines 'target<TAB>statement'"),
        ("nurse\tcares\n", ["data.label_column=mine"], "has no column mine, but target, statement"),
        ("target\tstatement\tmine\nnurse\tcares\t7\n", ["data.label_column=mine"], "mine '7'; allowed: -1, 0, 1, 2"),
        *(
            (
                f"target\tstatement\t{name}\nnurse\tcares\t1\n",
                [f"data.label_column={name}"],
                f"data.label_column={name.lower()}: ",
            )
            for name in ("category", "Row", "masked", "targets", "a/b")
        ),
        (
            "nurse\tcares\n",
            ["recipe.targets=[lawyer]"],
            "no statement is about a target of recipe.targets",
        ),
        ("nurse\tcares\n", ["measure.match=inside"], "unknown measure.match 'inside'; allowed: exact, contains"),
        (
            "nurse\tcares\n",
            ["measure.empty_targets=none"],
            "unknown measure.empty_targets 'none'; allowed: exclude, zero",
        ),
        ("nurse\tcares\n", ["measure.template=plain"], "unknown measure.template 'plain'; allowed: paper, neutral"),
        ("nurse\tcares\n", ["measure.template=neutral"], "measure.template=neutral wants triples"),
        ("nurse\tcares\n", ["measure.masking=words"], "unknown measure.masking 'words'; allowed: token, paper"),
    ],
)
def test_faults_are_told_before_anything_is_labelled(
    audit, tmp_path, content: str, overrides: list[str], message
) -> None:
    status, _, complaint, folder = audit("data=statements", written(tmp_path, content), *overrides)
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert not folder.exists()


def test_the_papers_figures_of_conceptnet(real_data: Path, tmp_path: Path) -> None:
    """Table 4 from the released triples: statements within 2 %, sentiment within 5 % of the 20.2 and 3.9 that follow
    from the released labels. Whole ends, both of them, the target masked as a substring, empty targets as 0 %."""
    targets = choose_targets("all")
    said = verbalise(about_targets(harms.conceptnet(str(real_data)).triples, targets), "paper")
    labels = label_column(said["masked"], Vader(), LabelStore(tmp_path))
    table = per_target(
        tally(said.with_columns(pl.Series("sentiment", labels.label)), ["sentiment"]), "sentiment", targets, "zero"
    )
    found = figures(table, "sentiment")
    assert (table["statements"].sum(), (table["statements"] == 0).sum()) == (99_986, 2)
    assert table["statements"].to_numpy().var() == pytest.approx(141_538, rel=0.02)
    assert found["sentiment/D_O+"] == pytest.approx(20.2, rel=0.05)
    assert found["sentiment/D_O-"] == pytest.approx(3.9, rel=0.05)
    stated = dict(paper_figures("ConceptNet").select("key", "value").iter_rows())
    assert found["NSM"] == pytest.approx(stated["NSM"], abs=0.1)
    assert found["NSV"] == pytest.approx(stated["NSV"], rel=0.01)
    assert found["sentiment/polarised_mean"] == pytest.approx(stated["sentiment/polarised_mean"], abs=0.06)


def test_the_papers_figures_stand_beside_those_of_its_resource(audit, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "data" / "harms" / "conceptnet_target_triples.txt"
    path.parent.mkdir(parents=True)
    path.write_text(
        "lawyer IsA thief\nlawyer IsA thief\nlawyer IsA nurse\n"
        "nurse CapableOf sit\nnurse Synonym nurse\nnurse dbpedia x\n"
    )
    status, said, _, folder = audit("data=harms_conceptnet", f"data.root={tmp_path / 'data'}", "measure=paper")
    assert status == 0
    assert "1 triple left out, whose relation has no phrase: dbpedia 1" in said
    beside = pl.read_csv(folder / "tables" / "beside_the_paper.csv")
    assert beside.filter(key="D_R").select("paper", "ours").row(0) == pytest.approx(
        (141_538, 2 * 9 / 329 - (6 / 329) ** 2), rel=1e-3
    )
    variants = pl.read_csv(folder / "tables" / "variants.csv")
    numbers = dict(variants.select("rule", "statements").iter_rows())
    assert numbers["the paper"] is None
    assert numbers["as measured"] == 6  # lawyer three, nurse three
    assert numbers["a triple with targets at both ends counts for its head alone"] == 5
    assert numbers["repeated triples count once"] == 5
    assert numbers["only COMeT's 34 relations"] == 5
    assert variants.filter(rule="nothing is masked")["regard/D_O+"].item() is None
    page = (folder / "audit.html").read_text()
    assert "Which rule gives which figure" in page
    assert "without them NSV is 26.9" in page

    arguments = ("data=harms_conceptnet", f"data.root={tmp_path / 'data'}", "measure=paper")
    assert "nothing is left to do" in audit(*arguments)[1]

    def next_to_be_run() -> list[str]:
        return re.findall(r"(\w+) +to be run", audit(*arguments, "dry_run=true")[1])

    with monkeypatch.context() as changed:
        changed.setattr(audit_recipe, "paper_notes", lambda resource: ["A note that is new."])
        assert next_to_be_run() == ["report"]
    with monkeypatch.context() as changed:
        more = paper_figures("ConceptNet").with_columns(pl.col("value") + 1)
        changed.setattr(audit_recipe, "paper_figures", lambda resource: more)
        assert next_to_be_run() == ["variants", "report"]
