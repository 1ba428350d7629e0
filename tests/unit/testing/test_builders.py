"""Builders: boring and valid by default, and they say what they were told."""

from muster.api.core import Toleration
from muster.cluster.requests import pod_requests
from muster.testing.builders import GPU, make_cluster, make_gang, make_group, make_node, make_pod


def test_a_pod_is_pending_until_it_is_given_a_node() -> None:
    assert make_pod().status.phase == "Pending"
    pod = make_pod(node="n1")
    assert (pod.status.phase, pod.spec.node_name) == ("Running", "n1")


def test_requests_have_words_of_their_own() -> None:
    pod = make_pod(cpu="100m", memory="1Gi", gpu=2, requests={"x.y/z": 3})
    assert pod_requests(pod) == {"cpu": 100, "memory": 2**30, GPU: 2, "x.y/z": 3, "pods": 1}


def test_manifest_parts_and_typed_objects_are_both_taken() -> None:
    plain = make_pod(tolerations=[{"key": "a", "operator": "Exists"}])
    typed = make_pod(tolerations=[Toleration(key="a", operator="Exists")])
    assert plain == typed


def test_further_keywords_are_fields_of_the_spec() -> None:
    assert make_pod(host_network=True, termination_grace_period_seconds=0).spec.host_network


def test_a_gang_is_like_members_of_one_group() -> None:
    gang = make_gang("g", 2, cpu=1)
    assert [pod.metadata.name for pod in gang] == ["g-0", "g-1"]
    assert {pod.spec.scheduling_group.pod_group_name for pod in gang if pod.spec.scheduling_group} == {"g"}


def test_a_node_offers_what_it_was_told() -> None:
    node = make_node(cpu=4, gpu=8, allocatable={"memory": None, "x.y/z": 1})  # type: ignore[dict-item]
    assert node.status.allocatable == {"cpu": 4, "pods": 110, GPU: 8, "x.y/z": 1}


def test_a_group_is_basic_without_a_minimum() -> None:
    assert (make_group().is_gang, make_group("g", 3).needed) == (False, 3)


def test_racks_are_numbered_as_they_come() -> None:
    snapshot = make_cluster().rack(8, 8).rack(4).snapshot()
    column = snapshot.labels.column("rack")
    assert [column.values[i] for i in column.ids.tolist()] == ["r1", "r1", "r2"]
    assert snapshot.free[:, snapshot.axis.column_of(GPU)].tolist() == [8, 8, 4]


def test_running_pods_take_their_room() -> None:
    snapshot = make_cluster().nodes(2, cpu=4).running("old", "n2", cpu=1).snapshot()
    assert snapshot.free[:, 0].tolist() == [4000, 3000]
