"""Empties a real cluster before a case: everything an earlier case may have made is removed.

Not needed in simulation, where every case has a cluster of its own.  Never point it at a cluster that
somebody cares about.
"""

from collections.abc import Iterable

from tests.conformance.manifests import delete_options
from tests.conformance.server import (
    BUDGETS,
    CLAIMS,
    COMPOSITES,
    EVENTS,
    GROUPS,
    JOBS,
    MERGE_PATCH,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    WORKLOADS,
    Api,
    Clock,
)

_WITHOUT_FINALIZERS = {"metadata": {"finalizers": None}}
_COLLECTIONS = (PODS, GROUPS, COMPOSITES, WORKLOADS, BUDGETS, NODES, EVENTS, CLAIMS)
_GONE_WITHIN_S = 20.0


def clear(api: Api, clock: Clock, made_paths: Iterable[str] = ()) -> None:
    """Remove what was made by path, then all of the kinds that cases speak of; wait for pods and nodes."""
    for path in made_paths:
        api.call("DELETE", path)
        api.call("PATCH", path, _WITHOUT_FINALIZERS, MERGE_PATCH)
    for job in api.items(JOBS):
        api.call(
            "DELETE", f"{JOBS}/{job['metadata']['name']}", delete_options(propagationPolicy="Background")
        )
    for collection in _COLLECTIONS:
        for found in api.items(collection):
            path = f"{collection}/{found['metadata']['name']}"
            api.call("DELETE", path, delete_options(gracePeriodSeconds=0))
            if found["metadata"].get("finalizers"):
                api.call("PATCH", path, _WITHOUT_FINALIZERS, MERGE_PATCH)
    for found in api.items(PRIORITY_CLASSES):
        if not found["metadata"]["name"].startswith("system-"):
            api.call("DELETE", f"{PRIORITY_CLASSES}/{found['metadata']['name']}")
    until_s = clock.now_s() + _GONE_WITHIN_S
    while clock.now_s() < until_s and (api.items(PODS) or api.items(NODES)):
        clock.sleep(0.1)
