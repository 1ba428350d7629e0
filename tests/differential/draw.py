"""A random scenario from a seed: small enough to be solved by trying everything, with all rules mixed.

Pods that run already are put where every rule lets them (`rules.py`).  Rules are drawn so that about half
of the arrivals fit, some only where something weaker gives way.
"""

import random
from collections.abc import Callable

from tests.differential import draw_more
from tests.differential.rules import Cluster, Placed
from tests.differential.scenario import NEVER, PRIORITIES, Arrival, Scenario, Short

APPS = ("a", "b", "c")
CARD = "example.com/card"
WORDS = [name for name in sorted(PRIORITIES) if name not in NEVER]


class Draw(random.Random):
    """The stream of a seed, and those for the rules of `draw_more.py`, None where there are to be none."""

    more: random.Random | None = None
    resizes: random.Random | None = None


def draw_scenario(seed: int, *, plain: bool = False) -> Scenario:
    """The scenario of this seed, always the same; `plain`: without what `draw_more.py` adds."""
    draw = Draw(seed)
    if not plain:
        draw.more, draw.resizes = (random.Random(f"{word} {seed}") for word in ("more", "resizes"))
    kind = draw.choices(("one", "several", "rush"), (70, 20, 10))[0]
    nodes = {f"n{number}": _node(draw, number) for number in range(draw.randint(2, 5))}
    running_groups, running = _running(draw, nodes)
    if kind == "one":
        preempts = draw.random() < 0.5
        names = [draw.choice(("p6", "p7", "p8")) if preempts else "p1"]
    else:
        names = sorted(draw.sample(WORDS, draw.randint(2, 4)), reverse=True)
    budgets = []
    if draw.more is not None:
        running_groups = draw_more.add_trees(draw.more, running_groups)
        # Nobody renews the status of a budget beside stock, so it must not be needed a second time.
        budgets = draw_more.add_budgets(draw.more, running) if kind == "one" else []
        names = [f"n{name[1:]}" if draw.more.random() < 0.08 else name for name in names]
    arrivals = [_arrival(draw, f"x{number}", name) for number, name in enumerate(names)]
    return Scenario(seed, kind, nodes, running, running_groups, arrivals, budgets)


# ── the cluster ──────────────────────────────────────────────────────────────────────────────────


def _node(draw: Draw, number: int) -> Short:
    labels = {}
    if draw.random() < 0.9:
        labels["rack"] = f"r{draw.randint(0, 2)}"
    if draw.random() < 0.9:
        labels["zone"] = f"z{number % 2}"
    labels["disk"] = draw.choice(("ssd", "hdd"))
    node: Short = {"cpu": draw.randint(2, 8), "labels": labels}
    if draw.random() < 0.5:
        node["gpu"] = draw.choice((2, 4, 8))
    if draw.random() < 0.2:
        node["more"] = {CARD: draw.randint(1, 3)}
    if draw.random() < 0.1:
        node["pods"] = draw.randint(1, 4)
    if draw.random() < 0.12:
        node["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    if draw.random() < 0.04:
        node["unschedulable"] = True
    if draw.more is not None:
        draw_more.add_to_node(draw.more, node)
    return node


def _running(draw: Draw, nodes: dict[str, Short]) -> tuple[list[Short], list[Short]]:
    """Groups and pods that run; a pod that no node takes is left out."""
    cluster = Cluster(nodes)
    groups: list[Short] = []
    pods: list[Short] = []
    for number in range(draw.randint(0, 3 * len(nodes))):
        name = f"r{number}"
        if draw.random() < 0.15:
            shape = _shape(draw, draw.choice(("p2", "p3", "p4")), rules=0.1)
            members = [
                {**shape, "pod": f"{name}-{index}", "group": name} for index in range(draw.randint(2, 3))
            ]
            placed = _place_all(draw, cluster, members)
            if placed:
                group = {"group": name, "gang": len(placed), "priorityClassName": shape["priorityClassName"]}
                groups.append(group | {"disruption": draw.choice(("all", "single"))})
        else:
            shape = _shape(draw, draw.choice(("p2", "p3", "p4", "p5", "p9")), rules=0.15)
            placed = _place_all(draw, cluster, [{**shape, "pod": name}])
        pods.extend(placed)
    return groups, pods


def _place_all(draw: Draw, cluster: Cluster, members: list[Short]) -> list[Short]:
    """Those of `members` that fit somewhere, each with its node."""
    found = []
    for one in members:
        member = one if draw.resizes is None else draw_more.resized(draw.resizes, one)
        allowed = [node for node in cluster.nodes if cluster.may_place(member, node)]
        if allowed:
            node = draw.choice(allowed)
            cluster.placed.append(Placed(member, node))
            found.append({**member, "node": node})
    return found


# ── what arrives ─────────────────────────────────────────────────────────────────────────────────


def _arrival(draw: Draw, name: str, priority: str) -> Arrival:
    makers: tuple[Callable[[Draw, str, str], Arrival], ...] = (
        _lone_pod,
        _basic,
        _gang,
        _gang_in_domain,
        _tree,
    )
    arrival = draw.choices(makers, (20, 8, 30, 22, 20))[0](draw, name, priority)
    if draw.more is not None:
        _add_more(draw.more, arrival)
    return arrival


def _add_more(more: random.Random, arrival: Arrival) -> None:
    """Another level in a tree, a policy never to preempt, a gate."""
    if arrival.kind == "tree" and more.random() < 0.3:
        draw_more.add_level(more, arrival.groups)
    for group in arrival.groups:
        if group["priorityClassName"] in NEVER:
            group["preemptionPolicy"] = "Never"
    if more.random() < 0.04:
        more.choice(arrival.pods)["gates"] = ["test/wait"]


def _lone_pod(draw: Draw, name: str, priority: str) -> Arrival:
    return Arrival(name, [], [{**_shape(draw, priority, rules=0.35), "pod": name}])


def _basic(draw: Draw, name: str, priority: str) -> Arrival:
    pods = _members(draw, name, draw.randint(1, 4), priority)
    return Arrival(name, [{"group": name, "priorityClassName": priority}], pods)


def _gang(draw: Draw, name: str, priority: str, **more: str) -> Arrival:
    count = draw.randint(2, 5)
    minimum = count if draw.random() < 0.6 else draw.randint(1, count)
    group = {"group": name, "gang": minimum, "priorityClassName": priority, **more}
    if draw.random() < 0.3:
        group["disruption"] = draw.choice(("all", "single"))
    return Arrival(name, [group], _members(draw, name, count, priority))


def _gang_in_domain(draw: Draw, name: str, priority: str) -> Arrival:
    return _gang(draw, name, priority, topology=draw.choice(("rack", "zone")))


def _tree(draw: Draw, name: str, priority: str) -> Arrival:
    groups: list[Short] = []
    pods: list[Short] = []
    for number in range(draw.randint(2, 3)):
        leaf = f"{name}-{'abc'[number]}"
        count = draw.randint(1, 3)
        group: Short = {"group": leaf, "parent": name, "priorityClassName": priority}
        if draw.random() < 0.85:
            group["gang"] = count if draw.random() < 0.6 else draw.randint(1, count)
        if draw.random() < 0.3:
            group["topology"] = "rack"
        groups.append(group)
        pods.extend(_members(draw, leaf, count, priority))
    root: Short = {"composite": name, "priorityClassName": priority}
    if draw.random() < 0.85:
        root["gang"] = len(groups) if draw.random() < 0.6 else draw.randint(1, len(groups))
    if draw.random() < 0.3:
        root["topology"] = "zone"
    return Arrival(name, [*groups, root], pods)


def _members(draw: Draw, group: str, count: int, priority: str) -> list[Short]:
    """Members of one shape, now and then of two."""
    shapes = [_shape(draw, priority, rules=0.2) for _ in range(2 if draw.random() < 0.3 else 1)]
    return [
        {**shapes[number % len(shapes)], "pod": f"{group}-{number}", "group": group}
        for number in range(count)
    ]


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────


def _shape(draw: Draw, priority: str, *, rules: float) -> Short:
    """A pod without a name; each rule is in it with the probability `rules` × its weight."""
    app = draw.choice(APPS)
    pod: Short = {"cpu": draw.randint(1, 4), "priorityClassName": priority, "labels": {"app": app}}
    if draw.random() < 0.25:
        pod["gpu"] = draw.choice((1, 2, 4))
    for weight, add in _RULES:
        if draw.random() < rules * weight:
            add(draw, pod)
    if draw.more is not None:
        draw_more.add_to_pod(draw.more, pod, rules=rules)
    return pod


def _add_selector(draw: Draw, pod: Short) -> None:
    pod["nodeSelector"] = {"disk": draw.choice(("ssd", "hdd"))}


def _add_node_affinity(draw: Draw, pod: Short) -> None:
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    wanted: Short = {"key": draw.choice(("rack", "disk")), "operator": operator}
    if operator in ("In", "NotIn"):
        wanted["values"] = draw.sample(("r0", "r1", "r2", "ssd"), 2)
    term = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    _affinity(pod)["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": term}


def _add_toleration(draw: Draw, pod: Short) -> None:
    pod["tolerations"] = [{"key": "dedicated", "operator": draw.choice(("Exists", "Equal")), "value": "x"}]
    if pod["tolerations"][0]["operator"] == "Exists":
        del pod["tolerations"][0]["value"]


def _add_port(draw: Draw, pod: Short) -> None:
    pod["ports"] = [{"containerPort": 80, "hostPort": draw.choice((8080, 8081))}]


def _add_card(draw: Draw, pod: Short) -> None:
    pod["more"] = {CARD: draw.randint(1, 2)}


def _term(draw: Draw, pod: Short) -> Short:
    app = pod["labels"]["app"] if draw.random() < 0.6 else draw.choice(APPS)
    key = draw.choice(("kubernetes.io/hostname", "rack", "zone"))
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def _add_anti_affinity(draw: Draw, pod: Short) -> None:
    _affinity(pod)["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(draw, pod)]}


def _add_pod_affinity(draw: Draw, pod: Short) -> None:
    _affinity(pod)["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(draw, pod)]}


def _add_preference(draw: Draw, pod: Short) -> None:
    rule = draw.choice(("podAffinity", "podAntiAffinity"))
    wished = {"weight": draw.randint(1, 100), "podAffinityTerm": _term(draw, pod)}
    _affinity(pod).setdefault(rule, {})["preferredDuringSchedulingIgnoredDuringExecution"] = [wished]


def _add_spread(draw: Draw, pod: Short) -> None:
    constraint = _term(draw, pod) | {"maxSkew": draw.randint(1, 2)}
    constraint["whenUnsatisfiable"] = draw.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw.random() < 0.2:
        constraint["minDomains"] = 2
    pod["topologySpreadConstraints"] = [constraint]


def _affinity(pod: Short) -> Short:
    affinity: Short = pod.setdefault("affinity", {})
    return affinity


_RULES: tuple[tuple[float, Callable[[Draw, Short], None]], ...] = (
    (1.0, _add_selector),
    (0.7, _add_node_affinity),
    (1.0, _add_toleration),
    (0.6, _add_port),
    (0.4, _add_card),
    (1.2, _add_anti_affinity),
    (0.8, _add_pod_affinity),
    (0.4, _add_preference),
    (1.0, _add_spread),
)
