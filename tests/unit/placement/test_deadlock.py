"""Tests of placement/deadlock.py: circular waits are found, and what can resolve itself is not called one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.base.arrays import Int64
from muster.placement.deadlock import find_stuck


def one_node(free: int, *groups: tuple[int, int]) -> list[bool]:
    """Ask about one node and one resource; a group is (held, members of size one still wanted)."""
    held = np.array([[[holds]] for holds, _ in groups], dtype=np.int64).reshape(len(groups), 1, 1)
    wanted = [np.ones((wants, 1), dtype=np.int64) for _, wants in groups]
    return find_stuck(np.array([[free]]), held, wanted).tolist()


@pytest.mark.parametrize(
    ("free", "groups", "stuck"),
    [
        pytest.param(0, [(6, 2), (6, 2)], [True, True], id="each-holds-what-the-other-needs"),
        pytest.param(2, [(6, 2), (4, 4)], [False, False], id="one-can-finish-and-then-the-other"),
        pytest.param(0, [(8, 0), (4, 4)], [False, False], id="one-runs-and-will-end"),
        pytest.param(0, [(6, 2), (6, 2), (0, 8)], [True, True, True], id="a-third-starves-behind-them"),
        pytest.param(4, [(0, 8)], [True], id="too-large-for-the-cluster"),
        pytest.param(-3, [(5, 1)], [True], id="overcommitted-is-no-room"),
        pytest.param(0, [], [], id="nobody"),
    ],
)
def test_who_is_stuck(free: int, groups: list[tuple[int, int]], stuck: list[bool]) -> None:
    assert one_node(free, *groups) == stuck


def test_room_in_fragments_does_not_add_up() -> None:
    free = np.array([[1], [1]])
    assert find_stuck(free, np.zeros((1, 2, 1), dtype=np.int64), [np.array([[2]])]).tolist() == [True]


def test_what_a_group_holds_comes_back_on_the_node_where_it_holds_it() -> None:
    held = np.array([[[0], [2]], [[0], [0]]])
    wanted = [np.zeros((0, 1), dtype=np.int64), np.array([[2]])]
    assert find_stuck(np.array([[1], [0]]), held, wanted).tolist() == [False, False]
    assert find_stuck(np.array([[1], [0]]), held // 2, wanted).tolist() == [False, True]


def slow(free: int, groups: list[tuple[int, int]]) -> list[bool]:
    """Try every order in which groups could run: stuck are those that no order lets run."""
    ran: set[int] = set()
    for order in itertools.permutations(range(len(groups))):
        left = free
        for group in order:
            holds, wants = groups[group]
            if wants > left:
                break
            left += holds
            ran.add(group)
    return [group not in ran for group in range(len(groups))]


@given(free=st.integers(0, 4), groups=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4))
def test_equals_trying_every_order(free: int, groups: list[tuple[int, int]]) -> None:
    assert one_node(free, *groups) == slow(free, groups)


@given(groups=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4))
def test_more_room_never_makes_anyone_stuck(groups: list[tuple[int, int]]) -> None:
    before, after = one_node(1, *groups), one_node(2, *groups)
    assert all(was or not is_now for was, is_now in zip(before, after, strict=True))


def test_the_arguments_are_not_written() -> None:
    free: Int64 = np.array([[1]])
    held: Int64 = np.array([[[1]]])
    free.flags.writeable = held.flags.writeable = False
    find_stuck(free, held, [np.array([[1]])])
    assert free.tolist() == [[1]]
