"""What regard learns about identity terms from: lists that share no word with what is tested, and copies of texts."""

import re

import numpy as np
import polars as pl
import pytest
from test_identity import words

from mitigate.load.identity import POLARITIES, read_frames, read_further_terms, read_predicates, read_terms
from mitigate.tasks.regard.copies import swapped, terms, with_copies, written_statements
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.verbalise import MASK


def test_no_word_that_is_tested_with_is_trained_with() -> None:
    tested = {
        "terms": words(pl.concat([read_terms().filter(split="test")[name] for name in ("term", "plural")])),
        "frames": words(read_frames().filter(split="test")["frame"]),
    }
    for frame, column in [
        *((read_further_terms(), name) for name in ("term", "plural")),
        *((read_predicates(), name) for name in ("affirmed", "denied")),
    ]:
        assert words(frame[column]) & tested["terms"] == set()
    for column in ("affirmed", "denied"):
        assert words(read_predicates()[column]) & tested["frames"] == set()
    whole = set(" ".join([*read_terms().filter(split="test")["term"]]).split()) - {"person", "with", "a"}
    for pool in terms():
        assert whole & set(" ".join(word for pair in pool for word in pair).split()) == set()


def test_the_lists_are_large_and_have_no_row_twice() -> None:
    assert read_further_terms()["term"].is_unique().all()
    assert read_further_terms().height > 300
    assert set(read_predicates()["polarity"]) == set(POLARITIES)
    assert read_predicates()["affirmed"].is_unique().all()
    identity, paper = terms()
    assert ("blind person", "blind people") in identity
    assert ("nurse", "nurses") in paper
    assert "german" not in dict(paper)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (f"{MASK} is a bully", PREJUDICE),
        (f"{MASK} is not a bully", NEUTRAL),
        (f"{MASK} is a saint", FAVOURITISM),
        (f"{MASK} keeps no promise", PREJUDICE),
        (f"{MASK} is a gardener", NEUTRAL),
        (f"{MASK} is not violent", NEUTRAL),
    ],
)
def test_what_is_denied_counts_by_what_it_says(text: str, label: int) -> None:
    said = dict(written_statements().select("text", "label").iter_rows())
    assert said[text] == label


def test_a_copy_names_a_group_in_one_of_three_forms() -> None:
    found = swapped([f"{MASK} is honest"] * 300, seed=1)
    assert not any(MASK in text for text in found)
    ends = {re.sub(r".* (is|are) honest$", r"\1", text) for text in found}
    assert ends == {"is", "are"}
    assert any(re.match(r"an [aeio]", text) for text in found)
    assert 30 < sum(text.endswith("are honest") for text in found) < 150
    assert found == swapped([f"{MASK} is honest"] * 300, seed=1) != swapped([f"{MASK} is honest"] * 300, seed=2)
    assert swapped([f"table is related to {MASK}"], seed=1)[0].startswith("table is related to ")


def test_copies_are_wanted_as_the_text_itself() -> None:
    labelled = pl.DataFrame({"text": [f"{MASK} stole"], "label": [PREJUDICE]})
    probabilities = [[0.5, 0.5, 0, 0], [0.2, 0.8, 0, 0], [0.0, 1.0, 0, 0], [0.0, 1.0, 0, 0]]
    texts = [*labelled["text"], f"{MASK} is a bully", "no group is named", f"{MASK} has a table"]
    taught = pl.DataFrame({"text": texts, "probabilities": probabilities}).with_columns(
        pl.col("probabilities").cast(pl.Array(pl.Float32, 4))
    )
    found, wanted = with_copies(labelled, taught, {"written": 3, "polar": 2, "neutral": 1}, seed=1)
    assert found[:4] == texts
    assert len(found) == 4 + 2 + 3 + 1
    assert [text for text in found[4:] if MASK in text] == []
    assert wanted[0] == pytest.approx([0.75, 0.25, 0, 0])  # half the label's, half the teacher's
    assert wanted[1].tolist() == [1, 0, 0, 0]  # whatever the teacher says of what was written to train with
    assert wanted[2] == pytest.approx([0, 1, 0, 0])
    assert np.array_equal(wanted[4:6], np.tile(wanted[0], (2, 1)))
    assert np.array_equal(wanted[6:9], np.tile(wanted[1], (3, 1)))
    assert found[9].endswith(("has a table", "have a table"))
