"""The words that a run knows: how own targets may be written, and what is said of them."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.target_list import PAPER, list_of
from mitigate.targets import choose_targets, notice_of_own, targets
from mitigate.word_forms import any_of, inflections, spellings, with_plurals


def spelt(text: str, *words: str) -> str:
    return pl.select(list_of(list(words)).target_of(pl.lit(text))).item()


@pytest.mark.parametrize(
    ("word", "plural"),
    [
        ("nurse", "nurses"),
        ("deaf person", "deaf people"),
        ("trans woman", "trans women"),
        ("trans man", "trans men"),
        ("deaf child", "deaf children"),
        ("housewife", "housewives"),
        ("salesperson", "salespeople"),
        ("secretary", "secretaries"),
        ("boss", "bosses"),
    ],
)
def test_plurals_are_known_by_rule_also_irregular_ones_and_the_other_way_round(word: str, plural: str) -> None:
    assert plural in set(with_plurals(word))
    assert word in set(inflections(plural))


def test_words_that_end_in_s_and_are_no_plurals_stay() -> None:
    assert not {"bos", "u", "clas", "pari"} & {
        form for word in ("boss", "us", "class", "paris") for form in inflections(word)
    }


def test_spellings_are_with_a_hyphen_with_a_blank_and_in_one_word() -> None:
    assert set(spellings("non-binary person")) == {"non binary person", "nonbinary person"}
    assert set(spellings("a deaf person")) == {"a deaf person", "deaf person"}


@pytest.mark.parametrize(
    "text",
    [
        *("non-binary person", "Non-Binary Person", "non binary person", "nonbinary person", "non_binary_person"),
        *("nonbinary people", "a non-binary person", "the nonbinary people", "non-binary persons"),
    ],
)
def test_plurals_hyphens_articles_and_capitals_are_matched_by_rule(text: str) -> None:
    assert spelt(text, "non-binary person") == "non-binary person"
    assert list_of(["non-binary person"]).named(text) == "non-binary person"


def test_other_words_stay_in_lower_case() -> None:
    assert spelt("Person", "non-binary person") == "person"
    assert spelt("the lawyer", "deaf person") == "the lawyer"  # the paper's targets are found as they are
    assert spelt("Lawyers", "nurse") == "lawyers"


def test_further_forms_of_a_file_are_matched_and_masked(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,forms\ndeaf person,the deaf; Deaf_folk\nlawyer,barrister\n")
    mine = list_of(path)
    forms = pl.Series(["the deaf", "deaf folks", "Deaf people", "barristers", "lawyers", "deaf"])
    found = forms.to_frame("form").select(mine.target_of(pl.col("form")))
    assert found["form"].to_list() == ["deaf person"] * 3 + ["lawyer", "lawyers", "deaf"]
    masked = forms.str.replace_all(mine.pattern, "-")
    assert masked.to_list() == ["-"] * 5 + ["deaf"]


def test_a_form_that_is_a_target_of_its_own_is_that_one_s() -> None:
    assert spelt("deaf people", "deaf person", "deaf people") == "deaf people"
    assert spelt("deaf persons", "deaf person", "deaf people") == "deaf person"
    assert spelt("lawyer", "lawyers") == "lawyer"


def test_a_form_is_given_to_one_target_only(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,forms\ndeaf person,signer\nmute person,signer;nurse\n")
    with pytest.raises(MitigateError) as told:
        list_of(path)
    assert str(told.value) == (
        "probe.targets: the form 'signer' is given to 'deaf person' and to 'mute person'; leave it with one of them; "
        "the form 'nurse' of 'mute person' is itself a target; leave it out of the forms"
    )


def test_a_word_that_ends_in_a_sign_is_masked_too() -> None:
    text = pl.Series(["LGBTQ+ people, lgbtq+ persons; lgbtq"])
    assert text.str.replace_all(list_of(["lgbtq+ person"]).pattern, "-").to_list() == ["-, -; lgbtq"]
    assert text.str.replace_all(list_of(["lgbtq+"]).pattern, "-").to_list() == ["- people, - persons; lgbtq"]


def test_inflections_of_own_targets_are_one_cluster_by_rule_or_as_given(tmp_path: Path) -> None:
    mine = list_of(["trans women", "trans woman", "lawyers", "deaf person"]).clusters
    assert (mine["trans woman"], mine["lawyers"]) == ("trans women", "lawyer")
    assert not {"trans women", "deaf person"} & set(mine)
    assert mine["hers"] == "she"
    path = tmp_path / "own.csv"
    path.write_text("target,cluster\nenby,non-binary person\nnon-binary person,\n")
    assert list_of(path).clusters["enby"] == "non-binary person"


def test_groups_and_kinds_are_those_given_or_follow_from_the_category(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "target,category,group,kind\nroma,origin,people,people\nsurfer,profession,,\ndeaf person,,,\nnurse,,,\n"
    )
    mine = list_of(path)
    assert mine.groups == {"roma": "people", "surfer": "profession", "deaf person": "own"}
    assert mine.kinds == {"roma": "people", "surfer": "professions"}
    assert [target.word for target in mine.own] == ["roma", "surfer", "deaf person"]  # of nurse nothing new is said


def test_the_papers_targets_alone_are_the_paper_s_list() -> None:
    assert list_of(choose_targets("all")) == list_of(["nurse"]) == PAPER
    assert PAPER.content == b""
    assert PAPER.pattern == any_of(targets())
    assert list_of(["surfer"]).content != list_of(["gamer"]).content


def test_a_table_of_the_list_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,category,forms,group,cluster,kind\ndeaf person,own,the deaf;signer,,,people\nnurse,,,,,\n")
    chosen = choose_targets(path)
    list_of(path).table(chosen).write_csv(tmp_path / "again.csv")
    assert choose_targets(tmp_path / "again.csv").equals(chosen)


def test_words_on_no_list_are_told_with_what_may_be_meant() -> None:
    assert notice_of_own(choose_targets(["laywer", "nonbinary person", "nurse"])) == [
        "2 targets are not in the paper's list: laywer, nonbinary person; did you mean lawyer?"
    ]
    assert notice_of_own(choose_targets(["nonbinary person"])) == [
        "1 target is not in the paper's list: nonbinary person"
    ]
    assert notice_of_own(choose_targets(["nurse"])) == []
    many = notice_of_own(choose_targets([f"x{number}" for number in range(13)]))
    assert many == [
        "13 targets are not in the paper's list: " + ", ".join(f"x{n}" for n in range(10)) + " and 3 others"
    ]
