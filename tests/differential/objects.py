"""API objects of a scenario: its own namespace, and a pool of nodes that nobody else's pods can use.

Many scenarios share one cluster.  Node names, topology keys and a pool label carry the seed, so that no rule
of one reaches the nodes or pods of another.  Comes from `scenario.py`; next: `play.py`, which sends them.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.conformance import manifests
from tests.differential.scenario import NEVER, PRIORITIES, Arrival, Scenario, Short

POOL = "differential.test/pool"
TOPOLOGY_KEYS = ("rack", "zone")
CORE, STABLE, ALPHA = "/api/v1", "/apis/scheduling.k8s.io/v1beta1", "/apis/scheduling.k8s.io/v1alpha3"


class Made(NamedTuple):
    """A request that writes: where and what."""

    path: str
    body: dict[str, Any]
    method: str = "POST"  # or PATCH, a merge


def namespace_of(scenario: Scenario) -> str:
    again = f"-{scenario.take}" if scenario.take else ""
    return f"s{scenario.seed}{again}"


def node_name(scenario: Scenario, name: str) -> str:
    return f"{namespace_of(scenario)}-{name}"


def priority_classes() -> Iterator[Made]:
    """What all scenarios share."""
    for name, value in PRIORITIES.items():
        policy = {"preemptionPolicy": "Never"} if name in NEVER else {}
        manifest = manifests.priority_class_manifest({"priorityClass": name, "value": value, **policy})
        yield Made("/apis/scheduling.k8s.io/v1/priorityclasses", manifest)


def cluster_objects(scenario: Scenario, scheduler: str) -> Iterator[Made]:
    """Namespace, nodes, and what runs before anything arrives."""
    name = namespace_of(scenario)
    metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
    yield Made(f"{CORE}/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for node, short in scenario.nodes.items():
        manifest = manifests.node_manifest(node_name(scenario, node), _dress(short, scenario.seed))
        manifest["metadata"]["labels"][POOL] = name
        manifest["status"]["images"] = [
            {"names": [image], "sizeBytes": 700_000_000} for image in short.get("images", [])
        ]
        yield Made(f"{CORE}/nodes", manifest)
    for group in scenario.running_groups:
        yield _group(scenario, group)
    for pod in scenario.running:
        yield _pod(scenario, pod, scheduler)
    for pod in scenario.running:
        if scenario.budgets or "held" in pod:  # who keeps a budget's status counts pods that are ready
            yield _running(scenario, pod)
    for budget in scenario.budgets:
        yield from _budget(scenario, budget)


def _running(scenario: Scenario, short: Short) -> Made:
    path = f"{CORE}/namespaces/{namespace_of(scenario)}/pods/{short['pod']}/status"
    status = manifests.running_status(short)
    if "held" in short:
        status["containerStatuses"] = [_held(short)]
    if short.get("infeasible"):
        never = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
        status["conditions"].append(never)
    return Made(path, {"status": status}, "PATCH")


def _held(short: Short) -> dict[str, Any]:
    """What a kubelet says of a container that is being resized."""
    cpu = {"cpu": str(short["held"])}
    words = {"name": "c", "image": "i", "imageID": "any", "restartCount": 0, "ready": True}
    return {**words, "allocatedResources": cpu, "resources": {"requests": cpu}}


def _budget(scenario: Scenario, short: Short) -> Iterator[Made]:
    """A budget and what a controller would say of it."""
    ((key, value),) = short["selector"].items()
    healthy = sum(pod["labels"].get(key) == value for pod in scenario.running)
    least = healthy - short["allowed"]
    path = f"/apis/policy/v1/namespaces/{namespace_of(scenario)}/poddisruptionbudgets"
    yield Made(path, manifests.budget_manifest({**short, "minAvailable": least}))
    counted = {"currentHealthy": healthy, "desiredHealthy": least, "expectedPods": healthy}
    status = manifests.budget_status({"disruptionsAllowed": short["allowed"], **counted})
    yield Made(f"{path}/{short['pdb']}/status", {"status": status}, "PATCH")


def arrival_objects(scenario: Scenario, arrival: Arrival, scheduler: str) -> Iterator[Made]:
    """Pods first and the root last: nothing of it can be tried before all of it is there."""
    for pod in arrival.pods:
        yield _pod(scenario, pod, scheduler)
    for group in arrival.groups:
        yield _group(scenario, group)


def _pod(scenario: Scenario, short: Short, scheduler: str) -> Made:
    dressed = _dress(short, scenario.seed)
    name = namespace_of(scenario)
    dressed["nodeSelector"] = {**dressed.get("nodeSelector", {}), POOL: name}
    if "node" in short:
        dressed["node"] = node_name(scenario, short["node"])
    manifest = manifests.pod_manifest(short["pod"], dressed, scheduler=scheduler)
    if "image" in short:
        manifest["spec"]["containers"][0]["image"] = short["image"]
    return Made(f"{CORE}/namespaces/{name}/pods", manifest)


def _group(scenario: Scenario, short: Short) -> Made:
    dressed = _dress(short, scenario.seed)
    spaces = f"namespaces/{namespace_of(scenario)}"
    if "composite" in short:
        return Made(f"{ALPHA}/{spaces}/compositepodgroups", manifests.composite_manifest(dressed))
    if "parent" in short:
        return Made(f"{ALPHA}/{spaces}/podgroups", manifests.group_manifest({**dressed, "alpha": True}))
    return Made(f"{STABLE}/{spaces}/podgroups", manifests.group_manifest(dressed))


def _dress(value: Any, seed: int) -> Any:
    """The same with topology keys of this seed's own."""
    if isinstance(value, dict):
        return {_dress(key, seed): _dress(found, seed) for key, found in value.items()}
    if isinstance(value, list):
        return [_dress(found, seed) for found in value]
    return f"s{seed}.differential.test/{value}" if value in TOPOLOGY_KEYS else value
