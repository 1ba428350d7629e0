"""Small packing problems drawn by Hypothesis, and the slow obvious way to solve them."""

from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from muster.base.arrays import Int64
from muster.placement.packing import Packing, Problem, is_placement


def problem_of(
    need: list[list[int]],
    room: list[list[int]],
    available: list[int],
    *,
    needed: int | None = None,
    exclude: tuple[tuple[int, int], ...] = (),
    infeasible: tuple[tuple[int, int], ...] = (),
    domains: tuple[tuple[int, ...], ...] | None = None,
) -> Problem:
    """A problem by its facts; `exclude` has pairs of shapes, `infeasible` a shape and a node each."""
    conflict = np.zeros((len(need), len(need)), dtype=np.bool_)
    for one, other in exclude:
        conflict[one, other] = conflict[other, one] = True
    feasible = np.ones((len(need), len(room)), dtype=np.bool_)
    for shape, node in infeasible:
        feasible[shape, node] = False
    packing = Packing(np.array(room, dtype=np.int64), np.array(need, dtype=np.int64), conflict, feasible)
    everywhere = (tuple(range(len(room))),)
    return Problem(
        packing,
        np.array(available, dtype=np.int64),
        sum(available) if needed is None else needed,
        tuple(np.array(domain, dtype=np.int64) for domain in domains or everywhere),
        is_exact=True,
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """At most three shapes of two resources on four nodes: small enough to try everything."""
    shapes = draw(st.integers(1, 3))
    nodes = draw(st.integers(1, 4))
    need = draw(
        st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=shapes, max_size=shapes)
    )
    room = draw(
        st.lists(st.lists(st.integers(-1, 5), min_size=2, max_size=2), min_size=nodes, max_size=nodes)
    )
    available = draw(st.lists(st.integers(1, 3), min_size=shapes, max_size=shapes))
    pairs = st.tuples(st.integers(0, shapes - 1), st.integers(0, shapes - 1))
    spots = st.tuples(st.integers(0, shapes - 1), st.integers(0, nodes - 1))
    domains: tuple[tuple[int, ...], ...] | None = None
    if nodes > 1 and draw(st.booleans()):
        middle = draw(st.integers(1, nodes - 1))
        domains = (tuple(range(middle)), tuple(range(middle, nodes)))
    return problem_of(
        need,
        room,
        available,
        needed=draw(st.integers(1, sum(available))),
        exclude=tuple(draw(st.lists(pairs, max_size=2))),
        infeasible=tuple(draw(st.lists(spots, max_size=2))),
        domains=domains,
    )


def exists(problem: Problem) -> bool:
    """Whether some distribution of members over nodes is a placement: every one is tried."""
    shape_count, node_count = problem.packing.feasible.shape
    every_shape = [list(_spreads(count, node_count)) for count in problem.available.tolist()]
    chosen: list[tuple[int, ...]] = []

    def try_from(shape: int) -> bool:
        if shape == shape_count:
            counts: Int64 = np.array(chosen, dtype=np.int64)
            return is_placement(problem, counts)
        for spread in every_shape[shape]:
            chosen.append(spread)
            if try_from(shape + 1):
                return True
            chosen.pop()
        return False

    return try_from(0)


def _spreads(count: int, node_count: int) -> Iterator[tuple[int, ...]]:
    """Every way to put at most `count` members on so many nodes."""
    if node_count == 0:
        yield ()
        return
    for here in range(count + 1):
        for rest in _spreads(count - here, node_count - 1):
            yield (here, *rest)
