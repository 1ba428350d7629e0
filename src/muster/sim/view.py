"""The cluster as the API tells it, for checkers: plain objects, and slow arithmetic of its own.

Nothing here shares code with what it judges (`muster.cluster`, `muster.scheduling`).  Amounts are integers
in thousandths of the unit, so that `500m` of CPU is 500.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

Object = dict[str, Any]
Amounts = dict[str, int]

_THOUSANDTHS = {"m": 1, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}
_ENDED = ("Succeeded", "Failed")
GPU = "nvidia.com/gpu"
GPU_MILLI = "muster.dev/gpu-milli"


class ClusterView:
    """Every node, pod and group at one moment, by name (of one namespace)."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object], groups: Iterable[Object]) -> None:
        self.nodes = {name_of(node): node for node in nodes}
        self.pods = {name_of(pod): pod for pod in pods}
        self.groups = {name_of(group): group for group in groups}

    def members(self, group: str) -> list[Object]:
        """Pods that name this group."""
        return self._members.get(group, [])

    @cached_property
    def _members(self) -> dict[str, list[Object]]:
        members: dict[str, list[Object]] = {}
        for pod in self.pods.values():
            members.setdefault(group_of(pod), []).append(pod)
        return members

    @cached_property
    def pods_on(self) -> dict[str, list[Object]]:
        """Pods that take room, by node name."""
        pods_on: dict[str, list[Object]] = {}
        for pod in self.pods.values():
            if node_of(pod) and not has_ended(pod):
                pods_on.setdefault(node_of(pod), []).append(pod)
        return pods_on

    @cached_property
    def room_left(self) -> dict[str, Amounts]:
        """By node name: allocatable less what the pods on it take; may be negative."""
        rooms = {}
        for name, node in self.nodes.items():
            left = {key: amount(text) for key, text in (node["status"].get("allocatable") or {}).items()}
            for pod in self.pods_on.get(name, []):
                for resource, taken in requests_of(pod).items():
                    left[resource] = left.get(resource, 0) - taken
            rooms[name] = left
        return rooms


def amount(text: str | int) -> int:
    """A quantity in thousandths (of the few suffixes that scenarios use)."""
    for suffix, factor in _THOUSANDTHS.items():
        if str(text).endswith(suffix):
            return int(str(text).removesuffix(suffix)) * factor
    return int(text) * 1000


def requests_of(pod: Object) -> Amounts:
    """What a pod takes: the sum of its containers, and one of `pods`; a part of a GPU is no whole one.

    Not the extended resources in place of which it has a claim.
    """
    total = {"pods": 1000}
    for container in pod["spec"]["containers"]:
        for resource, text in ((container.get("resources") or {}).get("requests") or {}).items():
            total[resource] = total.get(resource, 0) + amount(text)
    if share_of(pod):
        total.pop(GPU, None)
    claimed = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    for each in claimed.get("requestMappings") or ():
        total.pop(each["resourceName"], None)
    return total


def share_of(pod: Object) -> int:
    """Thousandths of one GPU it takes, 0 where it takes whole ones or none."""
    text = (pod["metadata"].get("annotations") or {}).get(GPU_MILLI, "0")
    return int(text) if int(text) < 1000 else 0


def gpus_of(pod: Object) -> int:
    """Whole GPUs it takes."""
    return requests_of(pod).get(GPU, 0) // 1000


def copies(rooms: Iterable[Amounts], request: Amounts) -> int:
    """How many pods of one shape fit into these rooms."""
    asked = {resource: wanted for resource, wanted in request.items() if wanted}
    return sum(
        max(0, min(room.get(resource, 0) // wanted for resource, wanted in asked.items())) for room in rooms
    )


def name_of(thing: Object) -> str:
    """metadata.name."""
    return str(thing["metadata"]["name"])


def uid_of(thing: Object) -> str:
    """metadata.uid."""
    return str(thing["metadata"]["uid"])


def node_of(pod: Object) -> str:
    """Where it is bound, "" when nowhere."""
    return str(pod["spec"].get("nodeName") or "")


def group_of(pod: Object) -> str:
    """The group it names, "" when none."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def phase_of(pod: Object) -> str:
    """status.phase."""
    return str(pod["status"].get("phase") or "Pending")


def has_ended(pod: Object) -> bool:
    """Succeeded or Failed."""
    return phase_of(pod) in _ENDED


def is_leaving(thing: Object) -> bool:
    """Whether its deletion has been asked for."""
    return thing["metadata"].get("deletionTimestamp") is not None


def is_gated(pod: Object) -> bool:
    """Whether it has a scheduling gate."""
    return bool(pod["spec"].get("schedulingGates"))


def is_waiting(pod: Object) -> bool:
    """Whether the scheduler has to place it."""
    return not node_of(pod) and not has_ended(pod) and not is_leaving(pod)


def is_placed(pod: Object) -> bool:
    """Whether it counts toward minCount: bound and not failed, or succeeded."""
    return phase_of(pod) == "Succeeded" or (bool(node_of(pod)) and phase_of(pod) != "Failed")


def counts_for(group: Object, pod: Object) -> bool:
    """Whether a member counts toward the minimum of this group object.

    One that succeeded before the group was made belonged to another of the same name.
    """
    if phase_of(pod) == "Succeeded":
        return str(pod["status"].get("startTime") or "9") >= str(group["metadata"]["creationTimestamp"])
    return is_placed(pod)


def parent_of(group: Object) -> str:
    """The composite group that a group belongs to, "" when none."""
    return str(group["spec"].get("parentCompositePodGroupName") or "")


def min_group_count_of(composite: Object) -> int:
    """minGroupCount of a composite group; 1 of a basic one."""
    gang = composite["spec"]["schedulingPolicy"].get("gang")
    return 1 if gang is None else int(gang["minGroupCount"])


def min_count_of(group: Object) -> int | None:
    """minCount of a gang, None for the basic policy."""
    gang = group["spec"]["schedulingPolicy"].get("gang")
    return None if gang is None else int(gang["minCount"])


def condition_of(thing: Object, type_: str) -> Object | None:
    """Its condition of this type."""
    conditions = (thing.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), None)


def takes_pods(node: Object) -> bool:
    """Whether an ordinary pod may go there: not cordoned, no taint that keeps it off."""
    taints = node["spec"].get("taints") or []
    return not node["spec"].get("unschedulable") and all(t["effect"] == "PreferNoSchedule" for t in taints)


def claims_of(pod: Object) -> list[str]:
    """Names of its claims for devices that have been made."""
    made = pod["status"].get("resourceClaimStatuses") or ()
    names = [wanted.get("resourceClaimName") for wanted in pod["spec"].get("resourceClaims") or ()]
    names += [status.get("resourceClaimName") for status in made]
    return [str(name) for name in names if name]


def devices_in(claim: Object) -> list[tuple[str, str, str]]:
    """Driver, pool and name of the devices that a claim has."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return [(result["driver"], result["pool"], result["device"]) for result in results]


def users_of(claim: Object) -> dict[str, str]:
    """For whom a claim is reserved: names by uid."""
    users = (claim.get("status") or {}).get("reservedFor") or ()
    return {str(user["uid"]): str(user["name"]) for user in users}
