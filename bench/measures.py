"""Figures of one run, from what the watch showed: pods per second, gang waits, writes, the algorithm's share.

In come what was seen and metrics pages before and after; out come plain numbers.  Next: `end_to_end.py`.
"""

from collections import defaultdict

import numpy as np

from bench.contenders import ALGORITHM
from bench.loads import Load
from bench.observer import Seen
from bench.wire import Sample, total

WRITES = ("POST", "PUT", "PATCH", "DELETE")
REQUESTS = "apiserver_request_total"


def first_s(load: Load, seen: Seen, *, is_backlog: bool) -> float:
    """When the clock starts: with the first pod, or in a backlog with the first group."""
    times = seen.group_created_s if is_backlog and load.size else seen.created_s
    return min(times.values())


def gang_waits_s(load: Load, seen: Seen) -> list[float]:
    """From when a gang could start (its group and `minCount` pods there) to its `minCount`-th bind.

    A lone pod waits by itself.  Gangs that were never bound are left out.
    """
    if not load.size:
        return [bound - seen.created_s[name] for name, bound in seen.bound_s.items()]
    created: dict[str, list[float]] = defaultdict(list)
    bound: dict[str, list[float]] = defaultdict(list)
    for name, group in seen.group_of.items():
        created[group].append(seen.created_s[name])
        if name in seen.bound_s:
            bound[group].append(seen.bound_s[name])
    waits = []
    for group, times in bound.items():
        if len(times) >= load.size and len(created[group]) >= load.size:
            complete = max(sorted(created[group])[load.size - 1], seen.group_created_s.get(group, 0.0))
            waits.append(sorted(times)[load.size - 1] - complete)
    return waits


def speed(load: Load, seen: Seen, *, is_backlog: bool) -> dict[str, float]:
    """Pods per second from first create to last bind, the last event, and gang waits."""
    began = first_s(load, seen, is_backlog=is_backlog)
    bound_s = max(seen.bound_s.values()) - began if seen.bound_s else float("inf")
    last_event_s = max(seen.event_s) - began if seen.event_s else float("nan")
    created_s = max(seen.created_s.values()) - began
    waits = gang_waits_s(load, seen) or [float("nan")]
    return {
        "bound": len(seen.bound_s),
        "last_bind_s": bound_s,
        "pods_per_s": len(seen.bound_s) / bound_s,
        "created_share": max(created_s, 0.0) / bound_s,
        "last_event_s": last_event_s,
        "events_to_binds": last_event_s / bound_s,
        "events": len(seen.event_s),
        "gang_wait_p50_s": float(np.percentile(waits, 50)),
        "gang_wait_p99_s": float(np.percentile(waits, 99)),
        "groups_told": len(seen.groups_told),
    }


def writes_by_resource(before: list[Sample], after: list[Sample]) -> dict[str, int]:
    """Writes that the API server answered in between, by resource and subresource; leases left out."""
    counts: dict[str, float] = defaultdict(float)
    for sign, samples in ((-1, before), (1, after)):
        for sample in samples:
            labels = sample.labels
            if sample.name == REQUESTS and labels["verb"] in WRITES and labels["resource"] != "leases":
                where = "/".join(part for part in (labels["resource"], labels["subresource"]) if part)
                counts[where] += sign * sample.value
    return {where: int(count) for where, count in sorted(counts.items()) if count}


def algorithm(load: Load, samples: list[Sample]) -> dict[str, float | bool]:
    """The decision alone: mean milliseconds a gang; void if it was not timed exactly once a gang."""
    count = total(samples, f"{ALGORITHM}_count")
    mean_ms = 1000.0 * total(samples, f"{ALGORITHM}_sum") / count if count else float("nan")
    return {"algorithm_ms": mean_ms, "decisions": count, "decisions_void": count != load.gangs}
