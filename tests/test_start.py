"""The model that a training starts from, and a policy applied, as functions of plain arguments."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.fingerprints import digest_of_stage
from mitigate.relations import Relation, relations
from mitigate.tasks.policy import Policy, apply_policy
from mitigate.tasks.start import check_told_apart, find_start
from mitigate.triples import label_columns
from models.comet import Comet
from models.encoding import TOKENIZER
from models.minilm import locate


class Toy:
    """A model whose file is one word."""

    def __init__(self, folder: Path, times: int = 1, checkpoint: Path | None = None) -> None:
        self.says = (folder / "word.txt").read_text() * times
        if times < 1:
            raise ValueError("times must be at least 1")


def saved(folder: Path, word: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "word.txt").write_text(word)
    (folder / "notes.md").write_text(str(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "a", "a")


def test_a_start_is_known_by_its_files_and_options_wherever_they_are(folder: Path, tmp_path: Path) -> None:
    """A checkpoint beside the folder counts by its content."""
    there, other = saved(tmp_path / "ab", "a"), saved(tmp_path / "b", "b")
    first = find_start(Toy, folder, options={"times": 2})
    assert first.load().says == "aa"
    assert find_start(Toy, there, options={"times": 2}).fingerprint == first.fingerprint
    changed = [find_start(Toy, folder), find_start(Toy, other, options={"times": 2})]
    changed.append(find_start(Toy, folder, relation="words", options={"times": 2}))
    changed.append(first.trained(Toy, folder, "other weights"))
    assert len({first.fingerprint, *(start.fingerprint for start in changed)}) == 5
    weights, found = tmp_path / "weights", []
    for content in ("one", "two"):
        weights.write_text(content)
        found.append(find_start(Toy, folder, options={"checkpoint": weights}).weights)
    assert found[0] != found[1]


def test_the_code_that_loads_a_start_counts_for_its_stages(folder: Path) -> None:
    toy, known = find_start(Toy, folder), find_start(label_columns, folder)
    assert digest_of_stage(apply_policy, [known]) == digest_of_stage(apply_policy, [])
    assert digest_of_stage(apply_policy, [toy]) != digest_of_stage(apply_policy, [])
    assert digest_of_stage(apply_policy, [{"start": (toy,)}]) == digest_of_stage(apply_policy, [toy])


def test_refusals_of_the_loader_and_of_a_model_that_is_not_trained(folder: Path) -> None:
    with pytest.raises(MitigateError, match="times must be at least 1"):
        find_start(Toy, folder, options={"times": 0}).load()
    assert find_start(Toy, folder, relation="token").asked["CapableOf"] == "<CapableOf>"
    with pytest.raises(MitigateError, match="which this model was not trained with"):
        find_start(Toy, folder, relation="token", train=False)


def test_a_policy_is_applied_to_triples_without_rows_and_splits() -> None:
    labelled = pl.DataFrame({"head": ["nurse", "nurse"], "relation": "IsA", "tail": ["thief", "person"]})
    labelled = labelled.with_columns(sentiment=pl.Series([-1, 0]), sentiment_strength=pl.Series([-0.5, 0.0]))
    ledger = apply_policy(Policy("mine", scorers=["sentiment"]), labelled)
    expected = [(1, "train", 0.0, "sentiment -1"), (2, "train", 1.0, "kept")]
    assert ledger.select("row", "split", "weight", "reason").rows() == expected


MENTORS = Relation("Mentors", "is a mentor of", "works with")


def test_further_relations_are_asked_about_also_once_trained(folder: Path) -> None:
    """With their words only where the model was trained with these."""
    start = find_start(Toy, folder, further=[MENTORS])
    assert start.asked["Mentors"] == start.trained(Toy, folder, "w").asked["Mentors"] == "is a mentor of"
    assert start.fingerprint != find_start(Toy, folder).fingerprint
    (folder / "config.json").write_text('{"comet_relation": "token"}')
    (folder / TOKENIZER).write_text('{"added_tokens": [{"content": "<Mentors>"}]}')
    assert find_start(Toy, folder, train=False, further=[MENTORS]).asked["Mentors"] == "<Mentors>"
    (folder / TOKENIZER).write_text('{"added_tokens": []}')
    with pytest.raises(MitigateError, match="has no word for the relations <Mentors>: it was trained without them"):
        find_start(Toy, folder, train=False, further=[MENTORS])


def test_phrases_that_begin_with_the_same_tokens_are_refused() -> None:
    """A COMeT reads five tokens of a phrase: those of ATOMIC's oEffect and oWant are the same."""
    further = [relations()[name] for name in ("oEffect", "oWant", "Synonym")]
    with pytest.raises(MitigateError, match=r"reads 5: oEffect \('as a result persony or others will'\), oWant"):
        check_told_apart(find_start(Comet.from_encoder, locate(), further=further))
    check_told_apart(find_start(Comet.from_encoder, locate(), further=further[1:]))
    check_told_apart(find_start(Comet.from_encoder, locate(), relation="token", further=further))
