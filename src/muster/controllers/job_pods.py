"""Pods of a Job: how one is made from the template, which are whose, and which go first.

In come the Job and its pods as plain objects.  Next: `job_status.py` counts them, `job.py` decides.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from muster.base.numbers import whole_number
from muster.controllers.job_policies import FAILURE_COUNT, index_limit
from muster.controllers.objects import (
    controller_of,
    has_condition,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    node_of,
    phase_of,
    uid_of,
)
from muster.controllers.ports import PODS, Object, View

TRACKING = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_GENERATED_NAME_MAX = 63
_SUFFIX = 5  # random letters that the API appends


def pods_of(job: Object, view: View) -> list[Object]:
    """Pods that the Job controls, in order of creation."""
    uid = uid_of(job)
    found = []
    for kind, pod in view.dependents(uid):
        owner = controller_of(pod) if kind == PODS else None
        if owner is not None and owner.get("uid") == uid:
            found.append(pod)
    return found


def is_active(pod: Object) -> bool:
    """Whether it waits or runs, and nobody has asked for its end."""
    return not is_terminal(pod) and not is_deleting(pod)


def is_indexed(job: Object) -> bool:
    """Whether each completion has a number."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Object) -> int | None:
    """The completion that a pod of an Indexed Job is for; None where it does not say."""
    text = (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX)
    return None if text is None else whole_number(text)


def make_pod(job: Object, group: str, index: int | None, failures: int = 0) -> Object:
    """A new pod from the Job's template, in this group where one is given.

    `failures` is how many pods of this index failed before, for Jobs that limit them per index.
    """
    template = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    made: dict[str, Any] = {
        "generateName": _prefix(job, index),
        "namespace": namespace_of(job),
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": name_of(job),
                "uid": uid_of(job),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "finalizers": [*(metadata.get("finalizers") or ()), TRACKING],
    }
    for field in ("labels", "annotations"):
        if metadata.get(field):
            made[field] = dict(metadata[field])
    spec = dict(template["spec"])
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    if index is not None:
        _number(made, spec, job, index)
        if index_limit(job) is not None:
            made["annotations"][FAILURE_COUNT] = str(failures)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}


def free_indexes(job: Object, pods: Iterable[Object], done: set[int], count: int) -> list[int]:
    """The lowest completions, at most `count`, that neither succeeded nor have a pod at work."""
    taken = done | {index for pod in pods if is_active(pod) and (index := index_of(pod)) is not None}
    free: list[int] = []
    for index in range(job["spec"].get("completions") or 0):
        if len(free) == count:
            break
        if index not in taken:
            free.append(index)
    return free


def first_to_go(active: Sequence[Object], count: int) -> list[Object]:
    """The `count` active pods that are missed least.

    Second pods of one completion first; then those without a node, pending before running, not ready
    before ready, the youngest first.
    """
    seen: set[int] = set()
    ranked = []
    for order, pod in enumerate(active):
        index = index_of(pod)
        double = index is not None and index in seen
        if index is not None:
            seen.add(index)
        rank = (
            not double,
            bool(node_of(pod)),
            phase_of(pod) == "Running",
            has_condition(pod, "Ready"),
            -order,
        )
        ranked.append((rank, pod))
    ranked.sort(key=lambda pair: pair[0])
    return [pod for _, pod in ranked[:count]]


def _prefix(job: Object, index: int | None) -> str:
    end = "-" if index is None else f"-{index}-"
    return name_of(job)[: _GENERATED_NAME_MAX - _SUFFIX - len(end)] + end


def _number(metadata: dict[str, Any], spec: dict[str, Any], job: Object, index: int) -> None:
    """Tell the pod and its containers which completion it is for."""
    metadata["annotations"] = {**metadata.get("annotations", {}), COMPLETION_INDEX: str(index)}
    metadata["labels"] = {**metadata.get("labels", {}), COMPLETION_INDEX: str(index)}
    spec.setdefault("hostname", f"{name_of(job)}-{index}")
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [
                container
                if any(entry.get("name") == variable["name"] for entry in container.get("env") or ())
                else {**container, "env": [*(container.get("env") or ()), variable]}
                for container in spec[field]
            ]
