"""Who may stay beside seats that are taken."""

from collections.abc import Sequence

import numpy as np

from muster.framework.runner import Runner, Weighted
from muster.placement.evictable import UnitColumns
from muster.placement.reprieve import Reprieve, remove_unit
from muster.placement.victims import Unit
from muster.plugins.inter_pod_affinity import InterPodAffinity
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.priority_sort import PrioritySort
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod

RUNNER = Runner([Weighted(PrioritySort()), Weighted(NodeResourcesFit())])


def reprieve(units: Sequence[Unit], cluster: ClusterBuilder) -> Reprieve:
    return Reprieve(UnitColumns(units, cluster.snapshot()), (), RUNNER)


def place(cpu: int, *running: tuple[int, int]) -> list[str]:
    """Names of those that cannot stay beside a pod of so much cpu on a node of 4; running: priority, cpu."""
    cluster = make_cluster().node("n1", cpu=4)
    units = []
    for index, (priority, size) in enumerate(running):
        cluster.running(f"u{index}", "n1", cpu=size)
        pod = cluster.snapshot().pods_on(0)[-1]
        units.append(Unit(f"u{index}", priority, ((pod, 0),)))
    ground = cluster.snapshot().fork()
    for one in units:
        remove_unit(ground, one)
    units.sort(key=lambda unit: unit.importance)
    found = reprieve(units, cluster).find_needed(units, [(make_pod("h", cpu=cpu), 0)], ground)
    return [one.name for one in found]


def test_whoever_has_room_beside_the_seat_stays_the_most_important_first() -> None:
    assert place(2, (1, 2), (9, 2)) == ["u0"]
    assert place(1, (1, 1), (9, 2)) == []
    assert place(3, (1, 1), (9, 2), (5, 1)) == ["u1", "u0"]


def test_a_unit_stays_whole_or_not_at_all() -> None:
    cluster = make_cluster().node("n1", cpu=2).node("n2", cpu=2)
    cluster.running("a", "n1", cpu=1).running("b", "n2", cpu=2)
    snapshot = cluster.snapshot()
    pair = Unit("pair", 1, ((snapshot.pods_on(0)[0], 0), (snapshot.pods_on(1)[0], 1)), True)
    ground = snapshot.fork()
    remove_unit(ground, pair)
    one = reprieve([pair], cluster)
    assert one.find_needed([pair], [(make_pod("h", cpu=1), 1)], ground) == (pair,)
    assert one.find_needed([pair], [(make_pod("h", cpu=1), 0)], ground) == ()
    assert (ground.requested == 0).all()


def test_pods_on_unknown_nodes_take_no_room_here() -> None:
    cluster = make_cluster().node("n1", cpu=1)
    ground = cluster.snapshot().fork()
    away = Unit("away", 1, ((make_pod("x", cpu=1), -1),))
    remove_unit(ground, away)
    assert reprieve([away], cluster).find_needed([away], [(make_pod("h", cpu=1), 0)], ground) == ()
    assert np.array_equal(ground.requested, np.zeros_like(ground.requested))


def test_for_each_row_it_says_who_would_have_to_go_were_one_member_there() -> None:
    cluster = make_cluster().node("n1", cpu=2).node("n2", cpu=2).node("n3", cpu=2)
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "n3"), ("e", "n3")):
        cluster.running(name, node, cpu=1)
    pods = {pod.metadata.name: (pod, row) for row in range(3) for pod in cluster.snapshot().pods_on(row)}
    units = [
        Unit("a", 9, (pods["a"],)),
        Unit("be", 7, (pods["b"], pods["e"]), True),
        Unit("c", 5, (pods["c"],)),
        Unit("d", 3, (pods["d"],)),
    ]
    ground = cluster.snapshot().fork()
    for one in units:
        remove_unit(ground, one)
    rows = np.arange(3, dtype=np.int32)
    found = reprieve(units, cluster).find_needed_on_each(make_pod("h", cpu=1), rows, units, ground)
    assert {row: [one.name for one in gone] for row, gone in found.items()} == {0: ["be"], 1: [], 2: ["d"]}
    assert (ground.requested == 0).all()


def test_who_was_first_of_its_kind_is_asked_before_those_who_sat_down_later() -> None:
    """As seed 21277 of the differential scenarios: 45 pods were to go, one was in the way."""
    runner = Runner([Weighted(make()) for make in (PrioritySort, NodeResourcesFit, InterPodAffinity)])
    cluster = make_cluster().node("n1", cpu=1, labels={"rack": "r1"}).node("n2", cpu=1, labels={"rack": "r2"})
    cluster.node("n3", cpu=1).running("in-the-way", "n1", cpu=1).running("far", "n3", labels={"app": "a"})
    snapshot = cluster.snapshot()
    units = [Unit(pod.metadata.name, 1, ((pod, row),)) for row in (0, 2) for pod in snapshot.pods_on(row)]
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "rack"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    first = make_pod("first", cpu=1, labels={"app": "a"}, affinity=near)
    seats = [(first, 0), (make_pod("later", cpu=1, labels={"app": "a"}), 1)]
    ground = snapshot.fork()
    for unit in units:
        remove_unit(ground, unit)
    needed = Reprieve(UnitColumns(units, snapshot), (), runner).find_needed(units, seats, ground)
    assert [unit.name for unit in needed] == ["in-the-way"]


def test_who_may_stay_once_others_are_back_stays_though_it_is_asked_first() -> None:
    """As seed 33718 of the differential scenarios: four pods were to go, one was in the way."""
    runner = Runner([Weighted(make()) for make in (PrioritySort, NodeResourcesFit, InterPodAffinity)])
    cluster = make_cluster().node("n1", cpu=7, labels={"rack": "r1"}).node("n2", cpu=4, labels={"rack": "r2"})
    cluster.running("far", "n2", cpu=3, labels={"app": "a"}).running("in-the-way", "n1", cpu=4)
    cluster.running("near", "n1", cpu=3, labels={"app": "a"})
    pods = {pod.metadata.name: (pod, row) for row in (0, 1) for pod in cluster.snapshot().pods_on(row)}
    units = [Unit(name, 1, (pods[name],)) for name in ("far", "in-the-way", "near")]
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "rack"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    ground = cluster.snapshot().fork()
    for unit in units:
        remove_unit(ground, unit)
    seats = [(make_pod("h", cpu=4, labels={"app": "a"}, affinity=near), 0)]
    found = Reprieve(UnitColumns(units, cluster.snapshot()), (), runner).find_needed(units, seats, ground)
    assert [unit.name for unit in found] == ["in-the-way"]
