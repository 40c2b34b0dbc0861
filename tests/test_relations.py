import pytest
from vaderSentiment.vaderSentiment import BOOSTER_DICT, NEGATE, SentimentIntensityAnalyzer

from mitigate.errors import MitigateError
from mitigate.relations import Relation, asked_with, comet_relations, named, relations, with_own

MENTORS = Relation("Mentors", "is a mentor of", "works with")


def test_comets_34_twelve_more_and_atomics_14() -> None:
    assert len(relations()) == 34 + 12 + 14
    assert len(comet_relations()) == 34
    assert sum(relation.train100k for relation in comet_relations()) == 100_000


def test_chosen_relations_keep_their_order() -> None:
    assert [relation.name for relation in comet_relations(["UsedFor", "IsA"])] == ["UsedFor", "IsA"]


def test_unknown_relation_names_the_allowed() -> None:
    with pytest.raises(MitigateError, match="unknown relation 'Isa'; allowed: AtLocation, CapableOf, "):
        comet_relations(["Isa"])
    with pytest.raises(MitigateError, match="unknown relation 'Synonym'"):
        comet_relations(["Synonym"])


@pytest.mark.parametrize("relation", relations().values(), ids=lambda relation: relation.name)
def test_neutral_phrase_is_silent_and_stands_as_the_phrase_does(relation) -> None:
    """No word of VADER's lexicon, nor "but", which weighs what stands around it; as many words, and negations at the
    same places: so that VADER reads head and tail just as it would with the phrase, less the phrase's own sentiment."""
    weighed = {*SentimentIntensityAnalyzer().lexicon, "but", *BOOSTER_DICT}
    phrase, neutral = relation.phrase.split(), relation.neutral_phrase.split()
    assert not weighed & set(neutral)
    assert len(neutral) == len(phrase)
    assert [word in NEGATE for word in neutral] == [word in NEGATE for word in phrase]
    if not weighed & set(phrase):
        assert neutral == phrase


def test_what_a_generator_is_asked_with() -> None:
    found = {wording: asked_with(wording)["HasPrerequisite"] for wording in ("phrase", "words", "token")}
    assert found == {"phrase": "requires", "words": "has prequisite", "token": "<HasPrerequisite>"}
    assert [len(set(asked_with(wording).values())) for wording in ("words", "token")] == [34, 34]
    with pytest.raises(MitigateError, match="unknown model.relation 'verb'; allowed: phrase, words, token"):
        asked_with("verb")


def test_relations_of_ones_own_stand_beside_the_projects_and_change_no_table() -> None:
    known = with_own([MENTORS, Relation("IsA", "is one", "is one")])
    assert [known[name].phrase for name in ("Mentors", "IsA", "HasA")] == ["is a mentor of", "is one", "has a"]
    assert list(known)[-1] == "Mentors"
    assert named(["Mentors", "HasA"], known) == [MENTORS, relations()["HasA"]]
    with pytest.raises(MitigateError, match="unknown relation 'Menors'; allowed: AtLocation, .*Mentors"):
        named(["Menors"], known)
    assert "Mentors" not in relations()
    assert relations()["IsA"].phrase == "is a"


def test_a_generator_is_asked_about_further_relations_in_every_wording() -> None:
    found = {wording: asked_with(wording, [MENTORS])["Mentors"] for wording in ("phrase", "words", "token")}
    assert found == {"phrase": "is a mentor of", "words": "is a mentor of", "token": "<Mentors>"}
    assert len(asked_with("phrase", [MENTORS, relations()["Synonym"]])) == 36
