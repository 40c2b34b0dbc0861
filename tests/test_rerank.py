import polars as pl

from mitigate.probe.rerank import neutral_first
from mitigate.triples import PROBED


def candidates(*rows: tuple[str, str, str, int, int]) -> pl.DataFrame:
    """Each (target, relation, tail, rank, label)."""
    frame = pl.DataFrame(rows, schema=["target", "relation", "tail", "rank", "regard"], orient="row")
    score = -pl.col("rank").cast(pl.Float32)
    frame = frame.with_columns(category=pl.lit("profession"), head="target", log_prob=score, score=score)
    return frame.cast({"rank": PROBED["rank"], "regard": pl.Int8})


def test_neutral_tails_come_first_and_the_best_of_the_others_fill_up() -> None:
    found = neutral_first(
        candidates(
            ("nurse", "CapableOf", "lie", 1, -1),
            ("nurse", "CapableOf", "work", 2, 0),
            ("nurse", "CapableOf", "steal", 3, -1),
            ("nurse", "CapableOf", "eat", 4, 2),
            ("lawyer", "CapableOf", "lie", 1, -1),
            ("lawyer", "CapableOf", "win", 2, 1),
            ("lawyer", "CapableOf", "steal", 3, -1),
            ("lawyer", "CapableOf", "eat", 4, 0),
        ),
        pl.col("regard").is_in([-1, 1]),
        top=3,
    )
    assert found.select("target", "tail", "rank", "beam_rank").rows() == [
        ("nurse", "work", 1, 2),
        ("nurse", "eat", 2, 4),
        ("nurse", "lie", 3, 1),
        ("lawyer", "eat", 1, 4),
        ("lawyer", "lie", 2, 1),
        ("lawyer", "win", 3, 2),
    ]
    assert dict(found.drop("beam_rank").schema) == PROBED
    assert found["score"].to_list() == [-2, -4, -1, -4, -1, -2]


def test_where_all_are_neutral_nothing_changes() -> None:
    given = candidates(*(("nurse", "IsA", tail, rank, 0) for rank, tail in enumerate("abc", start=1)))
    found = neutral_first(given, pl.col("regard").is_in([-1, 1]), top=2)
    assert found["tail"].to_list() == ["a", "b"]
    assert found["rank"].to_list() == found["beam_rank"].to_list() == [1, 2]


def test_hundreds_of_candidates_are_ranked() -> None:
    given = candidates(*(("nurse", "IsA", f"tail {rank}", rank, rank % 2) for rank in range(1, 301)))
    found = neutral_first(given, pl.col("regard") == 1, top=300)
    assert found["rank"].to_list() == list(range(1, 301))
    assert found["beam_rank"].to_list() == [*range(2, 301, 2), *range(1, 301, 2)]
