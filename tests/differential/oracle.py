"""What is possible for a whole group, by trying everything; and whether a result obeys every rule.

Slow, and independent of Muster: rules come from `rules.py`.  A search that grows too large says None
("unknown"), never a guess.  Next: `judge.py`, which asks.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, combinations, product

from tests.differential.rules import Cluster, Placed
from tests.differential.scenario import Arrival, Scenario, Short, priority_of

STATES_MAX = 6000  # partial placements that one question may look at
UNITS_MAX = 7  # victims to choose among, by trying every set of them


class TooLarge(Exception):
    """More partial placements than `STATES_MAX`."""


# ── is a result allowed ──────────────────────────────────────────────────────────────────────────


def broken_rules(
    before: Cluster, arrival: Arrival, bound: dict[str, str], victims: set[str], late: Iterable[Placed] = ()
) -> list[str]:
    """What is wrong about members of `arrival` being on these nodes after these victims went.

    `late`: pods that waited before, and were placed meanwhile, too.
    Rules that look at other pods are checked in some order of placing them that obeys all, if there is one;
    each victim may have gone before or after any of them was placed.
    """
    pods = [Placed(short, bound[short["pod"]]) for short in arrival.pods if short["pod"] in bound]
    pods.extend(late)
    wrong = list(broken_groups(before, arrival, bound))
    after = before.without(victims)
    if not (_can_follow(after, pods) or _can_follow_among(before, pods, victims)):
        wrong.append(f"no order of placing obeys the rules: {_first_refusals(after, pods)}")
    return wrong


def broken_groups(cluster: Cluster, arrival: Arrival, bound: dict[str, str]) -> Iterator[str]:
    """Minimums and domains that do not hold."""
    yield from _broken_minimums(arrival, bound)
    yield from _broken_domains(cluster, arrival, bound)


def broken_totals(cluster: Cluster, arrivals: list[Arrival], bound: dict[str, str]) -> Iterator[str]:
    """What holds in whatever order pods came: room, ports, nodes and anti-affinity."""
    pods = [
        Placed(short, bound[short["pod"]])
        for arrival in arrivals
        for short in arrival.pods
        if short["pod"] in bound
    ]
    for placed in pods:
        others = cluster.with_pods(pod for pod in pods if pod is not placed)
        if (rule := others.refusal(*placed, ordered=False)) is not None:
            yield f"{placed.pod['pod']} on {placed.node}: {rule}"


def _can_follow(cluster: Cluster, pods: list[Placed]) -> bool:
    """Whether the pods can be placed one after the other, in some order."""
    dead: set[frozenset[int]] = set()

    def goes_on(done: frozenset[int]) -> bool:
        if len(done) == len(pods):
            return True
        if done in dead:
            return False
        now = cluster.with_pods(pods[index] for index in sorted(done))
        for index in range(len(pods)):
            if index not in done and now.may_place(*pods[index]) and goes_on(done | {index}):
                return True
        dead.add(done)
        return False

    return goes_on(frozenset())


def _can_follow_among(before: Cluster, pods: list[Placed], victims: set[str]) -> bool:
    """The same with victims going one by one, whenever that helps; too many orders to try count as yes."""
    leaving = sorted(entry.pod["pod"] for entry in before.placed if entry.pod["pod"] in victims)
    seen: set[tuple[frozenset[int], frozenset[str]]] = set()
    open_states = [(frozenset[int](), frozenset[str]())]
    while open_states:
        done, gone = open_states.pop()
        if len(done) == len(pods) or len(seen) > STATES_MAX:
            return True
        if (done, gone) in seen:
            continue
        seen.add((done, gone))
        now = before.without(gone).with_pods(pods[index] for index in done)
        open_states += [(done, gone | {name}) for name in leaving if name not in gone]
        open_states += [
            (done | {index}, gone)
            for index in range(len(pods))
            if index not in done and now.may_place(*pods[index])
        ]
    return False


def _first_refusals(cluster: Cluster, pods: list[Placed]) -> str:
    found = {placed.pod["pod"]: cluster.refusal(*placed) for placed in pods}
    return ", ".join(f"{name}: {rule}" for name, rule in found.items() if rule) or "only together"


def _broken_minimums(arrival: Arrival, bound: dict[str, str]) -> Iterator[str]:
    counts = counts_of(arrival, bound)

    def held(group: Short) -> int:
        """How many members, or groups that are whole, a group has."""
        if "group" in group:
            return counts[group["group"]]
        return sum(held(child) >= child.get("gang", 1) for child in arrival.children(group))

    if arrival.is_gated and any(counts.values()):
        yield f"{arrival.name} is held back by a gate"
    for group in arrival.groups:
        is_used = any(counts[name] for name in arrival.leaf_names(group))
        if is_used and held(group) < group.get("gang", 1):
            what = "members" if "group" in group else "groups"
            name = group.get("group") or group["composite"]
            yield f"{name} has {held(group)} of {group['gang']} {what}"


def _broken_domains(cluster: Cluster, arrival: Arrival, bound: dict[str, str]) -> Iterator[str]:
    for group in arrival.groups:
        if key := group.get("topology"):
            inside = arrival.leaf_names(group)
            nodes = [
                bound[short["pod"]]
                for short in arrival.pods
                if short["pod"] in bound and short["group"] in inside
            ]
            values = {cluster.label(node, key) for node in nodes}
            if len(values) > 1 or None in values:
                name = group.get("group") or group["composite"]
                yield f"{name} is in the {key} domains {sorted(map(str, values))}"


def counts_of(arrival: Arrival, bound: Iterable[str]) -> Counter[str]:
    """How many members of each leaf group are bound; a lone pod counts under its own name."""
    names = set(bound)
    return Counter(short.get("group", short["pod"]) for short in arrival.pods if short["pod"] in names)


# ── is a placement possible ──────────────────────────────────────────────────────────────────────


def find_placement(cluster: Cluster, arrival: Arrival) -> dict[str, str] | None:
    """Some placement that reaches every minimum, in any order of placing; None where there is none.

    Raises   TooLarge.
    """
    if not arrival.groups:
        pod = arrival.pods[0]
        return next(({pod["pod"]: node} for node in cluster.nodes if cluster.may_place(pod, node)), None)
    if arrival.is_gated:
        return None
    budget = [STATES_MAX]
    for chosen in _choices(cluster, arrival, arrival.root, list(cluster.nodes)):
        found = _place_leaves(cluster, arrival, chosen, budget)
        if found is not None:
            return found
    return None


def _choices(
    cluster: Cluster, arrival: Arrival, group: Short, nodes: list[str]
) -> Iterator[list[tuple[Short, list[str]]]]:
    """Every way to reach the minimum of a group: which groups of pods, each with the nodes it may use."""
    for domain in _domains(cluster, nodes, group.get("topology")):
        if "group" in group:
            yield [(group, domain)]
            continue
        children = arrival.children(group)
        for size in range(group.get("gang", 1), len(children) + 1):
            for chosen in combinations(children, size):
                ways = [list(_choices(cluster, arrival, child, domain)) for child in chosen]
                for parts in product(*ways):
                    yield [leaf for part in parts for leaf in part]


def _domains(cluster: Cluster, nodes: list[str], key: str | None) -> list[list[str]]:
    """The parts of `nodes` that a group may be in, each a list; all of them where it has no key."""
    if key is None:
        return [nodes]
    values = {cluster.label(node, key) for node in nodes} - {None}
    return [
        [node for node in nodes if cluster.label(node, key) == value] for value in sorted(map(str, values))
    ]


def _place_leaves(
    cluster: Cluster, arrival: Arrival, chosen: list[tuple[Short, list[str]]], budget: list[int]
) -> dict[str, str] | None:
    """Depth first over (member, node); equal members stand for each other, so equal states are met once."""
    nodes_of = {leaf["group"]: nodes for leaf, nodes in chosen}
    pods = [short for short in arrival.pods if short["group"] in nodes_of]
    shapes = {short["pod"]: shape_of(short) for short in pods}
    seen: set[tuple[tuple[str, str], ...]] = set()

    def goes_on(placed: list[Placed]) -> list[Placed] | None:
        counts = Counter(entry.pod["group"] for entry in placed)
        if all(counts[leaf["group"]] >= leaf.get("gang", 1) for leaf, _ in chosen):
            return placed
        state = tuple(sorted((shapes[entry.pod["pod"]], entry.node) for entry in placed))
        if state in seen:
            return None
        seen.add(state)
        budget[0] -= 1
        if budget[0] < 0:
            raise TooLarge
        now = cluster.with_pods(placed)
        tried: set[str] = set()
        names = {entry.pod["pod"] for entry in placed}
        for pod in pods:
            if pod["pod"] in names or shapes[pod["pod"]] in tried:
                continue
            tried.add(shapes[pod["pod"]])
            for node in nodes_of[pod["group"]]:
                if now.may_place(pod, node):
                    found = goes_on([*placed, Placed(pod, node)])
                    if found is not None:
                        return found
        return None

    found = goes_on([])
    return None if found is None else {entry.pod["pod"]: entry.node for entry in found}


def find_another_group(after: Cluster, arrival: Arrival, bound: dict[str, str]) -> str | None:
    """A group of a tree that is placed without it, and could be added to it; None where there is none.

    `after`: the cluster with all that is bound.
    """
    counts = counts_of(arrival, bound)
    for name, leaf in arrival.leaves.items():
        least = leaf.get("gang", 1)
        members = [short for short in arrival.pods if short["group"] == name]
        if counts[name] >= least or arrival.is_gated:
            continue
        for chosen in combinations(members, least):
            for nodes in product(after.nodes, repeat=least):
                added = {short["pod"]: node for short, node in zip(chosen, nodes, strict=True)}
                pods = [Placed(short, added[short["pod"]]) for short in chosen]
                if not any(broken_groups(after, arrival, bound | added)) and _can_follow(after, pods):
                    return name
    return None


def shape_of(short: Short) -> str:
    """What makes members alike: everything but the name."""
    return json.dumps({key: value for key, value in short.items() if key != "pod"}, sort_keys=True)


# ── what preemption may take ─────────────────────────────────────────────────────────────────────


def units_below(scenario: Scenario, cluster: Cluster, priority: int) -> list[tuple[int, frozenset[str]]]:
    """What may be evicted for this priority: (priority, pods that go together)."""
    shorts = [*scenario.running_groups, *(group for arrival in scenario.arrivals for group in arrival.groups)]
    groups = {short.get("group") or short["composite"]: short for short in shorts}

    def anchor(pod: Short) -> str:
        """The topmost group that goes as a whole, or the pod itself."""
        found, group = f"pod {pod['pod']}", groups.get(pod.get("group", ""))
        while group is not None:
            if group.get("disruption") == "all":
                found = group.get("group") or group["composite"]
            group = groups.get(group.get("parent", ""))
        return found

    units: dict[str, set[str]] = {}
    priorities: dict[str, int] = {}
    for entry in cluster.placed:
        name = anchor(entry.pod)
        units.setdefault(name, set()).add(entry.pod["pod"])
        priorities[name] = priority_of(entry.pod)
    below = [
        (priorities[name], frozenset(pods)) for name, pods in units.items() if priorities[name] < priority
    ]
    return sorted(below, key=lambda unit: (unit[0], sorted(unit[1])))


Price = tuple[int, int, int]


def price_of(scenario: Scenario, cluster: Cluster, victims: Iterable[str]) -> Price:
    """(pods beyond what budgets allow, highest priority, number) of these victims."""
    names = set(victims)
    gone = [entry.pod for entry in cluster.placed if entry.pod["pod"] in names]
    beyond = 0
    for budget in scenario.budgets:
        ((key, value),) = budget["selector"].items()
        beyond += max(0, sum(pod["labels"].get(key) == value for pod in gone) - budget["allowed"])
    return beyond, max(map(priority_of, gone), default=0), len(gone)


def cheapest_victims(scenario: Scenario, cluster: Cluster, arrival: Arrival) -> Price | None:
    """The price of the best set of victims, or None where no set helps.

    Raises   TooLarge where there are too many units or placements.
    """
    units = units_below(scenario, cluster, arrival.takes_below)
    if len(units) > UNITS_MAX:
        raise TooLarge
    chosen = chain.from_iterable(combinations(units, size) for size in range(1, len(units) + 1))
    sets = [frozenset[str]().union(*(pods for _, pods in victims)) for victims in chosen]
    priced = [(price_of(scenario, cluster, gone), gone) for gone in sets]
    for price, gone in sorted(priced, key=lambda entry: entry[0]):
        if find_placement(cluster.without(gone), arrival) is not None:
            return price
    return None
