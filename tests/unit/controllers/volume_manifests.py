"""Volumes, claims and classes as the tests of the volume controllers need them."""

from typing import Any

from tests.unit.controllers.small_cluster import SmallCluster

from muster.controllers.ports import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, Object


def add_volume(cluster: SmallCluster, name: str, size: str = "1Gi", **spec: Any) -> Object:
    offered = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    finalizers = {"finalizers": ["kubernetes.io/pv-protection"]}
    return cluster.create(VOLUMES, name, namespace="", meta=finalizers, spec=offered | spec)


def add_claim(cluster: SmallCluster, name: str, **spec: Any) -> Object:
    asked = {
        "resources": {"requests": {"storage": "1Gi"}},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
    }
    finalizers = {"finalizers": ["kubernetes.io/pvc-protection"]}
    return cluster.create(VOLUME_CLAIMS, name, meta=finalizers, spec=asked | spec)


def add_class(cluster: SmallCluster, name: str = "fast", **fields: Any) -> Object:
    return cluster.create(STORAGE_CLASSES, name, namespace="", **fields)
