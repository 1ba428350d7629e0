"""Readings of API objects that several controllers need: metadata, conditions, owners, times.

Objects come in as the API's plain dicts and are never changed.  Next: the controllers.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from muster.controllers.ports import EVENTS, Object, Write

TERMINAL_PHASES = ("Succeeded", "Failed")


def name_of(obj: Object) -> str:
    """Its name."""
    return str(obj["metadata"]["name"])


def namespace_of(obj: Object) -> str:
    """Its namespace; empty for cluster-scoped objects."""
    return str(obj["metadata"].get("namespace", ""))


def uid_of(obj: Object) -> str:
    """Its uid."""
    return str(obj["metadata"]["uid"])


def is_deleting(obj: Object) -> bool:
    """Whether its deletion has been asked for."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def has_finalizer(obj: Object, finalizer: str) -> bool:
    """Whether it carries this finalizer."""
    return finalizer in (obj["metadata"].get("finalizers") or ())


def without_finalizer(obj: Object, finalizer: str) -> dict[str, Any]:
    """Give the merge patch that takes this finalizer away and nothing else.

    It names the version it was read at: a list is replaced whole, so nobody else's entry may get lost.
    """
    metadata = obj["metadata"]
    left = [entry for entry in metadata.get("finalizers") or () if entry != finalizer]
    return {"metadata": {"finalizers": left or None, "resourceVersion": metadata["resourceVersion"]}}


def annotation_of(obj: Object, key: str) -> str | None:
    """The value of an annotation, or None."""
    value = (obj["metadata"].get("annotations") or {}).get(key)
    return None if value is None else str(value)


def phase_of(pod: Object) -> str:
    """A pod's phase; Pending where nothing is said."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminal(pod: Object) -> bool:
    """Whether a pod has ended."""
    return phase_of(pod) in TERMINAL_PHASES


def node_of(pod: Object) -> str:
    """The node a pod is bound to; empty while it waits."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def group_of(pod: Object) -> str:
    """The pod group that a pod names, or empty."""
    reference = (pod.get("spec") or {}).get("schedulingGroup") or {}
    return str(reference.get("podGroupName") or "")


def find_condition(obj: Object, type_: str) -> Object | None:
    """The status condition of this type, or None."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == type_), None)


def has_condition(obj: Object, type_: str, status: str = "True") -> bool:
    """Whether the condition of this type has this status."""
    condition = find_condition(obj, type_)
    return condition is not None and condition.get("status") == status


def with_condition(obj: Object, condition: Mapping[str, Any], now_s: float) -> list[Object]:
    """Give the object's conditions with this one set; its transition time moves only with its status."""
    conditions = [dict(entry) for entry in (obj.get("status") or {}).get("conditions") or ()]
    before = next((entry for entry in conditions if entry.get("type") == condition["type"]), None)
    moved = before is None or before.get("status") != condition["status"]
    time = rfc3339(now_s) if moved or before is None else before.get("lastTransitionTime")
    new = {**(before or {}), **condition, "lastTransitionTime": time}
    if before is None:
        return [*conditions, new]
    return [new if entry is before else entry for entry in conditions]


def controller_of(obj: Object) -> Object | None:
    """The owner reference that is marked as the controller, or None."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def rfc3339(now_s: float) -> str:
    """Unix seconds as the API's Time text (whole seconds)."""
    return _time_text(int(now_s))


def rfc3339_micro(now_s: float) -> str:
    """Unix seconds as the API's MicroTime text."""
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str | None) -> float | None:
    """The API's time text as Unix seconds; None where there is none or it cannot be read."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def event(
    regarding: Object, type_: str, reason: str, message: str, *, source: str, now_s: float, serial: int = 0
) -> Write:
    """Give the write of a core/v1 Event about an object, as the stock controllers write them.

    `serial` tells apart events of one instant about one object.
    """
    metadata = regarding["metadata"]
    namespace = metadata.get("namespace") or "default"
    stamp = round(now_s * 1_000_000) * 1000 + serial
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name'][:230]}.{stamp:x}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": regarding["apiVersion"],
            "kind": regarding["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion", ""),
            **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
        },
        "type": type_,
        "reason": reason,
        "message": message,
        "source": {"component": source},
        "reportingComponent": source,
        "firstTimestamp": rfc3339(now_s),
        "lastTimestamp": rfc3339(now_s),
        "count": 1,
    }
    return Write("create", EVENTS, namespace, "", body)


@lru_cache(maxsize=256)
def _time_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
