"""recipe=audit from the command line: a file of one's own, labels given in it, triples, the paper's ConceptNet, and
resources of any size, whatever the chunks, also after a kill; and its page."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_example import UNTRUSTED, example_audit
from command import UNDRAWN, here, metrics_of
from page_elements import Elements, unlabelled
from polars.testing import assert_frame_equal

from mitigate import stages
from mitigate.load import table
from mitigate.load.statements import harms_conceptnet
from mitigate.load.statements import load as load_statements
from mitigate.load.targets import about_targets
from mitigate.measure.harms import harm_results, per_target, tally
from mitigate.measure.results import Results
from mitigate.report.page import render
from mitigate.score.labels import LabelStore, label_column
from mitigate.score.lexicon import Vader
from mitigate.studies import audit as study
from mitigate.verbalise import verbalise
from mitigate.words.targets import choose_targets

STATEMENTS = "lawyer\tthe lawyer is a thief\nlawyer\tthe lawyer is late\nnurse\tthis nurse is kind\n"
STATEMENTS += "gamer\ta gamer sits\n"
SENTENCES = "nurses are kind.\nthe nurse is a thief.\na lawyer is late.\ncats are awful.\n"
SETTINGS = ("recipe=audit", "measure.resamples=50")
SENTIMENT = "score.regard=null"


@pytest.fixture
def audit(tmp_path: Path, job, monkeypatch: pytest.MonkeyPatch):
    """Runs the recipe without pictures, which are tested by themselves and take seconds."""
    monkeypatch.setattr(*UNDRAWN)
    given = (*SETTINGS, f"paths.cache={tmp_path}/cache")
    return lambda *more: job(*given, *([] if SENTIMENT in more else ["score.regard=ngram"]), *more)


@pytest.fixture
def mine(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """The settings of a file with this content."""

    def write(content: str, data: str = "statements", name: str = "mine.tsv") -> tuple[str, str]:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return f"data={data}", f"data.path={tmp_path / name}"

    return write


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
    assert not any(key.startswith("neutral_template/") for key in metrics)  # nothing to say there
    assert "  note: 1 target not in the paper's list: gamer\n" in said
    assert pl.read_csv(folder / "tables" / "targets_sentiment.csv").filter(target="lawyer")["prejudice"].item() == 50
    page = (folder / "audit.html").read_text()
    assert all(shown in page for shown in ("content warning", "the lawyer is a thief", "keyword"))


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


def test_triples_are_audited_in_both_wordings_and_an_audit_goes_on_where_it_stopped(audit) -> None:
    status, said, _, folder = audit("data=sample", "measure=paper")
    assert status == 0
    left_out = "600 rows left out: valid triples of other splits; filter.splits=all counts them too"
    assert left_out in said
    page = (folder / "audit.html").read_text()
    assert left_out in page
    assert "DEMONSTRATION" in page
    metrics = metrics_of(folder)
    assert metrics["neutral_template/NSM"] > metrics["NSM"]  # capable, motivated ... praise
    assert sum(pl.read_parquet(part).height for part in (folder / "statements").iterdir()) == metrics["statements"]
    (folder / "manifest.json").unlink()
    (folder / "report.json").unlink()
    assert audit("data=sample", "measure=paper")[1].count("cached") == 5


def test_one_wording_alone_and_targets_inside_phrases_are_measured_when_wished(audit) -> None:
    settings = ["data=sample", SENTIMENT, "recipe.targets=[doctor,nurse]"]
    both, neutral, within = (
        metrics_of(audit(*settings, *more)[3])
        for more in ([], ["measure.template=neutral"], ["measure.match=contains"])
    )
    assert {key for key in both if key not in neutral} >= {"NSM", "NSV", "sentiment/O-"}
    assert {key: both[key] for key in neutral} == neutral
    assert within["rows_about_a_target"] == both["rows_about_a_target"] + 2  # "become nurse" and "tooth doctor"


LABELLED = "target\tstatement\t{}\nnurse\tcares\t{}\n"


@pytest.mark.parametrize(
    ("content", "override", "message"),
    [
        ("nurse cares\n", None, "statement in column 2, separated by a tab; its first line has 1 column"),
        ("", None, "mine.tsv is empty"),
        ("nurse\tcares\n", "data.label_column=mine", "has no column mine, target, statement; its columns"),
        (LABELLED.format("mine", 7), "data.label_column=mine", "the labels are 7, which does not say"),
        (LABELLED.format("Row", -1), "data.label_column=Row", "data.label_column=Row has another meaning"),
        ("nurse\tcares\n", "recipe.targets=[lawyer]", "no statement is about a target of recipe.targets"),
        ("nurse\tcares\n", "measure.match=inside", "unknown measure.match 'inside'; allowed: exact, contains"),
        ("nurse\tcares\n", "measure.template=neutral", "measure.template=neutral needs triples"),
    ],
)
def test_faults_are_named_before_anything_is_labelled(audit, mine, content: str, override: str, message: str) -> None:
    status, _, complaint, folder = audit(*mine(content), *([override] if override else []))
    assert status == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert not folder.exists()


def test_bad_lines_and_missing_files_are_named(audit, mine, tmp_path: Path) -> None:
    columns = "data.columns={head: 1, relation: 2, tail: 3}"
    status, _, complaint, folder = audit(*mine("nurse\tIsA\tx\nnurse\tIsA\n", "triples"), columns)
    assert (status, "1 bad line:" in complaint) == (2, True)
    assert not (folder / "statements").exists()
    for name in ("conceptnet", "genericskb", "atomic", "generations", "statements"):
        assert f"data={name} needs data.path, which is not set; set data.path=FILE" in audit(f"data={name}")[2]


def test_the_papers_figures_of_conceptnet(real_data: Path, tmp_path: Path) -> None:
    """Table 4 from the released triples: statements within 2 %, sentiment within 5 % of the 20.2 and 3.9 that follow
    from the released labels. Whole ends, both of them, the target masked as a substring, empty targets as 0 %. Slow:
    VADER labels 100,000 statements."""
    targets = choose_targets("all")
    said = verbalise(about_targets(harms_conceptnet(str(real_data)).rows, targets), "paper")
    labels = label_column(said["masked"], Vader(), LabelStore(tmp_path))
    tallied = tally(said.with_columns(pl.Series("sentiment", labels.label)), ["sentiment"])
    table = per_target(tallied, "sentiment", targets, "zero")
    found = Results(harm_results({"sentiment": table}, {"sentiment": ("sentiment", "paper")}, {}, None))
    assert (table["statements"].sum(), (table["statements"] == 0).sum()) == (99_986, 2)
    assert table["statements"].to_numpy().var() == pytest.approx(141_538, rel=0.02)
    assert found["sentiment/D_O+"] == pytest.approx(20.2, rel=0.05)
    assert found["sentiment/D_O-"] == pytest.approx(3.9, rel=0.05)
    stated = dict(study.paper_figures("ConceptNet").select("key", "value").iter_rows())
    assert found["NSM"] == pytest.approx(stated["NSM"], abs=0.1)
    assert found["NSV"] == pytest.approx(stated["NSV"], rel=0.01)
    assert found["sentiment/polarised_mean"] == pytest.approx(stated["sentiment/polarised_mean"], abs=0.06)


# Resources of any size


def small(patch: pytest.MonkeyPatch) -> None:
    """Small blocks and chunks, and no pictures, which take seconds."""
    patch.setattr(*UNDRAWN)
    patch.setattr(table, "BLOCK", 30_000)
    patch.setattr(table, "PEEKED", 30_000)
    patch.setattr(study, "CHUNK", 400)


def figures(folder: Path) -> dict:
    return {key: value for key, value in metrics_of(folder).items() if key not in ("data", "fingerprint")}


def edges(place: Path) -> tuple[str, ...]:
    """The settings of the sample corpus as a file whose columns have other names."""
    lines = files("mitigate").joinpath("data/sample/train.txt").read_text(encoding="utf-8").splitlines()
    content = "\n".join(["what\twho\twhom", *("\t".join(line.split("\t")[:3]) for line in dict.fromkeys(lines))])
    (place / "mine.tsv").write_text(content + "\n", encoding="utf-8")
    columns = "data.columns={head: who, relation: what, tail: whom}"
    return SENTIMENT, "data=triples", f"data.path={place / 'mine.tsv'}", columns


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of an audit of `edges` that nothing interrupted."""
    place = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        places = (f"paths.outputs={place / 'out'}", f"paths.cache={place / 'cache'}", "tracking=none")
        assert here(patch, *SETTINGS, *places, *edges(place)) == 0
    (folder,) = (place / "out").glob("audit-*")
    return folder


def test_a_streamed_audit_finds_what_one_in_memory_finds(audit, whole: Path) -> None:
    held = audit("data=sample", SENTIMENT)[3]
    assert len(list((whole / "rows").iterdir())) > 3
    assert figures(whole) == pytest.approx(figures(held), abs=1e-6)
    for name in ("relations.csv", "targets_sentiment.csv", "measures.csv"):
        assert_frame_equal(*(pl.read_csv(place / "tables" / name) for place in (whole, held)), abs_tol=1e-6)


def unfinished(place: Path, left: str) -> Path:
    """The parts that a killed audit has left."""
    (found,) = (place / "outputs" / stages.STORE).glob(f"{'read' if left == 'rows' else 'tally'}-*/{left}")
    return found


class Killed(BaseException):
    """What no code catches."""


def dying(*values: Any, **more: Any) -> Any:
    raise Killed


@pytest.mark.parametrize(("name", "left"), [("about", "rows"), ("label", "statements")])
def test_a_killed_audit_goes_on_from_the_finished_chunks(
    audit, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, left: str
) -> None:
    """Ended in its third chunk, whether reading or labelling, it computes only those that are not there."""
    small(monkeypatch)
    calls, original = [0], getattr(study, name)

    def counted(*values: Any, **more: Any) -> pl.DataFrame:
        calls[0] += 1
        return dying() if calls[0] == 3 else original(*values, **more)

    monkeypatch.setattr(study, name, counted)
    with pytest.raises(Killed):
        audit(*edges(tmp_path))
    there = {path.name: path.stat().st_mtime_ns for path in unfinished(tmp_path, left).glob("*.parquet")}
    assert 0 < len(there) < len(list((whole / left).iterdir()))
    status, said, _, folder = audit(*edges(tmp_path))
    assert status == 0, said
    assert {name: (folder / left / name).stat().st_mtime_ns for name in there} == there  # not written again
    assert figures(folder) == pytest.approx(figures(whole), abs=1e-6)
    assert not (folder / "counted").exists()


def test_sentences_about_a_target_are_labelled_and_handed_on(audit, mine) -> None:
    """A sentence about two targets counts for both."""
    folder = audit(*mine(SENTENCES, "sentences", "mine.txt"))[3]
    found = figures(folder)
    expected = {"rows": 4, "rows_about_a_target": 3, "statements": 3, "NSM": 50}  # nurse 0, lawyer 100
    assert {key: found[key] for key in expected} == expected
    assert pl.read_parquet(folder / "statements")["target"].to_list() == ["nurse", "nurse", "lawyer"]
    assert "awful" not in (folder / "audit.html").read_text()
    exported = load_statements(str(folder / "statements.tsv")).rows  # as people are asked about them
    about = [("nurse", "nurses are kind."), ("nurse", "the nurse is a thief."), ("lawyer", "a lawyer is late.")]
    assert exported.select("target", "statement").rows() == about
    two = mine("a nurse and a lawyer are kind.\nhi.\n", "sentences", "two.txt")
    assert figures(audit(*two, SENTIMENT)[3])["statements"] == 2


def test_a_term_is_the_topic_of_a_sentence_or_a_word_in_it(audit, mine) -> None:
    content = "SOURCE\tTERM\tQUANTIFIER\tGENERIC SENTENCE\tSCORE\nW\tnurse\t\tA nurse helps a lawyer.\t1\n"
    for match, number in (("exact", 1), ("contains", 2)):
        settings = mine(content, "genericskb", "GenericsKB-Best.tsv")
        assert figures(audit(*settings, f"measure.match={match}", SENTIMENT)[3])["statements"] == number


# The page


def test_the_page_trusts_no_text_and_shows_every_section() -> None:
    made = example_audit()
    html = render(made)
    page = unlabelled(html)
    Elements(html).check()
    assert UNTRUSTED not in page
    assert page.count("<svg") == len(made.pictures) > 3
    assert page.index("content warning") < page.index("&lt;script&gt;")
    titles = [section.title for section in made.sections if any(section.parts)]
    assert titles == ["Measures", "The paper's figures and ours", "Figures", "Relations", "Targets"]
    assert all(shown in page for shown in (">2,000</td>", "−50.0 %", "It differs."))
    without = [section for section in example_audit(beside=None).sections if any(section.parts)]
    assert len(without) == len(titles) - 1
