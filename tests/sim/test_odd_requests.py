"""Requests of every sort with odd values in odd places: each gets an answer, and the cluster goes on.

Manifests that are good get a few values replaced, doubled or taken out, and are created, changed, patched and
deleted on an embedded cluster in virtual time.  A fault of ours raises here; a 500 is only right where stock
gives one too.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from muster.apiserver.exchange import Request
from muster.assembly.cluster_plan import ClusterPlan, build_cluster
from muster.assembly.node_manifests import nodes_from_shape

Path = tuple[str | int, ...]

REQUESTS_A_SEED = 150
HERE = "/namespaces/default"
PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")
STOCK_FAULTS = ("merge key", "element types are not identical", "more than one PodDisruptionBudget")

CONTAINER = {
    "name": "c",
    "image": "i",
    "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}},
}
POD_SPEC = {
    "schedulerName": "muster",
    "restartPolicy": "Never",
    "schedulingGroup": {"podGroupName": "a"},
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}],
    "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
    "containers": [CONTAINER | {"ports": [{"containerPort": 80, "hostPort": 80}]}],
}
CAPACITY = {"cpu": "8", "memory": "64Gi", "pods": "110"}
JOB_SPEC = {
    "parallelism": 2,
    "completions": 2,
    "completionMode": "Indexed",
    "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]},
    "template": {"spec": {"schedulerName": "muster", "restartPolicy": "Never", "containers": [CONTAINER]}},
}
GOOD: tuple[tuple[str, dict[str, Any]], ...] = (
    (f"/api/v1{HERE}/pods", {"apiVersion": "v1", "kind": "Pod", "spec": POD_SPEC}),
    (f"/api/v1{HERE}/configmaps", {"data": {"a": "b"}, "binaryData": {"x": "YQ=="}, "immutable": False}),
    (
        "/api/v1/nodes",
        {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}, "status": {"capacity": CAPACITY}},
    ),
    (f"/apis/batch/v1{HERE}/jobs", {"apiVersion": "batch/v1", "kind": "Job", "spec": JOB_SPEC}),
    (
        f"/apis/scheduling.k8s.io/v1beta1{HERE}/podgroups",
        {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"single": {}}}},
    ),
    (
        f"/apis/policy/v1{HERE}/poddisruptionbudgets",
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}},
    ),
)
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        2**31,
        2**63 - 1,
        2**63,
        -(2**63),
        1.5,
        "",
        "a",
        "-1",
        "0",
        "1e400",
        "5%",
    ),
    *(
        "9223372036854775808",
        "1n",
        "x" * 300,
        "\0",
        "ü",
        "A/B",
        "n1",
        "default",
        "0001-01-01T00:00:00Z",
        "Exists",
    ),
    *(
        [],
        {},
        [None],
        [{}],
        {"": ""},
        {"a": None},
        ["a", "a"],
        "NoSchedule",
        "Always",
        "Succeeded",
        "1Ki",
        "1.0000001",
    ),
)


def places_in(value: Any, above: Path = ()) -> Iterator[Path]:
    """Where something stands in a manifest."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*above, key)
        yield from places_in(item, (*above, key))


def bend(manifest: dict[str, Any], rng: np.random.Generator) -> None:
    """Make a few values odd, mostly of the sort that was there; or take one out, or double a list."""
    for _ in range(int(rng.integers(4))):
        places = list(places_in(manifest))
        *way, last = places[rng.integers(len(places))]
        holder: Any = manifest
        for key in way:
            holder = holder[key]
        same = [value for value in ODD if type(value) is type(holder[last])]
        choice = rng.random()
        if choice < 0.15:
            del holder[last]
        elif choice < 0.3 and isinstance(holder[last], list):
            holder[last] = holder[last] * 50
        else:
            values = same if same and rng.random() < 0.85 else ODD
            holder[last] = copy.deepcopy(values[rng.integers(len(values))])


def draw(rng: np.random.Generator) -> Request:
    """One request."""
    path, good = GOOD[rng.integers(len(GOOD))]
    name = "abc"[rng.integers(3)]
    manifest = copy.deepcopy(good) | {"metadata": {"name": name, "labels": {"a": "b"}, "finalizers": []}}
    bend(manifest, rng)
    method = ("POST", "POST", "POST", "PUT", "PATCH", "DELETE")[rng.integers(6)]
    content = PATCHES[rng.integers(2)] if method == "PATCH" else "application/json"
    where = path if method == "POST" else f"{path}/{name}{'/status' if rng.random() < 0.2 else ''}"
    body = b"" if method == "DELETE" else json.dumps(manifest).encode()
    return Request(method, where, headers={"content-type": content}, body=body)


@pytest.mark.parametrize("seed", range(8))
def test_odd_requests_are_answered_and_the_cluster_goes_on(seed: int) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    now_s = 1_800_000_000.0
    nodes = nodes_from_shape(3, "cpu=8,memory=64Gi,nvidia.com/gpu=2")
    cluster = build_cluster(ClusterPlan(nodes), rng, now_s)
    for _ in range(REQUESTS_A_SEED):
        request = draw(rng)
        answer = cluster.request(request, now_s)
        told = str((answer.object or {}).get("message"))
        assert answer.status < 500 or any(fault in told for fault in STOCK_FAULTS), (request, told)
        until_s = now_s + float(rng.choice([0, 1, 30]))
        while (due_s := cluster.advance(now_s)) is not None and due_s <= until_s:
            now_s = max(now_s, due_s)
        now_s = until_s
    assert cluster.unreadable == {}
