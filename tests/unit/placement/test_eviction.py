"""Place and victims chosen together, against every set of victims there is."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.placement.eviction_scenes import (
    EVEN,
    HOST,
    LOUD,
    NEAR_LOUD,
    RUNNER,
    Scene,
    scenes,
    slow_tries,
    tries,
)
from tests.unit.placement.slow_eviction import find_needed

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.budgets import Budget
from muster.cluster.snapshot import Snapshot
from muster.placement.evictable import UnitColumns
from muster.placement.eviction import (
    Eviction,
    EvictionSearch,
    Trial,
    Try,
    choose_eviction,
    repeat_eviction,
)
from muster.placement.reprieve import Reprieve, remove_unit
from muster.placement.steering import Steer
from muster.placement.victims import Cost, cost_of
from muster.testing.builders import make_node, make_pod


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
    assert scene.victims(1, 1, budgets=(scene.budget(0, allowed=0),)) == ["u1"]


def test_of_those_whom_one_budget_covers_the_one_that_makes_room_goes() -> None:
    """As seed 31888 of the differential scenarios: the one that was of no use took what the budget allows."""
    scene = Scene([3, 3, 3]).unit(10, (0, 3)).unit(5, (1, 3)).unit(4, (2, 1))
    scene.cluster.running("stays", "n3", cpu=1)
    assert scene.victims(1, 3, budgets=(scene.budget(1, 2, allowed=1),)) == ["u1"]


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
    assert isinstance(found, Trial)
    assert (found.ok, found.message) == (False, "2 of 3")


def test_one_that_needs_somebody_to_stay_is_tried_on_every_row_in_turn() -> None:
    scene = Scene([2, 2]).unit(5, (0, 2)).unit(5, (1, 1)).unit(5, (1, 1))
    snapshot = scene.cluster.snapshot()

    def beside_somebody(
        fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True
    ) -> Trial:
        """Only on the second node, and only while somebody is on the first."""
        free = rows is not None and rows.tolist() == [1] and bool(fork.pods_on(0))
        return Trial(free, "", ((make_pod("h"), 1),) if free else (), frozenset({"Beside"}))

    found = choose_eviction(scene.sorted_units(), (), snapshot, RUNNER, Try(on=beside_somebody, members=1))
    assert isinstance(found, Eviction)
    assert {unit.name for unit in found.victims} <= {"u1", "u2"}


def test_where_nothing_counts_but_room_nobody_needs_to_stay() -> None:
    scene = Scene([1, 1]).unit(5, (0, 1)).unit(4, (1, 1))
    asked = []

    def too_large(fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True) -> Trial:
        asked.append(rows)
        return Trial(False, "no", refused=(make_pod("h", cpu=2),))

    for members in (1, 2):
        found = choose_eviction(
            scene.sorted_units(), (), scene.cluster.snapshot(), RUNNER, Try(on=too_large, members=members)
        )
        assert isinstance(found, Trial)
    assert asked == [None, None]


def test_members_that_need_one_of_those_to_stay_drive_out_the_other() -> None:
    """As seed 6435 of the differential scenarios: evenness asks for the pod of the other zone."""
    scene = Scene([4, 1])
    scene.cluster.running("stays", "n1", cpu=1, labels={"loud": "yes"})
    scene.unit(3, (0, 3), labels={"loud": "yes"}).unit(3, (1, 1), labels={"loud": "yes"})
    pods = [make_pod(f"h-{index}", cpu=2, labels={"loud": "yes"}, **EVEN) for index in range(4)]
    found = scene.choose_for(pods, minimum=1)
    assert isinstance(found, Eviction)
    assert [unit.name for unit in found.victims] == ["u0"]
    assert [row for _, row in found.seats] == [0]


def test_what_is_in_the_way_on_any_row_is_told() -> None:
    scene = Scene([1, 1]).unit(5, (0, 1)).unit(5, (1, 1))

    def refused(fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True) -> Trial:
        where = f"on {rows.tolist()}" if rows is not None else "all"
        return Trial(False, "no", rejectors=frozenset({where} if explain else ()))

    found = choose_eviction(
        scene.sorted_units(), (), scene.cluster.snapshot(), RUNNER, Try(on=refused, members=1)
    )
    assert found == Trial(False, "no", rejectors=frozenset({"all", "on [0]", "on [1]"}))


def test_why_a_try_failed_is_asked_only_while_there_is_no_answer() -> None:
    scene = Scene([2, 2]).unit(5, (0, 2)).unit(6, (1, 1)).unit(7, (1, 1))
    place, asked = tries([make_pod("h", cpu=2)], 1), []

    def remembering(fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True) -> Trial:
        found = place(fork, rows, steer, explain)
        asked.append((found.ok, explain))
        return found

    way = Try(on=remembering, members=1)
    choose_eviction(scene.sorted_units(), (), scene.cluster.snapshot(), RUNNER, way)
    assert asked[0] == (True, True)
    assert (False, False) in asked
    assert not any(explain for _, explain in asked[1:])


def test_as_many_members_are_seated_as_fit_when_all_weaker_are_gone() -> None:
    found = Scene([1, 1, 1]).unit(5, (0, 1)).unit(6, (1, 1)).unit(7, (2, 1)).choose(4, 1, minimum=1)
    assert isinstance(found, Eviction)
    assert len(found.seats) == 3


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


@st.composite
def needy(draw: st.DrawFn) -> tuple[Scene, list[Pod], int]:
    """Members that want company, or evenness, among few units that may give either and take room."""
    nodes = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    scene, room = Scene(nodes), list(nodes)
    for node, cpu, priority, is_loud in draw(
        st.lists(
            st.tuples(st.integers(0, len(nodes) - 1), st.integers(1, 3), st.integers(1, 3), st.booleans()),
            min_size=1,
            max_size=5,
        )
    ):
        if room[node] >= cpu:
            room[node] -= cpu
            scene.unit(priority, (node, cpu), labels={"loud": "yes"} if is_loud else None)
    rule = draw(st.sampled_from([NEAR_LOUD, EVEN]))
    count = draw(st.integers(1, 3))
    labels = {"loud": "yes"} if rule is EVEN or draw(st.booleans()) else {}
    cpu = draw(st.integers(1, 3))
    pods = [make_pod(f"h-{index}", cpu=cpu, labels=labels, **rule) for index in range(count)]
    return scene, pods, draw(st.integers(1, count))


@settings(deadline=None, max_examples=200)
@given(needy())
def test_who_needs_some_to_stay_takes_the_cheapest_of_all_sets(drawn: tuple[Scene, list[Pod], int]) -> None:
    scene, pods, minimum = drawn
    way = tries(pods, minimum)
    costs: dict[int, Cost] = {}
    sets = chain.from_iterable(combinations(scene.units, n) for n in range(len(scene.units) + 1))
    for victims in sets:
        fork = scene.cluster.snapshot().fork()
        for unit in victims:
            remove_unit(fork, unit)
        placed = way(fork, None, None)
        if placed.ok:
            costs[len(victims)] = min(costs.get(len(victims), Cost(2**62)), cost_of(victims, ()))
    assume(len(scene.units) not in costs)  # it does not fit with everybody gone
    assume(any("loud" in (pod.metadata.labels or {}) for unit in scene.units for pod, _ in unit.pods))
    found = scene.choose_for(pods, minimum=minimum)
    assert isinstance(found, Eviction) == bool(costs)
    if isinstance(found, Eviction):
        assert found.cost <= min(costs.values())
        fork = scene.cluster.snapshot().fork()
        for unit in found.victims:
            remove_unit(fork, unit)
        for pod, row in found.seats:
            assert RUNNER.filter(pod, fork, np.array([row], dtype=np.int32)).feasible[0]
            fork.place(pod, row)


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


AWAY_FROM_LOUD = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [LOUD]}}


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Scene, list[Pod], tuple[Budget, ...]]:
    """More units than are searched set by set; members of two shapes, with ports and rules between pods."""
    nodes = draw(st.lists(st.integers(3, 8), min_size=6, max_size=8))
    scene = Scene(nodes)
    room = list(nodes)
    for _ in range(draw(st.integers(18, 34))):
        unit = st.lists(
            st.tuples(st.integers(0, len(nodes) - 1), st.integers(1, 2)),
            min_size=1,
            max_size=2,
            unique_by=lambda pair: pair[0],
        )
        pods = draw(unit)
        if all(room[node] >= cpu for node, cpu in pods):
            for node, cpu in pods:
                room[node] -= cpu
            words = draw(st.sampled_from([{}, {}, {}, {"host_ports": [80]}, {"labels": {"loud": "yes"}}]))
            start_s = float(draw(st.integers(0, 3)))
            scene.unit(draw(st.integers(1, 4)), *pods, start_s=start_s, **words)
    budgets = tuple(
        scene.budget(index, allowed=draw(st.integers(0, 1)))
        for index in range(len(scene.units))
        if draw(st.integers(0, 5)) == 0
    )
    kinds = draw(
        st.lists(st.sampled_from([{}, {"host_ports": [80]}, {"affinity": AWAY_FROM_LOUD}]), max_size=1)
    )
    members = draw(st.integers(1, 5))
    shapes = [dict(cpu=draw(st.integers(1, 3)), **words) for words in ({}, *kinds)]
    pods = [make_pod(f"h-{index}", **shapes[index * len(shapes) // members]) for index in range(members)]
    return scene, pods, budgets


@settings(deadline=None, max_examples=200)
@given(crowds())
def test_among_many_units_it_is_no_dearer_than_the_slow_search(
    drawn: tuple[Scene, list[Pod], tuple[Budget, ...]],
) -> None:
    scene, pods, budgets = drawn
    found = scene.choose_for(pods, budgets=budgets)
    slow = scene.choose_slowly(pods, budgets)
    assert isinstance(found, Trial) == isinstance(slow, Trial)
    if isinstance(found, Eviction) and isinstance(slow, Eviction):
        assert found.cost <= slow.cost
        assert len(found.seats) == len(slow.seats)


@settings(deadline=None, max_examples=100)
@given(crowds())
def test_who_may_stay_is_the_same_whether_counted_or_asked_one_by_one(
    drawn: tuple[Scene, list[Pod], tuple[Budget, ...]],
) -> None:
    scene, pods, budgets = drawn
    units = scene.sorted_units()
    ground = scene.cluster.snapshot().fork()
    for unit in units:
        remove_unit(ground, unit)
    placed = slow_tries(pods, 1)(ground, None, None)
    if not placed.ok:
        return
    reprieve = Reprieve(UnitColumns(units, scene.cluster.snapshot()), budgets, RUNNER)
    found = reprieve.find_needed(units, placed.seats, ground)
    slow = find_needed(units, placed.seats, ground, budgets, RUNNER)
    assert [unit.name for unit in found] == [unit.name for unit in slow]


def test_one_member_of_a_large_cluster_takes_the_row_that_costs_least_of_all() -> None:
    scene = Scene([2] * 60)
    for node in range(60):
        if node != 45:
            scene.unit(5, (node, 1)).unit(5, (node, 1))
    scene.unit(5, (45, 2))
    assert scene.victims(1, 2) == [scene.units[-1].name]


def advanced(scene: Scene, count: int, cpu: int) -> EvictionSearch:
    pods = [make_pod(f"h-{index}", cpu=cpu) for index in range(count)]
    way = Try(on=tries(pods, count), members=count)
    return EvictionSearch(scene.sorted_units(), (), scene.cluster.snapshot(), RUNNER, way)


@settings(deadline=None, max_examples=50)
@given(scenes(), st.integers(1, 5000))
def test_a_search_in_pieces_finds_what_it_finds_in_one_go(
    drawn: tuple[Scene, int, int, tuple[Budget, ...]], work: int
) -> None:
    scene, count, cpu, _ = drawn
    search = advanced(scene, count, cpu)
    while not search.advance(work):
        assert isinstance(search.answer, Eviction)
    whole = scene.choose(count, cpu)
    if isinstance(whole, Eviction):
        assert isinstance(search.answer, Eviction)
        assert search.answer.cost == whole.cost
    else:
        assert isinstance(search.answer, Trial)


def test_what_was_found_holds_while_its_victims_are_the_same_and_no_longer() -> None:
    scene = Scene([1, 1, 1]).unit(5, (0, 1)).unit(3, (1, 1)).unit(4, (2, 1))
    found = scene.choose(1, 1)
    assert isinstance(found, Eviction)
    facts = ((), scene.cluster.snapshot(), RUNNER, Try(on=tries([make_pod("h", cpu=1)], 1), members=1))
    again = repeat_eviction(found, scene.sorted_units(), *facts)
    assert again is not None
    assert [unit.name for unit in again.victims] == ["u1"]
    others = [unit for unit in scene.sorted_units() if unit.name != "u1"]
    assert repeat_eviction(found, others, *facts) is None
    (one,) = found.victims
    pods = tuple((replace(pod, metadata=replace(pod.metadata, uid="new")), row) for pod, row in one.pods)
    assert repeat_eviction(found, [*others, replace(one, pods=pods)], *facts) is None


def test_what_was_found_holds_though_one_of_less_importance_must_stay() -> None:
    scene = Scene([4, 1])
    scene.cluster.running("stays", "n1", cpu=1, labels={"loud": "yes"})
    scene.unit(3, (0, 3), labels={"loud": "yes"}).unit(1, (1, 1), labels={"loud": "yes"})
    pods = [make_pod("h", cpu=2, labels={"loud": "yes"}, **EVEN)]
    found = scene.choose_for(pods)
    assert isinstance(found, Eviction)
    facts = ((), scene.cluster.snapshot(), RUNNER, Try(on=tries(pods, 1), members=1))
    again = repeat_eviction(found, scene.sorted_units(), *facts)
    assert again is not None
    assert [unit.name for unit in again.victims] == ["u0"]


def test_what_was_found_is_not_given_up_for_what_costs_more() -> None:
    scene = Scene([1, 1]).unit(3, (0, 1)).unit(4, (1, 1))
    budgets = (scene.budget(0, allowed=0),)
    found = scene.choose(1, 1, budgets=budgets)
    assert isinstance(found, Eviction)
    way = Try(on=tries([make_pod("h", cpu=1)], 1), members=1)
    again = repeat_eviction(found, scene.sorted_units(), budgets, scene.cluster.snapshot(), RUNNER, way)
    assert again is not None
    assert [unit.name for unit in again.victims] == ["u1"]


@pytest.mark.parametrize("members", [1, 2])
def test_of_many_rows_those_are_tried_that_may_be_used_at_all(members: int) -> None:
    """As seed 20709 of the differential scenarios, among the nodes of 39 others."""
    scene = Scene([1] * 60)
    for node in range(60):
        scene.unit(3, (node, 1), labels={"loud": "yes"} if node == 7 else None)
    labels = {"labelSelector": {"matchLabels": {"loud": "yes"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [labels]}}
    for node in ("n8", "n55"):
        scene.cluster.state.apply_node(make_node(node, cpu=1, labels={"zone": "z"}, version="2"))
    pods = [
        make_pod(f"h-{index}", cpu=1, affinity=near, node_selector={HOST: "n55"}) for index in range(members)
    ]
    found = scene.choose_for(pods, minimum=1)
    assert isinstance(found, Eviction)
    assert [unit.name for unit in found.victims] == ["u54"]


def test_rows_that_may_not_be_used_do_not_keep_a_dear_looking_one_from_being_compared() -> None:
    """As seed 21323 of the differential scenarios: the protected pod must go anyway, so it should alone."""
    scene = Scene([2] * 60)
    for node in range(60):
        scene.unit(5, (node, 2), labels={"loud": "yes"} if node == 55 else None)
    for name in ("n51", "n56"):
        labels = {"zone": "z", "disk": "ssd"}
        scene.cluster.state.apply_node(make_node(name, cpu=2, labels=labels, version="2"))
    term = {"labelSelector": {"matchLabels": {"loud": "yes"}}, "topologyKey": "zone"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make_pod("h", cpu=2, affinity=apart, node_selector={"disk": "ssd"})
    found = scene.choose_for([pod], budgets=(scene.budget(55, allowed=0),))
    assert isinstance(found, Eviction)
    assert [unit.name for unit in found.victims] == ["u55"]
