"""Policies: what is done to polarised training triples and to generated tails, a class for each action.

`filter` makes the ledger that a generator is trained on: every triple with its weight (0 drops it), the reason, and the
triples that the policy adds. `choose` ranks the tails that it generates."""

from mitigate.policies.base import Policy, Scored, apply_policy, check_left
from mitigate.policies.choose import Choice, Contrast, Critic, Rerank, Then, Validity, choice_of, needs_of, renamed
from mitigate.policies.drop import Downweight, Drop, Filter, Tag
from mitigate.policies.reweight import Balance, Swap, check_relations

__all__ = ["Balance", "Choice", "Contrast", "Critic", "Downweight", "Drop", "Filter", "Policy", "Rerank", "Scored"]
__all__ += ["Swap", "Tag", "Then", "Validity", "apply_policy", "check_left", "check_relations", "choice_of"]
__all__ += ["needs_of", "renamed"]
