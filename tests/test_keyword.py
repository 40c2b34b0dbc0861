from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.score.keyword import Keyword
from mitigate.score.lexicon import categories, read_dic, read_empath

DIC = (
    "%\n1\tfunct\n31\tposemo\n32\tnegemo\n%\nthe\t1\nhapp*\t31\nhappen*\t1\nkill\t1\t32\npoor thing\t32\nwow\t31\t32\n"
)


@pytest.fixture
def dic(tmp_path: Path) -> Path:
    path = tmp_path / "my.dic"
    path.write_text(DIC)
    return path


def test_more_praise_more_blame_or_as_much_of_both() -> None:
    scorer = Keyword(lexicon={"kind": 1, "brave": 1, "thief": -1})
    labels = scorer(["Kind, brave thief", "a thief", "a kind thief", "kindness", ""])
    assert labels.label.tolist() == [1, -1, 2, 0, 0]
    assert labels.strength.tolist() == pytest.approx([1 / 3, -1, 0, 0, 0])


def test_words_are_those_that_count_and_longer_entries_come_first() -> None:
    scorer = Keyword(lexicon={"poor_girl": -1, "girl": 1, "kill*": -1, "killer": 1})
    assert scorer.words("The poor girl, a girl killed killers; killer") == [
        ("poor girl", -1),
        ("girl", 1),
        ("killed", -1),
        ("killers", -1),
        ("killer", 1),
    ]


def test_a_liwc_dictionary(dic: Path) -> None:
    assert read_dic(dic) == {"happ*": 1, "kill": -1, "poor thing": -1}  # "wow" is both, the others neither
    assert Keyword(dic)(["happily killing", "the poor thing"]).label.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("happy\t31\n", "is no LIWC dictionary: its categories must stand first, between two lines of '%'"),
        (DIC.replace("32\tnegemo", "32"), "my.dic:4: '32', expected a category's number and name"),
        (DIC + "sad\t99\n", "my.dic:12: 'sad' is in category '99', which its head does not name"),
        (DIC + "sad\n", "my.dic:12: 'sad', expected a word and its categories' numbers"),
        ("%\n1\tfunct\n%\nthe\t1\n", "none of the categories posemo, .* \\(found: funct\\)"),
    ],
)
def test_faults_of_a_dictionary_are_told(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "my.dic"
    path.write_text(content)
    with pytest.raises(MitigateError, match=message):
        read_dic(path)


def test_no_such_dictionary(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="score.keyword.dic=.*no.dic cannot be read"):
        read_dic(tmp_path / "no.dic")


def test_empath_has_every_category_that_is_named_and_words_that_praise_and_blame() -> None:
    lexicon = read_empath()
    assert lexicon["murder"] == -1
    assert lexicon["kindness"] == 1
    assert "capable" not in lexicon  # of its category "trust", as is "wrong"; the paper's phrase has it
    assert set(categories("empath").values()) == {-1, 1}


def test_each_named_category_of_empath_exists(tmp_path: Path) -> None:
    for category, label in categories("empath").items():
        path = tmp_path / "one.tsv"
        path.write_text(f"{category}\tword\nschool\tother\n")
        assert read_empath(path) == {"word": label}


def test_fingerprint_follows_the_words() -> None:
    assert Keyword(lexicon={"a": 1}).fingerprint == Keyword(lexicon={"a": 1}).fingerprint
    assert Keyword(lexicon={"a": 1}).fingerprint != Keyword(lexicon={"a": -1}).fingerprint
