"""Relations and their phrases, and events that name a target."""

import polars as pl
from refusals import refuses
from vaderSentiment.vaderSentiment import BOOSTER_DICT, NEGATE, SentimentIntensityAnalyzer

from mitigate.errors import MitigateError
from mitigate.verbalise import verbalise
from mitigate.words.prompts import kind_of
from mitigate.words.relations import (
    Relation,
    comet_relations,
    heads_about,
    heads_of_relations,
    named,
    prompt_phrases,
    published_names,
    relations,
    with_own,
)

MENTORS = Relation("Mentors", "is a mentor of", "works with")


def test_60_relations_and_a_choice_of_them() -> None:
    assert len(relations()) == 34 + 12 + 14
    assert len(comet_relations()) == 34
    assert sum(relation.train100k for relation in comet_relations()) == 100_000
    assert len(heads_of_relations()) == 23
    assert set(heads_of_relations()) <= set(relations())
    names = published_names()
    assert (names["xreact"], names["objectuse"], len(names)) == ("xReact", "UsedFor", 23)


def test_neutral_phrases_are_silent_and_stand_as_the_phrases_do() -> None:
    """No word of VADER's lexicon, nor "but", which weighs what stands around it; as many words, and negations at the
    same places: so that VADER reads head and tail just as it would with the phrase, less the phrase's own sentiment."""
    weighed = {*SentimentIntensityAnalyzer().lexicon, "but", *BOOSTER_DICT}
    for name, relation in relations().items():
        phrase, neutral = relation.phrase.split(), relation.neutral_phrase.split()
        assert not weighed & set(neutral), name
        assert len(neutral) == len(phrase), name
        assert [word in NEGATE for word in neutral] == [word in NEGATE for word in phrase], name
        assert weighed & set(phrase) or neutral == phrase, name


def test_phrases_in_prompts_also_of_further_relations() -> None:
    found = {wording: prompt_phrases(wording)["HasPrerequisite"] for wording in ("phrase", "words", "token")}
    assert found == {"phrase": "requires", "words": "has prequisite", "token": "<HasPrerequisite>"}
    assert [len(set(prompt_phrases(wording).values())) for wording in ("words", "token")] == [34, 34]
    refuses(MitigateError, "unknown model.relation 'verb'; allowed: phrase, words, token", prompt_phrases, "verb")
    assert prompt_phrases("token", [MENTORS])["Mentors"] == "<Mentors>"


def test_relations_of_ones_own_stand_beside_the_projects_and_change_no_table() -> None:
    known = with_own([MENTORS, Relation("IsA", "is one", "is one")])
    assert [known[name].phrase for name in ("Mentors", "IsA", "HasA")] == ["is a mentor of", "is one", "has a"]
    assert list(known)[-1] == "Mentors"
    assert named(["Mentors", "HasA"], known) == [MENTORS, relations()["HasA"]]
    refuses(MitigateError, "unknown relation 'Menors' .*; allowed: AtLocation, .*Mentors", named, ["Menors"], known)
    assert "Mentors" not in relations()


EVENTS = {
    ("ghana", "origin"): "the person from ghana goes to work",
    ("british", "origin"): "the british person goes to work",
    ("she", "gender"): "she goes to work",
    ("church", "religion"): "personx hears about church",
    ("gardener", "own"): "personx hears about gardener",  # whose kind nobody has given
    ("lawyer", "profession"): "the lawyer goes to work",
}


def test_an_event_names_its_target() -> None:
    for (target, category), event in EVENTS.items():
        events = heads_about(target, category, kind_of(target), "event")
        assert events[0] == event
        assert heads_about(target, category, kind_of(target), "object") == []
    assert events[1:] == ["the lawyer makes breakfast", "the lawyer meets a neighbor"]


def test_whoever_acts_is_one_person_for_a_scorer() -> None:
    tired = "this person goes to work as a result this person feels tired"
    thanks = "this person thanks another person's this person as a result another person or others want to pay this"
    expected = {
        ("the lawyer goes to work", "xReact", "tired"): tired,
        ("the british person goes to work", "xReact", "tired"): tired,
        ("the person from ghana goes to work", "Causes", "traffic"): "this person goes to work causes traffic",
        ("personx thanks persony 's nurse", "oWant", "to pay personx"): f"{thanks} person",
        ("personx buys a ___", "xNeed", "money"): "this person buys something but before this person needed money",
        ("the nurse", "Causes", "joy"): "the this person causes joy",  # of ConceptNet: as everywhere
    }
    rows = pl.DataFrame(list(expected), schema=["head", "relation", "tail"], orient="row")
    assert verbalise(rows)["masked"].to_list() == list(expected.values())
