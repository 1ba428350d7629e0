"""PriorityClass, and the Priority admission that gives pods and groups the number of their class."""

from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy, forbid
from muster.apiserver.strategies.fields import IMMUTABLE, forbidden, invalid, not_supported, text
from muster.apiserver.strategies.policies import HIGHEST_USER_PRIORITY
from muster.apiserver.strategies.printing import Column, age, column

CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM_CLASSES: dict[str, tuple[int, str]] = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if "
        "necessary.",
    ),
}
_LOWER = "PreemptLowerPriority"


def system_classes() -> list[Object]:
    """The classes that every cluster has."""
    return [
        {"metadata": {"name": name}, "value": value, "description": description, "preemptionPolicy": _LOWER}
        for name, (value, description) in SYSTEM_CLASSES.items()
    ]


def admit_priority(obj: Object, cluster: Cluster, *, resource: str, group: str) -> None:
    """Fill `priorityClassName`, `priority` and `preemptionPolicy` at creation, or refuse (403).

    `group` is empty for pods; groups have other words for the same, and their policy needs its gate.
    """
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    class_name = text(spec, "priorityClassName")
    if class_name:
        chosen = cluster.get(CLASSES, "", class_name)
        if chosen is None:
            raise forbid(resource, group, name, f"no PriorityClass with name {class_name} was found")
    else:
        chosen = default_class(cluster)
    value, policy = 0, _LOWER
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
        value, policy = chosen.get("value", 0), chosen.get("preemptionPolicy") or _LOWER
    given = spec.get("priority")
    if given is not None and given != value:
        raise forbid(resource, group, name, _priority_text(group, given, value))
    spec["priority"] = value
    if not group or "PodGroupPreemptionPolicy" in cluster.gates:
        _admit_policy(spec, policy, resource=resource, group=group, name=name)


def _admit_policy(spec: Object, policy: str, *, resource: str, group: str, name: str) -> None:
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        what = "pod group" if group else "pod"
        why = (
            f"the string value of PreemptionPolicy ({given}) must not be provided in {what} spec; priority "
            f"admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbid(resource, group, name, why)
    spec["preemptionPolicy"] = policy


def _priority_text(group: str, given: int, value: int) -> str:
    if group:
        return (
            f"priority set in the pod group ({given}) must match the priority computed ({value}) based on "
            "the priority class set in the spec"
        )
    return (
        f"the integer value of priority ({given}) must not be provided in pod spec; priority admission "
        f"controller computed {value} from the given PriorityClass name"
    )


def default_class(cluster: Cluster) -> Object | None:
    """The class marked globalDefault; the one of lowest value, then name, if there are several."""
    marked = [item for item in cluster.list(CLASSES) if item.get("globalDefault")]
    return min(marked, key=lambda item: (item.get("value", 0), item["metadata"]["name"]), default=None)


class PriorityClassStrategy(BaseStrategy):
    """A name for a number."""

    namespaced = False
    has_generation = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = _LOWER

    def generation_changed(self, obj: Object, old: Object) -> bool:
        return False

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        self._admit_default(obj, cluster)

    def admit_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        if not old.get("globalDefault"):
            self._admit_default(obj, cluster)

    def _admit_default(self, obj: Object, cluster: Cluster) -> None:
        marked = default_class(cluster) if obj.get("globalDefault") else None
        if marked is not None and marked["metadata"]["name"] != obj["metadata"].get("name"):
            why = (
                f"PriorityClass {marked['metadata']['name']} is already marked as default. "
                "Only one default can exist"
            )
            raise forbid("priorityclasses", "scheduling.k8s.io", obj["metadata"].get("name", ""), why)

    def admit_delete(self, obj: Object, cluster: Cluster) -> None:
        name = obj["metadata"]["name"]
        if name in SYSTEM_CLASSES:
            why = "this is a system priority class and cannot be deleted"
            raise forbid("priorityclasses", "scheduling.k8s.io", name, why)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        found: list[Cause] = []
        name, value, policy = obj["metadata"].get("name", ""), obj.get("value", 0), obj["preemptionPolicy"]
        if name.startswith("system-"):
            if not _is_system_class(obj):
                detail = (
                    "priority class names with 'system-' prefix are reserved for system use only. error: "
                    f"{_system_fault(name)}"
                )
                found.append(forbidden("metadata.name", detail))
        elif value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            found.append(forbidden("value", detail))
        if policy not in (_LOWER, "Never"):
            found.append(not_supported("preemptionPolicy", policy, (_LOWER, "Never")))
        return found

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        found: list[Cause] = []
        if obj.get("value", 0) != old.get("value", 0):
            found.append(forbidden("value", "may not be changed in an update."))
        if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
            found.append(invalid("preemptionPolicy", obj.get("preemptionPolicy"), IMMUTABLE))
        return found

    def columns(self) -> tuple[Column, ...]:
        return (
            column("Name"),
            column("Value", "integer"),
            column("Global-Default", "boolean"),
            column("Age"),
            column("PreemptionPolicy"),
        )

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return [
            obj["metadata"]["name"],
            obj.get("value", 0),
            bool(obj.get("globalDefault")),
            age(obj, cluster.now_s),
            obj.get("preemptionPolicy") or "",
        ]


def _is_system_class(obj: Object) -> bool:
    known = SYSTEM_CLASSES.get(obj["metadata"].get("name", ""))
    return known is not None and known[0] == obj.get("value") and not obj.get("globalDefault")


def _system_fault(name: str) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name][0]}"
