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
    settings, place = config.tokens, Path(config.paths.outputs).resolve() / ".serve"
    people = People(place)
    if settings.create is not None and settings.revoke is not None:
        raise MitigateError("tokens.create and tokens.revoke are two commands; give one of them")
    if config.dry_run:
        say(f"  would change {people.path}")
    elif settings.create is not None:
        limits = Limits(settings.running, settings.queued, settings.disk)
        token = people.create(settings.create, is_admin=settings.admin, priority=settings.priority, limits=limits)
        record(place, None, "create token", person=settings.create)
        say(f"  token of {settings.create}, which is not shown again\n\n{token}\n")
    elif settings.revoke is not None:
        people.revoke(settings.revoke)
        record(place, None, "revoke token", person=settings.revoke)
        say(f"  {settings.revoke} has no token any more")
    else:
        for person in people.all():
            say(_line(person))
        say(f"  {len(people.all())} people with a token in {people.path}")


def _line(person: Person) -> str:
    limits = [f"{name} {value:g}" for name, value in vars(person.limits).items() if value is not None]
    facts = ["admin"] * person.is_admin + [f"priority {person.priority}"] + limits
    return f"  {person.name:20} since {time.strftime('%Y-%m-%d', time.gmtime(person.created))}  {', '.join(facts)}"
