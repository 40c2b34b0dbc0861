"""The corpus at hand through the linear form: every post with every frame that it has comes back as it was."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.frames import CHOICES, Frame, consistent, linearise, parse
from mitigate.tasks.frames.posts import read_posts


@pytest.fixture(scope="module")
def posts(real_data: Path) -> pl.DataFrame:
    if not (real_data / "sbic").is_dir():
        pytest.skip("needs the corpus's files: sbic/ in the data folder")
    return read_posts(real_data / "sbic")[1]


def test_every_post_comes_back_from_its_linear_form_with_every_frame(posts: pl.DataFrame) -> None:
    num_frames = 0
    for row in posts.iter_rows(named=True):
        post = " ".join(row["post"].split())  # the linear form is one line
        for frame in frames_of(row):
            assert parse(linearise(row["post"], frame)) == (post, frame)
            num_frames += 1
    assert posts.height > 20_000
    assert num_frames > posts.height


def test_what_lacks_an_end_or_contradicts_itself_is_a_consistent_frame_of_the_same_post(posts: pl.DataFrame) -> None:
    for row in posts.gather_every(20).iter_rows(named=True):
        post, frame = " ".join(row["post"].split()), frames_of(row)[-1]
        line = linearise(row["post"], frame)
        for broken in (line.removesuffix(" [END]"), line.rsplit(" [SEP] ", 1)[0], line.replace("[offY]", "[offN]")):
            found, parsed = parse(broken)
            assert found == post
            assert parsed == consistent(parsed)
            assert parsed.implied in ("", frame.implied)


def frames_of(row: dict) -> list[Frame]:
    """A post's frames: one for each group and statement that annotators gave, or the one that has neither."""
    values = {name: row[name] for name in CHOICES}
    pairs = list(zip(row["implied_groups"], row["implied"], strict=True)) or [(group, "") for group in row["groups"]]
    return [consistent(Frame(**values, group=group or "", implied=implied)) for group, implied in pairs or [("", "")]]
