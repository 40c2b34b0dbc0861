"""recipe=share against a hub on this machine: what arrives there, what never does, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import fake_hub
import polars as pl
import pytest
import report_example
from command import Job
from compared_runs import configured, make_run, seal
from fake_hub import TOKEN, Hub
from test_cards import CARD, written

from mitigate.files import write
from mitigate.report import cards

SECRETS = ("config.yaml", "status.json", "wandb/run.log", "checkpoints/last.ckpt", "statements.parquet")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with fake_hub.serving() as serving:
        monkeypatch.setenv("HF_ENDPOINT", serving.address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # set for all tests (conftest.py)
        yield serving


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run as the main job leaves it, on data of a user's own."""
    run = configured(make_run(tmp_path / "outputs"), data={"own_texts": True})
    for name, content in {
        "model/config.json": "{}",
        "model/model.safetensors": "weights",
        "plots/by-relation.png": "picture",
        "tables/targets.csv": "target\nlawyer\n",
        "report.html": f"<p>lawyers lie</p><pre>paths.outputs={run.parent}</pre>",
        **dict.fromkeys(SECRETS[1:4], "secret"),
    }.items():
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(content)
    write(run / "model" / "README.md", cards.generator(CARD))
    return seal(run)


def share(job, run: Path, *more: str) -> Job:
    return job("recipe=share", f"share.run={run}", "share.repo=me/mine", *more)


def test_a_generator_arrives_with_its_card_and_figures_and_nothing_else(hub: Hub, trained: Path, job) -> None:
    done = share(job, trained)
    assert done.status == 0, done.complaint
    assert f"shared      {hub.address}/me/mine" in done.said
    assert hub.private == {"models/me/mine": True}
    (files,) = hub.files.values()
    assert set(files) == {"README.md", "config.json", "model.safetensors", "metrics.json", "plots/by-relation.png"}
    assert files["model.safetensors"] == b"weights"
    assert '.from_pretrained("me/mine")' in files["README.md"].decode()
    assert "A generator can repeat its training texts." in done.said
    assert TOKEN not in done.said + done.complaint


def test_own_statements_leave_only_when_asked_and_folders_never(hub: Hub, trained: Path, job) -> None:
    assert share(job, trained, "share.statements=true", "share.private=false").status == 0
    assert hub.private == {"models/me/mine": False}
    (files,) = hub.files.values()
    assert {"report.html", "tables/targets.csv"} <= set(files)
    assert not set(SECRETS) & set(files)
    assert files["report.html"].decode() == "<p>lawyers lie</p><pre>paths.outputs=outputs</pre>"
    assert "me/mine exists and is public: set share.private=false" in share(job, trained).complaint


def test_a_data_set_arrives_with_its_card(hub: Hub, tmp_path: Path, job) -> None:
    run = configured(make_run(tmp_path / "outputs", "both"), recipe={"name": "filter"}, data={"own_texts": False})
    rows = report_example.ledger(60).with_columns(split=pl.lit("train"), head="target", valid=True)
    written(rows.with_columns(head=pl.col("head").fill_null("tea"), masked="statement"), run, "tsv")
    assert share(job, seal(run)).status == 0
    (files,) = hub.files.values()
    assert set(files) == {"README.md", "kept.tsv", "dropped.tsv"}
    own = configured(run, data={"own_texts": True})
    assert "holds your own triples; look at its files, and set share.statements=true" in share(job, own).complaint


def test_a_dry_run_lists_files_and_sizes_and_asks_nobody(hub: Hub, trained: Path, job, monkeypatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    done = share(job, trained, "dry_run=true")
    assert "would be shared as the private model me/mine" in done.said
    assert "            7 bytes  model.safetensors" in done.said
    refused = share(job, trained)
    assert (refused.status, hub.requests) == (2, [])
    assert "needs a token of the Hugging Face hub that may write, in the environment: HF_TOKEN=" in refused.complaint


def test_what_cannot_be_shared_is_refused_before_the_hub_is_asked(hub: Hub, trained: Path, job, monkeypatch) -> None:
    (trained / "model" / "model.safetensors").write_text("damaged")
    assert "model.safetensors is damaged" in share(job, trained).complaint
    untrained = make_run(trained.parent, "both")
    assert "has no trained generator (train=false)" in share(job, untrained).complaint
    compared = configured(untrained, recipe={"name": "compare"})
    assert "recipe=compare; only runs of mitigate and filter can be shared" in share(job, compared).complaint
    assert hub.requests == []


def test_a_wrong_token_is_a_sentence(hub: Hub, trained: Path, job, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "wrong")
    refused = share(job, trained)
    assert (refused.status, hub.files) == (2, {})
    assert "me/mine could not be written on the hub (" in refused.complaint
    assert "check the name and that HF_TOKEN may write there" in refused.complaint
