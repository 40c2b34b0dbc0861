"""Settings of a policy, validated together."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.package_data import rows_of
from mitigate.triples import TEMPLATES
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import contains, pattern, with_plurals

SCOPES = ("all", "person_heads", "targets")
TAGGING = ("tag", "random_tag")
"""Actions that give training triples control tokens."""
ACTIONS = ("drop", "random", "downweight", "swap", *TAGGING, "keep")
"""Actions on training triples."""
BY_VALIDITY = ("critic", "random_critic", "validity")
"""Decodings that choose among generated tails by their validity to people."""
RERANKING = ("rerank", "random_rerank", *BY_VALIDITY, "contrast")
"""Decodings that choose among generated tails."""
DECODINGS = ("none", *RERANKING)
"""Actions on generated tails."""

SPLITS = ("train", "all")


@dataclass(frozen=True)
class Policy:
    """An action on the triples that any of the scorers labels polarised; none without scorers. A user's own class
    derives from this one and has a method `act`, from the labelled triples with `weight`, `reached` and `reason` to
    the same rows with its weights and reasons (docs/extend.md). Raises MitigateError that names all faults."""

    name: str
    # Label columns: "sentiment", "regard", or any scorer that the triples are labelled by.
    scorers: Sequence[str] = ()
    # The wording whose labels count: "paper", or "neutral" (no harm read from the phrase itself).
    template: str = "paper"
    # The statements that it acts on: "all", "person_heads" (with a person or a target in the head) or "targets" (with a
    # target in head or tail).
    scope: str = "all"
    # On these training triples. "drop" them, as the paper does (Section 4.3); "random" drops as many triples of each
    # relation, of those in the scope, drawn by `seed`: the control of "drop"; "downweight" them by the strength of the
    # finding; "swap" the target for others of its group; "tag" trains on all triples, each in the scope after a control
    # token, neutral or polarised, and generates after the neutral one (Korbak et al. 2023); "random_tag" permutes these
    # tokens within relation and scope: its control; "keep" them, for balance or decoding alone.
    action: str = "drop"
    # Give all targets of a category the same shares of prejudice and of favouritism, by weights.
    balance: bool = False
    # The most statements that "swap" makes of one, itself included.
    copies: int = 8
    # Relations whose statements "swap" acts on.
    swapped_relations: Sequence[str] = ()
    # The generator's best tails that decoding chooses from.
    candidates: int = 20
    # Tails of each prompt that a decoding which chooses keeps, at most; None: as many as are probed.
    keep: int | None = None
    # "train" filters the training triples only; "all" filters dev and test too, as the paper did.
    splits: str = "train"
    # Seed of the random controls and of the targets that "swap" draws.
    seed: int = 1
    # On the tails that the trained generator generates, in the scope or not. "rerank": of its `candidates` best tails
    # the neutral ones come first; "random_rerank" moves as many tails of each prompt, drawn by `seed`: its control.
    # "critic": neutral ones come first, and among these the ones that people would most probably call valid, in the
    # relations that people rated; "random_critic" moves as many tails of each prompt, drawn by `seed`, and "validity"
    # orders by validity alone: its controls. "contrast", of a generator with control tokens: the tails first that are
    # likelier after the neutral token than after the polarised one.
    decoding: str = "none"

    def __post_init__(self) -> None:
        faults = [str(fault) for fault in self._unknown()] + [fault for holds, fault in self._checks() if not holds]
        if faults:
            raise MitigateError("; ".join(faults))

    @property
    def changes_training(self) -> bool:
        """Return whether the generator is trained on anything but all triples with equal weights."""
        return bool(self.own_action) or (bool(self.scorers) and (self.action != "keep" or self.balance))

    def tags(self, target_list: TargetList = PAPER) -> str | None:
        """The regular expression of the heads that get a control token; None where no triple does."""
        if self.action not in TAGGING:
            return None
        return "" if self.scope == "all" else words_of(target_list, people())

    @property
    def reranks(self) -> bool:
        """Return whether it chooses among generated tails."""
        return self.decoding in RERANKING

    @property
    def reads_validity(self) -> bool:
        """Return whether it needs the validity of triples to people."""
        return self.decoding in BY_VALIDITY

    @property
    def own_action(self) -> Callable[[pl.DataFrame], pl.DataFrame] | None:
        """The method `act` of a user's own class."""
        return getattr(self, "act", None)

    def _unknown(self) -> list[MitigateError]:
        settings: list[tuple[str, str, Sequence[str]]] = [
            ("policy.template", self.template, TEMPLATES),
            ("policy.scope", self.scope, SCOPES),
            ("policy.action", self.action, ACTIONS),
            ("policy.decoding", self.decoding, DECODINGS),
            ("filter.splits", self.splits, SPLITS),
        ]
        return [one_of(*setting) for setting in settings if setting[1] not in setting[2]]

    def _checks(self) -> list[tuple[bool, str]]:
        decodes = self.decoding != "none"
        acts = self.action != "drop" or self.balance or decodes
        return [
            (
                isinstance(self.name, str) and bool(self.name.strip()),
                f"policy.name={self.name!r} must be a text, such as mine",
            ),
            (
                not isinstance(self.scorers, str) and all(isinstance(name, str) for name in self.scorers),
                f"policy.scorers={self.scorers!r} must be a list of scorers' names, such as [sentiment]",
            ),
            (
                bool(self.scorers) or not acts,
                f"policy.action={self.action} policy.balance={str(self.balance).lower()}"
                f"{f' policy.decoding={self.decoding}' if decodes else ''} "
                "needs policy.scorers, which is empty; set policy.scorers=[sentiment,regard]",
            ),
            (
                not self.balance or self.action in ("downweight", "swap", "keep"),
                f"policy.balance=true does not apply to policy.action={self.action}; set policy.action=keep or "
                "downweight, or policy.action=swap with policy.swapped_relations=[CapableOf,HasProperty]",
            ),
            (
                self.balance or decodes or self.action != "keep",
                "policy.action=keep alone changes nothing; also set policy.balance=true or policy.decoding=rerank, or "
                "choose policy=none",
            ),
            (
                self.action != "swap" or bool(self.swapped_relations),
                "policy.action=swap needs relations, such as policy.swapped_relations=[CapableOf,HasProperty]",
            ),
            (
                self.action not in TAGGING or self.scope in ("all", "person_heads"),
                f"policy.action={self.action} puts a token before heads, and policy.scope={self.scope} also reads "
                "tails; set policy.scope=all or person_heads",
            ),
            (
                self.keep is None or (self.reranks and 1 <= self.keep <= self.candidates),
                f"policy.keep={self.keep} needs a policy.decoding that chooses, such as critic, and must be at least "
                f"1 and at most policy.candidates={self.candidates}; set policy.keep=null",
            ),
            (self.copies >= 2, f"policy.copies={self.copies} must be at least 2: the statement itself and one copy"),
            (self.candidates >= 2, f"policy.candidates={self.candidates} must be at least 2"),
        ]


def check_relations(policy: Policy, known: Collection[str]) -> None:
    """Raise MitigateError for a relation that the policy swaps and that is not one of these names."""
    for relation in policy.swapped_relations:
        if relation not in known:
            raise one_of("relation in policy.swapped_relations", relation, known)


def in_scope(scope: str, target_list: TargetList = PAPER) -> pl.Expr:
    """Return whether a triple's head or tail has, as whole words, a target in any of its forms ("targets"); whether its
    head has one or a word of data/people.csv ("person_heads"); True for "all"."""
    if scope == "all":
        return pl.lit(True)
    text = pl.col("head") if scope == "person_heads" else pl.concat_str("head", "tail", separator="\n")
    return contains(text, words_of(target_list, () if scope == "targets" else people()))


def words_of(target_list: TargetList, others: Sequence[str] = ()) -> str:
    """A regular expression for targets in any of their forms, and for other words and their plurals."""
    return pattern(target_list.forms.union(form for word in others for form in with_plurals(word)))


@cache
def people() -> tuple[str, ...]:
    """Words for people: kin, ages, occupations, peoples, pronouns; with irregular plurals."""
    return tuple(row["word"] for row in rows_of("people.csv"))
