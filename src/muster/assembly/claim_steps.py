"""What is written before a binding as requests: one or several, one after the other, each after its answer.

In come `Prepare` effects; out go calls.  Whoever performs them sends back what the server answered, and stops
at the first refusal.  Source: KEP-4381, KEP-5004.  Next: `runtime/executor.py`, `loopback.py`.
"""

from collections.abc import Generator, Mapping
from typing import Any

import msgspec

from muster.api.devices import Consumer
from muster.assembly.requests import (
    JSON,
    MERGE,
    PROTECTION,
    STRATEGIC,
    Call,
    path_of,
    protection_of,
    request_of,
    request_of_write,
)
from muster.cluster.extended_resources import ANNOTATION
from muster.controllers.ports import DEVICE_CLAIMS, PODS, Write
from muster.framework.ports import DropClaim, MakeClaim, Prepare, PromiseVolume, SelectNode, WriteClaim

Steps = Generator[Call, Mapping[str, Any] | None, None]


def steps_of(effect: Prepare) -> Steps:
    """The calls that perform it; send in the object that answered each."""
    if isinstance(effect, MakeClaim):
        return _make(effect)
    return _drop(effect) if isinstance(effect, DropClaim) else _write(effect)


def is_over(effect: Prepare, code: int) -> bool:
    """Whether a refusal with this status says that what is to go has gone, or is another of its name."""
    return isinstance(effect, DropClaim) and code in (404, 409, 422)


def _write(effect: PromiseVolume | SelectNode | WriteClaim) -> Steps:
    if (before := protection_of(effect)) is not None:
        yield before
    yield request_of(effect, now_s=0.0)  # the time is for Events


def _make(effect: MakeClaim) -> Steps:
    namespace, pod_name = effect.key
    made = yield Call("POST", path_of(DEVICE_CLAIMS, namespace), JSON, _claim(effect))
    metadata = (made or {}).get("metadata") or {}
    name, uid = str(metadata.get("name") or ""), metadata.get("uid")
    status = {
        "allocation": msgspec.to_builtins(effect.allocation),
        "reservedFor": [msgspec.to_builtins(Consumer("pods", pod_name, effect.uid))],
    }
    body = {"metadata": {"uid": uid}, "status": status}
    yield Call("PATCH", path_of(DEVICE_CLAIMS, namespace, name, "status"), MERGE, body)
    said = {"requestMappings": msgspec.to_builtins(list(effect.mappings)), "resourceClaimName": name}
    body = {"metadata": {"uid": effect.uid}, "status": {"extendedResourceClaimStatus": said}}
    yield Call("PATCH", path_of(PODS, *effect.key, "status"), MERGE, body)


def _drop(effect: DropClaim) -> Steps:
    """The pod goes on naming the claim: the API takes another name for none only."""
    freed: dict[str, Any] = {
        "uid": effect.claim_uid,
        "$deleteFromPrimitiveList/finalizers": [PROTECTION],
    }
    yield Call("PATCH", path_of(DEVICE_CLAIMS, *effect.claim), STRATEGIC, {"metadata": freed})
    yield request_of_write(Write("delete", DEVICE_CLAIMS, *effect.claim, uid=effect.claim_uid))


def _claim(effect: MakeClaim) -> dict[str, Any]:
    namespace, pod_name = effect.key
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": effect.uid, "controller": True}
    requests = []
    for request in effect.requests:
        asked = request.exactly
        if asked is not None:
            exactly = {
                "deviceClassName": asked.device_class_name,
                "allocationMode": asked.allocation_mode,
                "count": asked.count,
            }
            requests.append({"name": request.name, "exactly": exactly})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{pod_name}-extended-resources-",
            "namespace": namespace,
            "annotations": {ANNOTATION: "true"},
            "finalizers": [PROTECTION],
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": requests}},
    }
