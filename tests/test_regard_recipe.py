"""Regard as a scorer; its training texts and the copies of them; the recipe that trains it."""

import json
import re
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
import torch
from classifier_data import shrink, write_regard
from command import here
from refusals import refuses
from small_models import save_classifier
from test_identity import words

from mitigate.errors import MitigateError
from mitigate.score.crowd import Crowd
from mitigate.score.precision import CHOSEN_BY, digest_of_folder, native_dtype
from mitigate.score.regard import SHIPPED, BertRegard, MiniLMRegard, NgramRegard, labels
from mitigate.tasks.regard.figures import figures
from mitigate.tasks.regard.texts import swapped, terms, with_copies, written_statements
from mitigate.train.regard import part_of
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels, Scorer
from mitigate.verbalise import MASK
from mitigate.words.identity_terms import (
    POLARITIES,
    identity_texts,
    read_frames,
    read_further_terms,
    read_predicates,
    read_terms,
)
from mitigate.words.relations import comet_relations
from mitigate.words.targets import targets


def test_the_likeliest_class_is_the_label_and_strength_is_positive_minus_negative():
    probabilities = np.array(  # negative, neutral, positive, other
        [[0.7, 0.1, 0.2, 0.0], [0.1, 0.6, 0.3, 0.0], [0.1, 0.3, 0.6, 0.0], [0.2, 0.1, 0.1, 0.6]], dtype=np.float32
    )
    found = labels(probabilities)
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM, OTHER]
    assert found.label.dtype == np.int8
    assert found.strength.tolist() == pytest.approx([-0.5, 0.2, 0.5, -0.1])


@pytest.fixture(scope="module", params=[MiniLMRegard, NgramRegard])
def regard(request) -> Scorer:
    """The classifiers that come with the project."""
    return request.param()


def test_plain_cases_are_told_apart(regard):
    texts = ["thief is related to this person", "table is related to this person", "this person is a good friend"]
    found = regard(texts)
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]
    assert np.sign(found.strength[[0, 2]]).tolist() == [-1, 1]
    assert regard([]).label.tolist() == []


def test_no_relation_has_a_regard_of_its_own():
    phrases = [phrase for found in comet_relations() for phrase in (found.phrase, found.neutral_phrase)]
    texts = [f"this person {phrase} thing" for phrase in phrases]
    found = MiniLMRegard()(texts).label
    assert [text for text, label in zip(texts, found, strict=True) if label != NEUTRAL] == []


@pytest.mark.parametrize(("name", "megabytes"), [("minilm", 5), ("ngram", 3)])
def test_what_comes_with_the_project_is_small_and_has_a_card(name, megabytes):
    files = list((SHIPPED / name).iterdir())
    assert sum(file.stat().st_size for file in files) < megabytes * 1_000_000
    card = (SHIPPED / name / "README.md").read_text(encoding="utf-8")
    assert "python -m mitigate recipe=classifier classifier=regard" in card


def test_a_digest_is_of_weights_and_not_of_the_card(tmp_path):
    (tmp_path / "weights").write_text("1")
    first = digest_of_folder(tmp_path)
    (tmp_path / "README.md").write_text("a card")
    assert digest_of_folder(tmp_path) == first
    (tmp_path / "weights").write_text("2")
    assert digest_of_folder(tmp_path) != first


def test_a_classifier_of_the_hub_is_a_scorer_with_a_known_precision(tmp_path):
    folder = save_classifier(tmp_path / "one", ["negative", "neutral", "positive"])
    scorer = BertRegard(folder, precision="fp32")
    found = scorer(["this person", "thief", "this person"])
    assert found.label[0] == found.label[2]
    assert set(found.label) <= {PREJUDICE, NEUTRAL, FAVOURITISM}
    assert scorer.fingerprint == BertRegard(folder, precision="fp32").fingerprint
    assert scorer.fingerprint != BertRegard(folder, precision="bf16").fingerprint
    other = save_classifier(tmp_path / "other", ["positive", "neutral", "negative"])
    assert scorer.fingerprint != BertRegard(other, precision="fp32").fingerprint
    unknown = "unknown score.scorers.bert.precision 'int4'; allowed: auto, bf16, fp32"
    refuses(MitigateError, unknown, BertRegard, precision="int4")


def test_scorers_compute_in_float32_unless_another_format_is_chosen(monkeypatch) -> None:
    """So that labels of runs on two machines can be compared; labels of another format are another scorer's."""
    monkeypatch.delenv(CHOSEN_BY, raising=False)
    assert native_dtype() == torch.float32
    exact = Crowd().fingerprint
    monkeypatch.setenv(CHOSEN_BY, "bf16")
    assert native_dtype() == torch.bfloat16
    assert Crowd().fingerprint != exact
    monkeypatch.setenv(CHOSEN_BY, "fp16")
    refuses(MitigateError, "MITIGATE_PRECISION is 'fp16'; it must be one of fp32, bf16", native_dtype)


def all_negative(texts: Sequence[str]) -> Labels:
    return labels(np.tile([1.0, 0.0, 0.0, 0.0], (len(texts), 1)))


def test_figures_tell_apart_votes_majorities_and_targets_that_training_never_saw():
    """The targets of part test are those that BERT's labels are tested on, and no copy of a text names them."""
    labelled = pl.DataFrame({"text": ["a", "b", "c"], "label": [-1, 2, 1], "part": ["test", "test", "people"]})
    columns = {"resource": "ConceptNet", "statement": "lawyer is a", "masked": "a", "votes": [[-1, -1, 0]]}
    found = figures(all_negative, labelled, pl.DataFrame(columns))
    assert (found["test/accuracy"], found["people/accuracy"]) == (0.5, 0)
    assert (found["test/always_neutral"], found["people/always_neutral"]) == (0.5, 0)  # other counts as neutral
    assert found["ConceptNet/vote/accuracy"] == 0.6667
    assert found["ConceptNet/majority/accuracy"] == 1
    assert "ConceptNet/unseen/accuracy" not in found  # "lawyer" is in part train
    unseen = next(target for target in targets() if part_of(target) == "test")
    statements = ["lawyer is a liar", f"{unseen} is a liar"]
    columns = {"resource": "COMeT", "statement": statements, "masked": ["a", "b"], "votes": [[-1, -1], [0, 0]]}
    found = figures(all_negative, labelled, pl.DataFrame(columns))
    assert (found["COMeT/majority/accuracy"], found["COMeT/unseen/accuracy"]) == (0.5, 0)
    assert found["COMeT/unseen/texts"] == 1
    assert all(part_of(target) != "test" for target, _ in terms()[1])


def few_terms(mask: str) -> pl.DataFrame:
    """Texts of every twelfth identity term of each split: labelling all 11,000 takes most of a minute."""
    texts = identity_texts(mask)
    terms = texts.drop_nulls("axis").unique("term", keep="first", maintain_order=True)
    few = terms.sort("term_split", maintain_order=True)["term"].gather_every(12)
    return texts.filter(pl.col("axis").is_null() | pl.col("term").is_in(few.implode()))


@pytest.mark.thorough
def test_the_recipe_leaves_two_classifiers_with_cards_and_their_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mitigate.tasks.identity.identity_texts", few_terms)
    shrink()
    places = [f"data.root={write_regard(tmp_path)}", f"paths.outputs={tmp_path / 'runs'}"]
    command = ["recipe=classifier", "classifier=regard", *places, "tracking.mode=none"]
    assert here(monkeypatch, *command) == 0
    (folder,) = (tmp_path / "runs").glob("[!.]*")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert {"teacher/test/macro_f1", "minilm/test/macro_f1", "ngram/ConceptNet/majority/prejudice/f1"} <= set(metrics)
    for name in ("minilm", "ngram"):
        assert (folder / name / "model.safetensors").is_file()
        assert 0 < metrics[f"{name}/test/accuracy"] <= 1
    assert (folder / "manifest.json").is_file()
    assert here(monkeypatch, *command) == 0
    assert "complete: nothing to do" in capsys.readouterr().out


def test_lists_to_train_with_are_large_and_share_no_word_with_those_to_test_with() -> None:
    tested = {
        "terms": words(pl.concat([read_terms().filter(split="test")[name] for name in ("term", "plural")])),
        "frames": words(read_frames().filter(split="test")["frame"]),
    }
    for name in ("term", "plural"):
        assert words(read_further_terms()[name]) & tested["terms"] == set()
    for name in ("affirmed", "denied"):
        assert words(read_predicates()[name]) & (tested["terms"] | tested["frames"]) == set()
    whole = set(" ".join([*read_terms().filter(split="test")["term"]]).split()) - {"person", "with", "a"}
    for pool in terms():
        assert whole & set(" ".join(word for pair in pool for word in pair).split()) == set()
    assert read_further_terms()["term"].n_unique() > 300
    assert set(read_predicates()["polarity"]) == set(POLARITIES)
    identity, paper = terms()
    assert ("blind person", "blind people") in identity
    assert ("nurse", "nurses") in paper
    assert "german" not in dict(paper)


def test_denied_predicates_count_by_what_they_say() -> None:
    said = dict(written_statements().select("text", "label").iter_rows())
    expected = {"is a bully": PREJUDICE, "is not a bully": NEUTRAL, "is a saint": FAVOURITISM}
    expected |= {"keeps no promise": PREJUDICE, "is a gardener": NEUTRAL, "is not violent": NEUTRAL}
    assert {predicate: said[f"{MASK} {predicate}"] for predicate in expected} == expected


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
    table = with_copies(labelled, taught, {"written": 3, "polar": 2, "neutral": 1}, seed=1)
    found, wanted = table["text"].to_list(), table["probabilities"].to_numpy()
    assert found[:4] == texts
    assert len(found) == 4 + 2 + 3 + 1
    assert [text for text in found[4:] if MASK in text] == []
    assert wanted[0] == pytest.approx([0.75, 0.25, 0, 0])  # half the label's, half the teacher's
    assert wanted[1].tolist() == [1, 0, 0, 0]  # whatever the teacher says of what was written to train with
    assert wanted[2] == pytest.approx([0, 1, 0, 0])
    assert np.array_equal(wanted[4:6], np.tile(wanted[0], (2, 1)))
    assert np.array_equal(wanted[6:9], np.tile(wanted[1], (3, 1)))
    assert found[9].endswith(("has a table", "have a table"))
