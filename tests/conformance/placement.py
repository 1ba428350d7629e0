"""Placement cases (plain manifests, then what must become of them) in the verbs of the interpreter.

In comes one case as its file has it: `objects`, `expect`, and `then` with further changes.  Pods with a node
run from the start.  Out go the fields of a `Case`, so that one interpreter plays both notations in
simulation and on a live server.  Next: `case.py`, which makes the `Case`.
"""

import copy
from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
_DEFAULT = "/namespaces/default"
_PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": f"/api/v1{_DEFAULT}/pods",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": RUNTIME_CLASSES,
    "Workload": f"/apis/scheduling.k8s.io/v1beta1{_DEFAULT}/workloads",
    "PodGroup": f"/apis/scheduling.k8s.io/v1beta1{_DEFAULT}/podgroups",
    "CompositePodGroup": f"/apis/scheduling.k8s.io/v1alpha3{_DEFAULT}/compositepodgroups",
}
_READ_BY_ADMISSION = ("PriorityClass", "RuntimeClass")  # which learns of them by a watch of its own
_AS_THEY_ARE = ("bound", "pending", "untouched", "boundCount", "exactlyOneOf", "domain", "nodes")
_SETTLE_S = 4  # an expectation is of the state once nothing more happens


def is_placement_case(raw: Object) -> bool:
    """Whether a case of a file is in this notation."""
    return "objects" in raw


def case_fields(raw: Object) -> Object:
    """The fields of the `Case` that this case says."""
    kinds = {given["kind"] for given in raw["objects"]}
    return {
        "id": raw["id"],
        "title": raw["title"],
        "steps": list(_steps(raw)),
        "needs": [_PATHS[kind] for kind in ("RuntimeClass", "CompositePodGroup") if kind in kinds],
    }


def _steps(raw: Object) -> Iterator[Object]:
    for given in raw["objects"]:
        yield from _creation(copy.deepcopy(given))
    running = _running(raw["objects"])
    yield from _expectations(raw["expect"], running)
    for more in raw.get("then", []):
        for change in more["do"]:
            if "delete" in change:
                kind, _, name = change["delete"].partition("/")
                running.pop(name, None)
                yield {"delete": {"path": f"{_PATHS[kind]}/{name}"}}
            else:
                yield from _changes(change)
        yield from _expectations(more["expect"], running)


def _creation(given: Object) -> Iterator[Object]:
    kind, name = given["kind"], given["metadata"]["name"]
    began = given["metadata"].pop("creationTimestamp", "2026-01-01T00:00:00Z")
    if kind == "Pod":
        given["spec"].setdefault("terminationGracePeriodSeconds", 0)
        del given["status"]
    yield {"create": {"path": _PATHS[kind], "object": given}}
    if kind in _READ_BY_ADMISSION:
        yield {"wait": 0.2}
    elif kind == "Node":  # a server that taints new nodes as not ready is told otherwise
        yield {"patch": {"node": name, "with": {"spec": {"taints": None}}}}
    elif kind == "Pod" and "nodeName" in given["spec"]:
        ready = [{"type": "Ready", "status": "True"}]
        status = {"phase": "Running", "startTime": began, "conditions": ready}
        yield {"patch": {"pod": name, "subresource": "status", "with": {"status": status}}}


def _running(objects: list[Object]) -> dict[str, str | None]:
    """Pods that run when the case starts, with the group of each."""
    return {
        given["metadata"]["name"]: given["spec"].get("schedulingGroup", {}).get("podGroupName")
        for given in objects
        if given["kind"] == "Pod" and "nodeName" in given["spec"]
    }


def _changes(change: Object) -> Iterator[Object]:
    kind, _, name = change["patch"].partition("/")
    path = f"{_PATHS[kind]}/{name}"
    if "spec" in change:
        yield {"patch": {"path": path, "with": {"spec": change["spec"]}}}
    if "status" in change:
        yield {"patch": {"path": path, "subresource": "status", "with": {"status": change["status"]}}}


def _expectations(wanted: Object, running: dict[str, str | None]) -> Iterator[Object]:
    yield {"expect": _expectation(wanted, running) | {"settle": _SETTLE_S}}
    if "maxEvictions" in wanted:
        counts = range(wanted["maxEvictions"] + 1)
        yield {"expect": {"anyOf": [_evicted(running, count) for count in counts]}}
    if "prefer" in wanted:
        yield {"prefer": _expectation(wanted["prefer"], running)}


def _expectation(wanted: Object, running: dict[str, str | None]) -> Object:
    found = {word: wanted[word] for word in _AS_THEY_ARE if word in wanted}
    if "preempted" in wanted:
        found["gone"] = wanted["preempted"]
        found["untouched"] = sorted(running.keys() - set(wanted["preempted"]))
    if "evictionCalls" in wanted:
        found |= _evicted(running, wanted["evictionCalls"])
    if "conditions" in wanted:
        kept = ("reason", "message")
        found["group"] = {
            name: {"status": of["PodGroupInitiallyScheduled"], **{key: of[key] for key in kept if key in of}}
            for name, of in wanted["conditions"].items()
        }
    if "wholeGroup" in wanted:
        found["wholeOrNone"] = [
            [name for name, of in running.items() if of == group] for group in wanted["wholeGroup"]
        ]
    return found


def _evicted(running: dict[str, str | None], count: int) -> Object:
    """So many of those who ran at the start have been driven out."""
    return {"goneOf": {"names": list(running), "count": count}}
