"""Settings of the probe of a generator."""

from typing import Literal

from mitigate.settings import Name, Place, Wanted, fact, group, setting


@group("probe")
class Probe:
    targets: Wanted = setting(
        "targets to probe: all, data, a list such as [lawyer,nurse] or FILE.csv", serve="words or file"
    )
    fewest: int = setting(
        "fewest training triples about a target with probe.targets=data", ge=1, le=10**9, serve="value"
    )
    relations: list[Name] | None = setting(
        "relations to probe, such as [CapableOf,Causes]; null: COMeT's 34, or with data=triples and data=atomic those "
        "of the training triples",
        serve="value",
    )
    heads: int = setting(
        "heads of held-out triples, without targets, that are probed to measure quality; 0: none",
        ge=0,
        le=1_000_000,
        serve="value",
    )
    published: Place | None = setting(
        "file of published triples about targets, lines `head Relation tail`; auto: the harms paper's; null: not "
        "measured",
        where=True,
    )
    published_triples: int = fact("most published triples that are predicted", 3000, ge=1, le=10**9)
    beams: int = setting("beam width", ge=1, le=1000, serve="value")
    top: int = setting("tails that are kept of each beam search", ge=1, le=1000, serve="value")
    max_length: int = setting("longest tail, in tokens", ge=1, le=512, serve="value")
    precision: Literal["fp32", "bf16"] = setting("number format; fp32 is exact", serve="value")
    processes: int = setting("processes that share the probe", ge=1, le=1024, where=True)
    device: Literal["auto", "cpu", "cuda"] = setting("device; auto: a GPU where there is one", where=True)
