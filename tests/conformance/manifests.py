"""Short notation of the cases → objects of the API.

    n1: {cpu: 4, gpu: 8, labels: {rack: r1}}     →  Node
    {pods: "g-[0..2]", group: g, cpu: 1}          →  Pod, once per name
    {group: g, gang: 3}                           →  PodGroup

Memory of a node is large and a pod asks for one CPU unless the case says otherwise.
"""

from typing import Any

from tests.conformance.server import Object

GPU = "nvidia.com/gpu"

_POD_FIELDS = (
    "priorityClassName",
    "preemptionPolicy",
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "resourceClaims",
    "volumes",
)
_WORKLOAD_REF = {"workloadName": "w", "templateName": "t"}


def node_manifest(name: str, short: Object) -> Object:
    """A ready Node."""
    amounts = {
        "cpu": str(short.get("cpu", 4)),
        "memory": short.get("memory", "64Gi"),
        "pods": str(short.get("pods", 110)),
        **_extended(short),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **short.get("labels", {})},
        },
        "spec": _present(short, "taints", "unschedulable"),
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod_manifest(name: str, short: Object, *, scheduler: str) -> Object:
    """A Pod for `scheduler`, unless the case names another; grace 0 unless it says so."""
    requests = {"cpu": str(short.get("cpu", 1)), **_present(short, "memory"), **_extended(short)}
    if short.get("cpu") == 0:
        del requests["cpu"]
    resources: Object = {"requests": requests}
    if limits := {key: value for key, value in requests.items() if "/" in key}:
        resources["limits"] = limits
    spec: Object = {
        "schedulerName": short.get("scheduler", scheduler),
        "terminationGracePeriodSeconds": short.get("grace", 0),
        "containers": [{"name": "c", "image": "i", "resources": resources, **_present(short, "ports")}],
        **_present(short, *_POD_FIELDS),
    }
    if "group" in short:
        spec["schedulingGroup"] = {"podGroupName": short["group"]}
    if "node" in short:
        spec["nodeName"] = short["node"]
    if "gates" in short:
        spec["schedulingGates"] = [{"name": gate} for gate in short["gates"]]
    metadata = {"name": name, "labels": short.get("labels", {"app": name}), **_present(short, "annotations")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def running_status(short: Object) -> Object:
    """The status of a pod that a case puts on a node by hand."""
    return {
        "phase": "Running",
        "startTime": short.get("startTime", "2026-01-01T00:00:00Z"),
        "conditions": [{"type": "Ready", "status": "True"}],
    }


def group_manifest(short: Object) -> Object:
    """A PodGroup: gang with this minCount, or basic."""
    policy = {"gang": {"minCount": short["gang"]}} if "gang" in short else {"basic": {}}
    spec = {"schedulingPolicy": policy, **_shared_spec(short)}
    version = "v1alpha3" if short.get("alpha") else "v1beta1"
    return _scheduling_object("PodGroup", version, short["group"], spec)


def composite_manifest(short: Object) -> Object:
    """A CompositePodGroup: gang with this minGroupCount, or basic."""
    policy = {"gang": {"minGroupCount": short["gang"]}} if "gang" in short else {"basic": {}}
    spec = {"schedulingPolicy": policy, "workloadRef": _WORKLOAD_REF, **_shared_spec(short)}
    return _scheduling_object("CompositePodGroup", "v1alpha3", short["composite"], spec)


def priority_class_manifest(short: Object) -> Object:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": short["priorityClass"]},
        "value": short["value"],
        "globalDefault": short.get("globalDefault", False),
        **_present(short, "preemptionPolicy"),
    }


def budget_manifest(short: Object) -> Object:
    """A PodDisruptionBudget."""
    selector = {"matchLabels": short["selector"]}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": short["pdb"]},
        "spec": {"selector": selector, **_present(short, "minAvailable", "maxUnavailable")},
    }


def budget_status(short: Object) -> Object:
    """What a disruption controller would have said, where there is none."""
    counted = {key: short.get(key, 1) for key in ("currentHealthy", "desiredHealthy", "expectedPods")}
    return {"disruptionsAllowed": short["disruptionsAllowed"], "observedGeneration": 1, **counted}


def delete_options(**fields: Any) -> Object:
    """The body of a DELETE."""
    return {"kind": "DeleteOptions", "apiVersion": "v1", **fields}


def _scheduling_object(kind: str, version: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _shared_spec(short: Object) -> Object:
    spec: Object = {}
    if "topology" in short:
        spec["schedulingConstraints"] = {"topology": [{"key": short["topology"]}]}
    if "disruption" in short:
        spec["disruptionMode"] = {short["disruption"]: {}}
    if "parent" in short:
        spec |= {"parentCompositePodGroupName": short["parent"], "workloadRef": _WORKLOAD_REF}
    return spec | _present(short, "priorityClassName", "preemptionPolicy")


def _extended(short: Object) -> Object:
    amounts = {key: str(value) for key, value in short.get("more", {}).items()}
    return amounts | ({GPU: str(short["gpu"])} if "gpu" in short else {})


def _present(short: Object, *keys: str) -> Object:
    return {key: short[key] for key in keys if key in short}
