"""Readings of volumes and claims that the controllers of volumes share.

Objects come in as the API's plain dicts and are never changed.  Next: `volume_binding.py`, `provisioner.py`.
"""

from collections.abc import Mapping
from typing import Any

from muster.api.quantity import parse_quantity
from muster.controllers.objects import annotation_of, name_of, namespace_of, uid_of
from muster.controllers.ports import STORAGE_CLASSES, Object, View
from muster.controllers.selectors import matches

SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_CLASS = "volume.beta.kubernetes.io/storage-class"


def spec_of(obj: Object) -> Object:
    """Its spec; empty where there is none."""
    return obj.get("spec") or {}


def phase_of(obj: Object) -> str:
    """The phase of a volume or claim; Pending where nothing is said."""
    return str((obj.get("status") or {}).get("phase") or "Pending")


def class_name_of(obj: Object) -> str:
    """The storage class of a volume or claim; empty for none."""
    annotated = annotation_of(obj, _CLASS)
    return annotated if annotated is not None else str(spec_of(obj).get("storageClassName") or "")


def class_of(claim: Object, view: View) -> Object | None:
    """The StorageClass object of a claim, or None."""
    name = class_name_of(claim)
    return view.get(STORAGE_CLASSES, "", name) if name else None


def waits_for_consumer(claim: Object, view: View) -> bool:
    """Whether the claim gets its volume only when a pod that uses it has been placed."""
    chosen = class_of(claim, view)
    return chosen is not None and chosen.get("volumeBindingMode") == "WaitForFirstConsumer"


def is_for(volume: Object, claim: Object) -> bool:
    """Whether the volume is promised to this very claim (or to whoever has its name)."""
    reference = spec_of(volume).get("claimRef") or {}
    return (
        reference.get("name") == name_of(claim)
        and reference.get("namespace") == namespace_of(claim)
        and reference.get("uid") in (None, "", uid_of(claim))
    )


def is_free(volume: Object) -> bool:
    """Whether nobody has the volume or is promised it."""
    return not spec_of(volume).get("claimRef") and not volume["metadata"].get("deletionTimestamp")


def size_of(volume: Object) -> int:
    """Its capacity in bytes."""
    return parse_quantity(str((spec_of(volume).get("capacity") or {}).get("storage") or "0"))


def asked_of(claim: Object) -> int:
    """What the claim asks for, in bytes."""
    requests = (spec_of(claim).get("resources") or {}).get("requests") or {}
    return parse_quantity(str(requests.get("storage") or "0"))


def can_serve(volume: Object, claim: Object) -> bool:
    """Whether a volume is what a claim asks for: class, attributes, mode, access, size and labels."""
    if class_name_of(volume) != class_name_of(claim):
        return False
    selector = spec_of(claim).get("selector")
    if selector is not None and not matches(selector, volume["metadata"].get("labels")):
        return False
    return can_keep_promise(volume, claim)


def can_keep_promise(volume: Object, claim: Object) -> bool:
    """Whether a volume that names a claim may be bound to it: neither class nor labels matter then."""
    offered, asked = spec_of(volume), spec_of(claim)
    if (offered.get("volumeMode") or "Filesystem") != (asked.get("volumeMode") or "Filesystem"):
        return False
    if (offered.get("volumeAttributesClassName") or "") != (asked.get("volumeAttributesClassName") or ""):
        return False
    if not set(asked.get("accessModes") or ()) <= set(offered.get("accessModes") or ()):
        return False
    return size_of(volume) >= asked_of(claim)


def reference_to(claim: Object) -> dict[str, Any]:
    """What a volume's claimRef says of a claim."""
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
    }


def claim_names_of(pod: Object) -> tuple[str, ...]:
    """The claims whose volumes a pod mounts: those named, and those made for it (ephemeral)."""
    names = []
    for volume in spec_of(pod).get("volumes") or ():
        source: Mapping[str, Any] | None = volume.get("persistentVolumeClaim")
        if source is not None:
            names.append(str(source.get("claimName") or ""))
        elif volume.get("ephemeral") is not None:
            names.append(f"{name_of(pod)}-{volume.get('name')}")
    return tuple(names)
