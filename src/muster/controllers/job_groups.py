"""Workload and PodGroup of a Job: which it has, which it gets, and how they follow its minCount.

A Job of its own gets both; one that belongs to another controller gets a group only if an annotation names
a template of that controller's Workload; a Job that is not new, whose pods name a group already, or whose
objects cannot be told apart, runs ordinary pods.  Objects are found by ownership, never by name alone, so a
user's object is never taken over.  Names are those of the stock controller wherever the API takes them.
Source: KEP-5547 as seen on 1.37.2.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from muster.controllers.objects import (
    annotation_of,
    controller_of,
    find_condition,
    name_of,
    namespace_of,
    uid_of,
)
from muster.controllers.ports import POD_GROUPS, PODS, WORKLOADS, Ask, Kind, Object, View, Write

TEMPLATE_ANNOTATION = "scheduling.k8s.io/group-template-name"
_API_VERSION = "scheduling.k8s.io/v1beta1"
_DIGITS = "456789bcdf"
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TEMPLATE = "pgt-0"
# fields of a Job's `spec.scheduling` that go into template and group as they are
_COPIED_FROM_JOB = ("schedulingConstraints", "disruptionMode", "resourceClaims")
_COPIED_FROM_TEMPLATE = (
    "schedulingPolicy",
    *_COPIED_FROM_JOB,
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)


class Membership(NamedTuple):
    """What the Job's pods belong to: a group, or none (`group` is empty); not `ready`: no pods yet."""

    group: str = ""
    ready: bool = True


ORDINARY = Membership()
NOT_YET = Membership(ready=False)


class Made(NamedTuple):
    """An object that the Job has been given just now, for its event."""

    kind: Kind
    name: str


Steps = Generator[Ask | Made, None, Membership]


def tail(text: str) -> str:
    """The last part of a name as the stock Job controller makes it: FNV-1a 32, digits spelled in letters."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_DIGITS[int(digit)] for digit in str(value))


def workload_name(job: Object) -> str:
    """The name of the Workload that this Job gets."""
    return f"{name_of(job)}-{tail('(types.UID)' + uid_of(job))}"


def template_name(job: Object) -> str:
    """The name of the template: `<job>-pgt-0`, as stock; just `pgt-0` where the API would refuse that."""
    name = f"{name_of(job)}-{_TEMPLATE}"
    return name if _DNS_LABEL.fullmatch(name) else _TEMPLATE


def group_name(workload: str, template: str) -> str:
    """The name of the group made from this template."""
    return f"{workload}-{template}-{tail(workload + template)}"


def is_new(job: Object, view: View) -> bool:
    """Whether nothing has been done for the Job yet; only then may it be given objects."""
    status = job.get("status") or {}
    if status.get("startTime") or status.get("succeeded") or status.get("failed"):
        return False
    if find_condition(job, "Suspended") is not None:
        return False
    return not any(kind == PODS for kind, _ in view.dependents(uid_of(job)))


def ensure_group(job: Object, view: View) -> Steps:
    """Ask for what is missing or out of step, one object at a time; give what the pods belong to."""
    if job["spec"]["template"]["spec"].get("schedulingGroup"):
        return ORDINARY
    owner = controller_of(job)
    if owner is None:
        return (yield from _own_group(job, view))
    template = annotation_of(job, TEMPLATE_ANNOTATION)
    if template is None or owner.get("kind") == "CronJob":
        return ORDINARY
    return (yield from _group_of_parent(job, owner, template, view))


def _own_group(job: Object, view: View) -> Steps:
    mine = [
        workload
        for kind, workload in view.dependents(uid_of(job))
        if kind == WORKLOADS and _is_controlled(workload, job) and _refers_to(workload, job)
    ]
    if len(mine) > 1:
        return ORDINARY
    if not mine:
        if not is_new(job, view):
            return _membership(_groups_of(job, None, None, view))
        name = workload_name(job)
        yield Write("create", WORKLOADS, namespace_of(job), "", _workload(job, name))
        found = view.get(WORKLOADS, namespace_of(job), name)
        if found is None or not _is_controlled(found, job):
            return NOT_YET
        yield Made(WORKLOADS, name)
        mine = [found]
    workload = mine[0]
    templates = workload["spec"].get("podGroupTemplates") or []
    if len(templates) != 1:
        return NOT_YET
    yield from _follow_template(job, workload, templates[0])
    groups = _groups_of(job, name_of(workload), templates[0]["name"], view)
    if not groups and is_new(job, view):
        return (yield from _make_group(job, workload, templates[0]["name"], _spec_of(job), True, view))
    for group in groups[:1] if len(groups) == 1 else ():
        yield from _follow_group(job, group)
    return _membership(groups)


def _group_of_parent(job: Object, owner: Object, template: str, view: View) -> Steps:
    namespace = namespace_of(job)
    parents = [workload for workload in view.list(WORKLOADS, namespace) if _refers_to_owner(workload, owner)]
    if len(parents) != 1:
        return ORDINARY
    templates = parents[0]["spec"].get("podGroupTemplates") or ()
    named = next((entry for entry in templates if entry.get("name") == template), None)
    if named is None:
        return ORDINARY
    groups = _groups_of(job, name_of(parents[0]), template, view)
    if groups or not is_new(job, view):
        return _membership(groups)
    spec = {field: named[field] for field in _COPIED_FROM_TEMPLATE if named.get(field) is not None}
    return (yield from _make_group(job, parents[0], template, spec, False, view))


def _make_group(
    job: Object, workload: Object, template: str, spec: dict[str, Any], with_workload: bool, view: View
) -> Steps:
    namespace, uid = namespace_of(job), uid_of(job)
    name = group_name(name_of(workload), template)
    if view.get(POD_GROUPS, namespace, name) is not None:  # another Job of the same template, or a user's
        name = f"{name_of(workload)}-{template}-{tail(name_of(workload) + template + uid)}"
    owners = [_owner_reference(job)]
    if with_workload:
        reference = {"apiVersion": _API_VERSION, "kind": "Workload"}
        owners.append({**reference, "name": name_of(workload), "uid": uid_of(workload)})
    body = {
        "apiVersion": _API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": owners},
        "spec": {**spec, "workloadRef": {"workloadName": name_of(workload), "templateName": template}},
    }
    yield Write("create", POD_GROUPS, namespace, "", body)
    found = view.get(POD_GROUPS, namespace, name)
    if found is None or not _is_controlled(found, job):
        return NOT_YET
    yield Made(POD_GROUPS, name)
    return Membership(name)


def _membership(groups: list[Object]) -> Membership:
    """One group is the pods' group; none or several are not."""
    return Membership(name_of(groups[0])) if len(groups) == 1 else ORDINARY


def _groups_of(job: Object, workload: str | None, template: str | None, view: View) -> list[Object]:
    """Groups controlled by the Job, of this Workload and template where given."""
    found = []
    for kind, group in view.dependents(uid_of(job)):
        if kind != POD_GROUPS or not _is_controlled(group, job):
            continue
        reference = group["spec"].get("workloadRef") or {}
        named = (reference.get("workloadName"), reference.get("templateName"))
        if workload is None or named == (workload, template):
            found.append(group)
    return found


# ── what they hold ──


def _min_count(job: Object) -> int | None:
    """The Job's minCount, None for basic: as said or the parallelism, never more than pods can come."""
    spec = job["spec"]
    gang = ((spec.get("scheduling") or {}).get("schedulingPolicy") or {}).get("gang")
    if gang is None:
        return None
    parallelism = spec.get("parallelism")
    count = gang.get("minCount") or (1 if parallelism is None else parallelism)
    if spec.get("completions") is not None:
        count = min(count, spec["completions"])
    return max(1, int(count))


def _spec_of(job: Object) -> dict[str, Any]:
    """What template and group have in common."""
    scheduling = job["spec"].get("scheduling") or {}
    count = _min_count(job)
    spec: dict[str, Any] = {
        "schedulingPolicy": {"basic": {}} if count is None else {"gang": {"minCount": count}}
    }
    spec.update({field: scheduling[field] for field in _COPIED_FROM_JOB if scheduling.get(field)})
    priority_class = job["spec"]["template"]["spec"].get("priorityClassName")
    return {**spec, "priorityClassName": priority_class} if priority_class else spec


def _workload(job: Object, name: str) -> Object:
    return {
        "apiVersion": _API_VERSION,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace_of(job),
            "ownerReferences": [_owner_reference(job)],
        },
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": name_of(job)},
            "podGroupTemplates": [{"name": template_name(job), **_spec_of(job)}],
        },
    }


def _follow_template(job: Object, workload: Object, template: Object) -> Iterator[Ask]:
    count = _min_count(job)
    gang = (template.get("schedulingPolicy") or {}).get("gang")
    if count is None or gang is None or gang.get("minCount") == count:
        return
    changed = {**template, "schedulingPolicy": {"gang": {**gang, "minCount": count}}}
    body = {
        "metadata": {"resourceVersion": workload["metadata"]["resourceVersion"]},
        "spec": {"podGroupTemplates": [changed]},
    }
    yield Write("patch", WORKLOADS, namespace_of(job), name_of(workload), body, uid=uid_of(workload))


def _follow_group(job: Object, group: Object) -> Iterator[Ask]:
    count = _min_count(job)
    gang = (group["spec"].get("schedulingPolicy") or {}).get("gang")
    if count is None or gang is None or gang.get("minCount") == count:
        return
    body = {"spec": {"schedulingPolicy": {"gang": {"minCount": count}}}}
    yield Write("patch", POD_GROUPS, namespace_of(job), name_of(group), body, uid=uid_of(group))


# ── whose they are ──


def _owner_reference(job: Object) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name_of(job),
        "uid": uid_of(job),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _is_controlled(obj: Object, job: Object) -> bool:
    owner = controller_of(obj)
    return owner is not None and owner.get("uid") == uid_of(job)


def _refers_to(workload: Object, job: Object) -> bool:
    reference = workload["spec"].get("controllerRef") or {}
    wanted = ("batch", "Job", name_of(job))
    return (reference.get("apiGroup"), reference.get("kind"), reference.get("name")) == wanted


def _refers_to_owner(workload: Object, owner: Object) -> bool:
    reference = workload["spec"].get("controllerRef") or {}
    group, _, version = str(owner.get("apiVersion", "")).rpartition("/")
    wanted = (group if version else "", owner.get("kind"), owner.get("name"))
    return (reference.get("apiGroup") or "", reference.get("kind"), reference.get("name")) == wanted
