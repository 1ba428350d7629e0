"""Clusters with units on them that may be driven out, and ways to try a preemptor there."""

from collections.abc import Callable
from itertools import chain, combinations
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.placement.slow_eviction import Score, SlowTry, choose_slowly, find_needed

from muster.api.core import LabelSelector, LabelSelectorRequirement, Pod
from muster.base.arrays import Float64, Int32, Int64
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner, Weighted
from muster.placement.assignment import UNPLACED, Assigner, assign_members
from muster.placement.eviction import Eviction, On, Trial, Try, choose_eviction
from muster.placement.reprieve import remove_unit
from muster.placement.shapes import shape_key
from muster.placement.steering import Steer
from muster.placement.victims import Cost, Unit, cost_of
from muster.plugins.inter_pod_affinity import InterPodAffinity
from muster.plugins.node_affinity import NodeAffinity
from muster.plugins.node_ports import NodePorts
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.priority_sort import PrioritySort
from muster.plugins.topology_spread import PodTopologySpread
from muster.testing.builders import make_cluster, make_pod

RUNNER = Runner(
    [
        Weighted(plugin)
        for plugin in (
            PrioritySort(),
            NodeResourcesFit(),
            NodePorts(),
            NodeAffinity(),
            PodTopologySpread(),
            InterPodAffinity(),
        )
    ]
)
HOST = "kubernetes.io/hostname"
LOUD = {"labelSelector": {"matchLabels": {"loud": "yes"}}, "topologyKey": HOST}
NEAR_LOUD = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [LOUD]}}}
EVEN = {"topology_spread_constraints": [{**LOUD, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
OUTSIDE = {"outside": "yes"}
INSIDE = {"matchExpressions": [{"key": "outside", "operator": "DoesNotExist"}]}
NOT_OUTSIDE = {
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [INSIDE]}}
    }
}
LEAVING = "2026-01-01T00:00:30Z"


def tries(pods: list[Pod], minimum: int) -> On:
    """Members placed shape by shape; enough are `minimum`."""

    def on(fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True) -> Trial:
        judge = RUNNER if steer is None else RUNNER.steered(steer)
        assigner = Assigner(fork.fork(), judge, fork.live_rows() if rows is None else rows)
        can_count = all(RUNNER.can_count(pod, fork, fork.live_rows()) for pod in pods)
        chosen = assign_members(pods, [shape_key(pod) for pod in pods], assigner, count_alike=can_count)
        return trial_of(pods, chosen.tolist(), minimum)

    return on


def slow_tries(pods: list[Pod], minimum: int) -> Callable[[Snapshot, Int32 | None, Score | None], Trial]:
    """Members placed one by one."""

    def on(fork: Snapshot, rows: Int32 | None, score: Score | None) -> Trial:
        judge = RUNNER if score is None else RUNNER.steered(OneByOne(score))
        assigner = Assigner(fork.fork(), judge, fork.live_rows() if rows is None else rows)
        found = [assigner.assign_one(pod, shape_key(pod)) for pod in pods]
        return trial_of(pods, [UNPLACED if row is None else row for row in found], minimum)

    return on


def trial_of(pods: list[Pod], rows: list[int], minimum: int) -> Trial:
    seats = tuple((pod, row) for pod, row in zip(pods, rows, strict=True) if row != UNPLACED)
    refused = tuple(pod for pod, row in zip(pods, rows, strict=True) if row == UNPLACED)[:1]
    return Trial(len(seats) >= minimum, f"{len(seats)} of {minimum}", seats, refused=refused)


class OneByOne:
    name: ClassVar[str] = "one by one"

    def __init__(self, score: Score) -> None:
        self.score = score

    def lay(
        self, pod: Pod, snapshot: Snapshot, rows: Int32, fits: Int64, score: Float64, count: int
    ) -> Int64:
        raise AssertionError("members are placed one by one")


class Scene:
    """A cluster with units on it, each a list of (node number, cpu); the last words of a unit are its own."""

    def __init__(self, nodes: list[int]) -> None:
        self.cluster = make_cluster()
        for cpu in nodes:
            self.cluster.node(cpu=cpu)
        self.units: list[Unit] = []

    def unit(
        self,
        priority: int,
        *pods: tuple[int, int],
        start_s: float = 0.0,
        leaving: bool = False,
        labels: dict[str, str] | None = None,
        **words: Any,
    ) -> "Scene":
        number = len(self.units)
        made = []
        for index, (node, cpu) in enumerate(pods):
            name = f"u{number}-{index}"
            named = {"unit": f"u{number}", **(labels or {})}
            pod = make_pod(name, cpu=cpu, node=f"n{node + 1}", labels=named, **words)
            if leaving:
                pod = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=LEAVING))
            self.cluster.state.apply_pod(pod)
            made.append((pod, node))
        self.units.append(Unit(f"u{number}", priority, tuple(made), len(made) > 1, start_s))
        return self

    def outside(self, count: int) -> "Scene":
        """One node more, full of the least important, where those that are `NOT_OUTSIDE` may not be."""
        self.cluster.node(cpu=count, labels=OUTSIDE)
        for _ in range(count):
            self.unit(0, (len(self.cluster.snapshot().live_rows()) - 1, 1))
        return self

    def budget(self, *units: int, allowed: int) -> Budget:
        names = [f"u{unit}" for unit in units]
        selector = LabelSelector(match_expressions=[LabelSelectorRequirement("unit", "In", names)])
        return Budget("default", "-".join(names), selector=selector, allowed=allowed)

    def choose(
        self, count: int, cpu: int, *, minimum: int | None = None, budgets: tuple[Budget, ...] = ()
    ) -> Eviction | Trial:
        pods = [make_pod(f"h-{index}", cpu=cpu) for index in range(count)]
        return self.choose_for(pods, minimum=minimum, budgets=budgets)

    def choose_for(
        self, pods: list[Pod], *, minimum: int | None = None, budgets: tuple[Budget, ...] = ()
    ) -> Eviction | Trial:
        way = Try(on=tries(pods, len(pods) if minimum is None else minimum), members=len(pods))
        return choose_eviction(self.sorted_units(), budgets, self.cluster.snapshot(), RUNNER, way)

    def choose_slowly(self, pods: list[Pod], budgets: tuple[Budget, ...]) -> Eviction | Trial:
        way = SlowTry(slow_tries(pods, len(pods)), len(pods))
        return choose_slowly(self.units, budgets, self.cluster.snapshot(), RUNNER, way)

    def sorted_units(self) -> list[Unit]:
        return sorted(self.units, key=lambda unit: unit.importance)

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
        scene.budget(*{index, draw(st.integers(0, index))}, allowed=draw(st.integers(0, 2)))
        for index in range(len(scene.units))
        if draw(st.integers(0, 3)) == 0
    )
    return scene, draw(st.integers(1, 3)), draw(st.integers(1, 3)), budgets
