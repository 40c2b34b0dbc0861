"""The fields of requests and answers, as the OpenAPI description shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.functional_validators import AfterValidator

from mitigate.serve.allowed_jobs import RECIPES
from mitigate.serve.job_table import State
from mitigate.serve.people import MOST_PRIORITY

MOST_OVERRIDES = 100
LONGEST_HEAD = 100  # characters
LONGEST_TEXT = 1_000
MOST_TEXTS = 64
MOST_COMPARED = 50
A_FILE = {"schema": {"type": "string", "format": "binary"}}  # content that is not JSON


def _plain(text: str) -> str:
    if any(character < " " and character not in "\t\n" for character in text):
        raise ValueError("it holds a control character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("it holds half of a character, a surrogate")
    return text


PLAIN = r"^[^\x00-\x08\x0B-\x1F]*$"  # the first rule of _plain, for the description
Text = Annotated[str, AfterValidator(_plain), Field(json_schema_extra={"pattern": PLAIN})]
RunName = Annotated[str, Field(min_length=1, max_length=255, description="name of a run folder, as GET /runs has it")]
LABEL = r"^[^\x00-\x1F]*$"
Label = Annotated[str, AfterValidator(_plain), Field(max_length=80, pattern=LABEL)] | None


class Strict(BaseModel):
    """A model that forbids further keys."""

    model_config = ConfigDict(extra="forbid")


class Submission(Strict):
    """A job to be run."""

    recipe: str = Field("mitigate", max_length=40, json_schema_extra={"enum": [*RECIPES]})
    overrides: dict[str, Any] = Field(
        default_factory=dict,
        max_length=MOST_OVERRIDES,
        description="options of groups, and settings by their dotted names, of GET /options",
        examples=[{"policy": "both", "seed": 1, "trainer.max_steps": 1000}],
    )
    submitter: Annotated[Text, Field(max_length=50)] | None = Field(
        None, description="a name for the common token; not checked, unlike the owner"
    )
    label: Label = Field(None, description="a name of your own for the job")
    priority: int | None = Field(
        None,
        strict=True,
        ge=-MOST_PRIORITY,
        le=MOST_PRIORITY,
        description="higher starts first; null: 0; at most that of GET /me",
    )


class Comparison(Strict):
    """Finished runs to be compared."""

    runs: list[RunName] = Field(min_length=2, max_length=MOST_COMPARED)
    baseline: RunName | None = Field(None, description="one of the runs; null: those of the policy none")
    submitter: Annotated[Text, Field(max_length=50)] | None = None
    label: Label = None


class Question(Strict):
    """A head and a relation."""

    head: Annotated[Text, Field(min_length=1, max_length=LONGEST_HEAD, examples=["lawyer"])]
    relation: Annotated[Text, Field(min_length=1, max_length=60, examples=["CapableOf"])]
    runs: list[RunName] = Field(min_length=1, max_length=2)


class Texts(Strict):
    """Texts to be labelled."""

    texts: list[Annotated[Text, Field(min_length=1, max_length=LONGEST_TEXT)]] = Field(
        min_length=1, max_length=MOST_TEXTS, examples=[["the lawyer is very helpful"]]
    )


class Session(Strict):
    """The token, which a browser hands over once."""

    token: str = Field(max_length=1_000)


class JobShown(BaseModel):
    """A job. Times are seconds since 1970."""

    id: int
    state: State
    recipe: str
    overrides: dict[str, Any]
    submitter: str | None
    owner: str | None = Field(description="the person whose token submitted it; null: the common token")
    label: str | None
    priority: int
    place: int | None = Field(description="in the queue, 1 for the next; null for one that is not queued")
    submitted: float
    started: float | None
    ended: float | None
    starts: int = Field(description="how often its command was started")
    exit: int | None = Field(description="exit status of the command; negative: the signal that ended it")
    error: str | None
    handle: str | None = Field(description="what a cluster calls it; null on this machine")
    run: str | None = Field(description="name of its run folder, once it is known")
    is_finished: bool = Field(description="whether the run folder is that of a finished run")
    stage: str | None = Field(description="of the recipe, from the run's status.json, like what follows")
    step: str | None
    share: float | None = Field(description="of the step, 0 to 1")
    seconds_left: float | None = Field(description="estimate for the step")
    done: list[str] = Field(description="stages that are finished")


class JobWithLog(JobShown):
    """A job with the last lines of its output."""

    log: list[str]


class Jobs(BaseModel):
    """The last jobs, the newest first."""

    jobs: list[JobShown]


class Me(BaseModel):
    """The sender of the request, with limits and what is used of them; null: no limit."""

    name: str | None = Field(description="null: the common token, or a service without tokens")
    is_admin: bool = Field(description="whether others' jobs can be cancelled")
    priority: int | None = Field(description="the highest that a job may have")
    running: int
    most_running: int | None
    queued: int
    most_queued: int | None
    disk: float | None = Field(description="GiB of run folders and files; null where there is no limit")
    most_disk: float | None


class File(BaseModel):
    """An uploaded file."""

    name: str
    bytes: int
    uploaded: float


class Files(BaseModel):
    """Your uploaded files, by name."""

    files: list[File]


class Labelled(BaseModel):
    """A text with its labels."""

    text: str
    masked: str = Field(description="as the scorers read it: demographic words masked")
    labels: dict[str, dict[str, Any]] = Field(
        description="by scorer: label (-1, 0, 1, or 2 for other), strength, words"
    )


class Labels(BaseModel):
    """The texts in their order."""

    texts: list[Labelled]


class Answers(BaseModel):
    """The answers of the runs in their order."""

    answers: list[dict[str, Any]] = Field(
        description="run, policy, seed, head, relation, scorers and tails with labels"
    )


class Faults(BaseModel):
    """The reasons for which a request was refused: a sentence for each fault."""

    faults: list[str]


class Health(BaseModel):
    """The state of a service that answers."""

    state: Literal["ready"] = "ready"
    queued: int
    running: int
