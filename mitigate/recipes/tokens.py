"""recipe=tokens: the people of a service and their tokens, created, listed and revoked. It leaves no run folder."""

import time
from pathlib import Path

from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.recipes.job import say
from mitigate.serve.people import Limits, People, Person, record


def run(config: DictConfig) -> None:
    """Create or revoke a token, or list the people. Raises MitigateError for a name that is taken, unknown or not
    allowed."""
    asked, place = config.tokens, Path(config.paths.outputs).resolve() / ".serve"
    people = People(place)
    if asked.create is not None and asked.revoke is not None:
        raise MitigateError("tokens.create and tokens.revoke are two commands; give one of them")
    if config.dry_run:
        say(f"  would change {people.path}")
    elif asked.create is not None:
        limits = Limits(asked.running, asked.queued, asked.disk)
        token = people.create(asked.create, is_admin=asked.admin, priority=asked.priority, limits=limits)
        record(place, None, "create token", person=asked.create)
        say(f"  token of {asked.create}, which is not shown again\n\n{token}\n")
    elif asked.revoke is not None:
        people.revoke(asked.revoke)
        record(place, None, "revoke token", person=asked.revoke)
        say(f"  {asked.revoke} has no token any more")
    else:
        for person in people.all():
            say(_line(person))
        say(f"  {len(people.all())} people with a token in {people.path}")


def _line(person: Person) -> str:
    limits = [f"{name} {value:g}" for name, value in vars(person.limits).items() if value is not None]
    facts = ["admin"] * person.is_admin + [f"priority {person.priority}"] + limits
    return f"  {person.name:20} since {time.strftime('%Y-%m-%d', time.gmtime(person.created))}  {', '.join(facts)}"
