"""Random clusters of pods with rules about each other, and random moves on a trial: for oracles."""

from typing import Any

from hypothesis import strategies as st

from muster.api.core import Pod
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.testing.builders import make_node, make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "zone"

NOT_SELECTED = ["rev"]  # the API server refuses keys that the selector has, too

keys = st.sampled_from([HOST, ZONE, "rack"])
values = st.sampled_from(["x", "y"])
labels = st.dictionaries(st.sampled_from(["app", "tier", "rev"]), values, max_size=3)
namespaces = st.sampled_from(["default", "default", "other"])


@st.composite
def selectors(draw: st.DrawFn) -> dict[str, Any] | None:
    kind = draw(st.sampled_from(["labels", "labels", "labels", "all", "none", "expression"]))
    if kind == "none":
        return None
    if kind == "all":
        return {}
    if kind == "labels":
        return {"matchLabels": {draw(st.sampled_from(["app", "tier"])): draw(values)}}
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    named = {"values": draw(st.lists(values, min_size=1, max_size=2))} if "In" in operator else {}
    return {
        "matchExpressions": [{"key": draw(st.sampled_from(["app", "tier"])), "operator": operator, **named}]
    }


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": draw(keys), "labelSelector": draw(selectors())}
    scope = draw(st.sampled_from(["own", "own", "own", "names", "selector", "every"]))
    if scope == "names":
        term["namespaces"] = draw(st.lists(namespaces, min_size=1, max_size=2))
    if scope == "selector":
        term["namespaceSelector"] = {"matchLabels": {"team": draw(values)}}
    if scope == "every":
        term["namespaceSelector"] = {}
    if draw(st.integers(0, 5)) == 0:
        term[draw(st.sampled_from(["matchLabelKeys", "mismatchLabelKeys"]))] = [
            "rev"
        ]  # never a key of the selector: the API server refuses that
    return term


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("podAffinity", "podAntiAffinity"):
        required = draw(st.lists(terms(), max_size=2)) if draw(st.booleans()) else []
        preferred = draw(st.lists(terms(), max_size=2)) if draw(st.booleans()) else []
        weighted = [{"weight": draw(st.integers(1, 100)), "podAffinityTerm": term} for term in preferred]
        if required or weighted:
            found[name] = {REQUIRED: required, PREFERRED: weighted}
    return found


@st.composite
def constraints(draw: st.DrawFn) -> dict[str, Any]:
    constraint: dict[str, Any] = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(keys),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        "labelSelector": draw(selectors()),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw(st.booleans()):
        constraint["minDomains"] = draw(st.integers(1, 3))
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        constraint[policy] = draw(st.sampled_from([None, "Honor", "Ignore"]))
    if draw(st.integers(0, 3)) == 0:
        constraint["matchLabelKeys"] = NOT_SELECTED
    return constraint


@st.composite
def pods(draw: st.DrawFn, name: str = "p", *, spread: bool = False, node: str = "") -> Pod:
    words: dict[str, Any] = {"namespace": draw(namespaces), "labels": draw(labels), "node": node}
    if spread:
        words["topology_spread_constraints"] = draw(st.lists(constraints(), min_size=1, max_size=3))
        if draw(st.booleans()):
            words["node_selector"] = {"zone": draw(values)}
    elif draw(st.integers(0, 2)):
        words["affinity"] = draw(affinities())
    return make_pod(name, **words)


@st.composite
def clusters(draw: st.DrawFn, *, spread: bool = False) -> ClusterState:
    """A few nodes, some without labels, and pods with rules; changed again after a rule has been asked."""
    state = ClusterState()
    count = draw(st.integers(1, 5))
    for index in range(count):
        apply_random_node(draw, state, f"n{index}")
    for name in ("default", "other"):
        state.apply_namespace(name, {"team": draw(values)})
    for index in range(draw(st.integers(0, 6))):
        state.apply_pod(draw(pods(f"old-{index}", node=f"n{draw(st.integers(0, count - 1))}")))
    if draw(st.booleans()):
        _ = state.snapshot().pod_columns
    for index in range(draw(st.integers(0, 5))):
        change_something(draw, state, index)
        if draw(st.booleans()):
            _ = state.snapshot().pod_columns
    return state


def change_something(draw: st.DrawFn, state: ClusterState, index: int) -> None:
    """Add, relabel, move or remove a pod, or have a node go or change."""
    placed = sorted(((pod.metadata.namespace, pod.metadata.name, node) for node, pod in state.pods_placed()))
    names = sorted(state.table.row_of)
    choice = draw(st.sampled_from(["add", "remove", "relabel", "node gone", "node", "going", "assume"]))
    if choice == "add" and names:
        state.apply_pod(draw(pods(f"new-{index}", node=draw(st.sampled_from(names)))))
    elif choice == "assume" and names:
        pod = draw(pods(f"new-{index}"))
        state.apply_pod(pod)
        state.assume(pod, draw(st.sampled_from(names)))
    elif choice == "node gone" and names:
        state.remove_node(draw(st.sampled_from(names)))
    elif choice == "node":
        apply_random_node(draw, state, f"n{draw(st.integers(0, 5))}")
    elif placed:
        namespace, name, node = draw(st.sampled_from(placed))
        if choice == "remove":
            state.remove_pod((namespace, name), f"uid-{name}")
            return
        words: dict[str, Any] = {"labels": draw(labels), "node": node}
        other = make_pod(name, namespace=namespace, affinity=draw(affinities()), **words)
        state.apply_pod(as_going(other) if choice == "going" else other)


def as_going(pod: Pod) -> Pod:
    """The pod with its deletion asked for."""
    from msgspec.structs import replace

    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def apply_random_node(draw: st.DrawFn, state: ClusterState, name: str) -> None:
    shown = {key: draw(values) for key in (ZONE, "rack") if draw(st.integers(0, 3))}
    taints = [{"key": "dedicated", "effect": "NoSchedule"}] if draw(st.integers(0, 3)) == 0 else []
    state.apply_node(make_node(name, labels=shown, taints=taints))


def move_something(draw: st.DrawFn, fork: Snapshot, pod: Pod) -> tuple[Pod, int] | None:
    """Place a pod on the fork, and give it with its row; or remove one."""
    rows = fork.live_rows().tolist()
    if not rows:
        return None
    row = draw(st.sampled_from(rows))
    there = fork.pods_on(row)
    if there and draw(st.integers(0, 2)) == 0:
        fork.remove(draw(st.sampled_from(there)), row)
        return None
    fork.place(pod, row)
    return pod, row
