"""The simulated provisioner: volumes for claims of classes that name it, with delays and failures on request.

A StorageClass with `provisioner: muster.dev/simulated` may say in its parameters:
`delaySeconds` (how long a volume takes, default 1), `failures` (how many tries of each claim fail first,
default 0), `topologyKey` (the node label that a volume can be reached within, default the host name; "" for
everywhere).  A try that fails gives the choice of the node back, as real provisioners do when they are full.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from muster.controllers.objects import annotation_of, is_deleting, name_of, namespace_of, uid_of
from muster.controllers.ports import NODES, VOLUME_CLAIMS, VOLUMES, Ask, Object, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler
from muster.controllers.volume_readings import (
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    class_of,
    reference_to,
    spec_of,
    waits_for_consumer,
)

SIMULATED = "muster.dev/simulated"
_HOST = "kubernetes.io/hostname"
_DELAY_S = 1.0


class SimulatedProvisioner(Reconciler):
    """Makes volumes; a key is a claim's namespace and name."""

    name = "simulated-provisioner"
    kinds = (VOLUME_CLAIMS, VOLUMES)

    def __init__(self) -> None:
        super().__init__()
        self._begun_s: dict[str, float] = {}
        self._tries: dict[str, int] = {}

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
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
        parameters = chosen.get("parameters") or {}
        begun_s = self._begun_s.setdefault(uid_of(claim), now_s)
        due_s = begun_s + _number(parameters, "delaySeconds", _DELAY_S)
        if now_s < due_s:
            yield Wake(due_s)
            return
        del self._begun_s[uid_of(claim)]
        tries = self._tries[uid_of(claim)] = self._tries.get(uid_of(claim), 0) + 1
        if tries <= _number(parameters, "failures", 0):
            yield from self._fail(claim, str(chosen["metadata"]["name"]), now_s)
            return
        where = _reach(parameters, node_name, view)
        yield Write("create", VOLUMES, "", "", _volume_for(claim, chosen, volume_name, where))
        text = f"Successfully provisioned volume {volume_name}"
        yield self.event(claim, "Normal", "ProvisioningSucceeded", text, now_s)

    def _fail(self, claim: Object, class_name: str, now_s: float) -> Iterator[Ask]:
        """Say so, and let the scheduler choose another node."""
        text = (
            f'failed to provision volume with StorageClass "{class_name}": the class asks for failing tries'
        )
        yield self.event(claim, "Warning", "ProvisioningFailed", text, now_s)
        if annotation_of(claim, SELECTED_NODE) is None:
            yield Wake(now_s)
            return
        body = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        yield Write("patch", VOLUME_CLAIMS, namespace_of(claim), name_of(claim), body, uid=uid_of(claim))


def _number(parameters: Object, key: str, default: float) -> float:
    """A parameter as a number; the default where it is none."""
    try:
        return max(float(parameters.get(key, default)), 0.0)
    except ValueError:
        return default


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
