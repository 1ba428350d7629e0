"""A namespace goes when everything in it has gone."""

import pytest
from tests.unit.controllers.small_cluster import SmallCluster

from muster.controllers.namespace import BEGINS_AFTER_S, NamespaceDeletion
from muster.controllers.ports import NAMESPACES, PODS, Kind

MAPS = Kind("", "v1", "configmaps")


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(NamespaceDeletion())
    cluster.create(NAMESPACES, "ml", namespace="", spec={"finalizers": ["kubernetes"]})
    return cluster


def end(cluster: SmallCluster) -> None:
    """Delete the namespace, and let the time pass in which nothing happens yet."""
    cluster.delete(NAMESPACES, "ml", namespace="")
    cluster.run(BEGINS_AFTER_S)


def test_an_empty_namespace_goes_after_five_seconds_in_which_it_is_seen_to_go(cluster: SmallCluster) -> None:
    cluster.delete(NAMESPACES, "ml", namespace="")
    cluster.run(BEGINS_AFTER_S - 1)
    assert cluster.get(NAMESPACES, "ml", namespace="")["metadata"]["deletionTimestamp"]
    cluster.run(1)
    assert cluster.find(NAMESPACES, "ml", namespace="") is None


def test_what_is_in_it_goes_first_and_nothing_else(cluster: SmallCluster) -> None:
    for namespace in ("ml", "default"):
        cluster.create(MAPS, "m", namespace=namespace)
        cluster.create(PODS, "p", namespace=namespace, spec={})
    end(cluster)
    assert cluster.find(NAMESPACES, "ml", namespace="") is None
    assert cluster.find(MAPS, "m", namespace="ml") is None
    assert cluster.find(MAPS, "m") is not None
    assert cluster.find(PODS, "p") is not None


def test_it_waits_for_a_pod_with_grace_and_for_finalizers(cluster: SmallCluster) -> None:
    spec = {"nodeName": "n1", "terminationGracePeriodSeconds": 30}
    cluster.create(PODS, "p", namespace="ml", spec=spec)
    cluster.create(MAPS, "m", namespace="ml", meta={"finalizers": ["example.com/x"]})
    end(cluster)
    assert cluster.get(PODS, "p", namespace="ml")["metadata"]["deletionGracePeriodSeconds"] == 30
    cluster.patch(MAPS, "m", {"metadata": {"finalizers": None}}, namespace="ml")
    assert cluster.find(NAMESPACES, "ml", namespace="") is not None
    cluster.delete(PODS, "p", namespace="ml", gracePeriodSeconds=0)
    assert cluster.find(NAMESPACES, "ml", namespace="") is None


def test_what_comes_while_it_goes_is_deleted_too(cluster: SmallCluster) -> None:
    cluster.create(MAPS, "m", namespace="ml", meta={"finalizers": ["example.com/x"]})
    end(cluster)
    cluster.create(MAPS, "late", namespace="ml")
    assert cluster.find(MAPS, "late", namespace="ml") is None


def test_a_thousand_objects_are_no_hurdle(cluster: SmallCluster) -> None:
    for number in range(1000):
        cluster.create(MAPS, f"m{number}", namespace="ml")
    end(cluster)
    assert cluster.find(NAMESPACES, "ml", namespace="") is None
