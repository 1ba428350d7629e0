"""Finalizers of volumes and claims, taken away when nobody uses them, and claims made for pods.

A claim stays while a pod that is not ended uses it, a volume while a claim has it.  A pod with an ephemeral
volume gets a claim of its own, which goes with it.
Source: the stock controllers pvc-protection, pv-protection and ephemeral-volume.
"""

from collections.abc import Iterable, Iterator

from muster.controllers.objects import (
    controller_of,
    has_finalizer,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    seconds_of,
    uid_of,
    without_finalizer,
)
from muster.controllers.ports import PODS, VOLUME_CLAIMS, VOLUMES, Ask, Object, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler
from muster.controllers.volume_readings import claim_names_of, phase_of, spec_of

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
SETTLE_S = 2.0  # a pod may be about to use it: stock asks the API server again, which takes as long
VOLUME_FINALIZER = "kubernetes.io/pv-protection"


class VolumeProtection(Reconciler):
    """Lets go of what is to be deleted; a key is ("claim", namespace, name) or ("volume", name)."""

    name = "volume-protection"
    kinds = (PODS, VOLUMES, VOLUME_CLAIMS)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == PODS:
            for name in claim_names_of(change.object):
                yield ("claim", namespace_of(change.object), name)
        elif change.kind == VOLUME_CLAIMS and change.after is not None:
            yield ("claim", namespace_of(change.after), name_of(change.after))
        elif change.kind == VOLUMES and change.after is not None:
            yield ("volume", name_of(change.after))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        if key[0] == "volume":
            volume = view.get(VOLUMES, "", key[1])
            if volume is None or not is_deleting(volume) or phase_of(volume) == "Bound":
                return
            if has_finalizer(volume, VOLUME_FINALIZER):
                body = without_finalizer(volume, VOLUME_FINALIZER)
                yield Write("patch", VOLUMES, "", key[1], body, uid=uid_of(volume))
            return
        claim = view.get(VOLUME_CLAIMS, key[1], key[2])
        if claim is None or not is_deleting(claim) or not has_finalizer(claim, CLAIM_FINALIZER):
            return
        due_s = (seconds_of(claim["metadata"].get("deletionTimestamp")) or now_s) + SETTLE_S
        if now_s < due_s:
            yield Wake(due_s)
            return
        if not any(_uses(pod, claim) for pod in view.list(PODS, key[1])):
            body = without_finalizer(claim, CLAIM_FINALIZER)
            yield Write("patch", VOLUME_CLAIMS, key[1], key[2], body, uid=uid_of(claim))


class EphemeralVolumes(Reconciler):
    """Makes the claims of ephemeral volumes; a key is a pod's namespace and name."""

    name = "ephemeral-volume-controller"
    kinds = (PODS, VOLUME_CLAIMS)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == PODS and change.after is not None:
            if any(volume.get("ephemeral") for volume in spec_of(change.after).get("volumes") or ()):
                yield (namespace_of(change.after), name_of(change.after))
        elif change.kind == VOLUME_CLAIMS and change.after is None:
            owner = controller_of(change.object)
            if owner is not None and owner.get("kind") == "Pod":
                yield (namespace_of(change.object), str(owner["name"]))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        pod = view.get(PODS, *key)
        if pod is None or is_deleting(pod):
            return
        for volume in spec_of(pod).get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            name = f"{name_of(pod)}-{volume.get('name')}"
            if template is None:
                continue
            known = view.get(VOLUME_CLAIMS, key[0], name)
            if known is None:
                yield Write("create", VOLUME_CLAIMS, key[0], "", _claim_for(pod, name, template))
            elif (controller_of(known) or {}).get("uid") != uid_of(pod):
                text = f'PVC "{key[0]}/{name}" was not created for pod "{key[0]}/{key[1]}" (pod is not owner)'
                yield self.event(pod, "Warning", "FailedBinding", text, now_s)


def _claim_for(pod: Object, name: str, template: Object) -> Object:
    metadata = template.get("metadata") or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": name_of(pod),
        "uid": uid_of(pod),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, **kept, "ownerReferences": [owner]},
        "spec": template.get("spec") or {},
    }


def _uses(pod: Object, claim: Object) -> bool:
    """Whether the pod has, or is about to have, the volume of the claim mounted."""
    return bool(node_of(pod)) and not is_terminal(pod) and name_of(claim) in claim_names_of(pod)
