"""Targets: the list of the paper, targets of one's own in all their forms, and faults of their files; texts as they are
shown."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from refusals import refuses

from mitigate.errors import MitigateError, escaped, portable, readable, without_folders
from mitigate.words.targets import PAPER, choose_targets, list_of, notice_of_own, targets
from mitigate.words.word_forms import inflections, pattern, with_plurals


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of targets of one's own."""

    def write(content: str, encoding: str = "utf-8") -> Path:
        (tmp_path / "own.csv").write_text(content, encoding=encoding)
        return tmp_path / "own.csv"

    return write


def test_the_papers_329_and_files_and_lists_that_say_more_of_targets(own) -> None:
    assert Counter(targets().values()) == {"origin": 157, "profession": 120, "gender": 40, "religion": 12}
    assert choose_targets("all").height == 329
    chosen = choose_targets(["Nurse", "puerto_rican", "gardener", "nurse"])
    expected = [("nurse", "profession"), ("puerto rican", "origin"), ("gardener", "own")]
    assert chosen.select("target", "category").rows() == expected
    path = own("target,category\nnurse,\nsurfer,hobby\n", encoding="utf-8-sig")
    assert choose_targets(path).select("target", "category").rows() == [("nurse", "profession"), ("surfer", "hobby")]
    path = own("Target,forms,Group,kind,id\nDeaf person, the deaf ;Deaf_folk,,People,x\nroma,,people,,\n")
    assert choose_targets(path).rows() == [
        ("deaf person", "own", ["the deaf", "deaf folk"], None, None, "people"),
        ("roma", "own", None, "people", None, None),
    ]


def test_all_and_data_in_a_list_or_file_stand_for_the_papers_targets(own) -> None:
    assert choose_targets(["deaf person", "all"]).height == choose_targets(["all", "deaf person"]).height == 330
    path = own("target,category\ndata,\nnurse,health\n")
    triples = pl.DataFrame({"split": ["train"] * 2, "head": ["nurse", "italy"], "tail": ["x", "y"]})
    chosen = choose_targets(path, triples)
    assert chosen.select("target", "category").rows() == [("nurse", "health"), ("italy", "origin")]


INCOMES = "target,category\nceo,income\ncashier,{}\n"
OTHERS = "target,category,forms,group\ndalit,caste,dalits,g1\n\nsurfer,,,\nDalit,religion,,g2\n"
FAULTS = [
    ("word\nnurse\n", r"no column 'target' \(found: word\)"),
    ("target,kind\nwelder,poeple\n", "csv: line 2: unknown kind 'poeple' .did you mean people"),
    ("Target,category\n", r"probe.targets=.*own.csv names no target; allowed: all, data, a list"),
    (OTHERS, "own.csv: line 5: an earlier line has other facts of the target 'dalit'; leave one of them$"),
    *((INCOMES.format(part), f"line 3: figures have other parts called '{part}'") for part in ("income_low", "all")),
]


@pytest.mark.parametrize(("content", "message"), FAULTS)
def test_faults_of_a_file_are_named(own, content: str, message: str) -> None:
    refuses(MitigateError, message, choose_targets, own(content))


def test_faults_of_other_values_are_named_and_equal_lines_are_none(own, tmp_path: Path) -> None:
    for value, message in ((tmp_path / "a.csv", "no such file: .*a.csv"), ([], "names no"), ("each", "allowed: all")):
        refuses(MitigateError, message, choose_targets, value)
    path = own("target,category,note\ndalit,caste,x\nDalit,caste ,y\n")
    assert choose_targets(path).select("target", "category").rows() == [("dalit", "caste")]


def test_targets_of_the_training_triples_whatever_their_case() -> None:
    rows = [("train", "nurse", "x"), ("train", "dog", "italy"), ("test", "boy", "y")]
    triples = pl.DataFrame(rows, schema=["split", "head", "tail"], orient="row")
    assert choose_targets("data", triples)["target"].to_list() == ["italy", "nurse"]
    rows = [("train", "Nurse", "nurse"), ("train", "LAWYER", "x"), ("train", "lawyer", "y")]
    triples = pl.DataFrame(rows, schema=["split", "head", "tail"], orient="row")
    assert choose_targets("data", triples)["target"].to_list() == ["lawyer", "nurse"]
    assert choose_targets("data", triples, fewest=2)["target"].to_list() == ["lawyer"]  # a nurse in one triple


def spelt(text: str, *words: str) -> str:
    return pl.select(list_of(list(words)).target_of(pl.lit(text))).item()


PLURALS = {"nurse": "nurses", "deaf person": "deaf people", "trans woman": "trans women", "trans man": "trans men"}
PLURALS |= {"deaf child": "deaf children", "housewife": "housewives", "boss": "bosses", "secretary": "secretaries"}


def test_plurals_follow_rules_also_irregular_ones_and_the_other_way_round() -> None:
    for word, plural in PLURALS.items():
        assert plural in set(with_plurals(word))
        assert word in set(inflections(plural))
    for word in ("boss", "us", "class", "paris"):
        assert word[:-1] not in inflections(word)


@pytest.mark.parametrize(
    "text",
    [
        *("Non-Binary Person", "non binary person", "nonbinary person", "non_binary_person"),
        *("a non-binary person", "the nonbinary people", "non-binary persons", "Non\u2011binary people"),
    ],
)
def test_plurals_hyphens_articles_and_capitals_are_matched_by_rule(text: str) -> None:
    assert spelt(text, "non-binary person") == "non-binary person"
    assert list_of(["non-binary person"]).named(text) == "non-binary person"


def test_further_forms_of_a_file_are_matched_and_masked_and_each_is_of_one_target(own) -> None:
    path = own("target,forms\ndeaf person,the deaf; Deaf_folk\nlawyer,barrister\n")
    mine = list_of(path)
    forms = pl.Series(["the deaf", "deaf folks", "Deaf people", "barristers", "lawyers", "deaf"])
    found = forms.to_frame("form").select(mine.target_of(pl.col("form")))
    assert found["form"].to_list() == ["deaf person"] * 3 + ["lawyer", "lawyers", "deaf"]
    masked = forms.str.replace_all(mine.pattern, "-")
    assert masked.to_list() == ["-"] * 5 + ["deaf"]
    path = own("target,forms\ndeaf person,signer\nmute person,signer;nurse\n")
    faults = "'signer' is given to 'deaf person' and to 'mute person'; leave it with one"
    refuses(MitigateError, faults, list_of, path)


def test_clusters_groups_and_kinds_are_those_given_or_follow_by_rule(own) -> None:
    mine = list_of(["trans women", "trans woman", "lawyers", "deaf person"]).clusters
    assert (mine["trans woman"], mine["lawyers"]) == ("trans women", "lawyer")
    assert not {"trans women", "deaf person"} & set(mine)
    assert mine["hers"] == "she"
    path = own("target,cluster\nenby,non-binary person\nnon-binary person,\n")
    assert list_of(path).clusters["enby"] == "non-binary person"
    path = own("target,category,group,kind\nroma,origin,people,people\nsurfer,profession,,\ndeaf person,,,\nnurse,,,\n")
    mine = list_of(path)
    assert mine.groups == {"roma": "people", "surfer": "profession", "deaf person": "own"}
    assert mine.kinds == {"roma": "people", "surfer": "professions"}
    assert [target.word for target in mine.own] == ["roma", "surfer", "deaf person"]  # of nurse nothing new is said


def test_a_table_of_the_list_can_be_read_again_and_the_papers_alone_are_its_list(own, tmp_path: Path) -> None:
    assert list_of(choose_targets("all")) == list_of(["nurse"]) == PAPER
    assert len({list_of(words).digest for words in (["surfer"], ["gamer"], [*["surfer"] * 2], "all")}) == 3
    path = own("target,category,forms,group,cluster,kind\ndeaf person,own,the deaf;signer,,,people\nnurse,,,,,\n")
    chosen = choose_targets(path)
    list_of(path).table(chosen).write_csv(tmp_path / "again.csv")
    assert choose_targets(tmp_path / "again.csv").equals(chosen)


def test_words_on_no_list_are_named_with_the_nearest_of_the_list() -> None:
    assert notice_of_own(choose_targets(["laywer", "nonbinary person", "nurse"])) == [
        "2 targets not in the paper's list: laywer, nonbinary person"
    ]
    assert notice_of_own(choose_targets(["nurse"])) == []


FOREIGN = "a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
ORDINARY = "two\nlines\twith tabs, עברית, فارسی, \N{GRINNING FACE} and é"


def test_steering_characters_are_spelt_out_or_left_out_and_ordinary_text_stays() -> None:
    assert escaped(FOREIGN) == r"a\x00b\x1b[31m\x7f\x9b\u202ec\u2066d"
    assert readable(FOREIGN + "\ud800\ufffe") == "ab[31mcd"
    assert escaped(ORDINARY) == readable(ORDINARY) == ORDINARY


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("/home/me/my data/names.csv", "names.csv"),
        ("data.root=/home/me/data", "data.root=data"),
        ("compare.runs=[/home/me/a,/home/me/b]", "compare.runs=[a,b]"),
        ("/home/o'neil/data (1)/a=b/names.csv", "names.csv"),
        ("neutral_template/NRM", "neutral_template/NRM"),
        ("https://example.org/a/b", "https://example.org/a/b"),
    ],
)
def test_of_absolute_paths_the_last_part_is_left(given: str, left: str) -> None:
    assert without_folders(given) == left
    command = "python -m mitigate policy=both 'data.root=/home/some one/data' seed=1"
    assert portable(command) == "python -m mitigate policy=both data.root=data seed=1"


def test_a_form_that_ends_in_a_sign_a_long_word_and_forms_within_others() -> None:
    forms = frozenset(["lgbtq+", "c++", "lgbtq+ person", ".net", "+1", "lgbtq"])
    text = pl.Series(["abclgbtq+ xlgbtq lgbtq+s lgbtq+ persons", "abc++ c++11 C++", "asp.net .network .net", "+12 x+1"])
    assert text.str.replace_all(pattern(forms), "@").to_list() == [
        "abclgbtq+ xlgbtq @s @ persons",
        "abc++ @11 @",
        "asp@ .network @",
        "+12 x@",
    ]
    forms = frozenset(["lawyer", "lawyers", "glass lawyer"])
    text = pl.Series(["Glass-lawyers, glass lawyer; lawyery lawyer"])
    assert text.str.replace_all(pattern(forms), "-").to_list() == ["Glass--, -; lawyery -"]


def test_thousands_of_own_targets_are_masked_and_found() -> None:
    names = [f"{word} {other}" for word in ("glass", "paper") for other in targets()]
    own = list_of(names)
    text = pl.Series(["a Glass-nurse and paper lawyers"])
    assert text.str.replace_all(own.pattern, "-").to_list() == ["a - and -"]
    assert own.found_in(text, names).rows() == [(0, "glass nurse"), (0, "paper lawyer")]
