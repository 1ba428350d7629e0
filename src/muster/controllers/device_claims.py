"""Claims for devices: made from templates for pods and pod groups, given back when nobody needs them.

A pod that names a template gets a claim of its own, another if that is deleted, and its status says which; so
does a group, whose members say the same if they name the same template by the same name.  A claim loses its
users when they end, and its allocation with the last of them.
Source: the stock resource-claim-controller (DRA; DRAWorkloadResourceClaims for groups).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from muster.cluster.extended_resources import ANNOTATION
from muster.controllers.objects import (
    annotation_of,
    controller_of,
    has_finalizer,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    uid_of,
    without_finalizer,
)
from muster.controllers.ports import (
    DEVICE_CLAIM_TEMPLATES,
    DEVICE_CLAIMS,
    POD_GROUPS,
    PODS,
    Ask,
    Kind,
    Object,
    Seen,
    View,
    Write,
)
from muster.controllers.reconciler import Key, Reconciler

CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
FINALIZER = "resource.kubernetes.io/delete-protection"
_OWNERS: dict[str, tuple[Kind, str, str]] = {
    "pod": (PODS, "v1", "Pod"),
    "group": (POD_GROUPS, "scheduling.k8s.io/v1beta1", "PodGroup"),
}
_NAME_MAX = 63
_CLAIM = "claim"


class DeviceClaims(Reconciler):
    """Makes and tidies claims; a key is ("pod"|"group"|"claim", namespace, name)."""

    name = "resource-claim-controller"
    kinds = (PODS, POD_GROUPS, DEVICE_CLAIMS, DEVICE_CLAIM_TEMPLATES)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        namespace = namespace_of(change.object)
        if change.kind == DEVICE_CLAIM_TEMPLATES:
            for word, (kind, _, _) in _OWNERS.items():
                for owner in view.list(kind, namespace):
                    if any(ref.get("resourceClaimTemplateName") for ref in _references(owner)):
                        yield (word, namespace, name_of(owner))
        elif change.kind == DEVICE_CLAIMS:
            claim = change.object
            yield (_CLAIM, namespace, name_of(claim))
            reference = controller_of(claim)
            for word, (_, _, kind_name) in _OWNERS.items():
                if reference is not None and reference.get("kind") == kind_name:
                    yield (word, namespace, str(reference["name"]))
        else:
            word = "pod" if change.kind == PODS else "group"
            if extended := extended_claim_of(change.object):
                yield (_CLAIM, namespace, extended)
            if _references(change.object):
                yield (word, namespace, name_of(change.object))
                for claim_name in claim_names_of(change.object):
                    yield (_CLAIM, namespace, claim_name)
            if word == "group" and _references(change.object):
                for pod in view.list(PODS, namespace):
                    if _references(pod) and _group_name(pod) == name_of(change.object):
                        yield ("pod", namespace, name_of(pod))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        word, namespace, name = key
        if word == _CLAIM:
            claim = view.get(DEVICE_CLAIMS, namespace, name)
            if claim is not None:
                yield from _tend_claim(claim, view)
            return
        kind, api_version, kind_name = _OWNERS[word]
        owner = view.get(kind, namespace, name)
        if owner is None or is_deleting(owner) or (word == "pod" and is_terminal(owner)):
            return
        yield from self._make_claims(owner, kind, {"apiVersion": api_version, "kind": kind_name}, view, now_s)

    def _make_claims(
        self, owner: Object, kind: Kind, reference: Object, view: View, now_s: float
    ) -> Iterator[Ask]:
        namespace = namespace_of(owner)
        statuses = {status["name"]: status.get("resourceClaimName") for status in _statuses(owner)}
        for wanted in _references(owner):
            template_name = wanted.get("resourceClaimTemplateName")
            known = statuses.get(wanted["name"])
            is_there = known is not None and view.get(DEVICE_CLAIMS, namespace, known) is not None
            if not template_name or is_there:
                continue
            group = _group_with(owner, kind, wanted, view)
            if group is not None:
                of_group = {status["name"]: status.get("resourceClaimName") for status in _statuses(group)}
                if of_group.get(wanted["name"]):
                    statuses[wanted["name"]] = of_group[wanted["name"]]
                continue
            claim = _made_for(owner, str(wanted["name"]), view)
            if claim is None:
                template = view.get(DEVICE_CLAIM_TEMPLATES, namespace, str(template_name))
                if template is None:
                    text = f'resourceclaimtemplates.resource.k8s.io "{template_name}" not found'
                    yield self.event(owner, "Warning", "FailedResourceClaimCreation", text, now_s)
                    continue
                body = _claim_from(template, owner, reference, str(wanted["name"]))
                yield Write("create", DEVICE_CLAIMS, namespace, "", body)
                claim = _made_for(owner, str(wanted["name"]), view)
            if claim is not None:
                statuses[wanted["name"]] = name_of(claim)
        said = [{"name": name, "resourceClaimName": claim} for name, claim in statuses.items()]
        if said != list(_statuses(owner)):
            body = {"status": {"resourceClaimStatuses": said}}
            yield Write("patch", kind, namespace, name_of(owner), body, "status", uid_of(owner))


def claim_names_of(owner: Object) -> tuple[str, ...]:
    """The claims that a pod or group has by now: named by itself, or made for it."""
    made = {status["name"]: status.get("resourceClaimName") for status in _statuses(owner)}
    names = [ref.get("resourceClaimName") or made.get(ref.get("name")) for ref in _references(owner)]
    return tuple(str(name) for name in names if name)


def extended_claim_of(pod: Object) -> str:
    """The claim that a scheduler made in place of extended resources of a pod; "" if there is none."""
    said = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return str(said.get("resourceClaimName") or "")


def _references(owner: Object) -> tuple[Object, ...]:
    return tuple((owner.get("spec") or {}).get("resourceClaims") or ())


def _statuses(owner: Object) -> tuple[Object, ...]:
    return tuple((owner.get("status") or {}).get("resourceClaimStatuses") or ())


def _group_with(owner: Object, kind: Kind, wanted: Object, view: View) -> Object | None:
    """The group of a pod that asks for its group's claim (same name, same template): the group gets it."""
    group_name = _group_name(owner)
    if kind != PODS or not group_name:
        return None
    group = view.get(POD_GROUPS, namespace_of(owner), group_name)
    return group if group is not None and wanted in _references(group) else None


def _group_name(pod: Object) -> str:
    return str(((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName") or "")


def _made_for(owner: Object, claim_name: str, view: View) -> Object | None:
    for _, claim in (pair for pair in view.dependents(uid_of(owner)) if pair[0] == DEVICE_CLAIMS):
        if annotation_of(claim, CLAIM_NAME) == claim_name and not is_deleting(claim):
            return claim
    return None


def _claim_from(template: Object, owner: Object, reference: Object, claim_name: str) -> dict[str, Any]:
    wanted = template.get("spec") or {}
    metadata = wanted.get("metadata") or {}
    prefix = f"{name_of(owner)}-{claim_name}-"
    owned = {**reference, "name": name_of(owner), "uid": uid_of(owner), "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": prefix[-_NAME_MAX:],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": {**(metadata.get("annotations") or {}), CLAIM_NAME: claim_name},
            "ownerReferences": [{**owned, "blockOwnerDeletion": True}],
        },
        "spec": wanted.get("spec") or {},
    }


def _tend_claim(claim: Object, view: View) -> Iterator[Ask]:
    """Users that have ended let go of it; with the last of them its devices are free."""
    namespace, name = namespace_of(claim), name_of(claim)
    status = claim.get("status") or {}
    users = status.get("reservedFor") or []
    left = [user for user in users if _still_needs(user, namespace, view)]
    if status.get("allocation") and not left and (users or is_deleting(claim)):
        body: dict[str, Any] = {"status": {"reservedFor": None, "allocation": None}}
        yield Write("patch", DEVICE_CLAIMS, namespace, name, body, "status", uid_of(claim))
    elif left != users:
        body = {"status": {"reservedFor": left or None}}
        yield Write("patch", DEVICE_CLAIMS, namespace, name, body, "status", uid_of(claim))
    if not left and has_finalizer(claim, FINALIZER):
        fresh = view.get(DEVICE_CLAIMS, namespace, name)
        if fresh is not None and not (fresh.get("status") or {}).get("allocation"):
            yield Write(
                "patch",
                DEVICE_CLAIMS,
                namespace,
                name,
                without_finalizer(fresh, FINALIZER),
                uid=uid_of(claim),
            )
    if not left and users and annotation_of(claim, ANNOTATION) == "true" and not is_deleting(claim):
        yield Write("delete", DEVICE_CLAIMS, namespace, name, uid=uid_of(claim))


def _still_needs(user: Object, namespace: str, view: View) -> bool:
    """Whether a consumer exists and is not over; one of another kind is believed."""
    if user.get("apiGroup") == POD_GROUPS.group and user.get("resource") == POD_GROUPS.resource:
        group = view.get(POD_GROUPS, namespace, str(user["name"]))
        return group is not None and uid_of(group) == user.get("uid")
    if user.get("apiGroup") or user.get("resource") != PODS.resource:
        return True
    pod = view.get(PODS, namespace, str(user["name"]))
    if pod is None or uid_of(pod) != user.get("uid") or is_terminal(pod):
        return False
    return not is_deleting(pod) or bool(node_of(pod))
