from mitigate.recipes.sweep import short_names


def test_runs_are_named_by_what_tells_them_apart() -> None:
    none, both, other = ({"policy": "none", "seed": 1}, {"policy": "both", "seed": 1}, {"policy": "both", "seed": 2})
    assert list(short_names({"x-aaaaaaaa": none, "x-bbbbbbbb": both})) == ["none", "both"]
    assert list(short_names({"x-aaaaaaaa": both, "x-bbbbbbbb": other})) == ["both, seed 1", "both, seed 2"]
    assert list(short_names({"x-aaaaaaaa": both, "x-bbbbbbbb": both})) == ["both, aaaaaaaa", "both, bbbbbbbb"]
