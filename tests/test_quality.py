import math

import polars as pl
import pytest

from mitigate.measure import quality


def test_sentence_bleu2_by_hand():
    references = [["win", "a", "case"], ["argue"]]
    assert quality.sentence_bleu2(["win", "a", "case"], references) == 1
    # 2 of 3 words, 1 of 2 pairs
    assert quality.sentence_bleu2(["win", "a", "game"], references) == pytest.approx(math.sqrt(2 / 3 * 1 / 2))
    # no pair is right: 0.1 of 2; "a" stands once in a reference, so the second does not count
    assert quality.sentence_bleu2(["a", "a", "dog"], references) == pytest.approx(math.sqrt(1 / 3 * 0.1 / 2))
    assert quality.sentence_bleu2(["dog"], references) == 0
    assert quality.sentence_bleu2([], references) == 0


def test_short_tails_are_penalised_by_the_nearest_reference():
    assert quality.sentence_bleu2(["win", "a"], [["win", "a", "case"]]) == pytest.approx(math.exp(1 - 3 / 2))
    # lengths 1 and 3 are as near to 2: the shorter counts, and nothing is lost
    assert quality.sentence_bleu2(["win", "a"], [["win", "a", "case"], ["argue"]]) == 1


def test_a_right_tail_of_one_word_has_no_pair():
    assert quality.sentence_bleu2(["money"], [["money"]]) == pytest.approx(math.sqrt(0.1))


def test_bleu2_is_the_mean_over_tails_in_percent():
    references = [[["win", "a", "case"]], [["sleep"]]]
    assert quality.bleu2([["win", "a", "case"], ["dog"]], references) == 50
    assert quality.bleu2([], []) is None


def test_the_share_accepted_is_of_the_triples_that_were_classified():
    assert quality.valid_share(pl.Series([True, None, False, True])) == pytest.approx(200 / 3)
    assert quality.valid_share(pl.Series([None, None], dtype=pl.Boolean)) is None


def triples(*rows: str) -> pl.DataFrame:
    columns = ["head", "relation", "tail"]
    return pl.DataFrame([row.split(" ") for row in rows], schema=columns, orient="row")


def test_novelty():
    train = triples("lawyer IsA person", "nurse IsA person", "lawyer HasA Case")
    generated = triples(
        "lawyer IsA person",  # known
        "judge IsA person",  # a new triple of a known tail
        "lawyer HasA case",  # known but for case
        "judge HasA robe",  # a new tail, twice
        "nurse HasA robe",
    )
    found = quality.novelty(generated, train)
    assert found == pytest.approx({"novelty/T_sro": 60, "novelty/T_o": 40, "novelty/U_o": 100 / 3})
    assert set(quality.novelty(generated.clear(), train).values()) == {None}


def probe(**tails: str) -> pl.DataFrame:
    rows = [(target, "IsA", tail) for target, said in tails.items() for tail in said]
    return pl.DataFrame(rows, schema=["target", "relation", "tail"], orient="row")


def test_a_generator_that_says_the_same_of_all():
    same = probe(lawyer="ab", nurse="ab", judge="ab", church="ab")
    assert quality.distinct_tails(same) == 25
    assert quality.shared_tails(same) == 100


def test_a_generator_that_listens():
    apart = probe(lawyer="ab", nurse="cd")
    assert quality.distinct_tails(apart) == 100
    assert quality.shared_tails(apart) == 0


def test_tails_partly_shared():
    some = probe(lawyer="ab", nurse="ac", judge="de")  # a is said of one of two others, twice; six tails
    assert quality.distinct_tails(some) == pytest.approx(500 / 6)
    assert quality.shared_tails(some) == pytest.approx(100 * (0.5 + 0.5) / 6)


def test_tails_of_different_relations_are_different():
    two = pl.concat([probe(lawyer="a"), probe(nurse="a").with_columns(relation=pl.lit("HasA"))])
    assert quality.distinct_tails(two) == 100
    assert quality.shared_tails(two) is None  # each relation has one target
    assert quality.distinct_tails(two.clear()) is None
