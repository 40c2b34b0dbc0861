"""Requests that schemathesis makes up from the service's own description, put to the real application in this process.
Its jobs do nothing. As a script it does so for longer:

python tests/fuzzing.py EXAMPLES SEED [SECONDS]"""

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis import hooks
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.python.asgi import HOST, shutdown_lifespans
from served import make_service, settle

from mitigate.serve.allowed_jobs import GROUPS
from mitigate.serve.allowed_values import allowed
from mitigate.serve.app import make_app
from mitigate.serve.service import Service

EXCLUDED = {
    "POST /jobs": "which settings a configuration has, and which values go together, composing it tells",
    "POST /compare": "runs are compared that are of one recipe",
    "POST /generate": "which relations a generator knows, the run tells",
    "PUT /files/{name}": "files are kept that are text tables with a name of one",
    "GET /form": "which options a group has, GET /options tells",
    "GET /relations": "runs can be asked that kept a generator",
    "GET /runs/{name}/files/{path}": "a run has the files of its manifest",
    "GET /runs/{name}/model.zip": "a run of recipe=compare has no model",
}
"""Requests whose answer to a body or a path of the described form may be a 4xx nevertheless, and why. All the other
checks hold for them: no 5xx, answers as described, and a 4xx for what is not of the described form."""
TOKEN = "a token of more than sixteen characters"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HOSTILE = ("_target_", "run", "hydra.run.dir", "paths.outputs", "${oc.env:HOME}", "../../secret.txt")
HOSTILE += ("<script>1</script>",)


@contextmanager
def service_of_fakes() -> Iterator[Service]:
    """A service with three finished runs, whose jobs do nothing."""
    with tempfile.TemporaryDirectory() as place:
        service = make_service(Path(place), 0)
        shutil.copytree(Path(place) / "prepared", service.outputs, dirs_exist_ok=True)
        service.hosts, service.command, service.slots, service.most_queued = [HOST], ["/bin/true"], 1, 5
        service.token = TOKEN
        yield service
        settle(service)


def fuzzed(service: Service, examples: int, seed: int, seconds: int | None = None) -> tuple[list[str], Counter[str]]:
    """What was wrong, in sentences, and how many requests had which status. examples: requests made up for each
    operation, besides those at the limits of the description; seconds: until no more are made up."""
    settings: dict[str, Any] = {
        "seed": seed,
        "headers": BEARER,
        "max-stream-events": 2,
        "generation": {"max-examples": examples, "deterministic": True},
        "operations": [
            {"include-name": name, "checks": {"positive_data_acceptance": {"enabled": False}}} for name in EXCLUDED
        ],
    }
    if seconds:
        settings |= {"max-time": seconds, "generation": {"max-examples": examples}}
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", make_app(service), config=SchemathesisConfig.from_dict(settings), headers=BEARER
    )
    _name_what_there_is(service, random.Random(seed))
    wrong, statuses = [], Counter[str]()
    try:
        for event in from_schema(schema).execute():
            if isinstance(event, events.NonFatalError | events.FatalError):
                wrong.append(str(vars(event) if hasattr(event, "__dict__") else getattr(event, "info", event)))
            elif isinstance(event, events.ScenarioFinished):
                wrong += _failures(event)
                statuses.update(_statuses(event))
    finally:
        hooks.unregister_all()
        shutdown_lifespans()
    return list(dict.fromkeys(wrong)), statuses


def _name_what_there_is(service: Service, draw: random.Random) -> None:
    """Half of the requests of the described form name runs, jobs and settings that there are: what is made up never
    hits them."""
    runs = sorted(path.name for path in service.outputs.iterdir() if not path.name.startswith("."))
    settings = [*GROUPS, *allowed(), *HOSTILE]
    options = [option for names in service.rules.options().values() for option in names]

    def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
        if draw.random() < 0.5 or case.meta is None or not case.meta.generation.mode.is_positive:
            return
        if "name" in case.path_parameters:
            is_file = "/files/{name}" in case.operation.label
            case.path_parameters["name"] = draw.choice(["a.csv", "b.txt", *HOSTILE] if is_file else runs)
        if "path" in case.path_parameters:
            case.path_parameters["path"] = draw.choice(["report.html", "stages/probe.parquet", *HOSTILE])
        if "number" in case.path_parameters:
            case.path_parameters["number"] = draw.randint(1, 5)
        if "run" in case.query:
            case.query["run"] = draw.choices(runs, k=2)
        if isinstance(case.body, dict) and "runs" in case.body:
            case.body = case.body | {"runs": draw.choices(runs, k=2)}
        if isinstance(case.body, dict) and "relation" in case.body:
            heads = ["lawyer", "Nurse", case.body["head"]]
            relation = draw.choice([*["CapableOf"] * 9, *HOSTILE])
            case.body = case.body | {"relation": relation, "head": draw.choice(heads)}
        if isinstance(case.body, dict) and isinstance(case.body.get("overrides"), dict):
            values = list(case.body["overrides"].values()) or [draw.choice([1, *HOSTILE])]
            named = {draw.choice(settings): draw.choice([value, value, *options[:2], 1]) for value in values}
            case.body = case.body | {"overrides": named}

    schemathesis.hook(before_call)  # of all schemas: there is no hook before the call of one


def _failures(event: Any) -> Iterator[str]:
    for number, checks in event.recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                label = event.recorder.cases[number].value.operation.label
                failure = check.failure_info
                yield f"{label}: {check.name}: {failure.failure.message}\n{failure.code_sample}"


def _statuses(event: Any) -> Iterator[str]:
    for number, asked in event.recorder.interactions.items():
        if asked.response is not None and number in event.recorder.cases:
            yield f"{event.recorder.cases[number].value.operation.label} {asked.response.status_code}"


if __name__ == "__main__":
    with service_of_fakes() as made:
        found, counted = fuzzed(made, *map(int, sys.argv[1:]))
    for status, number in sorted(counted.items()):
        print(f"{number:7,}  {status}")
    print(*found, f"{counted.total():,} requests, {len(found)} faults", sep="\n")
    sys.exit(bool(found))
