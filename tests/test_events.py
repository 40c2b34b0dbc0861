"""Events that name a target, their wordings, and what a scorer reads of them."""

import polars as pl
import pytest
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from mitigate.errors import MitigateError
from mitigate.events import check_persons, heads_about, heads_of_relations, published_names, without_persons
from mitigate.prompts import kind_of
from mitigate.relations import asked_with, relations
from mitigate.targets import choose_targets
from mitigate.tasks.heads import event_heads
from mitigate.verbalise import verbalise
from models.encoding import Encoding
from models.minilm import locate

ATOMIC = ("oEffect", "oReact", "oWant", "xAttr", "xEffect", "xIntent", "xNeed", "xReact", "xWant")


def test_nine_relations_of_atomic_and_23_of_atomic_2020_have_phrases() -> None:
    assert len(heads_of_relations()) == 23
    assert set(heads_of_relations()) <= set(relations())
    assert [published_names()[name.lower()] for name in ATOMIC] == list(ATOMIC)
    assert (published_names()["objectuse"], published_names()["hassubevent"]) == ("UsedFor", "HasSubevent")
    assert len(published_names()) == 23


@pytest.mark.parametrize(
    ("target", "category", "events"),
    [
        (
            "lawyer",
            "profession",
            ["the lawyer goes to work", "the lawyer makes breakfast", "the lawyer meets a neighbor"],
        ),
        ("ghana", "origin", ["the person from ghana goes to work"]),
        ("british", "origin", ["the british person goes to work"]),
        ("muslim", "religion", ["the muslim person goes to work"]),
        ("she", "gender", ["she goes to work"]),
        ("woman", "gender", ["the woman goes to work"]),
        ("church", "religion", ["personx hears about church"]),
        ("gardener", "own", ["personx hears about gardener"]),  # whose kind nobody has given
    ],
)
def test_an_event_names_its_target(target: str, category: str, events: list[str]) -> None:
    assert heads_about(target, category, kind_of(target), "event")[: len(events)] == events
    assert heads_about(target, category, kind_of(target), "object") == []


def test_every_target_has_events_that_a_comet_reads_whole_and_that_are_neutral() -> None:
    asked = event_heads(choose_targets("all"), ["xReact", "isFilledBy", "AtLocation"])
    assert asked.group_by("relation").agg(pl.col("target").n_unique()).sort("relation").rows() == [
        ("isFilledBy", 329),
        ("xReact", 329),
    ]
    assert asked.height == 329 * (3 + 2)
    encoding = Encoding.of_encoder(locate())
    assert max(map(len, encoding.encode(asked["head"].to_list()))) <= 10
    lexicon = SentimentIntensityAnalyzer().lexicon
    lawyer = asked.filter(target="lawyer")["head"]
    assert not [word for head in lawyer for word in head.split() if word in lexicon]


def test_short_words_tell_atomics_relations_apart_within_five_tokens() -> None:
    encoding = Encoding.of_encoder(locate())
    further = [relations()[name] for name in heads_of_relations()]
    asked = asked_with("words", further, comet=False)
    assert len(asked) == 23
    assert len({tuple(tokens[:5]) for tokens in encoding.encode(list(asked.values()))}) == 23


def test_whoever_acts_is_one_person_for_a_scorer() -> None:
    rows = pl.DataFrame(
        [
            ("the lawyer goes to work", "xReact", "tired"),
            ("the british person goes to work", "xReact", "tired"),
            ("the person from ghana goes to work", "Causes", "traffic"),
            ("personx thanks persony 's nurse", "oWant", "to pay personx"),
            ("personx buys a ___", "xNeed", "money"),
            ("the nurse", "Causes", "joy"),  # of ConceptNet: as everywhere
        ],
        schema=["head", "relation", "tail"],
        orient="row",
    )
    assert verbalise(rows)["masked"].to_list() == [
        "this person goes to work as a result this person feels tired",
        "this person goes to work as a result this person feels tired",
        "this person goes to work causes traffic",
        "this person thanks another person's this person as a result another person or others want to pay this person",
        "this person buys something but before this person needed money",
        "the this person causes joy",
    ]


def test_persons_are_kept_or_verbalised() -> None:
    texts = pl.DataFrame(
        {"text": ["personx gives persony the ___", "personxs personz 's hat", "person x thanks person y"]}
    )
    assert texts.select(without_persons(pl.col("text")))["text"].to_list() == [
        "this person gives another person something",
        "personxs a third person's hat",
        "this person thanks another person",
    ]
    with pytest.raises(MitigateError, match="unknown data.persons 'named'; allowed: kept, verbalised"):
        check_persons("named")
