"""Small packing problems drawn by Hypothesis, and the slow obvious way to solve them."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from hypothesis import strategies as st

from muster.base.arrays import Int64
from muster.placement.packing import Packing, Problem, group_problem, is_placement
from muster.placement.parts import Part


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
    return group_problem(
        packing,
        np.array(available, dtype=np.int64),
        needed=sum(available) if needed is None else needed,
        domains=tuple(np.array(domain, dtype=np.int64) for domain in domains or everywhere),
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


# ── trees ────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def tree_problems(draw: st.DrawFn) -> Problem:
    """A tree of two or three levels on four nodes, its parts in one half or another of the parent's nodes."""
    nodes, shapes = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    room = draw(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=1), min_size=nodes, max_size=nodes))
    need = draw(
        st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=1), min_size=shapes, max_size=shapes)
    )
    lots: list[tuple[int, int]] = []

    def domains(above: tuple[Int64, ...], parts: int) -> tuple[tuple[Int64, ...], tuple[int, ...]]:
        """Each of these domains whole, or cut by the remainder of the node's index."""
        found, inside = [], []
        for index, outer in enumerate(above):
            for remainder in range(parts):
                inner = outer[outer % parts == remainder]
                if inner.size:
                    found.append(inner)
                    inside.append(index)
        return tuple(found), tuple(inside)

    def leaf(above: tuple[Int64, ...]) -> Part:
        mine = draw(st.lists(st.integers(0, shapes - 1), min_size=1, max_size=2, unique=True))
        first = len(lots)
        lots.extend((shape, draw(st.integers(1, 2))) for shape in mine)
        found, inside = domains(above, draw(st.integers(1, 2)))
        most = sum(available for _, available in lots[first:])
        return Part(draw(st.integers(0, most)), found, inside, lots=tuple(range(first, len(lots))))

    def tree(above: tuple[Int64, ...], level: int) -> Part:
        found, inside = domains(above, draw(st.integers(1, 2)))
        children = []
        for _ in range(draw(st.integers(1, 3 if level else 2))):
            is_tree = level == 0 and len(lots) < 3 and draw(st.booleans())
            if len(lots) < 4:
                children.append(tree(found, 1) if is_tree else leaf(found))
        if not children:
            children.append(leaf(found))
        return Part(draw(st.integers(1, len(children))), found, inside, parts=tuple(children))

    root = tree((np.arange(nodes),), 0)
    packing = problem_of(need, room, [1] * shapes).packing
    shape_of_lot, available = (np.array(column) for column in zip(*lots, strict=True))
    return Problem(packing, shape_of_lot, available, root, is_exact=True)


def exists_in_tree(problem: Problem) -> bool:
    """The same question as `exists`, without a look at `parts.py`: choose domains and groups, then place."""
    return any(
        _can_place(problem, members, problem.packing.room[:, 0].tolist())
        for members in _choices(problem, problem.root, 0)
    )


Asked = tuple[tuple[int, int], ...]  # (lot, node bits) of every member that must be placed


def _choices(problem: Problem, part: Part, above: int) -> Iterator[Asked]:
    """Every way to be placed inside this domain of the part above: a member and where it may go, each."""
    for index, domain in enumerate(part.domains):
        if part.inside[index] != above:
            continue
        if not part.parts:
            members = [lot for lot in part.lots for _ in range(int(problem.available[lot]))]
            where = sum(1 << node for node in domain.tolist())
            for chosen in set(combinations(members, part.needed)):
                yield tuple((lot, where) for lot in chosen)
            continue
        for groups in combinations(part.parts, min(part.needed, len(part.parts))):
            for picks in product(*(list(_choices(problem, group, index)) for group in groups)):
                yield tuple(member for pick in picks for member in pick)


def _can_place(problem: Problem, members: Asked, room: list[int]) -> bool:
    if not members:
        return True
    (lot, where), *rest = members
    need = int(problem.packing.need[problem.shape_of_lot[lot], 0])
    for node, free in enumerate(room):
        if where >> node & 1 and free >= need:
            left = [*room[:node], free - need, *room[node + 1 :]]
            if _can_place(problem, tuple(rest), left):
                return True
    return False
