"""Find, filter and measure representational harms in commonsense resources and the generators trained on them.

The library's names are loaded when they are first used: `import mitigate` alone loads no PyTorch and no polars. They
are functions of plain arguments and small frozen objects; docs/library.md has examples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_PLACES = {  # public name -> the module that has it
    "Bootstrap": "mitigate.measure.intervals",
    "ComparedRuns": "mitigate.tasks.compare.runs",
    "Drop": "mitigate.policies",
    "FinishedRun": "mitigate.finished",
    "LabelStore": "mitigate.cache",
    "Labels": "mitigate.triples",
    "MitigateError": "mitigate.errors",
    "Policy": "mitigate.policies",
    "Scorer": "mitigate.triples",
    "Start": "mitigate.tasks.generators.base_model",
    "TargetList": "mitigate.words.targets",
    "TrainingSettings": "mitigate.tasks.generators.train",
    "about_targets": "mitigate.tasks.targets",
    "apply_policy": "mitigate.policies",
    "choose_targets": "mitigate.words.targets",
    "compare_runs": "mitigate.tasks.compare.runs",
    "default_scorers": "mitigate.tasks.scorers",
    "held_out_likelihood": "mitigate.tasks.generators.likelihood",
    "label_identity_terms": "mitigate.tasks.identity",
    "label_probed": "mitigate.tasks.label",
    "label_statements": "mitigate.tasks.label",
    "list_of": "mitigate.words.targets",
    "make_scorer": "mitigate.tasks.scorers",
    "measure_harms": "mitigate.tasks.harms",
    "measure_identity_terms": "mitigate.tasks.identity",
    "measure_quality": "mitigate.tasks.run_metrics",
    "open_generator": "mitigate.tasks.generators.train",
    "open_run": "mitigate.tasks.ask.answers",
    "pointwise_information": "mitigate.tasks.generators.likelihood",
    "probe_generator": "mitigate.tasks.generators.probe",
    "read_relations": "mitigate.load.triples",
    "read_triples": "mitigate.tasks.corpus",
    "sample_triples": "mitigate.tasks.corpus",
    "train_generator": "mitigate.tasks.generators.train",
}

__all__ = [*_PLACES]

if TYPE_CHECKING:  # the same names, for type checkers and editors; tests/test_library.py compares the two
    from mitigate.cache import LabelStore as LabelStore
    from mitigate.errors import MitigateError as MitigateError
    from mitigate.finished import FinishedRun as FinishedRun
    from mitigate.load.triples import read_relations as read_relations
    from mitigate.measure.intervals import Bootstrap as Bootstrap
    from mitigate.policies import Drop as Drop
    from mitigate.policies import Policy as Policy
    from mitigate.policies import apply_policy as apply_policy
    from mitigate.tasks.ask.answers import open_run as open_run
    from mitigate.tasks.compare.runs import ComparedRuns as ComparedRuns
    from mitigate.tasks.compare.runs import compare_runs as compare_runs
    from mitigate.tasks.corpus import read_triples as read_triples
    from mitigate.tasks.corpus import sample_triples as sample_triples
    from mitigate.tasks.generators.base_model import Start as Start
    from mitigate.tasks.generators.likelihood import held_out_likelihood as held_out_likelihood
    from mitigate.tasks.generators.likelihood import pointwise_information as pointwise_information
    from mitigate.tasks.generators.probe import probe_generator as probe_generator
    from mitigate.tasks.generators.train import TrainingSettings as TrainingSettings
    from mitigate.tasks.generators.train import open_generator as open_generator
    from mitigate.tasks.generators.train import train_generator as train_generator
    from mitigate.tasks.harms import measure_harms as measure_harms
    from mitigate.tasks.identity import label_identity_terms as label_identity_terms
    from mitigate.tasks.identity import measure_identity_terms as measure_identity_terms
    from mitigate.tasks.label import label_probed as label_probed
    from mitigate.tasks.label import label_statements as label_statements
    from mitigate.tasks.run_metrics import measure_quality as measure_quality
    from mitigate.tasks.scorers import default_scorers as default_scorers
    from mitigate.tasks.scorers import make_scorer as make_scorer
    from mitigate.tasks.targets import about_targets as about_targets
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
