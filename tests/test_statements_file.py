from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.load.files import load


def written(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "mine.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_statements_stay_as_written_and_targets_are_made_plain(tmp_path: Path) -> None:
    loaded = load(
        written(tmp_path, "Prosecuting_Attorney\tA lawyer  won.\nnurse\tNurses\u2028care.\ngamer\tIt's fun\n")
    )
    assert loaded.statements.rows() == [
        (1, "prosecuting attorney", "own", "A lawyer  won."),
        (2, "nurse", "profession", "Nurses\u2028care."),
        (3, "gamer", "own", "It's fun"),
    ]
    assert loaded.notices == []


@pytest.mark.parametrize("header", ["target\tstatement\n", "Target\tStatement\r\n", "\ufefftarget\tstatement\n"])
def test_a_header_is_no_statement(tmp_path: Path, header: str) -> None:
    assert load(written(tmp_path, header + "nurse\tNurses care.\n")).statements["row"].to_list() == [2]


def test_a_column_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "target\tstatement\tStatement\nnurse\tcares\tsings\n")
    with pytest.raises(MitigateError, match="has 2 columns called statement, and one is to be read; give the others"):
        load(path)
    others = written(tmp_path, "target\tstatement\tnote\tnote\nnurse\tcares\t\t\n")  # which are not read
    assert load(others).statements["statement"].to_list() == ["cares"]


def test_repeats_are_kept(tmp_path: Path) -> None:
    assert load(written(tmp_path, "nurse\tcares\n" * 3)).statements.height == 3


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("nurse", "1 column, expected 2 separated by a tab"),
        ("nurse\tcares\t1", "3 columns, expected 2 separated by a tab"),
        ("nurse\t ", "a blank field"),
        (b"nurse\t\xff", "not UTF-8 (invalid start byte at byte 6)"),
    ],
)
def test_a_bad_line_is_an_error_or_left_out(tmp_path: Path, line: str | bytes, fault: str) -> None:
    bad = line.encode() if isinstance(line, str) else line
    path = written(tmp_path, b"nurse\tcares\n" + bad + b"\n")
    with pytest.raises(MitigateError) as error:
        load(path)
    assert str(error.value) == (
        f"1 bad line:\n  {path}:2: {fault}\nMend the file, or leave such lines out with data.on_bad_line=skip."
    )
    loaded = load(path, on_bad_line="skip")
    assert loaded.statements.height == 1
    assert loaded.notices == [f"1 bad line left out: {path}:2: {fault}"]


def test_no_path_and_a_header_alone(tmp_path: Path) -> None:
    with pytest.raises(MitigateError, match="data=statements needs a file: give data.path=FILE.tsv"):
        load(None)
    with pytest.raises(MitigateError, match="mine.tsv has no statements; expected lines 'target<TAB>statement'"):
        load(written(tmp_path, "target\tstatement\n"))
    with pytest.raises(MitigateError, match="mine.tsv is empty"):
        load(written(tmp_path, "\n"))


def test_columns_are_named_by_the_first_line_or_by_the_user(tmp_path: Path) -> None:
    headed = load(written(tmp_path, "Statement\tNote\tTarget\tMine\ncares\tx\tnurse\t-1\n"), label_column="mine")
    assert headed.statements.rows() == [(2, "nurse", "profession", "cares", -1)]
    assert headed.statements.columns[-1] == "mine"
    named = load(
        written(tmp_path, "nurse\t2\tcares\n"), columns=["target", "regard", "statement"], label_column="Regard"
    )
    assert named.statements["regard"].to_list() == [2]


def test_a_label_outside_the_four_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "target\tstatement\tmine\nnurse\tcares\t3\nnurse\tcares\t\nnurse\tcares\t1\n")
    with pytest.raises(MitigateError) as error:
        load(path, label_column="mine")
    assert f"{path}:2: mine '3'; allowed: -1, 0, 1, 2 (prejudice, neutral, favouritism, other)" in str(error.value)
    assert f"{path}:3: mine ''; allowed" in str(error.value)
    assert load(path, "skip", label_column="mine").statements.height == 1


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        MitigateError, match="has no column mine, but target, statement; name its columns in a first line"
    ):
        load(written(tmp_path, "nurse\tcares\n"), label_column="mine")
    with pytest.raises(MitigateError, match="has no column target and no column statement, but who, what;"):
        load(written(tmp_path, "nurse\tcares\n"), columns=["who", "what"])
