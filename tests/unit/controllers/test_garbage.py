"""Garbage collection by owner references."""

from typing import Any

import pytest
from tests.unit.controllers.small_cluster import SmallCluster

from muster.assembly.embedded import EmbeddedCluster
from muster.controllers.garbage import GarbageCollector
from muster.controllers.ports import JOBS, NODES, POD_GROUPS, PODS, Kind, Object

MAPS = Kind("", "v1", "configmaps")


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster(GarbageCollector())


def owner(obj: Object, **more: Any) -> Object:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        **more,
    }


def owned_by(*owners: Object) -> dict[str, Any]:
    return {"ownerReferences": list(owners)}


def test_in_the_background_dependents_go_after_their_owner(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    pod = cluster.create(PODS, "p", meta=owned_by(owner(job)), spec={})
    cluster.create(MAPS, "m", meta=owned_by(owner(pod)))
    cluster.delete(JOBS, "j", propagationPolicy="Background")
    assert cluster.find(PODS, "p") is None
    assert cluster.find(MAPS, "m") is None


def test_in_the_foreground_the_owner_waits_for_those_that_block_it(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    held = {**owned_by(owner(job, blockOwnerDeletion=True)), "finalizers": ["example.com/x"]}
    cluster.create(PODS, "p", meta=held, spec={})
    cluster.create(PODS, "q", meta=owned_by(owner(job)), spec={})
    cluster.delete(JOBS, "j", propagationPolicy="Foreground")
    assert cluster.find(JOBS, "j") is not None
    assert cluster.get(PODS, "p")["metadata"]["deletionTimestamp"]
    cluster.patch(PODS, "p", {"metadata": {"finalizers": None}})
    assert cluster.find(JOBS, "j") is None
    assert cluster.find(PODS, "q") is None


def test_in_the_foreground_the_last_generation_goes_first(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    pod = cluster.create(PODS, "p", meta=owned_by(owner(job, blockOwnerDeletion=True)), spec={})
    held = {**owned_by(owner(pod, blockOwnerDeletion=True)), "finalizers": ["example.com/x"]}
    cluster.create(MAPS, "m", meta=held)
    cluster.delete(JOBS, "j", propagationPolicy="Foreground")
    assert cluster.get(PODS, "p")["metadata"]["deletionTimestamp"]
    assert cluster.find(JOBS, "j") is not None
    cluster.patch(MAPS, "m", {"metadata": {"finalizers": None}})
    assert cluster.all(MAPS) == cluster.all(PODS) == cluster.all(JOBS) == []


def test_an_owner_that_goes_in_the_background_keeps_its_dependents_until_it_is_gone(
    cluster: SmallCluster,
) -> None:
    job = cluster.create(JOBS, "j", meta={"finalizers": ["example.com/x"]})
    cluster.create(PODS, "p", meta=owned_by(owner(job, blockOwnerDeletion=True)), spec={})
    cluster.delete(JOBS, "j", propagationPolicy="Background")
    cluster.patch(PODS, "p", {"metadata": {"ownerReferences": [owner(job, controller=True)]}})
    assert "deletionTimestamp" not in cluster.get(PODS, "p")["metadata"]
    cluster.patch(JOBS, "j", {"metadata": {"finalizers": None}})
    assert cluster.find(PODS, "p") is None


def test_a_dependent_that_turns_away_no_longer_blocks(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    held = {**owned_by(owner(job, blockOwnerDeletion=True)), "finalizers": ["example.com/x"]}
    cluster.create(PODS, "p", meta=held, spec={})
    cluster.delete(JOBS, "j", propagationPolicy="Foreground")
    assert cluster.find(JOBS, "j") is not None
    cluster.patch(PODS, "p", {"metadata": {"ownerReferences": None}})
    assert cluster.find(JOBS, "j") is None


def test_what_is_gone_or_replaced_before_it_is_looked_at_is_left_alone(cluster: SmallCluster) -> None:
    store, row = cluster.server.store, cluster.server.catalog.by_name["configmaps"]
    for name, uid, deleting in (("gone", "a", False), ("again", "b", True)):
        ghost = {"apiVersion": "batch/v1", "kind": "Job", "name": "ghost", "uid": "never"}
        meta = {"name": name, "namespace": "default", "uid": uid, **owned_by(ghost)}
        made = store.create(row, {"metadata": meta}, cluster.now_s)
        store.delete(row, made, cluster.now_s)
        if deleting:
            again = {"name": name, "namespace": "default", "uid": "c", "finalizers": ["orphan"]}
            store.create(row, {"metadata": {**again, "deletionTimestamp": None}}, cluster.now_s)
    cluster.settle()
    assert [obj["metadata"]["uid"] for obj in cluster.all(MAPS)] == ["c"]


def test_orphans_stay_and_name_no_owner(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    cluster.create(PODS, "p", meta=owned_by(owner(job)), spec={})
    cluster.delete(JOBS, "j", propagationPolicy="Orphan")
    assert cluster.find(JOBS, "j") is None
    assert "ownerReferences" not in cluster.get(PODS, "p")["metadata"]


def test_one_living_owner_is_enough_and_the_lost_one_is_dropped(cluster: SmallCluster) -> None:
    lost, living = cluster.create(JOBS, "lost"), cluster.create(JOBS, "living")
    cluster.create(PODS, "p", meta=owned_by(owner(lost), owner(living)), spec={})
    cluster.delete(JOBS, "lost", propagationPolicy="Background")
    assert [entry["name"] for entry in cluster.get(PODS, "p")["metadata"]["ownerReferences"]] == ["living"]


def test_an_owner_that_never_was_is_a_lost_one(cluster: SmallCluster) -> None:
    ghost = {"apiVersion": "batch/v1", "kind": "Job", "name": "ghost", "uid": "never"}
    cluster.create(PODS, "p", meta=owned_by(ghost), spec={})
    assert cluster.find(PODS, "p") is None


def test_another_object_under_the_owners_name_is_not_the_owner(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    cluster.create(PODS, "p", meta=owned_by(owner(job, uid="older")), spec={})
    assert cluster.find(PODS, "p") is None


def test_an_owner_of_a_kind_not_served_is_left_undecided(cluster: SmallCluster) -> None:
    foreign = {"apiVersion": "jobset.example.com/v1", "kind": "JobSet", "name": "js", "uid": "u"}
    cluster.create(JOBS, "j", meta=owned_by(foreign))
    cluster.run(60)
    assert cluster.find(JOBS, "j") is not None


def test_an_owner_in_no_namespace_owns_across_namespaces(cluster: SmallCluster) -> None:
    node = cluster.create(NODES, "n1", namespace="", spec={})
    cluster.create(MAPS, "m", meta=owned_by(owner(node)))
    assert cluster.find(MAPS, "m") is not None
    cluster.delete(NODES, "n1", namespace="")
    assert cluster.find(MAPS, "m") is None


def test_an_owner_reference_does_not_reach_into_another_namespace(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    cluster.create(MAPS, "m", namespace="other", meta=owned_by(owner(job)))
    assert cluster.find(MAPS, "m", namespace="other") is None
    assert cluster.find(JOBS, "j") is not None


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_cycle_of_owners_ends(cluster: SmallCluster, length: int, policy: str) -> None:
    made = [cluster.create(MAPS, f"m{number}") for number in range(length)]
    for number in range(length):
        previous = owner(made[number - 1], blockOwnerDeletion=True)
        cluster.patch(MAPS, f"m{number}", {"metadata": owned_by(previous)})
    cluster.delete(MAPS, "m0", propagationPolicy=policy)
    cluster.run(60)
    assert cluster.all(MAPS) == []


def test_a_long_chain_goes_whole(cluster: SmallCluster) -> None:
    last = cluster.create(MAPS, "m0")
    for number in range(1, 300):
        last = cluster.create(MAPS, f"m{number}", meta=owned_by(owner(last)))
    cluster.delete(MAPS, "m0", propagationPolicy="Background")
    assert cluster.all(MAPS) == []


def test_five_hundred_orphans_are_let_go_of(cluster: SmallCluster) -> None:
    job = cluster.create(JOBS, "j")
    for number in range(500):
        cluster.create(MAPS, f"m{number}", meta=owned_by(owner(job)))
    cluster.delete(JOBS, "j", propagationPolicy="Orphan")
    assert cluster.find(JOBS, "j") is None
    assert all("ownerReferences" not in obj["metadata"] for obj in cluster.all(MAPS))


def test_a_dependent_that_was_there_before_the_collector_is_collected_too() -> None:
    cluster = SmallCluster()
    ghost = {"apiVersion": "batch/v1", "kind": "Job", "name": "ghost", "uid": "never"}
    cluster.create(POD_GROUPS, "g", meta=owned_by(ghost), spec={})
    cluster.cluster = EmbeddedCluster(cluster.server, controllers=[GarbageCollector()])
    cluster.settle()
    assert cluster.find(POD_GROUPS, "g") is None
