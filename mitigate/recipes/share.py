"""recipe=share: a finished run on the Hugging Face hub: a generator with its card, page and figures, or a filtered data
set with its card.

Only the files of FILES leave this machine. Logs, caches, W&B's records and the configuration, which names folders, do
not."""

import os
import shlex
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi

from mitigate.errors import MitigateError, counted, without_folders
from mitigate.files import VERSION
from mitigate.finished import FinishedRun, open_run
from mitigate.recipes.config import Config
from mitigate.recipes.job import say, say_notes

TOKEN = "HF_TOKEN"  # in the environment
REPOSITORIES = {"mitigate": "model", "filter": "dataset"}  # by recipe: the hub's name for the kind of repository
FILES = {"mitigate": ("model/*", "metrics.json", "plots/*"), "filter": ("README.md",)}
TEXTS = {"mitigate": ("report.html", "tables/*"), "filter": ("kept.*", "dropped.*")}
"""Patterns of files that show statements or triples."""
UNNAMED = '.from_pretrained("PATH")'  # in a generator's card


def run(config: Config) -> None:
    """List the files of `share.run`, and put them into the repository `share.repo` of the hub in one commit. Raises
    MitigateError for runs of other recipes, without a trained generator or of a user's own triples that are not to be
    shared, for damaged files, and where the hub refuses."""
    settings = config.share
    found = open_run(settings.run)
    if found.recipe not in REPOSITORIES:
        raise MitigateError(
            f"share.run={settings.run} is a run of recipe={found.recipe}; only runs of {' and '.join(REPOSITORIES)} "
            "can be shared"
        )
    kind, has_own_texts = REPOSITORIES[found.recipe], found.setting("data.own_texts", True) is not False
    if kind == "dataset" and has_own_texts and not settings.statements:
        raise MitigateError(
            f"share.run={settings.run} holds your own triples; look at its files, and set share.statements=true to "
            "share them"
        )
    patterns = [*FILES[found.recipe], *(TEXTS[found.recipe] if settings.statements or not has_own_texts else ())]
    names = [name for name in sorted(found.files) if any(fnmatch(name, pattern) for pattern in patterns)]
    if kind == "model" and "model/config.json" not in names:
        raise MitigateError(
            f"share.run={settings.run} has no trained generator (train=false); name a run that trained one"
        )
    if faults := [fault for name in names if (fault := found.fault(name))]:
        raise MitigateError(f"{'; '.join(faults)}.")
    files = {name.removeprefix("model/"): found.folder / name for name in names}
    who = "private" if settings.private else "public"
    say(f"  {'would be' if config.dry_run else 'to be'} shared as the {who} {kind} {settings.repo}:")
    for name, path in files.items():
        say(f"  {path.stat().st_size:>13,} bytes  {name}")
    say(f"  {sum(path.stat().st_size for path in files.values()):>13,} bytes  in {counted(len(files), 'file')}")
    if has_own_texts and kind == "model":
        say_notes(["A generator can repeat its training texts."])
    if not config.dry_run:
        say(f"  shared      {upload(config, found, files, kind)}")


def upload(config: Config, found: FinishedRun, files: dict[str, Path], kind: str) -> str:
    """Create the repository where it is absent and put the files there; returns its address. The card names it in its
    example; in card and page the command has no folders of this machine. The variable HF_ENDPOINT names another hub.
    Raises MitigateError where the hub refuses, is not reached, or has a public repository of that name and a private
    one was asked for."""
    settings, typed = config.share, shlex.split(str(found.manifest.get("command", "")))
    if not (token := os.environ.get(TOKEN, "").strip()):
        raise MitigateError(
            f"recipe=share needs a token of the Hugging Face hub that may write, in the environment: {TOKEN}=...; "
            "dry_run=true lists the files without one"
        )
    hub = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)
    try:
        made = hub.create_repo(settings.repo, repo_type=kind, private=settings.private, exist_ok=True)
        if settings.private and not hub.repo_info(made.repo_id, repo_type=kind).private:
            raise MitigateError(
                f"{made.repo_id} exists and is public: set share.private=false, or give another share.repo"
            )
        operations = []
        for name, path in files.items():
            content: bytes | Path = path
            if path.suffix in (".md", ".html"):
                text = path.read_text(encoding="utf-8").replace(UNNAMED, f'.from_pretrained("{made.repo_id}")')
                for word in (*typed, str(found.folder), str(found.folder.parent), str(Path.home())):
                    text = text.replace(word, without_folders(word))
                content = text.encode()
            operations.append(CommitOperationAdd(path_in_repo=name, path_or_fileobj=content))
        message = f"{found.folder.name}, by mitigate {VERSION}"
        hub.create_commit(made.repo_id, operations, commit_message=message, repo_type=kind)
    except MitigateError:
        raise
    except Exception as error:  # network, hub and disk each have kinds of their own
        why = next(iter(str(error).strip().splitlines()), "")
        raise MitigateError(
            f"{settings.repo} could not be written on the hub ({type(error).__name__}: {why}); check the name and that "
            f"{TOKEN} may write there, and run the same command again"
        ) from error
    return str(made)
