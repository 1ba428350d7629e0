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


def broken_rules(before: Cluster, arrival: Arrival, bound: dict[str, str], victims: set[str]) -> list[str]:
    """What is wrong about members of `arrival` being on these nodes after these victims went.

    Rules that look at other pods are checked in some order of placing them that obeys all, if there is one;
    victims may have gone before or after the first of them were placed.
    """
    pods = [Placed(short, bound[short["pod"]]) for short in arrival.pods if short["pod"] in bound]
    wrong = list(broken_groups(before, arrival, bound))
    after = before.without(victims)
    if not _can_follow(after, pods) and not _can_follow_around(before, after, pods):
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


def _can_follow_around(before: Cluster, after: Cluster, pods: list[Placed]) -> bool:
    """The same with some of them placed before the victims went."""
    if len(before.placed) == len(after.placed):
        return False
    firsts = chain.from_iterable(combinations(pods, size) for size in range(1, len(pods) + 1))
    return any(
        _can_follow(before, list(first))
        and _can_follow(after.with_pods(first), [pod for pod in pods if pod not in first])
        for first in firsts
    )


def _first_refusals(cluster: Cluster, pods: list[Placed]) -> str:
    found = {placed.pod["pod"]: cluster.refusal(*placed) for placed in pods}
    return ", ".join(f"{name}: {rule}" for name, rule in found.items() if rule) or "only together"


def _broken_minimums(arrival: Arrival, bound: dict[str, str]) -> Iterator[str]:
    counts = counts_of(arrival, bound)
    for name, group in arrival.leaves.items():
        if 0 < counts[name] < group.get("gang", 1):
            yield f"{name} has {counts[name]} of {group['gang']} members"
    if arrival.kind == "tree" and any(counts.values()):
        held = sum(counts[name] >= group.get("gang", 1) for name, group in arrival.leaves.items())
        if held < arrival.root.get("gang", 1):
            yield f"{arrival.name} has {held} of {arrival.root['gang']} groups"


def _broken_domains(cluster: Cluster, arrival: Arrival, bound: dict[str, str]) -> Iterator[str]:
    for group in arrival.groups:
        if key := group.get("topology"):
            inside = group.get("group")
            nodes = [
                bound[short["pod"]]
                for short in arrival.pods
                if short["pod"] in bound and inside in (None, short["group"])
            ]
            values = {cluster.label(node, key) for node in nodes}
            if len(values) > 1 or None in values:
                yield f"{inside or arrival.name} is in the {key} domains {sorted(map(str, values))}"


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
    budget = [STATES_MAX]
    leaves = list(arrival.leaves.values())
    least = arrival.root.get("gang", 1) if arrival.kind == "tree" else 1
    root_key = arrival.root.get("topology") if arrival.kind == "tree" else None
    for nodes in _domains(cluster, list(cluster.nodes), root_key):
        for size in range(least, len(leaves) + 1):
            for chosen in combinations(leaves, size):
                choices = [_domains(cluster, nodes, leaf.get("topology")) for leaf in chosen]
                for places in product(*choices):
                    found = _place_leaves(cluster, arrival, list(zip(chosen, places, strict=True)), budget)
                    if found is not None:
                        return found
    return None


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


def shape_of(short: Short) -> str:
    """What makes members alike: everything but the name."""
    return json.dumps({key: value for key, value in short.items() if key != "pod"}, sort_keys=True)


# ── what preemption may take ─────────────────────────────────────────────────────────────────────


def units_below(scenario: Scenario, cluster: Cluster, priority: int) -> list[tuple[int, frozenset[str]]]:
    """What may be evicted for this priority: (priority, pods that go together)."""
    groups = {short["group"]: short for short in scenario.running_groups}
    groups |= {name: short for arrival in scenario.arrivals for name, short in arrival.leaves.items()}
    whole = {
        name: frozenset(entry.pod["pod"] for entry in cluster.placed if entry.pod.get("group") == name)
        for name, short in groups.items()
        if short.get("disruption") == "all"
    }
    units = {
        (priority_of(entry.pod), whole.get(entry.pod.get("group", ""), frozenset([entry.pod["pod"]])))
        for entry in cluster.placed
    }
    return sorted((unit for unit in units if unit[0] < priority), key=lambda unit: (unit[0], sorted(unit[1])))


def cheapest_victims(scenario: Scenario, cluster: Cluster, arrival: Arrival) -> tuple[int, int] | None:
    """(highest priority, number of pods) of the best set of victims, or None where no set helps.

    Raises   TooLarge where there are too many units or placements.
    """
    units = units_below(scenario, cluster, arrival.priority)
    if len(units) > UNITS_MAX:
        raise TooLarge
    chosen = chain.from_iterable(combinations(units, size) for size in range(1, len(units) + 1))
    priced = [
        (max(priority for priority, _ in victims), sum(len(pods) for _, pods in victims), victims)
        for victims in chosen
    ]
    for highest, count, victims in sorted(priced, key=lambda entry: entry[:2]):
        gone = frozenset[str]().union(*(pods for _, pods in victims))
        if find_placement(cluster.without(gone), arrival) is not None:
            return highest, count
    return None
