"""recipe=share: a finished run on the Hugging Face hub: a generator with its card, page and figures, or a filtered data
set with its card and description.

Only the files of KINDS leave this machine. Logs, caches, W&B's records and the configuration, which names folders, do
not."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from mitigate.errors import MitigateError
from mitigate.finished import FinishedRun, open_run
from mitigate.package_data import VERSION
from mitigate.recipes.config import Config
from mitigate.recipes.job import say, say_notes
from mitigate.words.outside_text import counted

CARD, PAGE = "README.md", "report.html"
TOKEN = "HF_TOKEN"  # in the environment
UNNAMED = '.from_pretrained("PATH")'  # in a generator's card


class Kind(NamedTuple):
    """The shared files of a recipe's run folders."""

    repository: str  # the hub's name for this kind of repository
    files: Sequence[str]  # patterns
    texts: Sequence[str]  # patterns of files that show statements or triples


KINDS = {
    "mitigate": Kind(
        "model", ("model/*", "metrics.json", "plots/*.png", "plots/*.svg", "plots/captions.csv"), (PAGE, "tables/*")
    ),
    "filter": Kind("dataset", (CARD,), ("kept.*", "dropped.*")),
}


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before anything is sent."""

    run: FinishedRun
    kind: Kind
    files: Mapping[str, Path]  # by their names in the repository
    repository: str
    private: bool
    notices: Sequence[str]

    def contents(self, repository: str) -> dict[str, bytes | Path]:
        """The content to send, by name: page and card without folders of this machine, other files as they are."""
        found: dict[str, bytes | Path] = dict(self.files)
        for name, path in self.files.items():
            if name in (CARD, PAGE):
                text = _without(path.read_text(encoding="utf-8"), folders_of(self.run))
                found[name] = (self.card(text, repository) if name == CARD else text).encode()
        return found

    def card(self, text: str, repository: str) -> str:
        """The card with the repository's name in its example, and links to the page and the figures."""
        figures = [name for name in self.files if name.startswith("plots/") and name.endswith(".png")]
        lines = [f"![{re.sub('[-_]', ' ', PurePosixPath(name).stem)}]({name})" for name in figures]
        lines += ["[The run's page](report.html), for a browser."] if PAGE in self.files else []
        added = "\n\n".join(["\n## Figures", *lines]) + "\n" if lines else ""
        return text.replace(UNNAMED, f'.from_pretrained("{repository}")') + added


def run(config: Config) -> None:
    """List the files of `share.run`, and put them into the repository `share.repo` of the hub."""
    settings = config.share
    plan = make_plan(settings.run, settings.repo, private=settings.private, statements=settings.statements)
    where = f"{'private' if plan.private else 'public'} {plan.kind.repository} {plan.repository}"
    say(f"  {'would be' if config.dry_run else 'to be'} shared as the {where}:")
    for name, path in plan.files.items():
        say(f"  {path.stat().st_size:>13,} bytes  {name}")
    total = sum(path.stat().st_size for path in plan.files.values())
    say(f"  {total:>13,} bytes  in {counted(len(plan.files), 'file')}")
    say_notes(plan.notices)
    if not config.dry_run:
        say(f"  shared      {upload(plan, token_of(os.environ))}")


def make_plan(folder: str, repository: str, *, private: bool, statements: bool) -> Plan:
    """The files of a finished run. Raises MitigateError for runs of other recipes, without a trained generator or of a
    user's own triples that are not to be shared, for damaged files, and for a name that the hub does not allow."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id  # a fifth of a second to load

    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise MitigateError(f"share.repo={repository}: {error}; give NAME or ORGANISATION/NAME") from error
    found = open_run(folder)
    kind = KINDS.get(found.recipe)
    if kind is None:
        raise MitigateError(
            f"share.run={folder} is a run of recipe={found.recipe}; only runs of {' and '.join(KINDS)} can be shared"
        )
    own = found.setting("data.own_texts", True) is not False
    if kind.repository == "dataset" and own and not statements:
        raise MitigateError(
            f"share.run={folder} holds your own triples; look at its files, and set share.statements=true to share them"
        )
    patterns = [*kind.files, *(kind.texts if statements or not own else ())]
    names = [name for name in sorted(found.files) if any(fnmatch(name, pattern) for pattern in patterns)]
    if kind.repository == "model" and "model/config.json" not in names:
        raise MitigateError(f"share.run={folder} has no trained generator (train=false); name a run that trained one")
    if faults := [fault for name in names if (fault := found.fault(name))]:
        raise MitigateError(f"{'; '.join(faults)}.")
    files = {name.removeprefix("model/"): found.folder / name for name in names}
    return Plan(found, kind, files, repository, private, notices_of(found, own=own, statements=statements))


def notices_of(found: FinishedRun, *, own: bool, statements: bool) -> list[str]:
    """Sentences on the licence, on texts in the files, and on those that are left out."""
    notices = [] if found.text("data.licence") else ["The licence of the data is not given: the card says unknown."]
    if own and found.recipe == "mitigate":
        notices.append("A generator can repeat its training texts.")
        if not statements:
            notices.append("The page and its tables quote your own statements; share.statements=true adds them.")
    return notices


def token_of(environment: Mapping[str, str]) -> str:
    """The hub's token. Raises MitigateError where the environment has none."""
    if token := environment.get(TOKEN, "").strip():
        return token
    raise MitigateError(
        f"recipe=share needs a token of the Hugging Face hub that may write, in the environment: {TOKEN}=...; "
        "dry_run=true lists the files without one"
    )


def upload(plan: Plan, token: str) -> str:
    """Create the repository where it is absent and put all files there in one commit; returns its address. The variable
    HF_ENDPOINT names another hub. Raises MitigateError where the hub refuses, is not reached, or has a public
    repository of that name and a private one was asked for."""
    from huggingface_hub import CommitOperationAdd, HfApi

    hub, kind = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token), plan.kind.repository
    with _hub_errors(plan.repository):
        made = hub.create_repo(plan.repository, repo_type=kind, private=plan.private, exist_ok=True)
        is_private = hub.repo_info(made.repo_id, repo_type=kind).private
    if plan.private and not is_private:
        raise MitigateError(f"{made.repo_id} exists and is public: set share.private=false, or give another share.repo")
    contents = plan.contents(made.repo_id)
    operations = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=content) for name, content in contents.items()]
    message = f"{plan.run.folder.name}, by mitigate {VERSION}"
    with _hub_errors(plan.repository):
        hub.create_commit(made.repo_id, operations, commit_message=message, repo_type=kind)
    return str(made)


def folders_of(found: FinishedRun) -> dict[str, str]:
    """The absolute paths in a run's settings, with their last parts, and the home folder; the longest first."""
    named = {path: Path(path).name for path in _paths(found.config)}
    named |= {str(found.folder): found.folder.name, str(found.folder.parent): "outputs", str(Path.home()): "~"}
    return dict(sorted(named.items(), key=lambda item: -len(item[0])))


def _paths(node: Any) -> Iterator[str]:
    """The absolute paths among the values of settings, and those behind "=" in the arguments of the command."""
    if isinstance(node, Mapping | list):
        for part in node.values() if isinstance(node, Mapping) else node:
            yield from _paths(part)
    elif isinstance(node, str):
        value = node.rpartition("=")[2]
        if value.startswith("/") and len(value) > 1:
            yield value


def _without(text: str, folders: Mapping[str, str]) -> str:
    for path, name in folders.items():
        text = text.replace(escape(path), escape(name)).replace(path, name)
    return text


@contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    """Context that raises MitigateError for what the hub's client raises."""
    try:
        yield
    except Exception as error:  # network, hub and disk each have kinds of their own
        why = next(iter(str(error).strip().splitlines()), "")
        raise MitigateError(
            f"{repository} could not be written on the hub ({type(error).__name__}: {why}); check that {TOKEN} may "
            "write there, and run the same command again"
        ) from error
