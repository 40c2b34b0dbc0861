from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from mitigate import metrics
from mitigate.errors import MitigateError
from mitigate.targets import BOUNDS, PARTS, choose_targets, notice_of_own, targets
from mitigate.tasks.heads import HELD_OUT
from mitigate.tasks.quality import subsets


def test_the_papers_329() -> None:
    assert Counter(targets().values()) == {"origin": 157, "profession": 120, "gender": 40, "religion": 12}
    assert choose_targets("all").height == 329


def test_a_list_keeps_order_and_knows_categories() -> None:
    chosen = choose_targets(["Nurse", "puerto_rican", "gardener", "nurse"])
    assert chosen.select("target", "category").rows() == [
        ("nurse", "profession"),
        ("puerto rican", "origin"),
        ("gardener", "own"),
    ]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,category\nnurse,\nsurfer,hobby\n", encoding="utf-8-sig")
    assert choose_targets(path).select("target", "category").rows() == [("nurse", "profession"), ("surfer", "hobby")]


def test_a_file_may_say_more_of_targets(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("Target,forms,Group,kind,id\nDeaf person, the deaf ;Deaf_folk,,People,x\nroma,,people,,\n")
    assert choose_targets(path).rows() == [
        ("deaf person", "own", ["the deaf", "deaf folk"], None, None, "people"),
        ("roma", "own", None, "people", None, None),
    ]


def test_all_and_data_in_a_list_or_file_stand_for_the_papers_targets(tmp_path: Path) -> None:
    assert choose_targets(["deaf person", "all"]).height == choose_targets(["all", "deaf person"]).height == 330
    path = tmp_path / "own.csv"
    path.write_text("target,category\ndata,\nnurse,health\n")
    triples = pl.DataFrame({"split": ["train"] * 2, "head": ["nurse", "italy"], "tail": ["x", "y"]})
    chosen = choose_targets(path, triples)
    assert chosen.select("target", "category").rows() == [("nurse", "health"), ("italy", "origin")]


def test_faults(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("word\nnurse\n")
    with pytest.raises(MitigateError, match=r"no column 'target' \(found: word\)"):
        choose_targets(path)
    path.write_text("target,form\nnurse,nurses\n")
    with pytest.raises(
        MitigateError,
        match="unknown column 'form'; did you mean forms?",
    ):
        choose_targets(path)
    path.write_text("target,kind\nnurse,person\nsurfer,people,\n")
    with pytest.raises(MitigateError) as told:
        choose_targets(path)
    assert f"{path}: line 2: unknown kind 'person'; allowed: people, locations, professions, others" in str(told.value)
    assert f"{path}: line 3 has more fields than the first line; separate further forms by semi" in str(told.value)
    with pytest.raises(MitigateError, match="there is no file .*absent.csv"):
        choose_targets(tmp_path / "absent.csv")
    with pytest.raises(MitigateError, match="names no target"):
        choose_targets([])
    with pytest.raises(MitigateError, match="unknown probe.targets 'everyone'; allowed: all, data, "):
        choose_targets("everyone")


def test_a_file_with_a_header_alone_names_no_target(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("Target,category\n")
    with pytest.raises(MitigateError, match=r"probe.targets=.*own.csv names no target; allowed: all, data, a list"):
        choose_targets(path)
    path.write_text("word,category\n")
    with pytest.raises(MitigateError, match=r"no column 'target' \(found: word, category\)"):
        choose_targets(path)
    path.write_text("")
    with pytest.raises(MitigateError, match=r"no column 'target' \(found: nothing\)"):
        choose_targets(path)


def test_two_columns_of_one_name_are_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,Target,note,note,,\nnurse,doctor,x,y,,\n")
    with pytest.raises(MitigateError) as told:
        choose_targets(path)
    assert str(told.value) == f"{path}: 2 columns are named 'target'; leave one of them"


def test_a_target_of_which_two_lines_say_different_things_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,category,forms,group\ndalit,caste,dalits,g1\n\nsurfer,,,\nDalit,religion,,g2\n")
    with pytest.raises(MitigateError) as told:
        choose_targets(path)
    expected = "line 5: line 2 says other things of the target 'dalit'; leave one of the two lines"
    assert str(told.value) == f"{path}: {expected}"
    path.write_text("target,category,note\ndalit,caste,x\nDalit,caste ,y\n")
    assert choose_targets(path).select("target", "category").rows() == [("dalit", "caste")]


@pytest.mark.parametrize(("category", "meant"), [("income_low", "low income"), ("_high", "high")])
def test_a_category_that_ends_as_an_interval_s_bound_is_a_fault(tmp_path: Path, category: str, meant: str) -> None:
    assert tuple(f"_{bound}" for bound in BOUNDS) == metrics.ENDS[1:]
    path = tmp_path / "own.csv"
    path.write_text(f"target,category\nceo,income\ncashier,{category}\n")
    end = category[category.index("_") :]
    with pytest.raises(MitigateError) as told:
        choose_targets(path)
    assert str(told.value) == (
        f"{path}: line 3: the category {category!r} ends in {end}, as the name of an interval's bound does; "
        f"call it {meant!r} or the like"
    )


@pytest.mark.parametrize("category", PARTS)
def test_a_category_that_is_called_as_another_part_of_a_figure_is_a_fault(tmp_path: Path, category: str) -> None:
    assert {*PARTS, "target"} == {*subsets(), HELD_OUT}  # `target` is a part of test triples alone, never of targets
    path = tmp_path / "own.csv"
    path.write_text(f"target,category\nceo,income\ncashier,{category}\n")
    with pytest.raises(MitigateError, match=f"line 3: figures of all targets have a part '{category}'"):
        choose_targets(path)


def test_those_the_training_triples_speak_of() -> None:
    rows = [("train", "nurse", "x"), ("train", "dog", "italy"), ("test", "boy", "y")]
    triples = pl.DataFrame(rows, schema=["split", "head", "tail"], orient="row")
    assert choose_targets("data", triples)["target"].to_list() == ["italy", "nurse"]
    assert choose_targets("data", pl.concat([triples, triples[:1]]), fewest=2)["target"].to_list() == ["nurse"]


def test_case_is_folded_in_what_the_training_triples_speak_of() -> None:
    rows = [("train", "Nurse", "nurse"), ("train", "LAWYER", "x"), ("train", "lawyer", "y")]
    triples = pl.DataFrame(rows, schema=["split", "head", "tail"], orient="row")
    assert choose_targets("data", triples)["target"].to_list() == ["lawyer", "nurse"]
    assert choose_targets("data", triples, fewest=2)["target"].to_list() == ["lawyer"]  # a nurse in one triple


def test_a_misspelt_category_or_kind_is_met_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("target,category\nwelder,profesion\ndeaf person,disability\nenby,Gender\n")
    chosen = choose_targets(path)
    assert chosen["category"].to_list() == ["profesion", "disability", "gender"]
    said = notice_of_own(chosen)
    assert said[1:] == ["the category 'profesion' is not one of the paper's; did you mean profession?"]
    path.write_text("target,kind\nwelder,poeple\n")
    with pytest.raises(MitigateError, match="unknown kind 'poeple'; allowed: .*; did you mean people"):
        choose_targets(path)
