"""Pod: defaults, admission and rules put together; special verbs are in `pod_verbs.py`."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.fields import items, keep_from, mapping, text
from muster.apiserver.strategies.pod_changes import (
    keep_all_but_ephemeral,
    keep_all_but_resources,
    validate_ephemeral_absent,
    validate_ephemeral_change,
    validate_pod_change,
    validate_pod_status,
    validate_resize,
)
from muster.apiserver.strategies.pod_defaults import default_pod, default_pod_spec
from muster.apiserver.strategies.pod_placement import merge_label_keys
from muster.apiserver.strategies.pod_spec import validate_gated_binding, validate_pod_spec
from muster.apiserver.strategies.pod_table import COLUMNS, TERMINAL, pod_cells
from muster.apiserver.strategies.pod_warnings import pod_warnings
from muster.apiserver.strategies.printing import Column
from muster.apiserver.strategies.priority import admit_priority
from muster.apiserver.strategies.resources import quality_of_service
from muster.apiserver.strategies.runtime_classes import admit_runtime_class

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_LOST_NODES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LOST_NODE_SECONDS = 300
# of a status, what a write that does not say it leaves as it is
_KEPT_STATUS = ("qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus")
_ZONE_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def timestamp(now_s: float) -> str:
    """A time as objects hold it, to the second."""
    return datetime.fromtimestamp(int(now_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_grace_s(pod: Object, asked: int | None) -> int:
    """How long a pod may take to end: no time at all where nothing runs."""
    if not text(pod["spec"], "nodeName") or text(mapping(pod, "status"), "phase") in TERMINAL:
        return 0
    grace = pod["spec"].get("terminationGracePeriodSeconds") if asked is None else asked
    grace = 0 if grace is None else grace
    return 1 if grace < 0 else grace


class PodStrategy(BaseStrategy):
    """The unit of everything."""

    keeps_status_metadata = True
    has_generation = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        default_pod_spec(obj["spec"])
        default_pod(obj["spec"])
        _default_addresses(obj)

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        spec = obj["spec"]
        obj["metadata"]["generation"] = 1
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        _drop_gated(spec, {}, cluster)
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if items(spec, "schedulingGates"):
            obj["status"]["conditions"] = [_gated_condition(cluster.now_s)]
        merge_label_keys(spec, mapping(obj["metadata"], "labels"))

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        if sub == "status":
            owners = dict(old["metadata"])
            keep_from(obj["metadata"], owners, "ownerReferences")
            keep_from(obj["metadata"], owners, "deletionTimestamp")
            obj["status"] = dict(mapping(obj, "status"))
            for key in _KEPT_STATUS:
                if obj["status"].get(key) in (None, ""):
                    keep_from(obj["status"], mapping(old, "status"), key)
        elif sub == "ephemeralcontainers":
            keep_all_but_ephemeral(obj, old)
        elif sub == "resize":
            keep_all_but_resources(obj, old)
        else:
            _drop_gated(obj["spec"], old["spec"], cluster)
            _tolerate_lost_nodes(obj["spec"])
            _keep_priority(obj["spec"], old["spec"])
            if (
                obj["spec"]["terminationGracePeriodSeconds"] < 0
                and old["spec"].get("terminationGracePeriodSeconds") == 1
            ):
                obj["spec"]["terminationGracePeriodSeconds"] = 1
        if sub != "status":
            obj["status"] = old["status"]
        super().prepare_update(obj, old, sub, cluster)

    def admit_create(self, obj: Object, cluster: Cluster) -> None:
        admit_priority(obj, cluster, resource="pods", group="")
        _tolerate_lost_nodes(obj["spec"])
        admit_runtime_class(obj, cluster)
        _copy_zone(obj, cluster)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = obj["spec"]
        found = validate_pod_spec("spec", spec)
        return found + validate_gated_binding("spec", spec) + validate_ephemeral_absent(spec)

    def warnings(self, obj: Object) -> Iterable[str]:
        return pod_warnings(obj)

    def validate_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> list[Cause]:
        if sub == "status":
            return super().validate_update(obj, old, sub, cluster)
        found = super().validate_update(obj, old, "", cluster)
        if sub == "ephemeralcontainers":
            return found + validate_ephemeral_change(obj, old)
        if sub == "resize":
            return found + validate_resize(obj, old)
        return found + validate_pod_change(obj, old)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        """What must hold for any spec; images, deadlines and the like were checked at creation."""
        spec = obj["spec"]
        unchanged = spec == old["spec"]
        return [] if unchanged else validate_pod_spec("spec", spec)

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        return validate_pod_status(obj, old)

    def columns(self) -> tuple[Column, ...]:
        return COLUMNS

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return pod_cells(obj, cluster.now_s)


def _gated_condition(now_s: float) -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now_s),
        "reason": "SchedulingGated",
        "message": GATED_MESSAGE,
    }


def _default_addresses(obj: Object) -> None:
    """The first of the addresses is also the one address."""
    status = mapping(obj, "status")
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        if items(status, many):
            status[one] = text(items(status, many)[0], "ip")
        elif text(status, one):
            status[many] = [{"ip": status[one]}]


def _drop_gated(spec: Object, old: Object, cluster: Cluster) -> None:
    if "GenericWorkload" not in cluster.gates and old.get("schedulingGroup") is None:
        spec.pop("schedulingGroup", None)
    if old.get("evictionResponders") is None:
        spec.pop("evictionResponders", None)


def _keep_priority(spec: Object, old: Object) -> None:
    """What admission filled in at creation need not be sent again."""
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None:
            keep_from(spec, old, key)


def _tolerate_lost_nodes(spec: Object) -> None:
    """A pod stays five minutes on a node that is not heard of, unless it says otherwise."""
    tolerations = list(items(spec, "tolerations"))
    for key in _LOST_NODES:
        known = any(
            text(t, "key") in (key, "") and text(t, "effect") in ("NoExecute", "") for t in tolerations
        )
        if not known:
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _LOST_NODE_SECONDS,
                }
            )
    spec["tolerations"] = tolerations


def _copy_zone(obj: Object, cluster: Cluster) -> None:
    """A pod created on a node carries the node's zone and region."""
    node = cluster.get("nodes", "", text(obj["spec"], "nodeName")) if obj["spec"].get("nodeName") else None
    labels = mapping((node or {}).get("metadata", {}), "labels")
    found = {key: labels[key] for key in _ZONE_LABELS if key in labels}
    if found:
        obj["metadata"]["labels"] = {**mapping(obj["metadata"], "labels"), **found}
