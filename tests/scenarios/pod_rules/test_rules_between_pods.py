"""Rules between pods in the whole scheduler: who waits for whom, and what wakes."""

from typing import Any

from msgspec.structs import replace
from tests.unit.scheduling.world import World, key_of

from muster.framework.ports import NamespaceGone, NamespaceSeen, NodeSeen
from muster.testing.builders import make_node, make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
INDEX = "batch.kubernetes.io/job-completion-index"


def about(app: str, key: str = HOST, **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def near(term: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: [term]}}


def apart(term: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [term]}}


def at_once(world: World) -> World:
    """Long enough to be bound when woken, too short for a backoff to end by itself."""
    return world.run(11)


def test_a_pod_waits_for_the_one_it_must_be_near_and_goes_when_that_is_placed() -> None:
    world = World().node("n1").node("n2").pod("second", affinity=near(about("first"))).run(20)
    assert world.bound == set()
    world.pod("first", labels={"app": "first"})
    at_once(world)
    assert world.bound == {"first", "second"}
    assert world.node_of("first") == world.node_of("second")


def test_a_gang_apart_is_spread_over_nodes_and_waits_for_as_many() -> None:
    world = World().node("n1", cpu=8).node("n2", cpu=8).group("g", 3)
    for index in range(3):
        labels = {"app": "g", INDEX: str(index)}
        world.members("g", index, labels=labels, affinity=apart(about("g")))
    world.run(20)
    assert world.bound == set()
    at_once(world.node("n3"))
    assert len({world.node_of(f"g-{index}") for index in range(3)}) == 3


def test_a_group_for_which_there_is_room_is_told_the_rule_that_keeps_it_out() -> None:
    world = World().node("n1", cpu=8).node("n2", cpu=8).group("g", 3)
    world.members("g", 0, 1, 2, labels={"app": "g"}, affinity=apart(about("g"))).run(20)
    pending = world.scheduler.report().find(key_of("g"))
    assert pending is not None
    assert "2 node(s) didn't match pod anti-affinity rules" in pending.message


def test_the_end_of_a_pod_that_keeps_others_away_wakes_them() -> None:
    world = World().node("n1")
    world.pod("old", node="n1", scheduler="other", affinity=apart(about("x")))
    world.pod("p", labels={"app": "x"}).run(20)
    assert "p" not in world.bound
    world.delete("old")
    at_once(world)
    assert "p" in world.bound


def test_a_relabeled_pod_wakes_who_was_kept_away() -> None:
    world = World().node("n1").pod("old", node="n1", labels={"app": "x"})
    world.pod("p", affinity=apart(about("x"))).run(20)
    assert "p" not in world.bound
    world.change("old", lambda pod: replace(pod, metadata=replace(pod.metadata, labels={"app": "y"})))
    at_once(world)
    assert "p" in world.bound


def test_labels_of_a_namespace_decide_and_wake() -> None:
    world = World().node("n1").tell(NamespaceSeen("far", {"team": "a"}))
    world.tell(NamespaceSeen("default", {}))
    selector = {"namespaceSelector": {"matchLabels": {"team": "b"}}}
    world.put(make_pod("old", namespace="far", node="n1", labels={"app": "x"}))
    world.pod("p", affinity=near(about("x", **selector))).run(20)
    assert "p" not in world.bound
    world.tell(NamespaceSeen("far", {"team": "b"}))
    at_once(world)
    assert "p" in world.bound
    world.tell(NamespaceGone("far"))
    assert "far" not in world.scheduler.state.snapshot().namespaces


def spread() -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "x"}}
    return [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    ]


def test_a_spread_that_was_uneven_goes_on_when_the_empty_zone_is_gone() -> None:
    world = World().node("a", labels={"zone": "a"}).node("b", labels={"zone": "b"}, unschedulable=True)
    world.pod("p-0", labels={"app": "x"}, topology_spread_constraints=spread())
    world.pod("p-1", labels={"app": "x"}, topology_spread_constraints=spread()).run(20)
    assert world.bound == {"p-0"}
    world.delete_node("b")
    at_once(world)
    assert world.bound == {"p-0", "p-1"}


def test_a_spread_that_was_uneven_goes_on_when_a_pod_begins_to_leave() -> None:
    world = World().node("a", labels={"zone": "a"}).node("b", labels={"zone": "b"}, unschedulable=True)
    world.pod("p-0", node="a", labels={"app": "x"})
    world.pod("p-1", labels={"app": "x"}, topology_spread_constraints=spread()).run(20)
    assert "p-1" not in world.bound
    world.begin_deletion("p-0")
    at_once(world)
    assert "p-1" in world.bound


def test_a_new_label_of_a_node_wakes_who_needs_it() -> None:
    world = World().node("n1").pod("p", labels={"app": "x"}, affinity=near(about("x", "zone"))).run(20)
    assert world.bound == set()
    world.tell(NodeSeen(make_node("n1", labels={"zone": "a"})))
    at_once(world)
    assert world.bound == {"p"}
