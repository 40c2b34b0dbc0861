"""A generator asked for its best tails about every target: probe."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.probe import comet as probing
from mitigate.probe.comet import Precision
from mitigate.probe.generator import Generator
from mitigate.tasks.base_model import Start
from mitigate.triples import Parts
from mitigate.words.relations import asked_with
from mitigate.words.targets import choose_targets


class PartsInMemory:
    """Parts (the Protocol `Parts`) that are gone with the process."""

    def __init__(self) -> None:
        self._frames: dict[int, pl.DataFrame] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._frames

    def save(self, number: int, frame: pl.DataFrame) -> None:
        """Keep a part."""
        self._frames[number] = frame

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return (self._frames[number] for number in sorted(self._frames))


def probe_generator(
    generator: Generator | Start,
    targets: pl.DataFrame | Sequence[str],
    asked: Mapping[str, str] | Sequence[str] | None = None,
    *,
    beams: int = 10,
    top: int = 10,
    max_length: int = 15,
    precision: Precision = "fp32",
    parts: Parts | None = None,
    devices: Sequence[str] = ("cpu",),
    heads: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The best tails of every target and relation (columns PROBED), in the order of targets, then relations, then rank.

    targets: (target, category), as choose_targets returns, or words. asked: the wording of each relation, by name; or
    names of relations, worded as the generator was trained; None: COMeT's 34 and what the generator is further asked
    about. Of `beams` beams of at most max_length tokens the best `top` are kept. fp32 is exact; bf16 is approximate.
    parts: where what is finished is kept, across a kill. devices: a process for each; of several, `parts` must be a
    folder's. heads: (target, relation, head), what is asked about a target, such as an event that names it
    (tasks.heads.event_heads); None, or none for a target and relation: the target itself.

    Raises MitigateError for settings that do not fit together, for unknown relations, and for no target or relation."""
    parts = PartsInMemory() if parts is None else parts
    if not isinstance(targets, pl.DataFrame):
        targets = choose_targets(targets)
    if not isinstance(asked, Mapping):
        wordings = generator.asked if isinstance(generator, Start) else asked_with("phrase")
        names = list(wordings) if asked is None else asked
        if unknown := next((name for name in names if name not in wordings), None):
            raise one_of("relation", unknown, wordings)
        asked = {name: wordings[name] for name in names}
    if targets.is_empty() or not asked:
        raise MitigateError(
            f"the probe has no question: no {'target' if targets.is_empty() else 'relation'} is given; name some"
        )
    model = generator.load() if isinstance(generator, Start) else generator
    probing.probe(
        model,
        targets,
        list(asked.items()),
        parts=parts,
        beams=beams,
        top=top,
        max_length=max_length,
        precision=precision,
        devices=devices,
        heads=heads,
    )
    return pl.concat(list(parts))
