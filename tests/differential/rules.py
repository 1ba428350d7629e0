"""The rules of Kubernetes for one pod on one node, written as plainly as they can be: the slow checker.

Shares nothing with Muster.  In comes a cluster in the notation of the cases, out comes which rule forbids
a pod a node.  What a rule asks is told in kubernetes-1.37's documentation of each field.  Next: `oracle.py`,
which asks for whole groups.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tests.differential.scenario import Short

HOSTNAME = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
ANY_ADDRESS = "0.0.0.0"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Placed(NamedTuple):
    """A pod and the node it is on."""

    pod: Short
    node: str


class Cluster:
    """Nodes and the pods that are on them; everything is counted anew for each question."""

    def __init__(self, nodes: dict[str, Short], placed: Iterable[Placed] = ()) -> None:
        self.nodes = nodes
        self.placed = list(placed)

    def may_place(self, pod: Short, node: str) -> bool:
        return self.refusal(pod, node) is None

    def refusal(self, pod: Short, node: str, *, ordered: bool = True) -> str | None:
        """The first rule that forbids it, or None; without `ordered` only rules whose answer cannot
        depend on who was placed first."""
        rules = _RULES if ordered else [rule for rule in _RULES if rule[0] not in _ORDERED]
        return next((name for name, holds in rules if not holds(self, pod, node)), None)

    def with_pods(self, placed: Iterable[Placed]) -> "Cluster":
        return Cluster(self.nodes, [*self.placed, *placed])

    def without(self, names: Iterable[str]) -> "Cluster":
        gone = set(names)
        return Cluster(self.nodes, [entry for entry in self.placed if entry.pod["pod"] not in gone])

    def label(self, node: str, key: str) -> str | None:
        """A node's label; the host name is its name."""
        return node if key == HOSTNAME else self.nodes[node].get("labels", {}).get(key)

    def domain(self, key: str, value: str | None) -> list[str]:
        return [node for node in self.nodes if self.label(node, key) == value]


def requests_of(pod: Short) -> dict[str, int]:
    """What it takes of a node, one pod included.

    While it is resized the larger of what it asks for and what it holds; what it holds where the node has
    found that it can never have more.
    """
    cpu = max(pod["cpu"], pod.get("held", 0)) if not pod.get("infeasible") else pod["held"]
    amounts = {"cpu": cpu, "pods": 1, **pod.get("more", {})}
    return amounts | ({GPU: pod["gpu"]} if "gpu" in pod else {})


def room_of(node: Short) -> dict[str, int]:
    amounts = {"cpu": node["cpu"], "pods": node.get("pods", 110), **node.get("more", {})}
    return amounts | ({GPU: node["gpu"]} if "gpu" in node else {})


def selects(term: Short, pod: Short, other: Short) -> bool:
    """Whether a term or constraint of `pod` means `other`."""
    labels, selector = other.get("labels", {}), term["labelSelector"]
    alike = [key for key in term.get("matchLabelKeys", []) if key in pod["labels"]]
    return (
        all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
        and all(
            _answers(labels.get(wanted["key"]), wanted) for wanted in selector.get("matchExpressions", [])
        )
        and all(labels.get(key) == pod["labels"][key] for key in alike)
    )


def _answers(value: str | None, wanted: Short) -> bool:
    """Whether a label's value, None where it is not there, is what an expression wants."""
    operator, values = wanted["operator"], wanted.get("values", [])
    if operator in ("Gt", "Lt"):
        return value is not None and (
            int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
        )
    answers = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return answers[operator]


# ── one function a rule ──────────────────────────────────────────────────────────────────────────


def _has_room(cluster: Cluster, pod: Short, node: str) -> bool:
    left = room_of(cluster.nodes[node])
    for other in cluster.placed:
        if other.node == node:
            for resource, amount in requests_of(other.pod).items():
                left[resource] = left.get(resource, 0) - amount
    return all(left.get(resource, 0) >= amount for resource, amount in requests_of(pod).items())


def _is_ungated(_cluster: Cluster, pod: Short, _node: str) -> bool:
    return "gates" not in pod


def _is_tolerated(cluster: Cluster, pod: Short, node: str) -> bool:
    cordon = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}
    cordons = [cordon] if cluster.nodes[node].get("unschedulable") else []
    return all(_tolerates(pod, taint) for taint in cordons) and _taints_are_tolerated(cluster, pod, node)


def _taints_are_tolerated(cluster: Cluster, pod: Short, node: str) -> bool:
    taints = cluster.nodes[node].get("taints", [])
    return all(_tolerates(pod, taint) for taint in taints if taint["effect"] != "PreferNoSchedule")


def _tolerates(pod: Short, taint: Short) -> bool:
    return any(
        toleration.get("key") in (None, taint["key"])
        and toleration.get("effect") in (None, taint["effect"])
        and (toleration["operator"] == "Exists" or toleration["value"] == taint["value"])
        for toleration in pod.get("tolerations", [])
    )


def _is_selected(cluster: Cluster, pod: Short, node: str) -> bool:
    return all(cluster.label(node, key) == value for key, value in pod.get("nodeSelector", {}).items())


def _is_liked(cluster: Cluster, pod: Short, node: str) -> bool:
    required = pod.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    if required is None:
        return True
    return any(
        all(_answers(cluster.label(node, wanted["key"]), wanted) for wanted in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    )


def _has_ports(cluster: Cluster, pod: Short, node: str) -> bool:
    return not any(
        _collide(port, wanted)
        for other in cluster.placed
        if other.node == node
        for port in other.pod.get("ports", [])
        for wanted in pod.get("ports", [])
    )


def _collide(port: Short, other: Short) -> bool:
    addresses = {short.get("hostIP", ANY_ADDRESS) for short in (port, other)}
    return (
        port["hostPort"] == other["hostPort"]
        and port.get("protocol", "TCP") == other.get("protocol", "TCP")
        and (len(addresses) == 1 or ANY_ADDRESS in addresses)
    )


def _terms(pod: Short, rule: str) -> list[Short]:
    terms: list[Short] = pod.get("affinity", {}).get(rule, {}).get(REQUIRED, [])
    return terms


def _avoids_others(cluster: Cluster, pod: Short, node: str) -> bool:
    """Its own required anti-affinity, and that of the pods that are there already."""
    return not any(
        _clash(cluster, term, pod, node, other)
        for other in cluster.placed
        for term in _terms(pod, "podAntiAffinity")
    ) and not any(
        _clash(cluster, term, other.pod, other.node, Placed(pod, node))
        for other in cluster.placed
        for term in _terms(other.pod, "podAntiAffinity")
    )


def _clash(cluster: Cluster, term: Short, pod: Short, node: str, other: Placed) -> bool:
    """Whether the term of `pod` on `node` forbids `other` where it is."""
    value = cluster.label(node, term["topologyKey"])
    return (
        value is not None
        and value == cluster.label(other.node, term["topologyKey"])
        and selects(term, pod, other.pod)
    )


def _joins_others(cluster: Cluster, pod: Short, node: str) -> bool:
    """Required affinity: with a pod that it means, or the first of its kind."""
    terms = _terms(pod, "podAffinity")
    if any(cluster.label(node, term["topologyKey"]) is None for term in terms):
        return False
    meant = [other for other in cluster.placed if all(selects(term, pod, other.pod) for term in terms)]
    somewhere = [
        (term["topologyKey"], cluster.label(other.node, term["topologyKey"]))
        for term in terms
        for other in meant
    ]
    if not any(value is not None for _, value in somewhere):
        return all(selects(term, pod, pod) for term in terms)
    return all((term["topologyKey"], cluster.label(node, term["topologyKey"])) in somewhere for term in terms)


def _is_spread(cluster: Cluster, pod: Short, node: str) -> bool:
    constraints = [
        constraint
        for constraint in pod.get("topologySpreadConstraints", [])
        if constraint["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    has_keys = [
        name
        for name in cluster.nodes
        if all(cluster.label(name, constraint["topologyKey"]) is not None for constraint in constraints)
    ]
    return all(
        _skew_holds(
            cluster,
            pod,
            node,
            constraint,
            [name for name in has_keys if _is_counted(cluster, pod, name, constraint)],
        )
        for constraint in constraints
    )


def _is_counted(cluster: Cluster, pod: Short, node: str, constraint: Short) -> bool:
    """Whether the policies of a constraint let this node count."""
    honors_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
    honors_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
    liked = _is_selected(cluster, pod, node) and _is_liked(cluster, pod, node)
    return (liked or not honors_affinity) and (not honors_taints or _taints_are_tolerated(cluster, pod, node))


def _skew_holds(cluster: Cluster, pod: Short, node: str, constraint: Short, counted: list[str]) -> bool:
    key = constraint["topologyKey"]
    if cluster.label(node, key) is None:
        return False
    counts = {cluster.label(name, key): 0 for name in counted}
    for other in cluster.placed:
        if other.node in counted and selects(constraint, pod, other.pod):
            counts[cluster.label(other.node, key)] += 1
    least = min(counts.values(), default=0)
    if len(counts) < constraint.get("minDomains", 1):
        least = 0
    mine = counts.get(cluster.label(node, key), 0) + selects(constraint, pod, pod)
    return mine - least <= constraint["maxSkew"]


_RULES = (
    ("gate", _is_ungated),
    ("taints", _is_tolerated),
    ("node selector", _is_selected),
    ("node affinity", _is_liked),
    ("room", _has_room),
    ("host ports", _has_ports),
    ("anti-affinity", _avoids_others),
    ("affinity", _joins_others),
    ("spread", _is_spread),
)

# A pod may be right where it is although a later one made the skew larger or its company left.
_ORDERED = {"affinity", "spread"}
