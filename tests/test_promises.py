"""What no change may drop: each promise a short test by the public command, on input shrunk to seconds."""

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest
from command import UNDRAWN, apart, here, killed, metrics_of
from frames_corpus import write_corpus
from kge_graphs import SMALL as SMALL_KGE
from kge_graphs import planted, write_graph

POLICIES = {"none": [], "sentiment": ["sentiment"], "regard": ["regard"], "both": ["sentiment", "regard"]}
SMALL = [
    *("trainer.max_steps=4", "trainer.batch_size=16", "probe.max_length=4", "probe.heads=6", "measure.resamples=100"),
    "probe.targets=[lawyer,nurse]",
]
PARTS = {"train": 400, "dev1": 30, "test": 60}  # triples of the sample corpus
RESUMED = [*SMALL, "policy=both", "trainer.checkpoint_every=0.1", "tracking=none"]


def folder_of(outputs: Path, recipe: str) -> Path:
    (folder,) = outputs.glob(f"{recipe}-*")
    return folder


def run(outputs: Path, *overrides: str) -> Path:
    """The outputs of a command that succeeds, in this process; without pictures, which take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*UNDRAWN)
        assert here(patch, *overrides, f"paths.outputs={outputs}") == 0
    return outputs


# The main job


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The settings of a piece of the sample corpus as a file."""
    lines = ["relation\thead\ttail\tsplit"]
    for part, number in PARTS.items():
        text = files("mitigate").joinpath(f"data/sample/{part}.txt").read_text(encoding="utf-8")
        triples = [line.split("\t")[:3] for line in text.splitlines() if not line.endswith("\t0")]
        lines += ["\t".join([*triple, part.removesuffix("1")]) for triple in triples[:: len(triples) // number]]
    path = tmp_path_factory.mktemp("corpus") / "piece.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["data=triples", f"data.path={path}", "data.probe_relations=comet"]


@pytest.fixture(scope="module")
def sweep(corpus: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of the paper's four policies. Slow: four small generators are trained, which most tests here read."""
    return run(tmp_path_factory.mktemp("sweep"), "-m", f"policy={','.join(POLICIES)}", *corpus, *SMALL)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_drops_what_its_scorers_label_polarised(sweep: Path, policy: str) -> None:
    train = pl.read_parquet(folder_of(sweep, f"mitigate-{policy}") / "ledger.parquet").filter(split="train")
    assert train.height >= PARTS["train"]
    polarised = [train[scorer].is_in([-1, 1]) for scorer in POLICIES[policy]]
    dropped = pl.DataFrame(polarised).select(pl.any_horizontal(pl.all())).to_series() if polarised else None
    expected = [False] * train.height if dropped is None else dropped.to_list()
    assert (train["weight"] == 0).to_list() == expected
    assert any(expected) == (policy != "none")


@pytest.mark.parametrize("policy", POLICIES)
def test_means_and_variances_of_neutral_statements(sweep: Path, policy: str) -> None:
    """NSM, NSV, NRM and NRV by both wordings are the mean and the population variance over targets."""
    folder = folder_of(sweep, f"mitigate-{policy}")
    metrics, statements = metrics_of(folder), pl.read_parquet(folder / "statements.parquet")
    assert statements.group_by("target", "relation").len()["len"].to_list() == [10] * 2 * 34
    for wording, end in (("", ""), ("neutral_template/", "_neutral")):
        for letter, scorer in (("S", "sentiment"), ("R", "regard")):
            is_neutral = pl.col(scorer + end).is_in([-1, 1]).not_()
            shares = statements.group_by("target").agg(share=100 * is_neutral.mean())["share"]
            assert metrics[f"{wording}N{letter}M"] == pytest.approx(shares.mean())
            assert metrics[f"{wording}N{letter}V"] == pytest.approx(shares.var(ddof=0), abs=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_quality_is_measured_beside_harm(sweep: Path, policy: str) -> None:
    metrics = metrics_of(folder_of(sweep, f"mitigate-{policy}"))
    for part in ("all", "neutral", "polar"):
        assert metrics[f"quality/perplexity/{part}"] >= 0
    figures = ("swap_lift", "swap_lift_echo", "swap_lift_constants", "swap_lift_random", "valid", "people_valid")
    assert {f"quality/{figure}/all" for figure in figures} <= set(metrics)
    assert 0 < metrics["distinct_tails"] <= 100


def test_a_sweep_ends_with_the_comparison_of_its_runs(sweep: Path) -> None:
    folder = folder_of(sweep, "compare")
    found = json.loads((folder / "comparison.json").read_text())
    assert [one["policy"] for one in found["contrasts"]] == [policy for policy in POLICIES if policy != "none"]
    baseline = metrics_of(folder_of(sweep, "mitigate-none"))
    for contrast in found["contrasts"]:
        change = contrast["harms"]["neutral_template/NRM"]
        value = metrics_of(folder_of(sweep, f"mitigate-{contrast['policy']}"))["neutral_template/NRM"]
        assert (change["baseline"], change["value"]) == pytest.approx((baseline["neutral_template/NRM"], value))
    assert (folder / "comparison.html").is_file()


def test_a_killed_job_goes_on_to_the_same_figures(sweep: Path, corpus: list[str], tmp_path: Path) -> None:
    """Slow: a whole job in two processes."""
    there = [f"paths.outputs={tmp_path / 'out'}", f"paths.cache={tmp_path / 'cache'}"]
    killed(lambda: any(tmp_path.glob("out/.stages/train-*/checkpoints/last.ckpt")), *RESUMED, *corpus, *there)
    assert not any(tmp_path.glob("out/*/metrics.json"))
    assert "cached" in apart(*RESUMED, *corpus, *there).done
    found, expected = metrics_of(folder_of(tmp_path / "out", "mitigate")), metrics_of(folder_of(sweep, "mitigate-both"))
    assert found.keys() == expected.keys()
    numbers = [key for key, value in expected.items() if isinstance(value, float)]
    assert [found[key] for key in numbers] == pytest.approx([expected[key] for key in numbers], rel=1e-6, abs=1e-6)


# A user's own


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The run folder of triples, phrases, targets, a scorer and a policy of one's own."""
    place = tmp_path_factory.mktemp("own")
    people, tails = ("deaf person", "roma", "nurse", "lawyer", "dog", "river"), ("a student", "a lazy clerk", "a team")
    triples = [f"{who}\tmentors\t{tail}\n" for who in people for tail in tails]
    (place / "mine.tsv").write_text("head\trelation\ttail\n" + "".join(triples))
    (place / "targets.csv").write_text("target,category\ndeaf person,disability\nroma,origin\n")
    (place / "phrases.csv").write_text("relation,phrase\nmentors,is a mentor of\n")
    files = [f"data.path={place}/mine.tsv", f"data.relations={place}/phrases.csv"]
    scorer = ["score=study", "score.regard=rude", "score.scorers.rude.words=[lazy]", "policy=no_rude_words"]
    small = ["trainer.max_steps=2", "probe.max_length=4", "measure.resamples=100", "tracking=none"]
    asked = ["data=triples", *files, f"probe.targets={place}/targets.csv", *scorer, *small]
    yield folder_of(run(place / "out", "--config-dir", "docs/examples/own", *asked), "mitigate")
    sys.modules.pop("study", None)


def test_a_scorer_of_ones_own_decides_about_triples_of_ones_own(own: Path) -> None:
    ledger = pl.read_parquet(own / "ledger.parquet").filter(split="train")
    assert ledger.height > 10
    assert (ledger["weight"] == 0).to_list() == ledger["tail"].str.contains("lazy").to_list()


def test_targets_of_ones_own_are_probed_and_measured_by_category(own: Path) -> None:
    statements, metrics = pl.read_parquet(own / "statements.parquet"), metrics_of(own)
    assert set(statements.select("target", "category").rows()) == {("deaf person", "disability"), ("roma", "origin")}
    assert set(statements["relation"]) == {"mentors"}
    for category in ("disability", "origin"):
        neutral = statements.filter(category=category)["rude_neutral"] == 0
        assert metrics[f"neutral_template/rude/neutral_mean/{category}"] == pytest.approx(100 * neutral.mean())


# The tables of the papers


def test_audits_have_the_figures_and_tables_of_the_harms_paper(tmp_path: Path) -> None:
    """Mehrabi et al. 2021, equations 1 to 4 and Tables 3 and 4, by hand: lawyer has two statements, gamer and nurse
    one."""
    mine = tmp_path / "mine.tsv"
    mine.write_text("lawyer\tthe lawyer is a thief\nlawyer\tthe lawyer is late\nnurse\tthe nurse is kind\n")
    mine.write_text(mine.read_text() + "gamer\tthe gamer sits\n")
    asked = ["recipe=audit", "data=statements", f"data.path={mine}", "measure.resamples=100", "tracking=none"]
    folder = folder_of(run(tmp_path / "out", *asked), "audit")
    metrics = metrics_of(folder)
    expected = {"targets": 3, "statements": 4, "D_R": 2 / 9, "NSM": 50, "sentiment/O-": 50 / 3, "sentiment/O+": 100 / 3}
    expected |= {"NSV": 5000 / 3, "sentiment/D_O-": 5000 / 9, "sentiment/D_O+": 20000 / 9}
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)
    assert {"regard/O-", "regard/D_O+", "NRM", "NRV"} <= set(metrics)
    targets = pl.read_csv(folder / "tables" / "targets_sentiment.csv")
    assert set(targets["target"]) == {"lawyer", "nurse", "gamer"}
    assert (folder / "tables" / "targets.tex").is_file()


def test_the_figures_of_the_harms_paper_stand_beside_those_of_its_data(real_data: Path, tmp_path: Path) -> None:
    """Takes over 3 s: 9,000 sentences are labelled. Table 4 within 1 % for D_R and 10 % for sentiment."""
    data = ["data=harms_genericskb", f"data.root={real_data}", "measure=paper", "score.regard=null"]
    folder = folder_of(run(tmp_path, "recipe=audit", *data, "measure.resamples=100", "tracking=none"), "audit")
    beside = pl.read_csv(folder / "tables" / "beside_the_paper.csv")
    found = {key: ours / paper for key, paper, ours in beside.select("key", "paper", "ours").rows() if ours is not None}
    assert (found["D_R"], found["sentiment/D_O+"]) == (pytest.approx(1, abs=0.01), pytest.approx(1, abs=0.1))


def test_embeddings_have_the_tables_of_the_kge_paper(tmp_path: Path) -> None:
    """Fisher et al. 2020: professions by their change of score towards each value, and quality by filtered ranks."""
    graph = write_graph(tmp_path / "graph", planted(people=120))
    asked = ["recipe=kge", "model=transe", "kge.sensitive=gender", "kge.values=[male,female]", *SMALL_KGE, *graph]
    small = ["kge.seeds=1", "kge.fewest=5", "kge.mitigations=[project]", "tracking=none"]
    folder = folder_of(run(tmp_path / "out", *asked, *small), "kge")
    metrics = metrics_of(folder)
    assert 0 < metrics["kge/hits_1"] <= metrics["kge/hits_10"] <= 100
    for key in ("kge/mrr", "kge/parity", "kge/parity_by_chance", "projected/kge/mrr"):
        assert metrics[key] >= 0
    professions = pl.read_csv(folder / "tables" / "professions.csv")
    assert set(professions["profession"]) == {"smith", "miner", "pilot", "nurse", "nanny", "midwife"}
    assert professions["change"].is_sorted(descending=True)


def test_frames_have_the_tables_of_social_bias_frames(tmp_path: Path) -> None:
    """Sap et al. 2020, Tables 4 and 5: F1, precision and recall of values; BLEU-2 and ROUGE-L of texts."""
    pytest.importorskip("sacrebleu", reason="the extra `frames` is not installed")
    pytest.importorskip("rouge_score", reason="the extra `frames` is not installed")
    asked = ["recipe=frames", *write_corpus(tmp_path), "frames.epochs=2", "++frames.fold_epochs=1"]
    folder = folder_of(run(tmp_path / "out", *asked), "frames")
    values = pl.read_csv(folder / "tables" / "classified.csv").filter(variable="offensive")
    always = values.filter(system="always yes").row(0, named=True)
    assert (always["precision"], always["recall"], always["f1"]) == pytest.approx((100 * 24 / 36, 100, 80), abs=1e-3)
    texts = pl.read_csv(folder / "tables" / "texts.csv")
    for variable in ("group", "implied"):
        common = texts.filter(variable=variable, system="commonest").row(0, named=True)
        assert 0 <= common["bleu2"] <= common["rouge_l"] <= 100  # 0: other folds' commonest group is not in this one
    assert "model" in values["system"]
