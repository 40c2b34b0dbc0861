"""Find, filter and measure representational harms in commonsense resources and the generators trained on them.

The library's names are loaded when they are first used: `import mitigate` alone loads no PyTorch and no polars. They
are functions of plain arguments and small frozen objects; docs/library.md has examples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mitigate.files import VERSION

if TYPE_CHECKING:  # the same names, for type checkers and editors; tests/test_library.py compares the two
    from mitigate.errors import MitigateError
    from mitigate.finished import FinishedRun, open_run
    from mitigate.library import RunResults, audit, compare, label, policy, read_triples, run, scorer
    from mitigate.load.corpus import sample_triples
    from mitigate.load.targets import about_targets
    from mitigate.load.triples import read_relations
    from mitigate.measure.harms import measure_harms
    from mitigate.measure.intervals import Bootstrap
    from mitigate.measure.run import measure_quality
    from mitigate.policies import Drop, Policy, apply_policy
    from mitigate.probe.beams import held_out_likelihood, probe_generator
    from mitigate.score.base import make_scorer
    from mitigate.train.base_model import Start
    from mitigate.train.generator import TrainingSettings, open_generator, train_generator
    from mitigate.triples import Labels, Scorer
    from mitigate.words.targets import TargetList, choose_targets, list_of

__version__ = VERSION
__all__ = ["Bootstrap", "Drop", "FinishedRun", "Labels", "MitigateError", "Policy", "RunResults", "Scorer", "Start"]
__all__ += ["TargetList", "TrainingSettings", "about_targets", "apply_policy", "audit", "choose_targets", "compare"]
__all__ += ["held_out_likelihood", "label", "list_of", "make_scorer", "measure_harms", "measure_quality"]
__all__ += ["open_generator", "open_run", "policy", "probe_generator", "read_relations", "read_triples", "run"]
__all__ += ["sample_triples", "scorer", "train_generator"]
PLACES = {  # the module of each name; of all others it is mitigate.library
    "Bootstrap": "measure.intervals",
    "FinishedRun": "finished",
    "MitigateError": "errors",
    "Start": "train.base_model",
    "about_targets": "load.targets",
    "held_out_likelihood": "probe.beams",
    "make_scorer": "score.base",
    "measure_harms": "measure.harms",
    "measure_quality": "measure.run",
    "open_run": "finished",
    "probe_generator": "probe.beams",
    "read_relations": "load.triples",
    "sample_triples": "load.corpus",
    **dict.fromkeys(("Drop", "Policy", "apply_policy"), "policies"),
    **dict.fromkeys(("Labels", "Scorer"), "triples"),
    **dict.fromkeys(("TargetList", "choose_targets", "list_of"), "words.targets"),
    **dict.fromkeys(("TrainingSettings", "open_generator", "train_generator"), "train.generator"),
}


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"mitigate.{PLACES.get(name, 'library')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
