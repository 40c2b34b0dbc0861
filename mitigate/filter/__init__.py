"""A policy turns labelled triples into the ledger a generator is trained by: every triple with the weight it is kept
at (0 drops it) and the reason, and the triples that a policy adds; so that what was done can be looked at.

Knows nothing of how labels came about, nor of training."""

from mitigate.filter.findings import polarised
from mitigate.filter.ledger import apply, check_left, count_reasons, preferred_tails, prompts_lacking_tails
from mitigate.filter.policy import Policy, check_relations, check_scorers

__all__ = [
    "Policy",
    "apply",
    "check_left",
    "check_relations",
    "check_scorers",
    "count_reasons",
    "polarised",
    "preferred_tails",
    "prompts_lacking_tails",
]
