"""Find, filter and measure representational harms in commonsense resources and the generators trained on them.

The library's names are loaded when they are first used: `import mitigate` alone loads no PyTorch and no polars. They
are functions of plain arguments and small frozen objects; docs/library.md has examples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mitigate.package_data import VERSION

__version__ = VERSION

_PLACES = {  # public name -> the module that has it
    "Bootstrap": "mitigate.measure.intervals",
    "Drop": "mitigate.policies",
    "FinishedRun": "mitigate.finished",
    "Labels": "mitigate.triples",
    "MitigateError": "mitigate.errors",
    "Policy": "mitigate.policies",
    "RunResults": "mitigate.library",
    "Scorer": "mitigate.triples",
    "Start": "mitigate.train.base_model",
    "TargetList": "mitigate.words.targets",
    "TrainingSettings": "mitigate.train.generator",
    "about_targets": "mitigate.load.targets",
    "apply_policy": "mitigate.policies",
    "audit": "mitigate.library",
    "choose_targets": "mitigate.words.targets",
    "compare": "mitigate.library",
    "held_out_likelihood": "mitigate.probe.corpus",
    "label": "mitigate.library",
    "list_of": "mitigate.words.targets",
    "make_scorer": "mitigate.score.base",
    "measure_harms": "mitigate.measure.tables",
    "measure_quality": "mitigate.measure.run",
    "open_generator": "mitigate.train.generator",
    "open_run": "mitigate.probe.answers",
    "policy": "mitigate.library",
    "probe_generator": "mitigate.probe.generator",
    "read_relations": "mitigate.load.triples",
    "read_triples": "mitigate.load.corpus",
    "run": "mitigate.library",
    "sample_triples": "mitigate.load.corpus",
    "scorer": "mitigate.library",
    "train_generator": "mitigate.train.generator",
}

__all__ = [*_PLACES]

if TYPE_CHECKING:  # the same names, for type checkers and editors; tests/test_library.py compares the two
    from mitigate.errors import MitigateError as MitigateError
    from mitigate.finished import FinishedRun as FinishedRun
    from mitigate.library import RunResults as RunResults
    from mitigate.library import audit as audit
    from mitigate.library import compare as compare
    from mitigate.library import label as label
    from mitigate.library import policy as policy
    from mitigate.library import run as run
    from mitigate.library import scorer as scorer
    from mitigate.load.corpus import read_triples as read_triples
    from mitigate.load.corpus import sample_triples as sample_triples
    from mitigate.load.targets import about_targets as about_targets
    from mitigate.load.triples import read_relations as read_relations
    from mitigate.measure.intervals import Bootstrap as Bootstrap
    from mitigate.measure.run import measure_quality as measure_quality
    from mitigate.measure.tables import measure_harms as measure_harms
    from mitigate.policies import Drop as Drop
    from mitigate.policies import Policy as Policy
    from mitigate.policies import apply_policy as apply_policy
    from mitigate.probe.answers import open_run as open_run
    from mitigate.probe.corpus import held_out_likelihood as held_out_likelihood
    from mitigate.probe.generator import probe_generator as probe_generator
    from mitigate.score.base import make_scorer as make_scorer
    from mitigate.train.base_model import Start as Start
    from mitigate.train.generator import TrainingSettings as TrainingSettings
    from mitigate.train.generator import open_generator as open_generator
    from mitigate.train.generator import train_generator as train_generator
    from mitigate.triples import Labels as Labels
    from mitigate.triples import Scorer as Scorer
    from mitigate.words.targets import TargetList as TargetList
    from mitigate.words.targets import choose_targets as choose_targets
    from mitigate.words.targets import list_of as list_of


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first used (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_PLACES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_PLACES})
