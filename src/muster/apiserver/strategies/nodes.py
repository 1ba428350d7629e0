"""Node: what the kubelet says it has, and the taints that others put on it."""

import ipaddress
from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.fields import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.names import label_key, label_value
from muster.apiserver.strategies.printing import NONE, UNKNOWN, Column, age, column
from muster.apiserver.strategies.resources import validate_node_amounts

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ROLE_PREFIX, _ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


class NodeStrategy(BaseStrategy):
    """Its status may come with its creation: that is how kubelets register."""

    namespaced = False
    keeps_status_metadata = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        spec, status = obj["spec"], obj["status"]
        if spec.get("podCIDR") and spec["podCIDR"] not in items(spec, "podCIDRs")[:1]:
            spec["podCIDRs"] = [spec["podCIDR"]]
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        super().prepare_update(obj, old, sub, cluster)
        if sub != "status":
            obj["status"] = old["status"]

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        return _validate_spec(obj) + _validate_amounts(obj)

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        spec, before = obj["spec"], old["spec"]
        found = _validate_spec(obj) + _validate_amounts(obj)
        if items(before, "podCIDRs") and items(spec, "podCIDRs") != items(before, "podCIDRs"):
            detail = 'node updates may not change podCIDR except from "" to valid'
            found.append(forbidden("spec.podCIDRs", detail))
        if text(before, "providerID") and text(spec, "providerID") != text(before, "providerID"):
            found.append(invalid("spec.providerID", None, "field cannot be modified once set"))
        if text(spec, "externalID") != text(before, "externalID"):
            found.append(forbidden("spec.externalID", "may not be updated"))
        return found

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        return _validate_amounts(obj)

    def columns(self) -> tuple[Column, ...]:
        return (
            column("Name"),
            column("Status"),
            column("Roles"),
            column("Age"),
            column("Version"),
            column("Internal-IP", wide=True),
            column("External-IP", wide=True),
            column("OS-Image", wide=True),
            column("Kernel-Version", wide=True),
            column("Container-Runtime", wide=True),
        )

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        info = mapping(mapping(obj, "status"), "nodeInfo")
        kernel = text(info, "kernelVersion")
        if kernel and text(info, "architecture"):
            kernel = f"{kernel} ({text(info, 'architecture')})"
        return [
            obj["metadata"]["name"],
            _status(obj),
            ",".join(_roles(mapping(obj["metadata"], "labels"))) or NONE,
            age(obj, cluster.now_s),
            text(info, "kubeletVersion"),
            _address(obj, "InternalIP"),
            _address(obj, "ExternalIP"),
            text(info, "osImage") or UNKNOWN,
            kernel or UNKNOWN,
            text(info, "containerRuntimeVersion") or UNKNOWN,
        ]


def _validate_spec(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    found = validate_taints("metadata.taints", items(spec, "taints"))
    networks = items(spec, "podCIDRs")
    families: set[int] = set()
    for index, network in enumerate(networks):
        try:
            interface = ipaddress.ip_interface(network)
        except ValueError:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            found.append(invalid(f"spec.podCIDRs[{index}]", network, detail))
            continue
        if interface.ip != interface.network.network_address:
            detail = "must not have bits set beyond the prefix length"
            found.append(invalid(f"spec.podCIDRs[{index}]", network, detail))
        families.add(interface.version)
    if len(networks) > 1 and len(families) < len(networks):
        detail = "may specify no more than one CIDR for each IP family"
        found.append(invalid("spec.podCIDRs", networks, detail))
    return found


def validate_taints(path: str, taints: list[Object]) -> list[Cause]:
    """Taints: unique by key and effect."""
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
        found += invalid_each(f"{here}.key", key, label_key(key))
        found += invalid_each(f"{here}.value", value, label_value(value))
        if not effect:
            found.append(required(f"{here}.effect"))
        elif effect not in EFFECTS:
            found.append(not_supported(f"{here}.effect", effect, EFFECTS))
        elif (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            found.append(duplicate(here, shown, "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return found


def _validate_amounts(obj: Object) -> list[Cause]:
    status = mapping(obj, "status")
    return [
        cause
        for key in ("capacity", "allocatable")
        for cause in validate_node_amounts(f"status.{key}", mapping(status, key))
    ]


def _status(obj: Object) -> str:
    ready = next((c for c in items(mapping(obj, "status"), "conditions") if c.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if mapping(obj, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(labels: Object) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if labels.get(_ROLE_LABEL):
        roles.add(str(labels[_ROLE_LABEL]))
    return sorted(role for role in roles if role)


def _address(obj: Object, type_: str) -> str:
    addresses = items(mapping(obj, "status"), "addresses")
    return next((text(a, "address") for a in addresses if a.get("type") == type_), NONE)
