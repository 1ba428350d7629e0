"""Muster alone against the slow checker: thousands of seeds in this process, where stock is too slow.

A placement that exists must be found, without a victim where none is needed, and with weaker ones gone where
that helps; and nobody may sleep through what came later and made room.  Comes from
`__main__.py --in-process`; `judge.py` says which rules a result broke.
"""

import traceback
from collections.abc import Iterator
from pathlib import Path

from tests.differential.judge import Finding, Result, broken, results_of
from tests.differential.oracle import TooLarge, cheapest_victims, find_placement, units_below
from tests.differential.play import make_shared, play
from tests.differential.rules import Placed
from tests.differential.scenario import Arrival, Scenario, priority_of
from tests.differential.stage import SimulatedStage


def check_promises(scenario: Scenario) -> list[Finding]:
    """Play the scenario in simulation; everything that a user could complain of."""
    stage = SimulatedStage()
    make_shared(stage)
    try:
        (outcome,) = play(stage, [scenario])
    except Exception as error:  # noqa: BLE001  whatever it is, it is what this looks for
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        return [Finding(scenario.seed, 0, None, text)]
    findings = []
    results = list(results_of(scenario, outcome))
    for number, result in enumerate(results):
        findings += [Finding(scenario.seed, number, None, text) for text in broken(scenario, number, result)]
        if not findings and scenario.kind != "rush":
            arrival = scenario.arrivals[number]
            complaints = list(_complaints(scenario, arrival, result))
            if not result.settled:
                complaints = [(None, f"{arrival.name} did not come to rest")]
            findings += [Finding(scenario.seed, number, rule, text) for rule, text in complaints]
    if not findings:
        last = len(results) - 1
        findings = list(_sleepers(scenario, last, results[last]))
    return findings


def _sleepers(scenario: Scenario, number: int, last: Result) -> Iterator[Finding]:
    """Who waits in the end although there is room, or weaker ones that could make some."""
    cluster = last.before.without(last.victims).with_pods([*last.late, *_came(scenario, last)])
    nodes = {entry.pod["pod"]: entry.node for entry in cluster.placed}
    for arrival in scenario.arrivals:
        if arrival.kind == "tree" or arrival.is_gated:
            continue
        left = [short for short in arrival.pods if short["pod"] not in {*nodes, *last.evicted}]
        if len(left) == len(arrival.pods):
            continue  # told above, where it arrived
        standing = sum(short["pod"] in nodes for short in arrival.pods)
        if standing + 1 < arrival.root.get("gang", 1):
            continue  # of a gang that lost members nobody may go alone
        key = arrival.root.get("topology")
        homes = {cluster.label(nodes[pod["pod"]], key) for pod in arrival.pods if key and pod["pod"] in nodes}
        for short in left:
            allowed = [node for node in cluster.nodes if not key or cluster.label(node, key) in homes]
            for _, gone in [(0, frozenset[str]()), *units_below(scenario, cluster, arrival.takes_below)]:
                without = cluster.without(gone)
                if node := next((node for node in allowed if without.may_place(short, node)), None):
                    text = f"{short['pod']} sleeps although {node} would take it without {sorted(gone)}"
                    rule = "tried-in-order" if gone and _minds_others(arrival) else None
                    yield Finding(scenario.seed, number, rule, text)
                    break


def _came(scenario: Scenario, last: Result) -> Iterator[Placed]:
    shorts = {short["pod"]: short for arrival in scenario.arrivals for short in arrival.pods}
    return (Placed(shorts[name], node) for name, node in last.bound.items())


def _minds_others(arrival: Arrival) -> bool:
    """Whether its pods want company or evenness: evicting somebody may then take away what it needs."""
    return any(
        "podAffinity" in short.get("affinity", {}) or "topologySpreadConstraints" in short
        for short in arrival.pods
    )


def _complaints(scenario: Scenario, arrival: Arrival, result: Result) -> Iterator[tuple[str | None, str]]:
    """What is wrong with what became of it, each with the rule that explains it."""
    in_order = "tried-in-order" if _minds_others(arrival) else None
    for_want_of_room = "waited-before" if _gave_way(arrival, result) else in_order
    if lacking := result.lacks_group(arrival):
        yield in_order, f"{lacking} is left out of {arrival.name}, but could be added"
    if result.victims and not result.bound:
        yield for_want_of_room, f"{sorted(result.victims)} were evicted and nothing was placed"
    try:
        place = find_placement(result.before, arrival)
        if place is not None and not result.bound:
            yield in_order, f"{arrival.name} is not placed, but fits: {place}"
        if place is None and arrival_needs_all(arrival):
            texts = _complaints_of_victims(scenario, arrival, result)
            yield from ((for_want_of_room, text) for text in texts)
    except TooLarge:
        return


def _gave_way(arrival: Arrival, result: Result) -> bool:
    """Whether a stronger pod that had waited took the room that was made for this arrival.

    Room is kept from equal and weaker pods only, as by stock; the stronger had been forbidden to evict.
    """
    mine = max(priority_of(short) for short in arrival.pods)
    stronger = any(priority_of(placed.pod) > mine for placed in result.late)
    return bool(result.victims) and not result.bound and stronger


def _complaints_of_victims(scenario: Scenario, arrival: Arrival, result: Result) -> Iterator[str]:
    """Whether the victims are none that could have been spared, where every set of them can be tried."""
    best = cheapest_victims(scenario, result.before, arrival)
    if best is not None and not result.bound:
        yield f"{arrival.name} is not placed, but victims of {best} would make room"
    if best is not None and result.bound and (price := result.price(scenario)) > best:
        yield f"{arrival.name} cost victims of {price}, {best} would do (beyond budgets, highest, number)"


def arrival_needs_all(arrival: Arrival) -> bool:
    """Whether every pod of it is needed, so that no victim is for a surplus member."""
    members = [short.get("group") for short in arrival.pods]
    whole = all(group.get("gang", 1) == members.count(name) for name, group in arrival.leaves.items())
    composites = [group for group in arrival.groups if "composite" in group]
    return whole and all(group.get("gang", 1) == len(arrival.children(group)) for group in composites)
