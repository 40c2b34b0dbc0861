"""Settings of the probe of a generator."""

from typing import Literal

from mitigate.settings import Name, Wanted, group, place, served, setting


@group("probe")
class Probe:
    targets: Wanted = setting("targets to probe: all, data, a list or FILE.csv", serve="words or file")
    fewest: int = served("fewest training triples about a target with probe.targets=data", ge=1, le=10**9)
    new_targets: bool = served("whether a word that resembles a target of the list is one of your own, and no slip")
    relations: list[Name] | None = served(
        "relations to probe, such as [CapableOf,Causes]; null: COMeT's 34, or those of the data"
    )
    heads: int = served("heads of held-out triples that are probed; 0: none", ge=0, le=1_000_000)
    beams: int = served("beam width", ge=1, le=1000)
    top: int = served("tails that are kept of each beam search", ge=1, le=1000)
    max_length: int = served("longest tail, in tokens", ge=1, le=512)
    precision: Literal["fp32", "bf16"] = served("number format; fp32 is exact")
    device: Literal["auto", "cpu", "cuda"] = place("device; auto: a GPU where there is one")
