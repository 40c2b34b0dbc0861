"""recipe=classifier: the texts that regard learns from, figures by hand, and the training of each classifier."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from classifier_data import shrink, write_plausibility, write_regard
from command import apart, here, metrics_of

from mitigate.load.ratings import RESOURCES
from mitigate.studies.classifier import (
    part_of,
    plausibility_figures,
    read_labelled,
    read_regard,
    swapped,
    terms,
    with_copies,
    written_statements,
)
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.verbalise import MASK
from mitigate.words.identity_terms import POLARITIES, read_frames, read_further_terms, read_predicates, read_terms

# Plausibility


class SameLetter:
    """Accepts a triple whose head and tail begin alike, all else is the less likely the longer it is."""

    relations = ("IsA", "HasA")

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
        pairs = zip(heads, tails, strict=True)
        return np.array([1.0 if head[0] == tail[0] else -float(len(tail)) for head, tail in pairs])


def test_figures_of_plausibility_by_hand() -> None:
    rows = [("ant", "IsA", "animal"), ("cat", "IsA", "pet"), ("good", "IsA", "gift")]
    rows += [("dog", "IsA", "door"), ("bee", "IsA", "cup")]
    test = pl.DataFrame(rows, ["head", "relation", "tail"], orient="row")
    test = test.with_columns(valid=pl.Series([True] * 3 + [False] * 2))
    labelled = pl.concat([test.with_columns(split=pl.lit(split)) for split in ("dev", "dev2", "test")])
    found = plausibility_figures(SameLetter(), labelled)
    assert found["test/accuracy"] == 60  # ant, good and bee
    assert found["test/true_judged_valid"] == pytest.approx(200 / 3)
    assert found["test/false_judged_valid"] == 50


def test_faults_are_named_before_anything_is_trained(job) -> None:
    for asked, message in (
        (["data.root=/nowhere", "recipe.minilm.epochs=0"], "recipe.minilm is not in version 1.0"),
        (["data.root=/nowhere", "classifier=crowd"], "classifier=crowd is not in version 1.0; use classifier=people"),
    ):
        refused = job("recipe=classifier", "classifier=plausibility", *asked)
        assert refused.status == 2
        assert message in refused.complaint


# Texts of regard


def write_labels(folder: Path, rows: list[tuple[str, int, str]]) -> Path:
    lines = [f"{target}\t{label}\t{text}\n" for target, label, text in rows]
    (folder / "bert_labels_conceptnet.tsv").write_text("".join(lines))
    (folder / "nlgbias_train_other.tsv").write_text("2\tXYZ was of two minds\n")
    (folder / "nlgbias_dev.tsv").write_text("-1\tXYZ stole from XYZ\n")
    (folder / "nlgbias_test.tsv").write_text("1\tXYZ was kind\n")
    return folder


def test_no_text_is_in_two_parts(tmp_path: Path) -> None:
    names = map("target{}".format, range(100))
    of = {part_of(name): name for name in names}  # a made-up target that its name puts into each part
    rows = [(of["train"], 0, text) for text in "abca"]
    rows += [(of["valid"], 0, "b"), (of["valid"], -1, "d"), (of["test"], 0, "c"), (of["test"], 1, "d")]
    found = read_labelled(write_labels(tmp_path, [*rows, (of["test"], 0, "e")]), kept_out=["e"])
    people = {"this person was of two minds": "train", "this person stole from this person": "train"}
    parts = {"a": "train", "b": "valid", "c": "test", "d": "test", "this person was kind": "people"}
    assert dict(found.select("text", "part").iter_rows()) == parts | people
    assert found.filter(part="train")["label"].to_list() == [0, -1, 2]


def test_regard_learns_nothing_from_the_crowd(tmp_path: Path) -> None:
    """What people say of a sentence changes neither the texts nor the labels that regard is trained on."""
    write_regard(tmp_path)
    (tmp_path / "regard" / "bert_labels_conceptnet.tsv").write_text("nurse\t-1\tthis person is a thief\n")
    given = []
    for vote in ("1", "3"):
        for resource in RESOURCES:
            (tmp_path / "humans" / f"{resource}_sentences.txt").write_text("lawyer is a hero\n" * 3)
            (tmp_path / "humans" / f"{resource}_bias_labels.txt").write_text(f"{vote}\n" * 3)
        texts, without, _ = read_regard(tmp_path)
        given.append((texts.rows(), without))
    (labelled, unlabelled), again = given
    assert (labelled, unlabelled) == again
    assert not any("hero" in text for text, _, _ in labelled)


FUNCTION_WORDS = {
    *("a", "an", "and", "are", "at", "be", "by", "cannot", "do", "does", "everyone", "for", "from", "has", "have"),
    *("in", "is", "near", "never", "not", "of", "on", "should", "the", "to", "very", "with", "person", "people"),
}


def words(texts: pl.Series) -> set[str]:
    """The words of texts that carry meaning, without their most common endings."""
    found = {word for text in texts for word in re.findall(r"[a-z]+", re.sub(r"{\w+}", "", text))} - FUNCTION_WORDS
    return {re.sub(r"(?:ing|ies|es|ed|s|y)$", "", word) for word in found}


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
    assert all(part_of(target) != "test" for target, _ in paper)


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


# The recipe


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "wanted", "weights"),
    [
        ("regard", ["minilm/test/macro_f1", "ngram/people/accuracy"], ["minilm", "ngram"]),
        ("plausibility", ["average/valid/shuffled", "average/test/accuracy"], ["average/minilm"]),
    ],
)
def test_a_classifier_is_trained_once_and_measured(
    name: str,
    wanted: list[str],
    weights: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shrink()
    write = {"regard": write_regard, "plausibility": write_plausibility}[name]
    command = ["recipe=classifier", f"classifier={name}", f"data.root={write(tmp_path / 'data')}", "tracking=none"]
    command += [f"paths.outputs={tmp_path / 'runs'}", f"paths.cache={tmp_path / 'cache'}", "seed=7"]
    assert here(monkeypatch, *command) == 0
    (folder,) = (tmp_path / "runs").glob(f"{name}-seed7-*")
    metrics = metrics_of(folder)
    assert all(metrics[key] is not None for key in wanted)
    for place in weights:
        assert (folder / place / "model.safetensors").is_file()
    assert not list(folder.glob("checkpoints/*"))
    assert here(monkeypatch, *command) == 0
    assert "complete: nothing to do" in capsys.readouterr().out
    assert apart(*command, "dry_run=true").done
