"""Groups counted by kind, and dealt out again."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.placement.packing_problems import problem_of

from muster.placement.kinds import Placed, kind_of, seat_counts, share_out
from muster.placement.packing import Problem
from muster.placement.parts import Part

EVERYWHERE = (np.array([0, 1]),)


def three_groups() -> Problem:
    """Two groups that are alike (lots 0 and 2) around one that is not (lot 1)."""
    parts = tuple(Part(needed, EVERYWHERE, (0,), lots=(lot,)) for lot, needed in enumerate((2, 1, 2)))
    root = Part(3, EVERYWHERE, (0,), parts=parts)
    return Problem(
        problem_of([[1]], [[9], [9]], [1]).packing,
        np.zeros(3, dtype=np.int64),
        np.array([2, 2, 2]),
        root,
        is_exact=True,
    )


def test_groups_that_are_alike_are_one_kind() -> None:
    kind = kind_of(three_groups(), three_groups().root)
    assert [(each.count, each.part.needed) for each in kind.kinds] == [(2, 2), (1, 1)]


def test_members_are_seated_group_by_group() -> None:
    alike = [Placed(nodes=[[0, 0]]), Placed(nodes=[[0, 1]])]
    counts = seat_counts(three_groups(), Placed(groups=[alike, [Placed(nodes=[[1]])]]))
    assert counts.tolist() == [[2, 0], [0, 1], [1, 1]]


@given(
    most=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    groups=st.integers(1, 4),
    total=st.integers(0, 6),
    chance=st.randoms(use_true_random=False),
)
def test_every_group_has_its_share_and_nothing_is_left(
    most: list[int], groups: int, total: int, chance: Random
) -> None:
    counts = [chance.randint(0, each * groups) for each in most]
    if sum(counts) < total * groups:
        return
    shares = share_out(counts, most, total, groups)
    assert len(shares) == groups
    assert [sum(column) for column in zip(*shares, strict=True)] == counts
    assert all(sum(share) >= total for share in shares)
    assert all(given <= each for share in shares for given, each in zip(share, most, strict=True))
