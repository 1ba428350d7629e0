"""Whose end, or how many nodes, would be enough: against trying everything."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.base.arrays import Int64
from muster.placement.relief import (
    Ask,
    RunningGroup,
    count_placeable,
    find_fewest_endings,
    find_fewest_nodes,
)


def ask(*request: int, count: int, usable: list[bool] | None = None, nodes: int = 3, **words: object) -> Ask:
    mask = np.ones(nodes, dtype=np.bool_) if usable is None else np.array(usable)
    return Ask(np.array(request), count, mask, **words)  # type: ignore[arg-type]


def group(name: str, held: dict[int, list[int]]) -> RunningGroup:
    rows = np.array(sorted(held), dtype=np.int32)
    return RunningGroup(name, rows, np.array([held[row] for row in sorted(held)]))


def obvious_endings(
    free: Int64, asks: list[Ask], needed: int, running: list[RunningGroup]
) -> tuple[str, ...] | None:
    """The slow twin: every set, small ones first, in order of name."""
    in_order = sorted(running, key=lambda g: g.name)
    for size in range(len(running) + 1):
        for chosen in combinations(in_order, size):
            left = free.copy()
            for one in chosen:
                left[one.rows] += one.requests
            if count_placeable(left, asks) >= needed:
                return tuple(one.name for one in chosen)
    return None


@st.composite
def situations(draw: st.DrawFn) -> tuple[Int64, list[Ask], int, list[RunningGroup]]:
    free = np.array(
        draw(st.lists(st.lists(st.integers(-2, 4), min_size=2, max_size=2), min_size=3, max_size=3))
    )
    asks = [
        ask(
            draw(st.integers(1, 3)),
            draw(st.integers(0, 2)),
            count=draw(st.integers(1, 4)),
            usable=draw(st.lists(st.booleans(), min_size=3, max_size=3)),
        )
        for _ in range(draw(st.integers(1, 2)))
    ]
    running = [
        group(
            name,
            draw(
                st.dictionaries(
                    st.integers(0, 2), st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1
                )
            ),
        )
        for name in draw(st.permutations(["a", "b", "c", "d"]))[: draw(st.integers(0, 4))]
    ]
    return free, asks, draw(st.integers(0, sum(a.member_count for a in asks))), running


@settings(max_examples=300)
@given(situations())
def test_the_fewest_endings_equal_trying_every_set(
    situation: tuple[Int64, list[Ask], int, list[RunningGroup]],
) -> None:
    free, asks, needed, running = situation
    assert find_fewest_endings(free, asks, needed, running) == obvious_endings(free, asks, needed, running)


@given(situations())
def test_the_fewest_nodes_are_enough_and_one_less_is_not(
    situation: tuple[Int64, list[Ask], int, list[RunningGroup]],
) -> None:
    free, asks, needed, _ = situation
    if count_placeable(free, asks) >= needed:
        return
    allocatable = np.maximum(free, 0) + 1
    live = np.array([True, True, False])
    found = find_fewest_nodes(free, allocatable, live, asks, needed)

    def enough(row: int, extra: int) -> bool:
        grown = np.concatenate([free, np.repeat(allocatable[row : row + 1], extra, axis=0)])
        more = [a._replace(usable=np.append(a.usable, [a.usable[row]] * extra)) for a in asks]
        return count_placeable(grown, more) >= needed

    least = [next((k for k in range(1, needed + 1) if enough(row, k)), None) for row in (0, 1)]
    possible = [(count, row) for row, count in enumerate(least) if count is not None]
    assert found == (min(possible) if possible else None)


def test_members_that_name_their_node_gain_nothing_by_more_nodes() -> None:
    asks = [ask(1, count=2, nodes=1, can_grow=False)]
    assert find_fewest_nodes(np.array([[0]]), np.array([[4]]), np.array([True]), asks, 2) is None


def test_a_kind_of_node_that_holds_more_wins_and_the_lowest_row_on_a_tie() -> None:
    asks = [ask(1, count=8)]
    free = np.zeros((3, 1), dtype=np.int64)
    live = np.ones(3, dtype=np.bool_)
    assert find_fewest_nodes(free, np.array([[1], [4], [5]]), live, asks, 8) == (2, 1)


def test_one_member_a_node_where_ports_keep_them_apart() -> None:
    assert count_placeable(np.array([[8], [8], [0]]), [ask(1, count=5, per_node_max=1)]) == 2


def test_what_an_earlier_shape_takes_a_later_one_cannot_have() -> None:
    assert count_placeable(np.array([[4], [0], [0]]), [ask(3, count=1), ask(2, count=1)]) == 1


def test_groups_that_free_nothing_useful_are_not_named() -> None:
    asks = [ask(0, 1, count=1, usable=[True, False, False])]
    free = np.zeros((3, 2), dtype=np.int64)
    running = [group("cpu-only", {0: [5, 0]}), group("elsewhere", {1: [0, 5]}), group("it", {0: [0, 1]})]
    assert find_fewest_endings(free, asks, 1, running) == ("it",)


def test_many_groups_are_searched_greedily_and_none_named_could_be_left_out() -> None:
    count = 120
    free = np.zeros((count, 1), dtype=np.int64)
    running = [group(f"g{i:03}", {i: [1 + i % 3]}) for i in range(count)]
    asks = [ask(1, count=50, nodes=count)]
    found = find_fewest_endings(free, asks, 50, running)
    assert found is not None
    assert len(found) == 17  # 16 that hold three each and one of two
    freed = sum(int(g.requests.sum()) for g in running if g.name in found)
    assert 50 <= freed < 50 + 2


def test_who_was_tried_in_vain_by_the_greedy_search_is_left_out() -> None:
    """Two halves of one node free nothing alone, nor do the halves whose other half stays."""
    idle = [group(f"b{i:02}", {i + 2: [4]}) for i in range(78)]
    running = [group("a", {0: [8]}), *idle, group("y", {1: [4]}), group("z", {1: [4]})]
    free = np.zeros((80, 1), dtype=np.int64)
    asks = [ask(8, count=2, nodes=80)]
    assert find_fewest_endings(free, asks, 2, running) == ("a", "y", "z")
