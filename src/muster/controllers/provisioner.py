"""The simulated provisioner: volumes for claims of classes that name it, with delays and failures on request.

A StorageClass with `provisioner: muster.dev/simulated` may say in its parameters:
`delaySeconds` (how long a volume takes, default 1), `failures` (how many tries of each claim fail first,
default 0), `topologyKey` (the node label that a volume can be reached within, default the host name; "" for
everywhere).  A try that fails gives the choice of the node back, as real provisioners do when they are full;
parameters that cannot be read fail every try, with what is wrong in the event.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from muster.controllers.objects import annotation_of, is_deleting, name_of, namespace_of, uid_of
from muster.controllers.ports import (
    NODES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Ask,
    Object,
    Seen,
    View,
    Wake,
    Write,
)
from muster.controllers.reconciler import Key, Reconciler
from muster.controllers.volume_readings import (
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    class_name_of,
    class_of,
    reference_to,
    spec_of,
    waits_for_consumer,
)

SIMULATED = "muster.dev/simulated"
_HOST = "kubernetes.io/hostname"
_DELAY_S = 1.0
_OF_EVERY_DRIVER = "csi.storage.k8s.io/"  # such parameters are not a provisioner's own


class SimulatedProvisioner(Reconciler):
    """Makes volumes; a key is a claim's namespace and name."""

    name = "simulated-provisioner"
    kinds = (VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES)

    def __init__(self) -> None:
        super().__init__()
        self._begun_s: dict[str, float] = {}
        self._tries: dict[str, int] = {}

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == STORAGE_CLASSES:  # one that was gone for a while
            for claim in view.list(VOLUME_CLAIMS):
                is_ours = annotation_of(claim, PROVISIONER) == SIMULATED
                if is_ours and class_name_of(claim) == name_of(change.object):
                    yield (namespace_of(claim), name_of(claim))
        if change.kind != VOLUME_CLAIMS:
            return
        if change.after is None:
            self._begun_s.pop(uid_of(change.object), None)
            self._tries.pop(uid_of(change.object), None)
        elif annotation_of(change.after, PROVISIONER) == SIMULATED:
            yield (namespace_of(change.after), name_of(change.after))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        claim = view.get(VOLUME_CLAIMS, *key)
        if claim is None or is_deleting(claim) or spec_of(claim).get("volumeName"):
            return
        node_name = annotation_of(claim, SELECTED_NODE)
        volume_name = f"pvc-{uid_of(claim)}"
        chosen = class_of(claim, view)
        waits = waits_for_consumer(claim, view) and node_name is None
        if chosen is None or waits or view.get(VOLUMES, "", volume_name) is not None:
            self._begun_s.pop(uid_of(claim), None)
            return
        parameters, class_name = chosen.get("parameters") or {}, str(chosen["metadata"]["name"])
        fault = _fault_of(parameters, node_name, view)
        if fault:
            yield from self._fail(claim, class_name, fault, now_s)
            return
        begun_s = self._begun_s.setdefault(uid_of(claim), now_s)
        due_s = begun_s + _number(parameters, "delaySeconds", _DELAY_S)
        if now_s < due_s:
            yield Wake(due_s)
            return
        del self._begun_s[uid_of(claim)]
        tries = self._tries[uid_of(claim)] = self._tries.get(uid_of(claim), 0) + 1
        if tries <= _number(parameters, "failures", 0):
            yield from self._fail(claim, class_name, "the class asks for failing tries", now_s)
            if node_name is None:
                yield Wake(now_s)
            return
        where = _reach(parameters, node_name, view)
        yield Write("create", VOLUMES, "", "", _volume_for(claim, chosen, volume_name, where))
        text = f"Successfully provisioned volume {volume_name}"
        yield self.event(claim, "Normal", "ProvisioningSucceeded", text, now_s)

    def _fail(self, claim: Object, class_name: str, why: str, now_s: float) -> Iterator[Ask]:
        """Say so, and let the scheduler choose another node."""
        text = f'failed to provision volume with StorageClass "{class_name}": {why}'
        yield self.event(claim, "Warning", "ProvisioningFailed", text, now_s)
        if annotation_of(claim, SELECTED_NODE) is None:
            return
        body = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        yield Write("patch", VOLUME_CLAIMS, namespace_of(claim), name_of(claim), body, uid=uid_of(claim))


def _fault_of(parameters: Object, node_name: str | None, view: View) -> str:
    """What is wrong with a class's parameters, and what helps; "" for nothing."""
    for name, said in sorted(parameters.items()):
        if name in ("delaySeconds", "failures"):
            number = _number(parameters, name, 0.0)
            if not (math.isfinite(number) and number >= 0):
                return f'parameters.{name}: must be a number, 0 or more, got "{said}"'
        elif name != "topologyKey" and not name.startswith(_OF_EVERY_DRIVER):
            return f"parameters.{name}: not known; there are delaySeconds, failures and topologyKey"
    key = str(parameters.get("topologyKey", ""))
    if key and node_name and _reach(parameters, node_name, view) is None:
        return f"parameters.topologyKey: node {node_name} has no label {key}; name one that nodes have"
    return ""


def _number(parameters: Object, key: str, default: float) -> float:
    """A parameter as a number, the default where it is not said; NaN where it is no number."""
    try:
        return float(parameters.get(key, default))
    except ValueError:
        return math.nan


def _reach(parameters: Object, node_name: str | None, view: View) -> tuple[str, str] | None:
    """The label that nodes must have to reach the volume; None for all nodes."""
    key = str(parameters.get("topologyKey", _HOST))
    node = view.get(NODES, "", node_name) if node_name else None
    value = ((node or {}).get("metadata") or {}).get("labels", {}).get(key)
    return (key, str(value)) if key and value is not None else None


def _volume_for(claim: Object, chosen: Object, name: str, where: tuple[str, str] | None) -> Object:
    asked = spec_of(claim)
    spec: dict[str, Any] = {
        "capacity": {"storage": asked["resources"]["requests"]["storage"]},
        "accessModes": asked["accessModes"],
        "volumeMode": asked.get("volumeMode") or "Filesystem",
        "storageClassName": chosen["metadata"]["name"],
        "persistentVolumeReclaimPolicy": chosen.get("reclaimPolicy") or "Delete",
        "claimRef": reference_to(claim),
        "csi": {"driver": "simulated.muster.dev", "volumeHandle": name},
    }
    if where is not None:
        expression = {"key": where[0], "operator": "In", "values": [where[1]]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: SIMULATED}},
        "spec": spec,
    }
