"""recipe=audit from the command line: a file of one's own, labels given in it, triples, and the paper's ConceptNet."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from command import UNDRAWN

from mitigate.cache import LabelStore
from mitigate.load.statements import harms_conceptnet
from mitigate.load.targets import about_targets
from mitigate.measure.harms import harm_results, tallied_per_target, tally
from mitigate.measure.results import Results
from mitigate.recipes.audit import recipe as audit_recipe
from mitigate.score.labels import label_column
from mitigate.score.vader import Vader
from mitigate.tasks.audit.measures import paper_figures
from mitigate.verbalise import verbalise
from mitigate.words.targets import choose_targets

STATEMENTS = (
    "lawyer\tthe lawyer is a thief\nlawyer\tthe lawyer is late\nnurse\tthis nurse is kind\ngamer\ta gamer sits\n"
)
PAIR = "recipe.targets=[doctor,nurse]"


@pytest.fixture
def audit(tmp_path: Path, placed, monkeypatch: pytest.MonkeyPatch):
    """Runs the recipe; returns the exit status, what was printed, and the run folder (or that of the outputs)."""
    monkeypatch.setattr(*UNDRAWN)  # tested by themselves, and take seconds

    def run(*overrides: str) -> tuple[int, str, str, Path]:
        status, said, told = placed("recipe=audit", "score.regard=ngram", "measure.resamples=100", *overrides)
        named = [line.split()[-1] for line in said.splitlines() if "run folder" in line]
        return status, said, told, Path(named[0]) if named else tmp_path / "out"

    return run


@pytest.fixture
def mine(tmp_path: Path):
    """The settings of a file of statements with this content."""

    def write(content: str, data: str = "statements") -> tuple[str, str]:
        (tmp_path / "mine.tsv").write_text(content, encoding="utf-8")
        return f"data={data}", f"data.path={tmp_path / 'mine.tsv'}"

    return write


def metrics_of(folder: Path) -> dict:
    return json.loads((folder / "metrics.json").read_text())


def test_the_same_triples_in_other_words_are_another_audit(audit, mine, tmp_path: Path) -> None:
    triples = mine("head\trelation\ttail\nlawyer\tHelpsWith\tgood work\nnurse\tHelpsWith\tcrime\n", "triples")
    relations = tmp_path / "relations.csv"
    found = []
    for phrase in ("helps with", "is helpful for"):
        relations.write_text(f"relation,phrase\nHelpsWith,{phrase}\n")
        more = (f"data.relations={relations}", "recipe.targets=[lawyer,nurse]", "score.regard=null")
        status, _, _, folder = audit(*triples, *more)
        assert status == 0
        found.append((folder / "statements.tsv").read_text().split("\n")[1])
    assert found == ["lawyer\tlawyer helps with good work", "lawyer\tlawyer is helpful for good work"]


def test_a_file_of_statements(audit, mine) -> None:
    status, said, _, folder = audit(*mine(STATEMENTS), "score.extra=[keyword]")
    assert status == 0
    metrics = metrics_of(folder)
    expected = {
        **{"targets": 3, "statements": 4, "rows_about_a_target": 4, "D_R": 2 / 9},  # of 2, 1 and 1 statements
        **{"NSM": 50, "NSM/profession": 25, "NSM/own": 100},  # lawyer 50, nurse 0, gamer 100
        **{"sentiment/O-": 50 / 3, "sentiment/polarised": 50},
    }
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)
    assert metrics["keyword/neutral_mean"] is not None
    assert metrics["NSM_low"] <= 50 <= metrics["NSM_high"]
    assert not any(key.startswith(("neutral_template/", "empty_zero/")) for key in metrics)  # nothing to say there
    assert "  note: 1 target is not in the paper's list: gamer\n" in said
    table = pl.read_csv(folder / "tables" / "targets_sentiment.csv")
    assert table.filter(target="lawyer")["prejudice"].item() == 50
    assert "\\toprule" in (folder / "tables" / "targets_regard.tex").read_text()
    page = (folder / "audit.html").read_text()
    for shown in ("content warning", "the lawyer is a thief", "keyword"):
        assert shown in page


def test_labels_that_depend_on_an_identity_word_are_named(audit, mine) -> None:
    statements = "nurse\tthe nurse met overweight people\nlawyer\tthe lawyer met people\n"
    _, said, _, folder = audit(*mine(statements), "score.regard=null")
    notice = "1 of 2 labels of sentiment depend on an identity word: with the word masked, the text has another label"
    assert f"  note: {notice} (overweight people (1))" in said
    assert notice in (folder / "audit.html").read_text(encoding="utf-8")


def test_labels_given_in_the_file_are_counted_and_no_scorer_is_asked(audit, mine, tmp_path: Path) -> None:
    content = "target\tstatement\tHuman\nlawyer\tlies\t-1\nlawyer\twins\t2\nnurse\tcares\t1\n"
    labels = "data.labels={-1: prejudice, 1: favouritism, 2: other}"
    status, _, _, folder = audit(*mine(content), "data.label_column=Human", labels)
    assert status == 0
    metrics = metrics_of(folder)
    assert metrics["human/neutral_mean"] == 25  # of 50 and 0
    assert metrics["human/D_O+"] == 2500  # of 0 and 100
    assert "NSM" not in metrics
    assert not (tmp_path / "cache").exists()


def test_targets_without_statements_are_counted_by_both_conventions(audit, mine) -> None:
    _, said, _, folder = audit(*mine(STATEMENTS), "recipe.targets=[lawyer,nurse,italy,gamer]")
    assert "4 statements about 3 of 4 targets that favour or disparage them, in 4 of 4 rows of mine.tsv" in said
    assert "0 repeated" not in said
    assert re.findall(r" s   (\d+ rows?)", said) == [], "the rows of a table of counts are none of the data's"
    metrics = metrics_of(folder)
    assert (metrics["NSM"], metrics["empty_zero/NSM"], metrics["empty_targets"]) == (50, 37.5, 1)
    assert metrics["D_R"] == pytest.approx(0.5)  # of 2, 1, 0 and 1
    shown = "1 of 4 targets have no statements (italy): they have no percentage"
    assert shown in (folder / "audit.html").read_text()


def test_triples_are_audited_in_both_wordings_and_an_audit_goes_on_where_it_stopped(audit) -> None:
    status, said, _, folder = audit("data=sample", "measure=paper")
    assert status == 0
    left_out = "600 valid triples of dev, dev2, test left out; filter.splits=all counts them too"
    page = (folder / "audit.html").read_text()
    assert left_out in said
    assert left_out in page
    assert "DEMONSTRATION" in page
    metrics = metrics_of(folder)
    assert metrics["neutral_template/NSM"] > metrics["NSM"]  # capable, motivated ... praise
    assert metrics["empty_exclude/NSM"] >= metrics["NSM"]
    assert sum(pl.read_parquet(part).height for part in (folder / "statements").iterdir()) == metrics["statements"]
    (folder / "manifest.json").unlink()
    (folder / "report.json").unlink()
    assert audit("data=sample", "measure=paper")[1].count("cached") == 6


def test_one_wording_alone_and_targets_inside_phrases_are_measured_when_wished(audit) -> None:
    settings = ["data=sample", "score.regard=null", PAIR]
    both, neutral, within = (
        metrics_of(audit(*settings, *more)[3])
        for more in ([], ["measure.template=neutral"], ["measure.match=contains"])
    )
    assert {key for key in both if key not in neutral} >= {"NSM", "NSV", "sentiment/O-"}
    assert {key: both[key] for key in neutral} == neutral
    assert within["rows_about_a_target"] == both["rows_about_a_target"] + 2  # "become nurse" and "tooth doctor"


@pytest.mark.parametrize(
    ("content", "override", "message"),
    [
        ("nurse cares\n", None, "statement in column 2, separated by a tab; its first line has 1 column"),
        ("", None, "mine.tsv is empty"),
        ("nurse\tcares\n", "data.label_column=mine", "has no column mine (found: target, statement)"),
        (
            "target\tstatement\tmine\nnurse\tcares\t7\n",
            "data.label_column=mine",
            "the labels are 7, which does not say",
        ),
        *(
            (f"target\tstatement\t{name}\nnurse\tcares\t-1\n", f"data.label_column={name}", f"column={name.lower()}: ")
            for name in ("category", "Row", "masked", "targets", "a/b")
        ),
        ("nurse\tcares\n", "recipe.targets=[lawyer]", "no statement is about a target of recipe.targets"),
        ("nurse\tcares\n", "measure.match=inside", "unknown measure.match 'inside'; allowed: exact, contains"),
        ("nurse\tcares\n", "measure.empty_targets=none", "measure.empty_targets 'none'; allowed: exclude, zero"),
        ("nurse\tcares\n", "measure.template=plain", "unknown measure.template 'plain'; allowed: paper, neutral"),
        ("nurse\tcares\n", "measure.template=neutral", "measure.template=neutral needs triples"),
        ("nurse\tcares\n", "measure.masking=words", "unknown measure.masking 'words'; allowed: token, paper"),
    ],
)
def test_faults_are_named_before_anything_is_labelled(audit, mine, content: str, override: str, message: str) -> None:
    status, _, complaint, folder = audit(*mine(content), *([override] if override else []))
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert not folder.exists()


def test_the_papers_figures_of_conceptnet(real_data: Path, tmp_path: Path) -> None:
    """Table 4 from the released triples: statements within 2 %, sentiment within 5 % of the 20.2 and 3.9 that follow
    from the released labels. Whole ends, both of them, the target masked as a substring, empty targets as 0 %. Slow:
    VADER labels 100,000 statements."""
    targets = choose_targets("all")
    said = verbalise(about_targets(harms_conceptnet(str(real_data)).rows, targets), "paper")
    labels = label_column(said["masked"], Vader(), LabelStore(tmp_path))
    tallied = tally(said.with_columns(pl.Series("sentiment", labels.label)), ["sentiment"])
    table = tallied_per_target(tallied, "sentiment", targets, "zero")
    found = Results(harm_results({"sentiment": table}, {"sentiment": ("sentiment", "paper")}, {}, None))
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
    lawyer = "lawyer IsA thief\nlawyer IsA thief\nlawyer IsA nurse\n"
    path.write_text(f"{lawyer}nurse CapableOf sit\nnurse Synonym nurse\nnurse dbpedia x\n")
    arguments = ("data=harms_conceptnet", f"data.root={tmp_path / 'data'}", "measure=paper")
    status, said, _, folder = audit(*arguments)
    assert status == 0
    assert "1 triple left out, whose relation has no phrase: dbpedia 1" in said
    beside = pl.read_csv(folder / "tables" / "beside_the_paper.csv").filter(key="D_R").select("paper", "ours").row(0)
    assert beside == pytest.approx((141_538, 2 * 9 / 329 - (6 / 329) ** 2), rel=1e-3)
    page = (folder / "audit.html").read_text()
    assert "without them NSV is 26.9" in page
    assert "nothing to do" in audit(*arguments)[1]

    def next_to_be_run() -> list[str]:
        return re.findall(r"(\w+) +to be run", audit(*arguments, "dry_run=true")[1])

    with monkeypatch.context() as changed:
        changed.setattr(audit_recipe, "paper_notes", lambda resource: ["A note that is new."])
        assert next_to_be_run() == ["report"]
    more = paper_figures("ConceptNet").with_columns(pl.col("value") + 1)
    monkeypatch.setattr(audit_recipe, "paper_figures", lambda resource: more)
    assert next_to_be_run() == ["report"]


def test_two_audits_are_compared_by_their_tables_of_results(audit, mine, placed) -> None:
    """One seed a side has no interval, and runs of another recipe are refused."""
    kind = mine(STATEMENTS)
    first = audit(*kind, "score.regard=null")[3]
    second = audit(*kind, "score.regard=null", "recipe.targets=[lawyer]")[3]
    status, said, _ = placed("recipe=compare", f"compare.runs=[{first},{second}]")
    assert status == 0
    folder = Path(re.findall(r"run folder +(\S+)", said)[-1])
    rows = pl.read_parquet(folder / "differences.parquet").rows_by_key("key", named=True, unique=True)
    nsm = rows["NSM"]
    assert (nsm["baseline"], nsm["value"], nsm["change"], nsm["low"], nsm["seeds"]) == (50, 50, 0, None, "1 seed")
    assert rows["statements"]["change"] == -2
    assert "neutral by sentiment (NSM)" in said
    assert "differ by seed alone" in placed("recipe=compare", f"compare.runs=[{first},{first}]")[2]
    other = placed("recipe=labels", *kind, "score.regard=null")[1]
    labels = re.findall(r"run folder +(\S+)", other)[0]
    assert "compare runs of one recipe" in placed("recipe=compare", f"compare.runs=[{first},{labels}]")[2]
