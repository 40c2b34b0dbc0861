"""Sweeps of a quick recipe, one after another and two at once: a job that fails, and two processes at one job."""

from pathlib import Path

import pytest
from command import here
from joblib.externals.loky import get_reusable_executor
from omegaconf import OmegaConf

from mitigate.errors import MitigateError
from mitigate.recipes import job, notes
from mitigate.store import Run


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files of a statement, the first of which is not there yet."""
    (tmp_path / "second.tsv").write_text("lawyer\tthe lawyer is here\n")
    return [tmp_path / "first.tsv", tmp_path / "second.tsv"]


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Labels files; returns the exit status and what was said, also by other processes."""

    def run(paths: list[Path], *overrides: str) -> tuple[int, str, str]:
        places = (f"paths.outputs={tmp_path}/outputs", f"paths.cache={tmp_path}/cache", "tracking=none")
        chosen = ("recipe=labels", "data=statements", "score.regard=ngram", f"data.path={','.join(map(str, paths))}")
        status = here(monkeypatch, "-m", *chosen, *places, *overrides)
        return (status, *capfd.readouterr())

    return run


def finished(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("outputs/*/manifest.json"))


def failure(path: Path) -> list[str]:
    """The last lines of a sweep in which that file was missing."""
    end = "mitigate: 1 job failed; the others are done, and the same command does what is left:"
    return [end, f"  data.path={path}: there is no file {path}"]


def test_a_failed_job_is_told_at_the_end_and_the_others_are_done(sweep, files, tmp_path: Path) -> None:
    status, _, faults = sweep(files)
    assert status == 1
    assert len(finished(tmp_path)) == 1
    assert faults.splitlines()[-2:] == failure(files[0])
    assert [path.name for path in (tmp_path / "outputs" / ".sweep").iterdir()] == ["multirun.yaml"]
    files[0].write_text("nurse\tthe nurse is there now\n")
    status, said, faults = sweep(files)
    assert (status, faults) == (0, "")
    assert said.count("complete: nothing is left to do") == 1
    assert len(finished(tmp_path)) == 2


def test_so_it_is_with_two_jobs_at_once(sweep, files, tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs pip install -e '.[joblib]'")
    sweep(files[1:])
    (tmp_path / "third.tsv").write_text("nurse\tthe nurse is here\n")
    status, said, faults = sweep([*files, tmp_path / "third.tsv"], "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    get_reusable_executor().shutdown()
    assert status == 1
    assert said.count("complete: nothing is left to do") == 1
    assert len(finished(tmp_path)) == 2
    assert faults.splitlines()[-2:] == failure(files[0])


def test_who_comes_second_to_a_run_waits_and_reads_what_the_first_has_found(
    sweep, files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(files[1:])
    (manifest,) = finished(tmp_path)
    facts = manifest.read_bytes()
    manifest.unlink()
    first = Run(manifest.parent)

    def wait_for(folder: Path) -> None:
        assert folder == first.folder
        manifest.write_bytes(facts)
        first.close()

    monkeypatch.setattr(job, "wait_for", wait_for)
    status, said, _ = sweep(files[1:])
    assert status == 0
    assert said.index("another process is already working on this run; waiting until it") < said.index(
        "complete: nothing is left"
    )
    assert manifest.read_bytes() == facts


def test_a_complete_job_that_wandb_hands_out_is_recorded_all_the_same(
    sweep, files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(files[1:])
    monkeypatch.setenv("WANDB_SWEEP_ID", "abcd1234")
    status, said, _ = sweep(files[1:], "verbose=true")  # which lists the stages of a sweep's jobs too
    assert status == 0
    assert "nothing is left to do" not in said
    assert said.count("cached") == 2
    assert len(finished(tmp_path)) == 1


@pytest.mark.parametrize("sweep_id", [None, ""])
def test_without_the_sweeps_id_nothing_of_other_sweeps_is_deleted(
    sweep_id: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "another").mkdir()
    monkeypatch.setenv(notes.SWEEP, sweep_id or "")
    if sweep_id is None:
        monkeypatch.delenv(notes.SWEEP)
    with pytest.raises(MitigateError, match="no MITIGATE_SWEEP in its environment"):
        notes.forget(OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}}))
    assert (tmp_path / "another").is_dir()


def test_a_sweep_needs_no_cache_that_can_be_written_to(sweep, files, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")  # a file, so that nothing can be written below it
    files[0].write_text("nurse\tthe nurse is there now\n")
    status, said, _ = sweep(files)
    assert status == 0
    assert len(finished(tmp_path)) == 2
    assert said.count(f"labels cannot be kept in {tmp_path}/cache/labels (Not a directory)") == 1
