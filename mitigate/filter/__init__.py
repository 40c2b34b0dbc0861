"""Policies: from labelled triples to the ledger that a generator is trained on. The ledger has every triple with its
weight (0 drops it) and the reason, and the triples that a policy adds.

Independent of scorers and of training."""

from mitigate.filter.ledger import (
    apply,
    check_left,
    count_reasons,
    direction,
    polarised,
    preferred_tails,
    prompts_lacking_tails,
)
from mitigate.filter.policy import Policy, check_relations, check_scorers

__all__ = [
    "Policy",
    "apply",
    "check_left",
    "check_relations",
    "check_scorers",
    "count_reasons",
    "direction",
    "polarised",
    "preferred_tails",
    "prompts_lacking_tails",
]
