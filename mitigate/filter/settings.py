"""The settings of a policy of the project."""

from typing import Literal

from mitigate.settings import Name, fact, group, setting


@group("policy")
class PolicySettings:
    name: Name = fact("name of the policy, part of the run folder's name")
    scorers: list[Name] = setting(
        "scorers whose labels the policy reads: sentiment, regard, and any of score.scorers", serve="value"
    )
    template: Literal["paper", "neutral"] = setting(
        "wording whose labels count; neutral: no label comes from the relation's phrase", serve="value"
    )
    scope: Literal["all", "person_heads", "targets"] = setting(
        "statements that the policy acts on, by who stands in them", serve="value"
    )
    action: Literal["drop", "random", "downweight", "swap", "tag", "random_tag", "keep"] = setting(
        "what is done to a polarised training triple", serve="value"
    )
    decoding: Literal["none", "rerank", "random_rerank", "critic", "random_critic", "validity", "contrast"] = setting(
        "what is done when the trained generator generates tails", serve="value"
    )
    balance: bool = setting(
        "whether all targets of a category get the same shares of prejudice and favouritism", serve="value"
    )
    copies: int = setting("targets that share a swapped statement, its own included", ge=2, le=1000, serve="value")
    swapped_relations: list[Name] = setting(
        "relations whose statements are swapped, such as [CapableOf,HasProperty]", serve="value"
    )
    candidates: int = setting("number of generated tails to choose from", ge=2, le=1000, serve="value")
    keep: int | None = setting(
        "tails of each prompt that a choosing policy.decoding keeps, at most; null: probe.top",
        ge=1,
        le=1000,
        serve="value",
    )
    splits: Literal["train", "all"] = setting("splits that the policy filters", serve="value")
    seed: int = setting(
        "number that fixes which targets are swapped in, which triples are dropped and which tails moved at random",
        ge=0,
        le=4294967295,
        serve="value",
    )
