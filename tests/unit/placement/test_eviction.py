"""Place and victims chosen together, against every set of victims there is."""

from collections.abc import Callable
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.api.core import LabelSelector, Pod
from muster.base.arrays import Int32
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner, Weighted
from muster.placement.assignment import Assigner
from muster.placement.eviction import Eviction, Steer, Trial, Try, choose_eviction
from muster.placement.shapes import shape_key
from muster.placement.victims import Cost, Unit, cost_of, find_needed, remove_unit
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.priority_sort import PrioritySort
from muster.testing.builders import make_cluster, make_pod

RUNNER = Runner([Weighted(PrioritySort()), Weighted(NodeResourcesFit())])
LEAVING = "2026-01-01T00:00:30Z"


class Steered:
    name = "steered"

    def __init__(self, score: Steer) -> None:
        self.score = score


def tries(pods: list[Pod], minimum: int) -> Callable[[Snapshot, Int32 | None, Steer | None], Trial]:
    """Members placed one by one; enough are `minimum`."""

    def on(fork: Snapshot, rows: Int32 | None, steer: Steer | None) -> Trial:
        judge = RUNNER if steer is None else RUNNER.steered(Steered(steer))
        assigner = Assigner(fork.fork(), judge, fork.live_rows() if rows is None else rows)
        found = [(pod, assigner.assign_one(pod, shape_key(pod))) for pod in pods]
        seats = tuple((pod, row) for pod, row in found if row is not None)
        return Trial(len(seats) >= minimum, f"{len(seats)} of {minimum}", seats)

    return on


class Scene:
    """A cluster with units on it, each a list of (node number, cpu); the last words of a unit are its own."""

    def __init__(self, nodes: list[int]) -> None:
        self.cluster = make_cluster()
        for cpu in nodes:
            self.cluster.node(cpu=cpu)
        self.units: list[Unit] = []

    def unit(
        self, priority: int, *pods: tuple[int, int], start_s: float = 0.0, leaving: bool = False
    ) -> "Scene":
        number = len(self.units)
        made = []
        for index, (node, cpu) in enumerate(pods):
            name = f"u{number}-{index}"
            pod = make_pod(name, cpu=cpu, node=f"n{node + 1}", labels={"unit": f"u{number}"})
            if leaving:
                pod = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=LEAVING))
            self.cluster.state.apply_pod(pod)
            made.append((pod, node))
        self.units.append(Unit(f"u{number}", priority, tuple(made), len(made) > 1, start_s))
        return self

    def budget(self, unit: int, allowed: int) -> Budget:
        selector = LabelSelector(match_labels={"unit": f"u{unit}"})
        return Budget("default", f"b{unit}", selector=selector, allowed=allowed)

    def choose(
        self, count: int, cpu: int, *, minimum: int | None = None, budgets: tuple[Budget, ...] = ()
    ) -> Eviction | Trial:
        pods = [make_pod(f"h-{index}", cpu=cpu) for index in range(count)]
        way = Try(on=tries(pods, count if minimum is None else minimum), members=count)
        return choose_eviction(self.units, budgets, self.cluster.snapshot(), RUNNER, way)

    def victims(self, count: int, cpu: int, **words: object) -> list[str]:
        found = self.choose(count, cpu, **words)  # type: ignore[arg-type]
        assert isinstance(found, Eviction)
        return sorted(unit.name for unit in found.victims)

    def stock_cost(self, count: int, cpu: int, budgets: tuple[Budget, ...]) -> Cost | None:
        """Everything weaker gone, the place fixed by score, and who may stay there spared."""
        pods = [make_pod(f"h-{index}", cpu=cpu) for index in range(count)]
        ground = self.cluster.snapshot().fork()
        for unit in self.units:
            remove_unit(ground, unit)
        placed = tries(pods, count)(ground, None, None)
        if not placed.ok:
            return None
        return cost_of(find_needed(self.units, placed.seats, ground, budgets, RUNNER), budgets)

    def least_cost(self, count: int, cpu: int, budgets: tuple[Budget, ...]) -> Cost | None:
        """The cheapest of all sets of victims with which all members fit."""
        costs = []
        sets = chain.from_iterable(combinations(self.units, n) for n in range(len(self.units) + 1))
        for victims in sets:
            fork = self.cluster.snapshot().fork()
            for unit in self.units:
                if unit.is_leaving or any(unit is victim for victim in victims):
                    remove_unit(fork, unit)
            free = fork.free[:, fork.axis.column_of("cpu")]
            if int((np.maximum(free, 0) // (1000 * cpu)).sum()) >= count:
                costs.append(cost_of(victims, budgets))
        return min(costs, default=None)


def test_the_less_important_goes_wherever_it_is() -> None:
    assert Scene([1, 1]).unit(10, (0, 1)).unit(5, (1, 1)).victims(1, 1) == ["u1"]


def test_one_victim_is_better_than_two() -> None:
    scene = Scene([2, 2]).unit(5, (0, 1)).unit(5, (0, 1)).unit(5, (1, 2))
    assert scene.victims(1, 2) == ["u2"]


def test_two_of_little_importance_are_better_than_one_of_more() -> None:
    scene = Scene([2, 2]).unit(5, (0, 1)).unit(5, (0, 1)).unit(6, (1, 2))
    assert scene.victims(1, 2) == ["u0", "u1"]


def test_a_budget_counts_more_than_importance() -> None:
    scene = Scene([1, 1]).unit(5, (0, 1)).unit(10, (1, 1))
    assert scene.victims(1, 1, budgets=(scene.budget(0, 0),)) == ["u1"]


def test_a_group_that_goes_whole_is_spared_for_a_pod_beside_it() -> None:
    scene = Scene([1, 1, 1]).unit(5, (0, 1), (1, 1)).unit(5, (2, 1))
    assert scene.victims(1, 1) == ["u1"]


def test_a_group_that_goes_whole_gives_all_its_room() -> None:
    scene = Scene([1, 1, 1, 1]).unit(5, (0, 1), (1, 1)).unit(5, (2, 1)).unit(6, (3, 1))
    assert scene.victims(2, 1) == ["u0"]


def test_who_is_leaving_anyway_is_waited_for() -> None:
    scene = Scene([1, 1]).unit(5, (0, 1)).unit(9, (1, 1), leaving=True)
    found = scene.choose(1, 1)
    assert isinstance(found, Eviction)
    assert found.cost.is_nothing
    assert found.seats[0][1] == 1


def test_who_started_later_goes_where_all_else_is_equal() -> None:
    assert Scene([1, 1]).unit(5, (0, 1), start_s=9.0).unit(5, (1, 1), start_s=3.0).victims(1, 1) == ["u0"]
    assert Scene([1, 1]).unit(5, (0, 1), start_s=3.0).unit(5, (1, 1), start_s=9.0).victims(1, 1) == ["u1"]


def test_nobody_goes_for_a_group_that_would_not_fit_all_the_same() -> None:
    found = Scene([1, 1]).unit(5, (0, 1)).unit(5, (1, 1)).choose(3, 1)
    assert found == Trial(False, "2 of 3", found.seats)


def test_as_many_members_are_seated_as_fit_when_all_weaker_are_gone() -> None:
    found = Scene([1, 1, 1]).unit(5, (0, 1)).unit(6, (1, 1)).unit(7, (2, 1)).choose(4, 1, minimum=1)
    assert isinstance(found, Eviction)
    assert len(found.seats) == 3


UNIT = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=3, unique_by=lambda p: p[0]
)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Scene, int, int, tuple[Budget, ...]]:
    nodes = draw(st.lists(st.integers(2, 5), min_size=4, max_size=4))
    scene = Scene(nodes)
    room = list(nodes)
    for pods in draw(st.lists(UNIT, max_size=6)):
        if all(room[node] >= cpu for node, cpu in pods):
            for node, cpu in pods:
                room[node] -= cpu
            start_s = float(draw(st.integers(0, 3)))
            leaving = draw(st.integers(0, 5)) == 0
            scene.unit(draw(st.integers(1, 4)), *pods, start_s=start_s, leaving=leaving)
    budgets = tuple(
        scene.budget(index, draw(st.integers(0, 1)))
        for index in range(len(scene.units))
        if draw(st.integers(0, 3)) == 0
    )
    return scene, draw(st.integers(1, 3)), draw(st.integers(1, 3)), budgets


@settings(deadline=None, max_examples=150)
@given(scenes())
def test_it_is_as_cheap_as_the_cheapest_of_all_sets(
    drawn: tuple[Scene, int, int, tuple[Budget, ...]],
) -> None:
    scene, count, cpu, budgets = drawn
    found = scene.choose(count, cpu, budgets=budgets)
    least = scene.least_cost(count, cpu, budgets)
    if isinstance(found, Trial):
        assert least is None
    else:
        assert found.cost == least


@settings(deadline=None, max_examples=100)
@given(scenes())
def test_every_victim_is_in_the_way_and_none_is_worse_than_stock_would_take(
    drawn: tuple[Scene, int, int, tuple[Budget, ...]],
) -> None:
    scene, count, cpu, budgets = drawn
    found = scene.choose(count, cpu, budgets=budgets)
    if isinstance(found, Trial):
        return
    stock = scene.stock_cost(count, cpu, budgets)
    assert stock is not None
    assert found.cost <= stock
    gone = [unit for unit in found.victims if not unit.is_leaving]
    leaving = [unit for unit in scene.units if unit.is_leaving]
    for back in [None, *gone]:
        fork = scene.cluster.snapshot().fork()
        for unit in (*leaving, *(unit for unit in gone if unit is not back)):
            remove_unit(fork, unit)
        for pod, row in found.seats:
            fork.place(pod, row)
        overfull = bool((fork.free < 0).any())
        assert overfull == (back is not None)


@pytest.mark.parametrize("nodes", [200])
def test_a_large_search_ends_soon(nodes: int) -> None:
    scene = Scene([4] * nodes)
    for node in range(nodes):
        for _ in range(4):
            scene.unit(node % 7, (node, 1))
    found = scene.choose(20, 2)
    assert isinstance(found, Eviction)
    assert found.cost.pods == 40
    assert found.cost.highest == 0
