"""The settings of a policy of the project."""

from typing import Literal

from mitigate.settings import Name, fact, group, served


@group("policy")
class PolicySettings:
    name: Name = fact("name of the policy, part of the run folder's name")
    scorers: list[Name] = served("scorers whose labels the policy reads: sentiment, regard, and any of score.scorers")
    template: Literal["paper", "neutral"] = served(
        "wording whose labels count; neutral: no label comes from the relation's phrase"
    )
    scope: Literal["all", "person_heads", "targets"] = served(
        "statements that the policy acts on, by who stands in them"
    )
    action: Literal["drop", "random", "downweight", "swap", "tag", "random_tag", "keep"] = served(
        "what is done to a polarised training triple"
    )
    decoding: Literal["none", "rerank", "random_rerank", "critic", "random_critic", "validity", "contrast"] = served(
        "what is done when the trained generator generates tails"
    )
    balance: bool = served("whether all targets of a category get the same shares of prejudice and favouritism")
    copies: int = served("targets that share a swapped statement, its own included", ge=2, le=1000)
    swapped_relations: list[Name] = served("relations whose statements are swapped, such as [CapableOf,HasProperty]")
    candidates: int = served("number of generated tails to choose from", ge=2, le=1000)
    keep: int | None = served(
        "tails of each prompt that a choosing policy.decoding keeps, at most; null: probe.top", ge=1, le=1000
    )
    splits: Literal["train", "all"] = served("splits that the policy filters")
    seed: int = served(
        "number that fixes which targets are swapped in, which triples are dropped and which tails moved at random",
        ge=0,
        le=4294967295,
    )
