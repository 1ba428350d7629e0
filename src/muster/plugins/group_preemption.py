"""DefaultPreemption: the more important may drive out the less important (KEP-5710).

For whole groups and for lone pods alike; victims go in units, and only where the preemptor as a whole is
known to fit without them.
"""

from typing import ClassVar

from muster.framework.points import Preemptor, Rescue
from muster.framework.status import Status
from muster.placement.eviction import Eviction, EvictionSearch, Trial, repeat_eviction


class DefaultPreemption:
    """Chooses the least important and the fewest victims there are, wherever they are."""

    name: ClassVar[str] = "DefaultPreemption"

    def post_filter(self, preemptor: Preemptor) -> Rescue:
        is_pod = preemptor.kind == "pod"
        if preemptor.policy == "Never":
            return Rescue(Status.unschedulable("not eligible due to preemptionPolicy=Never."))
        if preemptor.is_draining:
            return Rescue(
                Status.unschedulable(
                    "not eligible due to a terminating pod on the nominated node."
                    if is_pod
                    else "ongoing preemption on nominated nodes"
                )
            )
        if not preemptor.units:
            return Rescue(Status.unresolvable(_no_victims(preemptor)))
        found = _choose(preemptor)
        if isinstance(found, EvictionSearch):
            return Rescue(Status.wait("still choosing whom to preempt"), search=found)
        if isinstance(found, Trial):
            return Rescue(Status.unschedulable(found.message), refused=found)
        return Rescue(Status(Status.success().verdict, _success(preemptor.kind, found.cost.pods)), found)


def _choose(preemptor: Preemptor) -> Eviction | Trial | EvictionSearch:
    """The cheapest eviction, what is in the way of any, or the search for it where that takes longer.

    What a search has found since is tried on the cluster as it is now; where that cannot be any more, the
    first way there is, which is stock's, must do: so no search follows a search.
    """
    facts = (preemptor.units, preemptor.budgets, preemptor.snapshot, preemptor.judge, preemptor.trial)
    if isinstance(preemptor.found, Eviction) and (again := repeat_eviction(preemptor.found, *facts)):
        return again
    search = EvictionSearch(*facts)
    if preemptor.found is not None:
        search.advance(1)
        return search.answer
    return search.answer if search.advance(preemptor.work) else search


def _no_victims(preemptor: Preemptor) -> str:
    """Said only of what has been given some importance: of anything else nobody expects that it preempts."""
    if preemptor.priority <= 0:
        return ""
    if preemptor.kind != "pod":
        return "No preemption victims found for incoming preemptor"
    nodes = preemptor.snapshot.live_rows().size
    return f"0/{nodes} nodes are available: {nodes} No preemption victims found for incoming pod."


def _success(kind: str, victims: int) -> str:
    if not victims:
        return f"found a placement for {kind}, waiting for pods that are terminating"
    return f"found a placement for {kind}, preempting {victims} victims"
