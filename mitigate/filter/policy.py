"""Settings of a policy, validated together."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.package_data import rows_of
from mitigate.result_settings import FORMER_ACTIONS, in_present_terms
from mitigate.runs.fingerprints import SURROUNDING
from mitigate.triples import TEMPLATES
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import contains, pattern, with_plurals

SCOPES = ("all", "people", "person_heads", "targets")
TAGGING = ("tag", "random_tag")
"""Actions that give training triples control tokens."""
ACTIONS = ("drop", "random", "downweight", "swap", "replace", "random_replace", *TAGGING, "keep")
"""Actions on training triples."""
BY_VALIDITY = ("critic", "random_critic", "validity")
"""Decodings that choose among generated tails by their validity to people."""
RERANKING = ("rerank", "random_rerank", *BY_VALIDITY, "contrast")
"""Decodings that choose among generated tails."""
STEERING = ("experts", "erase")
"""Decodings that change the probabilities of tokens."""
DECODINGS = ("none", *RERANKING, *STEERING)
"""Actions on generated tails."""
PREFERRING = ("prefer", "random_prefer")
"""Second trainings on pairs of tails."""
TUNINGS = ("none", *PREFERRING, "distil")
"""Second trainings of the generator."""
PREFERENCES = ("dpo", "unlikelihood")
"""Losses of a pair of tails."""
DISTILLED = ("none", *RERANKING)
"""Orders of the tails that a second training learns."""

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
    # The statements that it acts on: "all", "people" (with a person or a target in head or tail), "person_heads" (in
    # the head) or "targets".
    scope: str = "all"
    # On these training triples. "drop" them, as the paper does (Section 4.3); "random" drops as many triples of each
    # relation, of those in the scope, drawn by `seed`: the control of "drop"; "downweight" them by the strength of the
    # finding; "swap" the target for others of its group; "replace" their tails by neutral ones of the same head and
    # relation (critic filtering: West et al. 2022), "random_replace" as many by others: its control (filter.replace);
    # "tag" trains on all triples, each in the scope after a control token, neutral or polarised, and generates after
    # the neutral one (Korbak et al. 2023); "random_tag" permutes these tokens within relation and scope: its control.
    # "keep" them, for balance, decoding or tuning alone. FORMER_ACTIONS are read as their decodings.
    action: str = "drop"
    # Give all targets of a category the same shares of prejudice and of favouritism, by weights.
    balance: bool = False
    # The most statements that "swap" makes of one, itself included.
    copies: int = 8
    # Relations whose statements "swap" acts on.
    swapped_relations: Sequence[str] = ()
    # The generator's best tails that decoding and replacing choose from; with "experts", its best next tokens.
    candidates: int = 20
    # Tails of each prompt that a decoding which chooses keeps, at most; None: as many as are probed.
    keep: int | None = None
    # Strength of the anti-expert (Liu et al. 2021).
    expert_strength: float = 2.0
    # Triples, at most, that "erase" is fitted on; pairs or prompts, at most, that `tuning` trains on.
    fitted: int = 20_000
    # "train" filters the training triples only; "all" filters dev and test too, as the paper did.
    splits: str = "train"
    # Seed of the random controls and of the targets that "swap" draws.
    seed: int = 1
    # On the tails that the trained generator generates, in the scope or not. "rerank": of its `candidates` best tails
    # the neutral ones come first; "random_rerank" moves as many tails of each prompt, drawn by `seed`: its control.
    # "critic": neutral ones come first, and among these the ones that people would most probably call valid, in the
    # relations that people rated; "random_critic" moves as many tails of each prompt, drawn by `seed`, and "validity"
    # orders by validity alone: its controls. "contrast", of a generator with control tokens: the tails first that are
    # likelier after the neutral token than after the polarised one. "experts": decode against an anti-expert, trained
    # further on what "drop" would drop. "erase": prejudice and favouritism cannot be read off the last hidden states by
    # any linear classifier (Belrose et al. 2023).
    decoding: str = "none"
    # The share, the strongest first, of the triples that the action would reach. A triple is as strong as its strongest
    # finding: the largest |strength| of the scorers that find it polarised (VADER's compound score, a classifier's
    # P(+1) - P(-1); they are not calibrated to each other). Of two as strong the earlier one comes first.
    strongest: float = 1.0
    # Folder of the model whose tails "replace" takes where the training triples have no such tail; without it, such a
    # triple is dropped.
    generator: str | None = field(default=None, metadata=SURROUNDING)  # what it generates decides, not where it is
    # Log-probability per token above which a tail of `generator` is taken.
    least_score: float = -2.5
    # Spare the triples that people would call valid (column people_valid), as the critic finds it.
    unless_valid: bool = False
    # A second training of the generator. "prefer": on pairs of tails of one prompt, a neutral one over a polarised one
    # that the action would reach; "random_prefer" orders each pair at random: the control. "distil": on the
    # generator's own best tails, for heads with a person and no target.
    tuning: str = "none"
    # Steps of the second training.
    tuning_steps: int = 200
    # Its learning rate.
    tuning_lr: float = 5e-5
    # Steps between two measurements of perplexity on neutral dev triples.
    tuning_every: int = 20
    # The share by which that perplexity may rise; the last weights within it are kept.
    most_rise: float = 0.02
    # The loss of "prefer": "dpo" (Rafailov et al. 2023) or "unlikelihood" (Welleck et al. 2020).
    preference: str = "dpo"
    # Of "dpo".
    beta: float = 0.1
    # Of "unlikelihood".
    alpha: float = 1.0
    # The decoding whose order of tails "distil" learns; "none", the order of likelihood, is the control.
    distilled: str = "rerank"

    def __post_init__(self) -> None:
        for name, value in in_present_terms(vars(self)).items():
            object.__setattr__(self, name, value)
        faults = [str(fault) for fault in self._unknown()] + [fault for holds, fault in self._checks() if not holds]
        if faults:
            raise MitigateError("; ".join(faults))

    @property
    def changes_training(self) -> bool:
        """Return whether the generator is trained on anything but all triples with equal weights."""
        return bool(self.own_action) or (bool(self.scorers) and (self.action != "keep" or self.balance))

    @property
    def replaces(self) -> bool:
        """Return whether it gives triples other tails."""
        return self.action in ("replace", "random_replace")

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
    def steers(self) -> bool:
        """Return whether it changes the probabilities of a trained generator."""
        return self.decoding in STEERING

    @property
    def tunes(self) -> bool:
        """Return whether it trains the generator a second time."""
        return self.tuning != "none"

    @property
    def prefers(self) -> bool:
        """Return whether the second training is on pairs of tails."""
        return self.tuning in PREFERRING

    @property
    def distils(self) -> bool:
        """Return whether the second training is on the generator's own tails."""
        return self.tuning == "distil"

    @property
    def reads_validity(self) -> bool:
        """Return whether it needs the validity of triples to people."""
        orders = {self.decoding, self.distilled if self.distils else "none"}
        return self.unless_valid or bool(orders & set(BY_VALIDITY))

    @property
    def own_action(self) -> Callable[[pl.DataFrame], pl.DataFrame] | None:
        """The method `act` of a user's own class."""
        return getattr(self, "act", None)

    @property
    def code(self) -> type | None:
        """The user's class, on which results depend besides the fields."""
        return type(self) if type(self) is not Policy else None

    def _unknown(self) -> list[MitigateError]:
        settings: list[tuple[str, str, Sequence[str]]] = [
            ("policy.template", self.template, TEMPLATES),
            ("policy.scope", self.scope, SCOPES),
            ("policy.action", self.action, (*ACTIONS, *FORMER_ACTIONS)),
            ("policy.decoding", self.decoding, DECODINGS),
            ("policy.tuning", self.tuning, TUNINGS),
            ("policy.preference", self.preference, PREFERENCES),
            ("policy.distilled", self.distilled, DISTILLED),
            ("filter.splits", self.splits, SPLITS),
        ]
        return [one_of(*setting) for setting in settings if setting[1] not in setting[2]]

    def _checks(self) -> list[tuple[bool, str]]:
        decodes = self.decoding != "none"
        acts = self.action != "drop" or self.balance or decodes or self.tunes
        on_triples = self.action != "keep" or self.decoding == "experts" or self.prefers
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
                f"{f' policy.decoding={self.decoding}' if decodes else ''}"
                f"{f' policy.tuning={self.tuning}' if self.tunes else ''} "
                "needs policy.scorers, which is empty; set policy.scorers=[sentiment,regard]",
            ),
            (
                self.action not in FORMER_ACTIONS,
                f"policy.action={self.action} is short for policy.action=keep policy.decoding={self.action}, but "
                f"policy.decoding={self.decoding} is set too; set only one of them",
            ),
            (
                not self.balance or self.action in ("downweight", "swap", "keep"),
                f"policy.balance=true does not apply to policy.action={self.action}; set policy.action=keep or "
                "downweight, or policy.action=swap with policy.swapped_relations=[CapableOf,HasProperty]",
            ),
            (
                self.balance or decodes or self.tunes or self.action != "keep",
                "policy.action=keep alone changes nothing; also set policy.balance=true, policy.decoding=rerank or "
                "policy.tuning=prefer, or choose policy=none",
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
            (0 < self.strongest <= 1, f"policy.strongest={self.strongest:g} must be above 0 and at most 1"),
            (
                self.strongest == 1 or on_triples,
                f"policy.strongest={self.strongest:g} does not apply to policy.action=keep "
                f"policy.decoding={self.decoding}, which acts on no single triples; set policy.strongest=1 or "
                "policy.action=drop",
            ),
            (
                not self.unless_valid or on_triples,
                f"policy.unless_valid=true does not apply to policy.action=keep policy.decoding={self.decoding}, "
                "which acts on no single triples; set policy.unless_valid=false or policy.action=drop",
            ),
            (
                self.generator is None or self.replaces,
                f"policy.generator={self.generator} is used only by policy.action=replace and random_replace, not by "
                f"policy.action={self.action}; set policy.generator=null",
            ),
            (self.least_score <= 0, f"policy.least_score={self.least_score:g} must be at most 0: a log-probability"),
            (self.copies >= 2, f"policy.copies={self.copies} must be at least 2: the statement itself and one copy"),
            (self.candidates >= 2, f"policy.candidates={self.candidates} must be at least 2"),
            (self.expert_strength > 0, f"policy.expert_strength={self.expert_strength:g} must be above 0"),
            (self.fitted >= 2, f"policy.fitted={self.fitted} must be at least 2"),
            (self.tuning_steps >= 1, f"policy.tuning_steps={self.tuning_steps} must be at least 1"),
            (self.tuning_every >= 1, f"policy.tuning_every={self.tuning_every} must be at least 1"),
            (self.tuning_lr > 0, f"policy.tuning_lr={self.tuning_lr:g} must be above 0"),
            (self.most_rise >= 0, f"policy.most_rise={self.most_rise:g} must be at least 0, a share such as 0.02"),
            (self.beta > 0, f"policy.beta={self.beta:g} must be above 0"),
            (self.alpha > 0, f"policy.alpha={self.alpha:g} must be above 0"),
        ]


def check_relations(policy: Policy, known: Collection[str]) -> None:
    """Raise MitigateError for a relation that the policy swaps and that is not one of these names."""
    for relation in policy.swapped_relations:
        if relation not in known:
            raise one_of("relation in policy.swapped_relations", relation, known)


def in_scope(scope: str, target_list: TargetList = PAPER) -> pl.Expr:
    """Return whether a triple's head or tail has, as whole words, a target in any of its forms ("targets"), or also a
    word of data/people.csv ("people"); whether its head has either ("person_heads"); True for "all"."""
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
