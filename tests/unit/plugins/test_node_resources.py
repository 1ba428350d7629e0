"""NodeResourcesFit."""

import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace
from tests.unit.cluster.device_objects import make_class

from muster.api.core import Pod
from muster.api.devices import DeviceClass
from muster.cluster.requests import pod_requests
from muster.cluster.tables import allocatable_of
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.plugins.node_resources import NodeResourcesFit
from muster.testing.builders import ClusterBuilder, make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin
from muster.testing.strategies import clusters, pods


@pytest.mark.parametrize("strategy", ["most-allocated", "least-allocated"])
def test_it_keeps_the_contract(strategy: str) -> None:
    check_plugin(NodeResourcesFit(strategy=strategy))  # type: ignore[arg-type]


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="strategy must be"):
        NodeResourcesFit(strategy="best")  # type: ignore[arg-type]


@given(cluster=clusters(), pod=pods())
def test_columns_say_the_same_as_adding_up_by_name(cluster: ClusterBuilder, pod: Pod) -> None:
    snapshot = cluster.snapshot()
    expected = []
    for row in snapshot.live_rows().tolist():
        node = snapshot.nodes[row]
        assert node is not None
        left = allocatable_of(node)
        for other in snapshot.pods_on(row):
            for name, amount in pod_requests(other).items():
                left[name] = left.get(name, 0) - amount
        expected.append(
            all(left.get(name, 0) >= amount for name, amount in pod_requests(pod).items() if amount)
        )
    assert NodeResourcesFit().filter(pod, snapshot, snapshot.live_rows()).feasible.tolist() == expected


def reasons(cluster: ClusterBuilder, pod: Pod) -> list[tuple[str, bool, list[bool]]]:
    snapshot = cluster.snapshot()
    verdict = NodeResourcesFit().filter(pod, snapshot, snapshot.live_rows())
    return [(r.text, r.resolvable, r.rejected.tolist()) for r in verdict.reasons]


def test_each_short_resource_is_named() -> None:
    cluster = make_cluster().node(cpu=2, pods=1).running("old", "n1", cpu=2)
    assert reasons(cluster, make_pod(cpu=1, memory="1Gi")) == [
        ("Too many pods", True, [True]),
        ("Insufficient cpu", True, [True]),
    ]


def test_eviction_cannot_help_where_the_node_is_too_small() -> None:
    cluster = make_cluster().node(cpu=4).node(cpu=1).running("old", "n1", cpu=3)
    assert reasons(cluster, make_pod(cpu=2)) == [
        ("Insufficient cpu", True, [True, False]),
        ("Insufficient cpu", False, [False, True]),
    ]


def test_a_resource_that_no_node_offers_is_insufficient_everywhere() -> None:
    assert reasons(make_cluster().nodes(2), make_pod(requests={"x.y/z": 1})) == [
        ("Insufficient x.y/z", False, [True, True])
    ]


def test_a_pod_that_asks_for_nothing_still_needs_a_slot() -> None:
    assert reasons(make_cluster().node(pods=0), make_pod()) == [("Too many pods", False, [True])]
    assert reasons(make_cluster().node(cpu=1).running("old", "n1", cpu=5), make_pod()) == []


def test_absurd_requests_fit_nowhere_and_never_wrap() -> None:
    cluster = make_cluster().node()
    for index in range(3):
        cluster.running(f"old-{index}", "n1", memory="8Ei", cpu="9e18")
    assert [text for text, _, _ in reasons(cluster, make_pod(cpu="1m", memory=1))] == [
        "Insufficient cpu",
        "Insufficient memory",
    ]


def test_packing_prefers_the_fuller_node_and_spreading_the_emptier() -> None:
    snapshot = make_cluster().nodes(2, cpu=4).running("old", "n2", cpu=2).snapshot()
    rows, pod = snapshot.live_rows(), make_pod(cpu=1)
    np.testing.assert_allclose(NodeResourcesFit().score(pod, snapshot, rows), [25, 75])
    np.testing.assert_allclose(
        NodeResourcesFit(strategy="least-allocated").score(pod, snapshot, rows), [75, 25]
    )


def test_only_resources_asked_for_count_in_the_score() -> None:
    snapshot = make_cluster().nodes(2, gpu=8).running("old", "n2", cpu=8).snapshot()
    np.testing.assert_allclose(
        NodeResourcesFit().score(make_pod(gpu=4), snapshot, snapshot.live_rows()), [50, 50]
    )


def test_pods_that_ask_for_nothing_are_scored_by_their_count() -> None:
    snapshot = make_cluster().nodes(2, pods=10).running("old", "n1").snapshot()
    score = NodeResourcesFit(strategy="least-allocated").score(make_pod(), snapshot, snapshot.live_rows())
    np.testing.assert_allclose(score, [80, 90])


@pytest.mark.parametrize("change", [Change.NODE_ADDED, Change.NODE_ALLOCATABLE_GREW, Change.POD_FREED])
def test_a_node_that_could_hold_a_waiting_pod_wakes(change: Change) -> None:
    rules = {rule.change: rule for rule in NodeResourcesFit().hint_rules()}
    helps = rules[change].helps
    assert helps is not None
    rejected = Rejected(None, None, (make_pod("big", cpu=9), make_pod("small", gpu=1)))
    assert helps(rejected, ClusterEvent(change, node=make_node(cpu=8))) is Hint.SKIP
    assert helps(rejected, ClusterEvent(change, node=make_node(cpu=8, gpu=1))) is Hint.QUEUE


def test_members_are_packed_by_what_they_ask_for_and_what_is_free() -> None:
    snapshot = make_cluster().node("n1", cpu=4, gpu=2).running("old", "n1", cpu=1).snapshot()
    pods = [make_pod("a", cpu=2), make_pod("b", gpu=1), make_pod("c", requests={"example.com/none": 1})]
    packing = NodeResourcesFit().packing(pods, snapshot, snapshot.live_rows())
    assert packing is not None
    cpu = snapshot.axis.column_of("cpu")
    assert packing.room[:, cpu].tolist() == [3000]
    assert packing.need[:, cpu].tolist() == [2000, 0, 0]
    assert packing.feasible.tolist() == [[True], [True], [False]]


def test_room_freed_on_a_node_not_told_wakes() -> None:
    rules = {rule.change: rule for rule in NodeResourcesFit().hint_rules()}
    helps = rules[Change.POD_FREED].helps
    assert helps is not None
    rejected = Rejected(None, None, (make_pod(cpu=9),))
    assert helps(rejected, ClusterEvent(Change.POD_FREED, pod=make_pod("old"))) is Hint.QUEUE


def backing_class() -> DeviceClass:
    found = make_class()
    return replace(found, spec=replace(found.spec, extended_resource_name="nvidia.com/gpu"))


def test_a_node_without_a_backed_resource_is_judged_by_its_devices_instead() -> None:
    cluster = make_cluster().node(gpu=1).nodes(1).running("old", "n1", gpu=1)
    filtered = NodeResourcesFit().filter
    plain = cluster.snapshot()
    assert filtered(make_pod(gpu=1), plain, plain.live_rows()).feasible.tolist() == [False, False]
    cluster.state.devices.apply(backing_class())
    backed = cluster.snapshot()
    assert filtered(make_pod(gpu=1), backed, backed.live_rows()).feasible.tolist() == [False, True]
    cluster.state.devices.remove(DeviceClass, ("", "gpu"), "")
    again = cluster.snapshot()
    assert filtered(make_pod(gpu=1), again, again.live_rows()).feasible.tolist() == [False, False]


def test_where_no_node_offers_a_backed_resource_nobody_is_short_of_it() -> None:
    cluster = make_cluster().nodes(1)
    cluster.state.devices.apply(backing_class())
    snapshot = cluster.snapshot()
    assert NodeResourcesFit().capacity(make_pod(gpu=1), snapshot, snapshot.live_rows()).tolist() != [0]


def test_a_class_and_nodes_wake_who_asks_for_what_it_backs() -> None:
    rules = {rule.change: rule for rule in NodeResourcesFit().hint_rules()}
    of_class, of_node = rules[Change.RESOURCE_BACKED].helps, rules[Change.NODE_ADDED].helps
    assert of_class is not None
    assert of_node is not None
    asks, other = (Rejected(None, None, (pod,)) for pod in (make_pod(gpu=1), make_pod(cpu=9)))
    seen = ClusterEvent(Change.RESOURCE_BACKED, devices=backing_class())
    assert [of_class(each, seen) for each in (asks, other)] == [Hint.QUEUE, Hint.SKIP]
    plain = ClusterEvent(Change.NODE_ADDED, node=make_node(cpu=8))
    backed = replace(plain, backed=frozenset(("nvidia.com/gpu",)))
    assert [of_node(asks, each) for each in (plain, backed)] == [Hint.SKIP, Hint.QUEUE]


@pytest.mark.parametrize(("slots", "text"), [(1, "takes 1 pod and has it"), (2, "takes 2 pods and has them")])
def test_a_node_that_has_all_the_pods_it_takes_says_so(slots: int, text: str) -> None:
    cluster = make_cluster().node("n1", pods=slots)
    for number in range(slots):
        cluster.running(f"old-{number}", "n1")
    assert NodeResourcesFit().example(make_pod("a"), cluster.snapshot(), 0, "Too many pods") == text
