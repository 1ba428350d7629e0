"""The API in the words of a scenario: make, change and remove things through ordinary requests.

Comes in: `call`, which sends one request.  An answer that a user could have got as well (404 for a pod that
ended meanwhile, 409) is no fault of the product; a 5xx is.
"""

from collections.abc import Callable, Mapping
from typing import Any

from muster.sim.view import Object

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

NAMESPACE = "default"
SCHEDULER_NAMES = ("muster", "default-scheduler")  # whose pods the simulated scheduler takes
_GROUPS = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{NAMESPACE}/podgroups"
_DEVICES = "/apis/resource.k8s.io/v1"
PATHS: Mapping[str, str] = {
    "node": "/api/v1/nodes",
    "pod": f"/api/v1/namespaces/{NAMESPACE}/pods",
    "group": _GROUPS,
    "composite": f"/apis/scheduling.k8s.io/v1alpha3/namespaces/{NAMESPACE}/compositepodgroups",
    "job": f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
    "priorityclass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "claim": f"{_DEVICES}/namespaces/{NAMESPACE}/resourceclaims",
    "claimtemplate": f"{_DEVICES}/namespaces/{NAMESPACE}/resourceclaimtemplates",
    "deviceclass": f"{_DEVICES}/deviceclasses",
    "storageclass": "/apis/storage.k8s.io/v1/storageclasses",
    "volumeclaim": f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims",
}

Call = Callable[[str, str, Object | None, str], tuple[int, Object]]


class ServerError(AssertionError):
    """The API answered 5xx."""


class Client:
    """Sends what a scenario asks for and counts the answers by code."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.codes: dict[int, int] = {}

    def create(self, kind: str, manifest: Object) -> Object | None:
        """The object as made, None when it was refused."""
        return self._send("POST", PATHS[kind], manifest)

    def patch(self, kind: str, name: str, change: Object, *, subresource: str = "") -> Object | None:
        """A merge patch."""
        suffix = f"/{subresource}" if subresource else ""
        return self._send("PATCH", f"{PATHS[kind]}/{name}{suffix}", change, MERGE_PATCH)

    def delete(self, kind: str, name: str, **options: Any) -> Object | None:
        """A deletion; `options` as in DeleteOptions."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options}
        return self._send("DELETE", f"{PATHS[kind]}/{name}", body)

    def list(self, kind: str) -> list[Object]:
        """All objects of a kind, by name."""
        found = self._send("GET", PATHS[kind])
        return [] if found is None else found.get("items") or []

    def _send(
        self, method: str, path: str, body: Object | None = None, content_type: str = JSON
    ) -> Object | None:
        code, found = self._call(method, path, body, content_type)
        self.codes[code] = self.codes.get(code, 0) + 1
        if code >= 500:
            raise ServerError(f"{method} {path}: {code} {found.get('message')}")
        return found if code < 300 else None


def node_manifest(name: str, amounts: Mapping[str, str], labels: Mapping[str, str] | None = None) -> Object:
    """A ready Node with these amounts."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod_manifest(name: str, spec: Object, *, annotations: Mapping[str, str] | None = None) -> Object:
    """A Pod with this spec."""
    metadata = {"name": name, "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def pod_spec(
    requests: Mapping[str, str],
    *,
    scheduler: str,
    group: str = "",
    priority_class: str = "",
    gates: tuple[str, ...] = (),
    grace_s: int = 0,
) -> Object:
    """The spec of a pod of one container that asks for this much."""
    limits = {resource: asked for resource, asked in requests.items() if "/" in resource}
    resources = {"requests": dict(requests), **({"limits": limits} if limits else {})}
    spec: Object = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": grace_s,
        "restartPolicy": "Never",
        "containers": [{"name": "work", "image": "work", "resources": resources}],
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return spec


def group_manifest(
    name: str, min_count: int | None, *, priority_class: str = "", goes_whole: bool = False, parent: str = ""
) -> Object:
    """A PodGroup: a gang of this minCount, or basic; `goes_whole`: it is evicted whole or not at all.

    `parent` is the composite group that it belongs to.
    """
    policy: Object = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec: Object = {"schedulingPolicy": policy}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if goes_whole:
        spec["disruptionMode"] = {"all": {}}
    if parent:
        spec["parentCompositePodGroupName"] = parent
        spec["workloadRef"] = {"workloadName": parent, "templateName": "any"}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def composite_manifest(name: str, min_group_count: int, *, priority_class: str = "") -> Object:
    """A CompositePodGroup: a gang of so many groups at least."""
    spec: Object = {
        "schedulingPolicy": {"gang": {"minGroupCount": min_group_count}},
        "workloadRef": {"workloadName": name, "templateName": "any"},
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def priority_class_manifest(name: str, value: int) -> Object:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def job_manifest(
    name: str,
    template_spec: Object,
    *,
    parallelism: int,
    completions: int,
    gang: bool,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """A Job whose pods are a gang, or basic."""
    spec: Object = {
        "parallelism": parallelism,
        "completions": completions,
        "template": {"metadata": {"annotations": dict(annotations or {})}, "spec": template_spec},
    }
    if gang:
        spec["scheduling"] = {"schedulingPolicy": {"gang": {}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
