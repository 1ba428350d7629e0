"""What makes a run wrong: an unbound pod, a half gang, an overcommitted node, a rack violated, a pod moved.

In come the load and what was seen at the end; out come lines for people, none when all is well.  Time is
never a fault.
"""

from collections import Counter, defaultdict

from bench.loads import NODE_CPU_MILLI, NODE_PODS, POD_CPU_MILLI, Load
from bench.observer import Seen

SHOWN = 5


def find_faults(load: Load, seen: Seen, *, keeps_racks: bool = True) -> list[str]:
    """Everything wrong with the outcome of a run.  `keeps_racks`: the contender heeds racks."""
    faults = []
    unbound = sorted(seen.created_s.keys() - seen.bound_s.keys())
    if unbound or len(seen.created_s) != load.pods:
        faults.append(
            f"{len(unbound)} pods not bound, {len(seen.created_s)} of {load.pods} created: {unbound[:SHOWN]}"
        )
    faults += [f"pod {name} moved after it was bound" for name in seen.moved[:SHOWN]]
    faults += _half_gangs(load, seen)
    faults += _overcommitted(seen)
    if load.racks and keeps_racks:
        faults += _split_gangs(load, seen)
    return faults


def _half_gangs(load: Load, seen: Seen) -> list[str]:
    """Gangs of which some are bound, but fewer than the minimum (which is all of them here)."""
    bound = Counter(seen.group_of[name] for name in seen.bound_s if name in seen.group_of)
    halves = [f"gang {group}: {count} of {load.size} bound" for group, count in bound.items()]
    return [text for text, count in zip(halves, bound.values(), strict=True) if count < load.size][:SHOWN]


def _overcommitted(seen: Seen) -> list[str]:
    most = min(NODE_CPU_MILLI // POD_CPU_MILLI, NODE_PODS)
    loads = Counter(seen.node_of.values())
    full = [f"node {node}: {count} pods, {most} fit" for node, count in loads.items() if count > most]
    return sorted(full)[:SHOWN]


def _split_gangs(load: Load, seen: Seen) -> list[str]:
    racks: dict[str, set[str]] = defaultdict(set)
    for name, node in seen.node_of.items():
        racks[seen.group_of[name]].add(load.rack_of(int(node.rsplit("-", 1)[1])))
    split = [f"gang {group} is in {sorted(found)}" for group, found in racks.items() if len(found) > 1]
    return sorted(split)[:SHOWN]
