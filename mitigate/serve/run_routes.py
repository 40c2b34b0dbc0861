"""Requests about finished runs: their figures and files, comparisons, and questions to their generators and scorers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from mitigate.runs.finished import FinishedRun
from mitigate.serve import queue
from mitigate.serve import schemas as shapes
from mitigate.serve.allowed_jobs import RefusedError
from mitigate.serve.batching import RunQuestion
from mitigate.serve.request_checks import CallerDep
from mitigate.serve.results import Results, differing, summary
from mitigate.serve.service import ServiceDep

SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
"""The content policy of the pages of runs, which show generated text: they can send no request, to this service or any
other. The page of the service alone may frame them."""
ZIPPED: dict[int | str, dict[str, Any]] = {
    200: {"description": "a zip file", "content": {"application/zip": shapes.A_FILE}}
}
AS_STORED: dict[int | str, dict[str, Any]] = {
    200: {"description": "the file", "content": dict.fromkeys(("text/html", "application/octet-stream"), shapes.A_FILE)}
}
router = APIRouter()


@router.get("/runs")
def list_runs(service: ServiceDep) -> dict[str, Any]:
    """The finished runs, the latest first, each with the last job that had its folder."""
    with queue.opened(service.path) as table:
        jobs = {Path(folder).name: facts for folder, facts in queue.by_folder(table).items()}
    nobody = dict.fromkeys(("job", "owner", "label"))
    return {"runs": [summary(run) | jobs.get(run.folder.name, nobody) for run in service.results.runs()]}


@router.get("/differences")
def differences(
    service: ServiceDep, run: Annotated[list[str], Query(min_length=2, max_length=shapes.MOST_COMPARED)]
) -> dict[str, Any]:
    """List the settings that decide a run's result and are not the same in all these runs."""
    return {"settings": differing([service.results.run(name) for name in run])}


@router.get("/runs/{name}")
def get_run(name: str, service: ServiceDep) -> dict[str, Any]:
    """One run: its settings, all its figures, and its files."""
    run = service.results.run(name)
    return {**summary(run), "settings": run.settings, "metrics": run.metrics, "files": list(run.files)}


@router.get("/runs/{name}/model.zip", response_class=StreamingResponse, responses=ZIPPED)
def get_model(name: str, service: ServiceDep) -> StreamingResponse:
    """The model of a run, in the Hugging Face layout, as a zip file."""
    plain = name.encode("ascii", "replace").decode().replace("?", "_")  # curl reads no other
    disposition = f"attachment; filename=\"{plain}-model.zip\"; filename*=utf-8''{quote(name)}-model.zip"
    return StreamingResponse(
        service.results.archive(name), media_type="application/zip", headers={"content-disposition": disposition}
    )


@router.get("/runs/{name}/files/{path:path}", response_class=FileResponse, responses=AS_STORED)
def get_file(name: str, path: str, service: ServiceDep) -> FileResponse:
    """A file of a run: a page in a sandbox, anything else as a download."""
    file = service.results.file(name, path)
    if file.suffix == ".html":
        headers = {"content-security-policy": SANDBOX, "x-frame-options": "SAMEORIGIN"}
        return FileResponse(file, media_type="text/html", headers=headers)
    return FileResponse(file, media_type="application/octet-stream", filename=file.name)


@router.post("/compare", status_code=201)
async def compare(comparison: shapes.Comparison, service: ServiceDep, caller: CallerDep) -> shapes.JobShown:
    """Compare finished runs: a job, whose run folder has the page of the comparison."""
    values = await run_in_threadpool(_compared, comparison, service.results)
    arguments = await service.composed(service.rules.checked, ["recipe=compare"], values)
    shown = comparison.model_dump(exclude={"submitter", "label"})
    given = ("compare", shown, arguments, comparison.submitter)
    how: dict[str, Any] = {"caller": caller, "label": comparison.label}
    return await run_in_threadpool(lambda: service.shown(service.submit(*given, **how)))


def _compared(comparison: shapes.Comparison, results: Results) -> dict[str, Any]:
    """The settings of a comparison. Raises RefusedError for runs that cannot be compared."""
    runs = [results.run(name) for name in dict.fromkeys(comparison.runs)]
    recipes = {run.recipe for run in runs}
    if len(recipes) > 1 or len(runs) < 2:
        raise RefusedError([f"two runs or more of one recipe are compared, not {len(runs)} of {', '.join(recipes)}"])
    values: dict[str, Any] = {"compare.runs": [str(run.folder) for run in runs]}
    if comparison.baseline is not None:
        values["compare.baseline"] = str(results.run(comparison.baseline).folder)
    return values


@router.post("/generate")
async def generate(question: shapes.Question, request: Request, service: ServiceDep) -> shapes.Answers:
    """The best tails of one run or two for a head and a relation, with their labels."""
    runs = await run_in_threadpool(_with_generators, question.runs, service.results)
    questions = [RunQuestion(run.folder, question.head, question.relation) for run in runs]
    return shapes.Answers(answers=await request.app.state.generate.ask(questions))


@router.post("/label")
async def label(texts: shapes.Texts, request: Request) -> shapes.Labels:
    """The labels of texts, and the words that drove them."""
    return shapes.Labels(texts=await request.app.state.label.ask(texts.texts))


@router.get("/relations")
def relations(
    service: ServiceDep, run: Annotated[list[str], Query(min_length=1, max_length=2)]
) -> dict[str, list[str]]:
    """List the relations and the targets that all these runs can be asked about."""
    return service.models.known(_with_generators(run, service.results))


def _with_generators(names: Sequence[str], results: Results) -> list[FinishedRun]:
    """The runs of these names. Raises RefusedError for those of recipes that train no generator."""
    runs = [results.run(name) for name in names]
    if others := [run for run in runs if run.recipe != "mitigate"]:
        remedy = "only runs of recipe=mitigate have a generator to ask; choose one"
        raise RefusedError([f"{run.folder.name} is a run of recipe={run.recipe}; {remedy}" for run in others])
    return runs
