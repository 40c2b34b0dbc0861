"""The service under requests that schemathesis makes up from its own description: no 5xx, answers as described, a 4xx
for what is not of the described form; and nothing beside the service's own folder is touched."""

import csv
import hashlib
from pathlib import Path

import pytest

from mitigate.serve import queue
from mitigate.serve.allowed_jobs import GROUPS, RECIPES

pytest.importorskip("schemathesis", reason="needs schemathesis, of the extra [dev]")
from fuzzing import EXCLUDED, fuzzed, service_of_fakes

ALLOWED = Path(__file__).parents[1] / "mitigate" / "data" / "service.csv"


def files(place: Path) -> dict[str, str]:
    """The files below a folder with their hashes, without the service's own."""
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place.rglob("*")
        if path.is_file() and ".serve" not in path.parts
    }


def test_made_up_requests_are_answered_as_described_and_touch_nothing() -> None:
    """Hundreds of requests are made up, which takes seconds: fewer reach no rare answer."""
    with service_of_fakes() as service:
        place = service.outputs.parent
        (place / "secret.txt").write_text("secret")
        before = files(place)
        wrong, statuses = fuzzed(service, examples=3, seed=1)
        assert wrong == []
        assert files(place) == before
        with queue.opened(service.path) as table:
            commands = [job.command for job in queue.latest(table, 1000)]
    asked = {key.rpartition(" ")[0] for key in statuses}
    assert set(EXCLUDED) <= asked
    assert statuses.total() > 300
    with ALLOWED.open(encoding="utf-8") as lines:
        settings = {row["setting"] for row in csv.DictReader(lines)}
    assert commands
    for program, *arguments in commands:
        assert program == "/bin/true"
        said = dict(argument.split("=", 1) for argument in arguments)
        assert said.pop("recipe") in (*RECIPES, "compare")
        assert set(said) <= {*settings, *GROUPS, "compare.runs", "compare.baseline"}
