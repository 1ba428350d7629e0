"""Volumes and claims brought together: who is promised what, phases, and what becomes of a volume left over.

A claim of a class that waits for its first consumer is left alone until the scheduler has chosen: a volume
(`claimRef` on it) or a node (an annotation that a provisioner obeys).
Source: the stock persistentvolume-binder; claims are bound in the same four writes.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from muster.controllers.objects import annotation_of, is_deleting, name_of, namespace_of, uid_of
from muster.controllers.ports import (
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Ask,
    Object,
    Seen,
    View,
    Write,
)
from muster.controllers.reconciler import Key, Reconciler
from muster.controllers.volume_readings import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    can_keep_promise,
    can_serve,
    class_name_of,
    class_of,
    is_for,
    is_free,
    phase_of,
    reference_to,
    size_of,
    spec_of,
    waits_for_consumer,
)

_CLAIM, _VOLUME = "claim", "volume"


class VolumeBinding(Reconciler):
    """Binds claims to volumes; a key is ("claim", namespace, name) or ("volume", name)."""

    name = "persistentvolume-binder"
    kinds = (VOLUMES, VOLUME_CLAIMS, STORAGE_CLASSES)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == VOLUME_CLAIMS:
            claim = change.object
            yield (_CLAIM, namespace_of(claim), name_of(claim))
            if volume_name := spec_of(claim).get("volumeName"):
                yield (_VOLUME, str(volume_name))
            for volume in view.list(VOLUMES) if change.after is None else ():
                if is_for(volume, claim):
                    yield (_VOLUME, name_of(volume))
        elif change.kind == VOLUMES:
            yield (_VOLUME, name_of(change.object))
            for claim in view.list(VOLUME_CLAIMS):
                if phase_of(claim) != "Bound" or spec_of(claim).get("volumeName") == name_of(change.object):
                    yield (_CLAIM, namespace_of(claim), name_of(claim))
        else:
            for claim in view.list(VOLUME_CLAIMS):
                if class_name_of(claim) == name_of(change.object) and phase_of(claim) == "Pending":
                    yield (_CLAIM, namespace_of(claim), name_of(claim))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        if key[0] == _VOLUME:
            volume = view.get(VOLUMES, "", key[1])
            if volume is not None:
                yield from _tend_volume(volume, view)
            return
        claim = view.get(VOLUME_CLAIMS, key[1], key[2])
        if claim is None or is_deleting(claim):
            return
        if annotation_of(claim, BIND_COMPLETED) is not None:
            yield from _tend_bound(claim, view)
            return
        volume = _volume_for(claim, view)
        if volume is not None:
            yield from _bind(claim, volume)
        elif not spec_of(claim).get("volumeName"):
            yield from self._ask_provisioner(claim, view, now_s)

    def _ask_provisioner(self, claim: Object, view: View, now_s: float) -> Iterator[Ask]:
        """Name the provisioner on the claim, as soon as it may begin."""
        chosen = class_of(claim, view)
        provisioner = "" if chosen is None else str(chosen.get("provisioner") or "")
        if provisioner in ("", NO_PROVISIONER) or annotation_of(claim, PROVISIONER) == provisioner:
            return
        if waits_for_consumer(claim, view) and annotation_of(claim, SELECTED_NODE) is None:
            return
        yield _annotate(claim, {PROVISIONER: provisioner})
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or "
            "manually by the system administrator. If volume creation is delayed, please verify that the "
            "provisioner is running and correctly registered."
        )
        yield self.event(claim, "Normal", "ExternalProvisioning", text, now_s)


def _volume_for(claim: Object, view: View) -> Object | None:
    """The volume that a claim names, or that is promised to it, or the smallest that will do."""
    named = spec_of(claim).get("volumeName")
    if named:
        volume = view.get(VOLUMES, "", str(named))
        asked = {**claim, "spec": {**spec_of(claim), "selector": None}}  # named: its labels do not matter
        serves = volume is not None and is_free(volume) and can_serve(volume, asked)
        return volume if volume is not None and (serves or is_for(volume, claim)) else None
    volumes = list(view.list(VOLUMES))
    promised = [
        volume
        for volume in volumes
        if is_for(volume, claim) and not is_deleting(volume) and can_keep_promise(volume, claim)
    ]
    if promised:
        return promised[0]
    if waits_for_consumer(claim, view):
        return None
    fitting = [volume for volume in volumes if is_free(volume) and can_serve(volume, claim)]
    return min(fitting, key=lambda volume: (size_of(volume), name_of(volume)), default=None)


def _bind(claim: Object, volume: Object) -> Iterator[Ask]:
    """The volume says for whom, then its phase; the claim says which, then its phase."""
    namespace, name = namespace_of(claim), name_of(claim)
    if (spec_of(volume).get("claimRef") or {}).get("uid") != uid_of(claim):
        ours = {} if spec_of(volume).get("claimRef") else {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        body: dict[str, Any] = {"spec": {"claimRef": reference_to(claim)}}
        if ours:
            body["metadata"] = ours
        yield Write("patch", VOLUMES, "", name_of(volume), body, uid=uid_of(volume))
    if phase_of(volume) != "Bound":
        yield _volume_phase(volume, "Bound")
    annotations = {BIND_COMPLETED: "yes"}
    if not spec_of(claim).get("volumeName"):
        annotations[BOUND_BY_CONTROLLER] = "yes"
    body = {"metadata": {"annotations": annotations}, "spec": {"volumeName": name_of(volume)}}
    yield Write("patch", VOLUME_CLAIMS, namespace, name, body, uid=uid_of(claim))
    offered = spec_of(volume)
    status = {
        "phase": "Bound",
        "accessModes": offered.get("accessModes"),
        "capacity": offered.get("capacity"),
    }
    yield Write("patch", VOLUME_CLAIMS, namespace, name, {"status": status}, "status", uid_of(claim))


def _tend_bound(claim: Object, view: View) -> Iterator[Ask]:
    """A claim whose volume is gone, or belongs to somebody else, is lost for good."""
    volume = view.get(VOLUMES, "", str(spec_of(claim).get("volumeName") or ""))
    phase = "Bound" if volume is not None and is_for(volume, claim) else "Lost"
    if phase_of(claim) != phase:
        where = (namespace_of(claim), name_of(claim))
        yield Write("patch", VOLUME_CLAIMS, *where, {"status": {"phase": phase}}, "status", uid_of(claim))


def _tend_volume(volume: Object, view: View) -> Iterator[Ask]:
    """Available while nobody has it; Released once its claim is gone, then kept or deleted."""
    reference = spec_of(volume).get("claimRef")
    if not reference:
        if phase_of(volume) != "Available":
            yield _volume_phase(volume, "Available")
        return
    if not reference.get("uid"):
        if phase_of(volume) not in ("Available", "Bound"):
            yield _volume_phase(volume, "Available")
        return
    claim = view.get(VOLUME_CLAIMS, str(reference.get("namespace")), str(reference.get("name")))
    if claim is not None and uid_of(claim) == reference["uid"]:
        return
    if phase_of(volume) != "Released":
        yield _volume_phase(volume, "Released")
    if annotation_of(volume, PROVISIONED_BY) is None or is_deleting(volume):
        return
    if spec_of(volume).get("persistentVolumeReclaimPolicy") == "Delete":
        yield Write("delete", VOLUMES, "", name_of(volume), uid=uid_of(volume))


def _volume_phase(volume: Object, phase: str) -> Write:
    body = {"status": {"phase": phase}}
    return Write("patch", VOLUMES, "", name_of(volume), body, "status", uid_of(volume))


def _annotate(claim: Object, annotations: dict[str, str]) -> Write:
    body = {"metadata": {"annotations": annotations}}
    return Write("patch", VOLUME_CLAIMS, namespace_of(claim), name_of(claim), body, uid=uid_of(claim))
