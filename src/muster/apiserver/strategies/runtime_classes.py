"""RuntimeClass (node.k8s.io), and what pods get from theirs: overhead, node selector, tolerations.

In come RuntimeClass objects, and pods at their creation (from `pods.py`).
"""

from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy, forbid
from muster.apiserver.strategies.fields import IMMUTABLE, invalid, invalid_each, items, mapping, text
from muster.apiserver.strategies.names import dns_label
from muster.apiserver.strategies.pod_placement import validate_node_selector, validate_tolerations
from muster.apiserver.strategies.printing import Column, age, column
from muster.apiserver.strategies.resources import validate_amount

RUNTIMES = "runtimeclasses.node.k8s.io"


class RuntimeClassStrategy(BaseStrategy):
    """A way to run containers; its handler is a name that nodes know."""

    namespaced = False

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        handler = text(obj, "handler")
        found = invalid_each("handler", handler, dns_label(handler))
        for name, value in _overhead(obj).items():
            found += validate_amount(f"overhead.podFixed[{name}]", name, value)
        scheduling = mapping(obj, "scheduling")
        found += validate_node_selector("scheduling.nodeSelector", mapping(scheduling, "nodeSelector"))
        return found + validate_tolerations("scheduling.tolerations", items(scheduling, "tolerations"))

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        if text(obj, "handler") == text(old, "handler"):
            return []
        return [invalid("handler", text(obj, "handler"), IMMUTABLE)]

    def columns(self) -> tuple[Column, ...]:
        return (column("Name"), column("Handler"), column("Age"))

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [obj["metadata"]["name"], text(obj, "handler"), age(obj, cluster.now_s)]


def admit_runtime_class(pod: Object, cluster: Cluster) -> None:
    """Give a new pod what its class says, or refuse it (403) where it says otherwise."""
    spec = pod["spec"]
    class_name = text(spec, "runtimeClassName")
    chosen = cluster.get(RUNTIMES, "", class_name) if class_name else None
    if class_name and chosen is None:
        raise _forbid(pod, f'pod rejected: RuntimeClass "{class_name}" not found')
    overhead, asked = _overhead(chosen or {}), mapping(spec, "overhead")
    if asked and not overhead:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise _forbid(pod, why)
    if asked and asked != overhead:
        raise _forbid(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if overhead:
        spec["overhead"] = dict(overhead)
    if chosen is not None:
        _admit_placement(pod, mapping(chosen, "scheduling"))


def _admit_placement(pod: Object, scheduling: Object) -> None:
    spec = pod["spec"]
    selector = dict(mapping(spec, "nodeSelector"))
    for key, value in mapping(scheduling, "nodeSelector").items():
        if selector.setdefault(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise _forbid(pod, why)
    if selector:
        spec["nodeSelector"] = selector
    added = [each for each in items(scheduling, "tolerations") if each not in items(spec, "tolerations")]
    if added:
        spec["tolerations"] = [*items(spec, "tolerations"), *added]


def _overhead(chosen: Object) -> Object:
    return mapping(mapping(chosen, "overhead"), "podFixed")


def _forbid(pod: Object, why: str) -> Exception:
    return forbid("pods", "", pod["metadata"].get("name", ""), why)
