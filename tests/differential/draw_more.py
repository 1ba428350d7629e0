"""The rarer rules of a scenario, drawn from a stream of their own, so that the rest of a seed stays as it is.

In come nodes and pods of `draw.py`; they get soft taints, preferences, policies of spreading, selectors by
expression, ports of one address, images; groups that run may hang in trees, budgets protect some pods, and
some are being resized in place.
"""

import random
from collections.abc import Callable

from tests.differential.scenario import Short, priority_of

SPOT = "spot"
IMAGE = "registry.test/big:1"
ALL = "requiredDuringSchedulingIgnoredDuringExecution"
WISHED = "preferredDuringSchedulingIgnoredDuringExecution"
More = random.Random


def add_to_node(more: More, node: Short) -> None:
    """Taints of every effect, a generation to compare with, an image that is there already."""
    effect = more.choices(("PreferNoSchedule", "NoExecute", "NoSchedule", None), (12, 4, 4, 80))[0]
    if effect is not None:
        taint = {"key": SPOT, "value": more.choice(("x", "y")), "effect": effect}
        node["taints"] = [*node.get("taints", []), taint]
    if more.random() < 0.8:
        node["labels"]["gen"] = str(more.randint(1, 4))
    if more.random() < 0.2:
        node["images"] = [IMAGE]


def add_to_pod(more: More, pod: Short, *, rules: float) -> None:
    """Each rule with the probability `rules` × its weight."""
    pod["labels"]["rev"] = more.choice(("1", "2"))
    for weight, add in _RULES:
        if more.random() < rules * weight:
            add(more, pod)


def add_budgets(more: More, running: list[Short]) -> list[Short]:
    """Up to two budgets, each over some of the pods that run, which get its label: the weak above all."""
    budgets = []
    for name in more.choice(((), (), ("k0",), ("k0", "k1"))):
        free = [pod for pod in running if "keep" not in pod["labels"]]
        kept = [pod for pod in free if more.random() < (0.7 if priority_of(pod) <= 30 else 0.2)]
        for pod in kept:
            pod["labels"] = {**pod["labels"], "keep": name}
        if kept:
            budgets.append({"pdb": name, "selector": {"keep": name}, "allowed": more.choice((0, 0, 0, 1))})
    return budgets


def resized(more: More, pod: Short) -> Short:
    """The pod, one in ten while it is resized in place: it holds more than it asks for by now, or less."""
    if more.random() >= 0.1:
        return pod
    held = max(1, pod["cpu"] + more.choice((-1, 1, 2)))
    return {**pod, "held": held, "infeasible": held < pod["cpu"] and more.random() < 0.5}


def add_trees(more: More, groups: list[Short]) -> list[Short]:
    """The groups that run, some of them under a root, and the roots, parents last."""
    roots = []
    for group in groups:
        if more.random() < 0.5:
            root = {"composite": f"{group['group']}-root", "gang": 1}
            group["parent"] = root["composite"]
            root |= {"priorityClassName": group["priorityClassName"]}
            roots.append(root | {"disruption": more.choice(("all", "single"))})
    return [*groups, *roots]


def add_level(more: More, groups: list[Short]) -> None:
    """Put a composite between the root of an arriving tree, which is last, and some of its groups."""
    root = groups[-1]
    below = [group for group in groups[:-1] if more.random() < 0.6]
    if not below:
        return
    between: Short = {"composite": f"{root['composite']}-m", "parent": root["composite"]}
    between["priorityClassName"] = root["priorityClassName"]
    for group in below:
        group["parent"] = between["composite"]
    if more.random() < 0.7:
        between["gang"] = more.randint(1, len(below))
    if more.random() < 0.2:
        between["topology"] = "zone"
    groups.insert(-1, between)
    children = sum(group.get("parent") == root["composite"] for group in groups)
    if "gang" in root:
        root["gang"] = min(root["gang"], children)


# ── one function a rule ──────────────────────────────────────────────────────────────────────────


def _add_toleration(more: More, pod: Short) -> None:
    anything: Short = {"operator": "Exists"}
    spot: Short = {"key": SPOT, "operator": "Exists"}
    exact: Short = {"key": SPOT, "operator": "Equal", "value": "x"}
    chosen = dict(more.choice((anything, spot, exact)))
    if more.random() < 0.3:
        chosen["effect"] = more.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    pod["tolerations"] = [*pod.get("tolerations", []), chosen]


def _add_comparison(more: More, pod: Short) -> None:
    wanted = {"key": "gen", "operator": more.choice(("Gt", "Lt")), "values": [str(more.randint(1, 4))]}
    affinity = pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms = affinity.setdefault(ALL, {"nodeSelectorTerms": []})["nodeSelectorTerms"]
    if terms and more.random() < 0.5:
        terms[0]["matchExpressions"].append(wanted)
    else:
        terms.append({"matchExpressions": [wanted]})


def _add_node_preference(more: More, pod: Short) -> None:
    wanted = {"key": "disk", "operator": "In", "values": [more.choice(("ssd", "hdd"))]}
    wish = {"weight": more.randint(1, 100), "preference": {"matchExpressions": [wanted]}}
    pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})[WISHED] = [wish]


def _add_address(more: More, pod: Short) -> None:
    port = {"containerPort": 81, "hostPort": 8080, "protocol": more.choice(("TCP", "UDP"))}
    if more.random() < 0.6:
        port["hostIP"] = more.choice(("127.0.0.1", "127.0.0.2", "0.0.0.0"))
    pod["ports"] = [port]


def _add_policies(more: More, pod: Short) -> None:
    for constraint in _hard_spreads(pod):
        constraint["nodeAffinityPolicy"] = more.choice(("Honor", "Ignore"))
        constraint["nodeTaintsPolicy"] = more.choice(("Honor", "Ignore"))


def _add_second_spread(more: More, pod: Short) -> None:
    first, *_ = [*_hard_spreads(pod), None]
    if first is not None:
        key = more.choice([key for key in ("kubernetes.io/hostname", "zone") if key != first["topologyKey"]])
        more_even = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        selector = {"matchLabels": {"app": more.choice("abc")}}
        pod["topologySpreadConstraints"].append({**more_even, "labelSelector": selector})


def _add_revision(more: More, pod: Short) -> None:
    """Count pods of the same revision only."""
    for term in [*_hard_spreads(pod), *_required_terms(pod)]:
        if more.random() < 0.7:
            term["matchLabelKeys"] = ["rev"]


def _add_expression(more: More, pod: Short) -> None:
    """Selectors by expression, in every namespace where that can reach no other scenario."""
    for term in _required_terms(pod):
        operator = more.choice(("In", "NotIn", "Exists"))
        expression: Short = {"key": "app", "operator": operator}
        if operator != "Exists":
            expression["values"] = more.sample("abc", 2)
        term["labelSelector"] = {"matchExpressions": [expression]}
        if term["topologyKey"] != "kubernetes.io/hostname":
            term["namespaceSelector"] = {}


def _add_image(_more: More, pod: Short) -> None:
    pod["image"] = IMAGE


def _hard_spreads(pod: Short) -> list[Short]:
    return [
        constraint
        for constraint in pod.get("topologySpreadConstraints", [])
        if constraint["whenUnsatisfiable"] == "DoNotSchedule"
    ]


def _required_terms(pod: Short) -> list[Short]:
    affinity = pod.get("affinity", {})
    return [
        term for rule in ("podAffinity", "podAntiAffinity") for term in affinity.get(rule, {}).get(ALL, [])
    ]


_RULES: tuple[tuple[float, Callable[[More, Short], None]], ...] = (
    (0.8, _add_toleration),
    (0.4, _add_comparison),
    (0.6, _add_node_preference),
    (0.3, _add_address),
    (2.0, _add_policies),
    (1.0, _add_second_spread),
    (1.0, _add_revision),
    (1.5, _add_expression),
    (0.4, _add_image),
)
