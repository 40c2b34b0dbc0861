"""recipe=profile from made-up run folders: what a generator says of a target alone, where a graph places it, what a
model of frames finds; and what is no run or no target."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from compared_runs import edit, make_run, seal
from omegaconf import OmegaConf

from mitigate.measure.bootstrap import Bootstrap
from mitigate.runs.label_cache import LabelStore
from mitigate.tasks.target_profile.measures import (
    SAME_NAME,
    frame_figures,
    framed_statements,
    implied,
    placed,
    sampled_peers,
)
from mitigate.tasks.target_profile.plan import make_plan
from mitigate.tracking.record import Tracking
from mitigate.triples import NEUTRAL, PREJUDICE, PROBED, Labels
from mitigate.verbalise import verbalise
from mitigate.words.targets import TargetList

CATEGORIES = {"nurse": "profession", "chef": "profession", "pilot": "profession", "female": "gender", "male": "gender"}
Said = Mapping[str, Mapping[str, Sequence[str]]]
SAID: Said = {
    "nurse": {"CapableOf": ["cook", "be rude"], "IsA": ["kind nurse", "person"]},
    "chef": {"CapableOf": ["cook", "sing"], "IsA": ["kind chef", "person"]},
    "pilot": {"CapableOf": ["cook", "sing"], "IsA": ["kind pilot", "person"]},
    "female": {"CapableOf": ["cook", "sing"], "IsA": ["person", "<b>cook</b>"]},
    "male": {"CapableOf": ["cook", "sing"], "IsA": ["person", "friend"]},
}
SAME: Said = {who: {"CapableOf": ["cook", "be rude"], "IsA": [f"kind {who}"]} for who in SAID}


def write_run(
    outputs: Path, said: Said = SAID, policy: str = "none", rank_type: type[pl.DataType] = PROBED["rank"]
) -> Path:
    """The folder of a run that has generated this. Sentiment labels "rude" -1, "kind" +1; regard all 0."""
    folder = make_run(outputs, policy)
    rows = [
        {"target": who, "category": CATEGORIES[who], "head": who, "relation": relation, "tail": tail, "rank": rank}
        for who, relations in said.items()
        for relation, tails in relations.items()
        for rank, tail in enumerate(tails, start=1)
    ]
    tail = pl.col("tail").str
    label = pl.when(tail.contains("rude")).then(-1).when(tail.contains("kind")).then(1).otherwise(0).cast(pl.Int8)
    names = [(scorer, f"{scorer}{end}") for scorer in ("sentiment", "regard") for end in ("", "_neutral")]
    labels = [(label if scorer == "sentiment" else pl.lit(0, pl.Int8)).alias(name) for scorer, name in names]
    strengths = [pl.lit(0.5, pl.Float32).alias(f"{name}_strength") for _, name in names]
    said_of = pl.DataFrame(rows, schema_overrides={"rank": rank_type})
    verbalise(said_of).with_columns(*labels, *strengths).write_parquet(folder / "statements.parquet")
    return seal(folder)


def write_kge(outputs: Path) -> Path:
    """The folder of a run of recipe=kge on male and female, and on three professions."""
    folder = outputs / "kge-made-up"
    folder.mkdir(parents=True)
    config = {
        **{"recipe": {"name": "kge"}, "seed": 1, "data": {"name": "made_up"}, "model": {"name": "transe"}},
        "kge": {"sensitive": "gender", "values": ["male", "female"]},
    }
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(config)))
    figures = {"fingerprint": "of a graph", "kge/mrr": 0.25, "kge/trainings": 5, "kge/null/graphs": 20}
    (folder / "metrics.json").write_text(json.dumps(figures))
    professions().write_parquet(folder / "professions.parquet")
    (folder / "manifest.json").write_text("{}")
    return seal(folder)


def professions() -> pl.DataFrame:
    rows = [("Pilot", 0.3, 0.2, 0.4, True), ("Baker", 0.0, -0.1, 0.1, False), ("Nurse", -0.2, -0.3, -0.1, True)]
    table = pl.DataFrame(rows, schema=["profession", "change", "low", "high", "outside"], orient="row")
    return table.with_columns(
        of_a=pl.Series([30, 20, 5]), of_b=pl.Series([3, 20, 50]), null_low=pl.lit(-0.05), null_high=pl.lit(0.15)
    )


@pytest.fixture
def profile(placed, tmp_path: Path):
    """Runs the recipe; returns the exit status, what was printed on both streams, and the run folder."""

    def run(*overrides: str) -> tuple[int, str, Path]:
        status, said, complaint = placed("recipe=profile", "measure.resamples=200", *overrides)
        named = [line.split()[-1] for line in said.splitlines() if "run folder" in line]
        return status, said + complaint, Path(named[-1]) if named else tmp_path

    return run


@pytest.fixture
def profiled(profile):
    """The same of a run that succeeds; returns what was printed, and the run folder."""

    def run(runs: Path | Sequence[Path], targets: str, *more: str) -> tuple[str, Path]:
        paths = [runs] if isinstance(runs, Path) else runs
        named = f"profile.runs=[{','.join(map(str, paths))}]"
        status, said, folder = profile(named, f"profile.targets=[{targets}]", *more)
        assert status == 0, said
        return said, folder

    return run


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are recorded in W&B."""
    recorded: list[str] = []
    monkeypatch.setattr(Tracking, "table", lambda self, name, frame: recorded.append(name))
    return recorded


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    return write_run(tmp_path / "runs")


def test_a_profile_of_statements_about_one_target_alone(profiled, generated: Path, tables: list[str]) -> None:
    _, folder = profiled(generated, "chef,Nurse", "profile.few=0")
    found = json.loads((folder / "profile.json").read_text())
    assert found["targets"] == ["nurse", "chef"]  # the worst first
    # Of nurse's two relations one has a negative statement of two: 25 %, and the peers have none.
    begin = "nurse: 25.0\u00a0% of its statements are negative by sentiment, 25.0 percentage"
    assert found["lines"][0].startswith(begin)
    rows = pl.read_csv(folder / "tables" / "figures.csv").filter(target="nurse")
    values = {row["figure"]: (row["value"], row["peers_mean"], row["place"]) for row in rows.iter_rows(named=True)}
    assert values["sentiment/negative"] == values["distinctive_negative"] == (25, 0, 1)
    assert (values["sentiment/positive"], values["regard/negative"]) == ((25, 25, 1), (0, 0, 1))
    assert values["distinctive"] == (25, 0, 1)  # "be rude"; "kind nurse" is the same as "kind chef"
    alone = pl.read_csv(folder / "tables" / "distinctive.csv")
    assert alone.select("target", "tail", "having", "peers").rows() == [("nurse", "be rude", 0, 2)]
    page = (folder / "profile.html").read_text()
    for words in ("content warning", "nurse is capable of be rude", "recipe=profile", "1 of 3"):
        assert words in page
    assert "Where embeddings place it" not in page
    assert page.index(">nurse</h2>") < page.index(">chef</h2>")
    assert tables == ["figures", "distinctive"]
    assert "complete: nothing to do" in profiled(generated, "chef,Nurse", "profile.few=0")[0]


def test_tables_on_ones_own_texts_stay_here(profiled, generated: Path, tables: list[str]) -> None:
    edit(generated, "config.yaml", lambda config: config.replace("own_texts: false", "own_texts: true"))
    profiled(generated, "nurse")
    assert tables == []
    profiled(generated, "nurse", "tracking.statements=true", "profile.few=1")
    assert tables == ["figures", "distinctive"]


def test_a_generator_with_the_same_tails_for_all_has_no_profile(profiled, tmp_path: Path) -> None:
    _, folder = profiled(write_run(tmp_path / "runs", SAME), "nurse,female")
    found = pl.read_parquet(folder / "figures.parquet")
    assert found["difference"].unique().to_list() == [0]
    assert found["beyond"].any() is False
    assert found["place"].unique().to_list() == [1]
    assert found.filter(figure="sentiment/negative")["value"].unique().to_list() == [25]
    assert pl.read_parquet(folder / "distinctive.parquet").is_empty()
    page = (folder / "profile.html").read_text()
    assert "none: no such statement." in page
    assert "[0.0, 0.0]: no difference shown." in page


def test_a_baseline_and_a_filtered_run_stand_side_by_side(profiled, tmp_path: Path) -> None:
    earlier = write_run(tmp_path / "runs", rank_type=pl.UInt8)  # as code wrote them once
    said, folder = profiled([earlier, write_run(tmp_path / "runs", SAME, policy="both")], "nurse")
    rows = pl.read_csv(folder / "tables" / "figures.csv").filter(target="nurse", figure="sentiment/negative")
    assert rows.select("run", "value", "difference").rows() == [("none", 25, 25), ("both", 25, 0)]
    page = (folder / "profile.html").read_text()
    assert "nurse (none): 25.0\u00a0%" in page
    assert "negative by sentiment, both" in page  # of the picture
    assert "The run both was probed with 2 relations: intervals over so few are rough" in said


def test_a_graph_places_a_profession_and_a_value_and_does_not_know_others(profiled, generated: Path) -> None:
    said, folder = profiled(generated, "nurse,female,chef", f"profile.kge={write_kge(generated.parent)}")
    page = (folder / "profile.html").read_text()
    for words in (
        "The score changes by −0.2000 [−0.3000, −0.1000] towards male (below 0: towards female), place 3 of 3",
        "is outside it, as are 1 of the other 2 professions",
        "The graph of this run (made_up) does not know chef",
        "&lt;b&gt;cook&lt;/b&gt;",
        "The professions nearest to female",
    ):
        assert words in page
    rows = pl.read_csv(folder / "tables" / "placed.csv").filter(target="female")
    assert rows["profession"].to_list() == ["Nurse", "Baker", "Pilot"]
    assert "of the peers" in said


def test_towards_value_b_all_changes_and_bounds_are_turned() -> None:
    row = placed(["male", "female"], professions(), ["female"], TargetList()).row(0, named=True)
    assert (row["profession"], row["change"], row["low"], row["high"]) == ("Nurse", 0.2, 0.1, 0.3)
    assert (row["null_low"], row["null_high"], row["outside"]) == (-0.15, 0.05, True)
    assert (row["place"], row["professions"], row["others_outside"]) == (1, 3, 1)
    row = placed(["male", "female"], professions(), ["male"], TargetList()).row(0, named=True)
    assert (row["profession"], row["change"]) == ("Pilot", 0.3)


class Counting:
    """Finds a statement offensive by half a tenth for each of its words, and by half where it is of a nurse."""

    name, reads, fingerprint = "frames", "statement", "counting"

    def __call__(self, texts: Sequence[str]) -> Labels:
        strength = np.array([-0.05 * len(text.split()) - 0.5 * ("nurse" in text) for text in texts], np.float32)
        return Labels(np.where(strength < -0.6, PREJUDICE, NEUTRAL).astype(np.int8), strength)

    def explain(self, texts: Sequence[str]) -> list[str]:
        return [f"{text.split()[0]}: are long" for text in texts]


def test_a_name_alone_is_told_from_what_is_said(tmp_path: Path) -> None:
    """All targets are said to be the same: what is left is the name."""
    grids = make_plan([str(write_run(tmp_path, SAME))], ["nurse"]).grids
    read = framed_statements(grids, ["nurse"], 20, Counting(), cache=LabelStore(tmp_path / "labels"))
    figures = frame_figures(read, Bootstrap(resamples=100))
    assert set(figures["wording"]) == {"as generated", SAME_NAME}
    rows = {row["wording"]: row for row in figures.filter(figure="frames/probability").iter_rows(named=True)}
    assert rows["as generated"]["difference"] == pytest.approx(50, abs=1e-4)
    assert rows["as generated"]["low"] > 0
    assert rows[SAME_NAME]["difference"] == 0
    texts = set(read.filter(wording=SAME_NAME)["statement"])
    assert texts == {"nurse is a kind nurse", "nurse is capable of be rude", "nurse is capable of cook"}
    worst = implied(read, Counting(), 1)
    assert worst.select("statement", "implies").rows() == [("nurse is capable of be rude", "nurse: are long")]
    assert worst["probability"].item() == pytest.approx(0.5 + 6 * 0.05)


def test_peers_are_sampled_and_a_target_without_statements_has_none(tmp_path: Path) -> None:
    """Of many peers the same ones are read."""
    (grid,) = make_plan([str(write_run(tmp_path))], ["nurse"]).grids
    assert sampled_peers("nurse", grid, 1) == sampled_peers("nurse", grid, 2)[:1]
    assert sorted(sampled_peers("nurse", grid, 20)) == ["chef", "pilot"]
    said = SAID | {"nurse": {"CapableOf": [""], "IsA": [""]}}
    grids = make_plan([str(write_run(tmp_path / "silent", said))], ["nurse", "chef"]).grids
    assert sampled_peers("nurse", grids[0], 2) == []
    rows = framed_statements(grids, ["nurse", "chef"], 2, Counting())
    assert rows["about"].unique().to_list() == ["chef"]
    assert frame_figures(rows.clear(), Bootstrap(resamples=200)).is_empty()
    assert frame_figures(rows, Bootstrap(resamples=200))["target"].unique().to_list() == ["chef"]


def test_a_run_of_frames_is_the_third_side(profile, profiled, generated: Path, monkeypatch) -> None:
    frames = generated.parent / "frames-made-up"
    frames.mkdir()
    (frames / "config.yaml").write_text("recipe: {name: frames}\n")
    (frames / "manifest.json").write_text("{}")
    seal(frames)
    status, said, _ = profile(f"profile.runs=[{generated}]", f"profile.frames={frames}", "profile.targets=[nurse]")
    assert status == 2
    assert "has no scorer.json" in said
    assert "Set it to the folder of a finished run of recipe=frames, which contains scorer.json" in said
    (frames / "scorer.json").write_text("{}")
    seal(frames)
    monkeypatch.setattr("mitigate.recipes.target_profile.recipe.Frames", lambda folder: Counting())
    said, folder = profiled(generated, "nurse", f"profile.frames={frames}")
    page = (folder / "profile.html").read_text()
    shown = ("mean probability (%), with the same name", "nurse: are long", "Different implied texts: 1.")
    for words in (*shown, "What the worst of them imply"):
        assert words in page
    # One statement in four is a word longer than the peers', "be rude": 5 % / 4. The name itself adds 50 %.
    assert "The mean probability of offending a group is" in page
    assert "; due to the name alone: 50.0." in page
    rows = pl.read_csv(folder / "tables" / "framed.csv").filter(figure="frames/probability")
    assert rows["difference"].to_list() == pytest.approx([51.25, 1.25], abs=1e-4)


def test_a_wrong_run_or_target_and_a_target_without_peers(profile, generated: Path, tmp_path: Path) -> None:
    alone = write_run(tmp_path / "alone", {who: SAID[who] for who in ("nurse", "female", "male")})
    unfinished = write_run(tmp_path / "unfinished")
    (unfinished / "manifest.json").unlink()
    for overrides, complaint in (
        ("profile.targets=[nurse]", "profile.runs is empty; set it to finished runs"),
        (f"profile.runs=[{generated}]", "profile.targets is empty; set it to targets of the runs, such as"),
        (f"profile.runs=[{generated}] profile.targets=[nurses]", "did you mean nurse?"),
        (f"profile.runs=[{tmp_path}] profile.targets=[nurse]", "is not a run folder: it has no config"),
        (
            f"profile.runs=[{generated}] profile.targets=[nurse] profile.kge={generated}",
            "is a run of recipe=mitigate. Set it to folders of finished runs of recipe=kge.",
        ),
        (f"profile.runs=[{alone}] profile.targets=[nurse]", "nurse has no peers in"),
        (f"profile.runs=[{alone}] profile.targets=[nurse]", "no other target of the category profession"),
        (f"profile.runs=[{unfinished}] profile.targets=[female]", "is not finished (it has no manifest.json)"),
    ):
        status, said, _ = profile(*overrides.split())
        assert status == 2
        assert complaint in said


def test_a_dry_run_lists_the_stages(profiled, generated: Path) -> None:
    said, folder = profiled(generated, "nurse", f"profile.kge={write_kge(generated.parent)}", "dry_run=true")
    stages = [line.split()[0] for line in said.splitlines() if line.endswith("to be run")]
    assert stages == ["figures", "distinctive", "placed", "profile", "report"]
    assert not folder.exists()
