"""What tests share: no network, and where the real data may be."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command import Ended

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks/ is imported from there

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models lose by a second thread on a busy machine
os.environ["WANDB_MODE"] = "offline"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in the last line how many tests were skipped, and what each of them needs."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    if reasons and not hasattr(config, "workerinput"):
        listed = "; ".join(f"{number} {reason}" for reason, number in reasons.most_common())
        reporter.write_line(f"{len(skipped)} tests were skipped: {listed}")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of one test session are not the user's."""
    monkeypatch.setenv("MITIGATE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("MITIGATE_DATA", raising=False)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with ConceptNet train100k and the rest, or a skip that says why."""
    for place in (os.environ.get("MITIGATE_DATA"), Path(__file__).parents[2] / "shared" / "data"):
        if place and (Path(place) / "conceptnet100k" / "train100k.txt").is_file():
            return Path(place)
    pytest.skip("needs real data: set MITIGATE_DATA to a folder with conceptnet100k/, humans/ and regard/")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Callable[..., Ended]":
    """Runs the command in this process; its status, standard output and standard error."""
    from command import Ended, here  # which import Hydra, and not every test needs it

    return lambda *overrides: Ended(here(monkeypatch, *overrides), *capsys.readouterr())


@pytest.fixture
def placed(ran: "Callable[..., Ended]", tmp_path: Path) -> "Callable[..., Ended]":
    """The same with the outputs in tmp_path/out, the label cache in tmp_path/cache, and no tracking."""
    where = (f"paths.outputs={tmp_path}/out", f"paths.cache={tmp_path}/cache", "tracking=none")
    return lambda *overrides: ran(*where, *overrides)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the command in this process, with its outputs below tmp_path and nothing tracked; returns a command.Job."""
    from command import Job, here

    def run(*overrides: str) -> Job:
        outputs = tmp_path / "outputs"
        flags = [given for given in overrides if given.startswith("-")]  # such as -m, which comes first
        places = (f"paths.outputs={outputs}", "tracking=none")
        status = here(monkeypatch, *flags, *places, *(given for given in overrides if given not in flags))
        said, complaint = capsys.readouterr()
        named = [line.split()[-1] for line in said.splitlines() if "run folder" in line]
        return Job(status, said, complaint, Path(named[-1]) if named else outputs)

    return run
