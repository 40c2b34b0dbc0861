"""Whether professions that embeddings predict depend on a group: demographic and predictive parity (Keidar et al.
2021), and amplification of the shares that the graph has (Bourli and Pitoura 2020)."""

import numpy as np

FEWEST = 5  # predictions of a profession, for a share of them to be taken


def shares_of_groups(predicted: np.ndarray, is_a: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each group's people the share for whom each profession is predicted, (size,) each, in percent.

    predicted: (n,) a profession 0 to size - 1; is_a: (n,) bool, whether the person is of group a, else of b."""
    if is_a.all() or not is_a.any():
        raise ValueError("both groups need people")
    first, second = (np.bincount(predicted[of], minlength=size) / of.sum() * 100 for of in (is_a, ~is_a))
    return first, second


def parity_distance(predicted: np.ndarray, is_a: np.ndarray, size: int) -> float:
    """Half the sum over professions of the difference in shares, in percent: 0 where both groups are predicted the same
    professions as often (demographic parity), 100 where they share none."""
    first, second = shares_of_groups(predicted, is_a, size)
    return float(np.abs(first - second).sum() / 2)


def distance_by_chance(predicted: np.ndarray, is_a: np.ndarray, size: int, permutations: int, seed: int) -> float:
    """The mean of parity_distance when people are put into the groups at random: what so few people lead to."""
    rng = np.random.default_rng(seed)
    found = [parity_distance(predicted, rng.permutation(is_a), size) for _ in range(permutations)]
    return float(np.mean(found))


def predictive_parity(is_right: np.ndarray, is_a: np.ndarray) -> float | None:
    """Of predictions the share that is right, of group a minus of group b, in percentage points: 0 is parity. None
    where a group has fewer than FEWEST. is_right, is_a: (n,) bool."""
    if min(is_a.sum(), (~is_a).sum()) < FEWEST:
        return None
    return float(100 * (is_right[is_a].mean() - is_right[~is_a].mean()))


def amplification(
    predicted: np.ndarray, is_a: np.ndarray, of_a: np.ndarray, of_b: np.ndarray, fewest: int = FEWEST
) -> float | None:
    """How much further predictions lean to the group that a profession leans to in the graph, in percentage points.

    of_a, of_b: (p,) how many people of each group have the profession in the graph. A profession leans to the group
    whose share of its holders is above that of all holders. Its share among those whom it is predicted for, minus its
    share in the graph, is taken towards that group; the mean over professions with at least `fewest` predictions and as
    many holders. Above 0: bias is amplified. 0: predictions have the graph's shares. None where there is no such
    profession."""
    size = len(of_a)
    all_of, of_group_a = (np.bincount(predicted[of], minlength=size) for of in (np.ones_like(is_a), is_a))
    holders = of_a + of_b
    used = (all_of >= fewest) & (holders >= fewest)
    if not used.any():
        return None
    in_graph = of_a[used] / holders[used]
    leans = np.sign(in_graph - of_a.sum() / holders.sum())
    return float(100 * np.mean(leans * (of_group_a[used] / all_of[used] - in_graph)))
