"""Policies: from labelled triples to the ledger that a generator is trained on. The ledger has every triple with its
weight (0 drops it) and the reason, and the triples that a policy adds.

Independent of scorers and of training."""

from mitigate.filter.ledger import apply_policy, check_left, polarised
from mitigate.filter.policy import Policy, check_relations

__all__ = [
    "Policy",
    "apply_policy",
    "check_left",
    "check_relations",
    "polarised",
]
