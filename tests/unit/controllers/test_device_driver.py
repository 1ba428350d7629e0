"""The simulated DRA driver."""

import json
from typing import Any

from tests.unit.controllers.small_cluster import SmallCluster, names

from muster.controllers.device_driver import DEVICES, SimulatedDeviceDriver
from muster.controllers.ports import DEVICE_SLICES, NODES, Object

GPU = "gpu.example.com"


def make_cluster() -> SmallCluster:
    return SmallCluster(SimulatedDeviceDriver())


def described(*entries: Any) -> Object:
    return {"annotations": {DEVICES: json.dumps(entries)}}


def add_node(cluster: SmallCluster, name: str, *entries: Any) -> Object:
    return cluster.create(NODES, name, namespace="", meta=described(*entries))


def describe(cluster: SmallCluster, name: str, *entries: Any) -> None:
    cluster.patch(NODES, name, {"metadata": described(*entries)}, namespace="")


def test_each_pool_of_a_node_is_one_slice() -> None:
    cluster = make_cluster()
    node = add_node(cluster, "n1", {"driver": GPU, "count": 2}, {"driver": GPU, "count": 1, "pool": "p"})
    slices = cluster.all(DEVICE_SLICES)
    assert names(slices) == [f"n1-{GPU}", f"p-{GPU}"]
    assert slices[0]["spec"] == {
        "driver": GPU,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "device-0", "attributes": {}}, {"name": "device-1", "attributes": {}}],
    }
    assert slices[0]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_a_node_that_says_nothing_has_no_slices() -> None:
    cluster = make_cluster()
    cluster.create(NODES, "n1", namespace="")
    assert cluster.all(DEVICE_SLICES) == []


def test_a_new_description_raises_the_generation() -> None:
    cluster = make_cluster()
    add_node(cluster, "n1", {"driver": GPU, "count": 2})
    describe(cluster, "n1", {"driver": GPU, "count": 1})
    (found,) = cluster.all(DEVICE_SLICES)
    assert found["spec"]["pool"] == {"name": "n1", "generation": 2, "resourceSliceCount": 1}
    assert names([{"metadata": device} for device in found["spec"]["devices"]]) == ["device-0"]


CUT = {
    "name": "mig",
    "counters": {"slices": 7},
    "partitions": [{"name": "1g", "count": 7, "counters": {"slices": 1}}],
}


def test_counters_have_a_slice_of_their_own_in_the_same_generation() -> None:
    cluster = make_cluster()
    add_node(cluster, "n1", {"driver": GPU, "count": 2, **CUT})
    devices, counters = cluster.all(DEVICE_SLICES)
    assert names([devices, counters]) == [f"n1-{GPU}", f"n1-{GPU}-counters"]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    assert devices["spec"]["pool"] == counters["spec"]["pool"] == pool
    assert names([{"metadata": each} for each in counters["spec"]["sharedCounters"]]) == ["mig-0", "mig-1"]
    describe(cluster, "n1", {"driver": GPU, "count": 1, **CUT})
    assert {found["spec"]["pool"]["generation"] for found in cluster.all(DEVICE_SLICES)} == {2}
    cluster.delete(DEVICE_SLICES, f"n1-{GPU}-counters", namespace="")
    assert {found["spec"]["pool"]["generation"] for found in cluster.all(DEVICE_SLICES)} == {3}
    describe(cluster, "n1", {"driver": GPU, "count": 1})
    (found,) = cluster.all(DEVICE_SLICES)
    assert found["spec"]["pool"] == {"name": "n1", "generation": 4, "resourceSliceCount": 1}


def test_a_slice_that_somebody_changed_stays_as_it_is() -> None:
    cluster = make_cluster()
    add_node(cluster, "n1", {"driver": GPU, "count": 1})
    cluster.patch(DEVICE_SLICES, f"n1-{GPU}", {"spec": {"devices": []}}, namespace="")
    assert cluster.get(DEVICE_SLICES, f"n1-{GPU}", namespace="")["spec"]["devices"] == []


def test_slices_go_with_the_description_and_with_the_node() -> None:
    cluster = make_cluster()
    for name in ("n1", "n2"):
        add_node(cluster, name, {"driver": GPU, "count": 1})
    cluster.patch(NODES, "n1", {"metadata": {"annotations": {DEVICES: None}}}, namespace="")
    assert names(cluster.all(DEVICE_SLICES)) == [f"n2-{GPU}"]
    cluster.delete(NODES, "n2", namespace="")
    assert cluster.all(DEVICE_SLICES) == []


def test_a_slice_that_is_lost_comes_back() -> None:
    cluster = make_cluster()
    add_node(cluster, "n1", {"driver": GPU, "count": 1})
    cluster.delete(DEVICE_SLICES, f"n1-{GPU}", namespace="")
    assert names(cluster.all(DEVICE_SLICES)) == [f"n1-{GPU}"]


def test_a_mistake_is_told_and_changes_nothing() -> None:
    cluster = make_cluster()
    add_node(cluster, "n1", {"driver": GPU, "count": 1})
    describe(cluster, "n1", {"driver": GPU, "count": 0})
    cluster.patch(NODES, "n1", {"metadata": {"annotations": {DEVICES: "{"}}}, namespace="")
    (found,) = cluster.all(DEVICE_SLICES)
    assert found["spec"]["pool"]["generation"] == 1
    (bad_count, bad_text) = cluster.events()
    assert bad_count[:2] == ("Warning", "InvalidDevices")
    assert bad_count[2].startswith(
        f"metadata.annotations[{DEVICES}][0].count: must be between 1 and 128, got 0;"
    )
    assert "not JSON" in bad_text[2]


def test_the_pool_of_another_node_is_left_alone() -> None:
    cluster = make_cluster()
    for name in ("n1", "n2"):
        add_node(cluster, name, {"driver": GPU, "count": 1, "pool": "p"})
    (found,) = cluster.all(DEVICE_SLICES)
    assert found["spec"]["nodeName"] == "n1"
    ((_, _, message),) = cluster.events()
    assert message == f"ResourceSlice p-{GPU} is not of this node; give the pool p another name"
