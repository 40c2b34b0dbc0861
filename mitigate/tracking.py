"""Weights & Biases: the figures that it shows first, and the record of a run: online when there is a key, offline when
there is none, never a prompt; or nowhere, by a stand-in with the same methods. Only this module uses wandb.

A figure's name there is group/what_unit, such as "harm/neutral_by_regard_percent": W&B makes a section of each group,
and sorts and filters only by names of letters, digits and underscores. A measure is a headline where its declaration
says so, and every measure of a user's own is."""

import netrc
import os
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import polars as pl

from mitigate.errors import one_of
from mitigate.measure.base import Figure, find, measures, own_measures

LONGEST = 60  # characters of a name: W&B draws no charts of longer ones
UNITS = {"%": "percent", "%²": "variance", "points": "points"}
DIFFERENCES = {
    **dict.fromkeys(("policy", "against", "key", "measure"), pl.String),
    **dict.fromkeys(("baseline", "value", "difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("unit", "better"), pl.String),
}
"""A policy's headline: the baseline's value, its own, the difference, the 95 % interval of that, and its unit."""


class Headline(NamedTuple):
    """A figure that is shown first."""

    place: int  # of its measure among all
    figure: Figure

    @property
    def label(self) -> str:
        """The figure with its unit: "neutral by regard, %"."""
        declared = self.figure.declared
        of = f", {self.figure.group}" if self.figure.group else ""
        wording = ", the paper's wording" if self.figure.template == "paper" else ""
        unit = f", {declared.unit}" if declared.unit in UNITS else ""
        return f"{declared.title}{of}{wording}{unit}"

    @property
    def name(self) -> str:
        """In W&B: "harm/neutral_by_regard_percent"."""
        declared = self.figure.declared
        words = self.label.replace(", the paper's wording", " paper").removesuffix(f", {declared.unit}")
        slug = re.sub(r"[^a-zA-Z0-9]+", "_", f"{words} {UNITS.get(declared.unit, '')}").strip("_")
        return f"{declared.headline or 'own'}/{slug}"[:LONGEST]


def headline(key: str) -> Headline | None:
    """The headline of a key of metrics.json; None for any other key."""
    if (figure := find(key)) is None:
        return None
    declared = figure.declared
    is_shown = declared.headline or declared.name in [one.name for one in own_measures()]
    if figure.variant or not is_shown or figure.by not in ("all", "subset"):
        return None
    names = [one.name for one in measures()]
    return Headline(names.index(declared.name), figure) if figure.group == declared.headline_group else None


def headlines(metrics: Mapping[str, Any]) -> dict[Headline, float]:
    """The headlines among a run's metrics, with their numbers, in the order of declaration."""
    found = {row: value for key, value in metrics.items() if isinstance(value, int | float) and (row := headline(key))}
    return dict(sorted(found.items(), key=lambda item: (item[0].place, item[0].name)))


def headline_differences(policy: str, against: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table DIFFERENCES of the headlines among a comparison's rows (measure.compare.DIFFERENCES), in the headlines'
    order."""
    found = [(row, given) for given in rows if (row := headline(given["figure"]))]
    lines = []
    for row, given in sorted(found, key=lambda pair: pair[0].place):
        declared = row.figure.declared
        numbers = {"difference": given["change"], "low": given["low"], "high": given["high"]}
        unit = "percentage points" if declared.unit in ("%", "points") else declared.unit
        line = {"policy": policy, "against": against, "key": row.figure.key, "measure": row.label, **numbers}
        values = {"baseline": given["baseline"], "value": given["value"]}
        lines.append({**line, **values, "unit": unit, "better": declared.better})
    return pl.DataFrame(lines, schema=DIFFERENCES)


def summary(rows: pl.DataFrame) -> dict[str, float]:
    """The differences of the headlines by a name in W&B: "both/harm_neutral_by_regard_percent_difference", of figures
    of labels those with the neutral wording. rows: DIFFERENCES."""
    found = {}
    for line in rows.drop_nulls("difference").iter_rows(named=True):
        row, policy = headline(line["key"]), re.sub(r"\W+", "_", line["policy"])
        if row and row.figure.declared.headline != "size" and row.figure.template != "paper":
            found[f"{policy}/{row.name.replace('/', '_')}_difference"] = line["difference"]
    return found


# The record

MODES_OF_WANDB = ("online", "offline", "shared", "disabled", "dryrun", "run")  # values of WANDB_MODE
EARLIER_NAMES = {"run": "online", "dryrun": "offline"}  # of W&B's modes
JSON = {"Content-Type": "application/json"}
MOST_METADATA = 100  # values of an artifact (no more than W&B takes); its run's summary has all figures

# Seconds: without a network, a run continues offline within ten.
ANSWER = 3.0  # for an answer of W&B
INIT = 6  # for opening a run
END = 5.0  # for ending its service


class Tracking:
    """The record of a run, here of nothing. `place` describes where it is, for the first line of the output."""

    place = "nowhere (tracking=none)"

    def log(self, values: Mapping[str, float], step: int, stage: str) -> None: ...
    def summarise(self, metrics: Mapping[str, Any]) -> None: ...
    def table(self, name: str, frame: pl.DataFrame) -> None: ...
    def pictures(self, pictures: Iterable[tuple[str, str, Path]]) -> None: ...
    def artifact(self, name: str, kind: str, path: Path, metadata: Mapping[str, Any]) -> None: ...
    def finish(self, failed: bool = False) -> None: ...


class WandbTracking(Tracking):
    """One W&B run. Opened again with the same folder and id, it continues the same run. facts: project, entity, name,
    group, job_type, tags and config, as wandb.init takes them.

    An online run is recorded offline, with the reason in `place`, when W&B does not answer within ANSWER seconds or
    opens no run within INIT."""

    def __init__(self, mode: str, folder: Path, run_id: str, **facts: Any) -> None:
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        self._wandb = wandb
        settings = wandb.Settings(
            console="off",
            silent=True,
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_meta=True,  # the command with its paths, and the path of Python
            init_timeout=INIT,
        )
        options = {**facts, "id": run_id, "dir": folder, "settings": settings, "reinit": "finish_previous"}
        url = os.environ.get("WANDB_BASE_URL") or wandb.setup().settings.base_url
        fault = _unanswered(url.rstrip("/")) if mode == "online" else None
        if fault is None:
            try:
                self._run = wandb.init(**options | {"mode": mode, "resume": "allow" if mode == "online" else None})
            except wandb.errors.Error as error:
                if mode != "online":
                    raise
                fault = f"W&B opened no run ({type(error).__name__})"
                # Its service still holds the run's id. Where it has closed its connection, this would wait for ever.
                ending = threading.Thread(target=wandb.teardown, daemon=True)
                ending.start()
                ending.join(END)
                os.environ.pop("WANDB_SERVICE", None)  # so would the service of the process that started this one
        if fault is not None:
            self._run = wandb.init(**options, mode="offline")
            mode = f"offline, since {fault}"
        at = self._run.url if mode == "online" else folder
        self.place = f"W&B {mode}: {at}"

    def log(self, values: Mapping[str, float], step: int, stage: str) -> None:
        """Record values of a stage's own count of steps: {stage}/{name} against {stage}/step. They are not columns of
        the table of runs."""
        self._run.define_metric(f"{stage}/*", step_metric=f"{stage}/step", summary="none")
        self._run.log({f"{stage}/{name}": value for name, value in values.items()} | {f"{stage}/step": step})

    def summarise(self, metrics: Mapping[str, Any]) -> None:
        """Record the final metrics of a run. W&B draws a number that is logged once as a bar beside those of other
        runs; so a resumed run logs no number a second time."""
        new = {name: value for name, value in metrics.items() if self._run.summary.get(name) != value}
        numbers = {name: value for name, value in new.items() if isinstance(value, int | float)}
        if numbers:
            self._run.log(numbers)
        self._run.summary.update({name: value for name, value in new.items() if name not in numbers})

    def table(self, name: str, frame: pl.DataFrame) -> None:
        kept = str | int | float | bool | None
        table = self._wandb.Table(columns=list[str | int](frame.columns))
        for row in frame.iter_rows():  # given as `data`, they would make W&B import pandas
            table.add_data(*(value if isinstance(value, kept) else str(value) for value in row))
        self._run.log({name: table})

    def pictures(self, pictures: Iterable[tuple[str, str, Path]]) -> None:
        """Record pictures, (name, caption, file), as one table."""
        rows: list[Iterable[Any]] = [[name, text, self._wandb.Image(str(path))] for name, text, path in pictures]
        if rows:
            self._run.log({"pictures": self._wandb.Table(columns=["picture", "caption", "image"], data=rows)})

    def artifact(self, name: str, kind: str, path: Path, metadata: Mapping[str, Any]) -> None:
        """Record a file or folder as an artifact, with the first MOST_METADATA values. Names may hold letters, digits,
        dashes, dots and underscores."""
        artifact = self._wandb.Artifact(name, type=kind, metadata=dict(islice(metadata.items(), MOST_METADATA)))
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            name_inside = str(file.relative_to(path)) if path.is_dir() else file.name
            artifact.add_file(str(file), name=name_inside, policy="immutable")
        self._run.log_artifact(artifact)

    def finish(self, failed: bool = False) -> None:
        self._run.finish(exit_code=int(failed))


def open_tracking(mode: str, **options: Any) -> Tracking:
    """The tracking for a mode: "none", "offline", "online", or "auto", which is online when there is a key. Raises
    MitigateError for a WANDB_MODE that W&B does not have."""
    mode = resolve(mode)
    return Tracking() if mode in ("none", "disabled") else WandbTracking(mode, **options)


def resolve(mode: str) -> str:
    """The mode that "auto" stands for; any other unchanged. Raises MitigateError, where W&B is used, for a WANDB_MODE
    that it does not have."""
    surrounding = os.environ.get("WANDB_MODE")
    if mode != "none" and surrounding and surrounding not in MODES_OF_WANDB:
        raise one_of("WANDB_MODE (a variable of W&B's)", surrounding, MODES_OF_WANDB)
    if mode == "auto":
        return EARLIER_NAMES.get(str(surrounding), surrounding) or ("online" if _has_key() else "offline")
    return mode


def started_by_wandb_agent() -> bool:
    """Return whether `wandb agent` started this process and waits for its record."""
    return "WANDB_SWEEP_ID" in os.environ


def _unanswered(url: str) -> str | None:
    """The reason why W&B cannot be reached; None when it answers within ANSWER seconds with anything but a server
    error."""
    silent = f"{url} did not answer within {ANSWER:g} seconds"
    faults: list[str | None] = [silent]

    def ask() -> None:
        query = urllib.request.Request(f"{url}/graphql", b'{"query": "{ __typename }"}', JSON)
        fault = None
        try:
            urllib.request.urlopen(query, timeout=ANSWER).close()
        except urllib.error.HTTPError as error:
            fault = f"{url} answers HTTP {error.code}" if error.code >= 500 else None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                fault = silent
            elif not isinstance(reason, ssl.SSLError):  # wandb may have certificates of its own
                fault = f"{url} cannot be reached ({reason})"
        faults.append(fault)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()  # a thread, because looking up an address has no time limit
    thread.join(ANSWER)
    return faults[-1]


def _has_key() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).netloc
    named = os.environ.get("NETRC")
    files = [Path(place).expanduser() for place in ([named] if named else ["~/.netrc", "~/_netrc"])]  # as wandb does
    try:
        found = netrc.netrc(next((file for file in files if file.exists()), files[0])).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return False
    return found is not None and bool(found[2])
