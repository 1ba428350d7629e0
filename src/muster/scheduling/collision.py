"""A binding that lands and was not decided here: what a leader before this one had on the wire.

It is counted.  Where it leaves a node with more than it has, members that are in preparation for it give way;
if that is not enough, a gang there that has not started is released whole: the less important one, of equals
the one that landed.  Where all have started the kubelet turns somebody away, and its own rule for lost
members applies.  In comes a pod just seen; out go evictions, or nothing.
"""

from collections.abc import Sequence

from muster.cluster.requests import pod_requests
from muster.framework.ports import Effect
from muster.scheduling.books import Books
from muster.scheduling.gangs import RELEASE
from muster.scheduling.members import Cast, EntityKey, Seen, Stage
from muster.scheduling.metrics import DOUBLE_DECISIONS
from muster.scheduling.preparations import Preparation
from muster.scheduling.standing import has_started, is_ours
from muster.scheduling.transaction import end_gang

DOUBLE_DECISION = "double-decision"


def see_landed(books: Books, seen: Seen, now_s: float) -> list[Effect]:
    """Count it, and release a gang if the node has no room for both.  To be told of ours only."""
    books.metrics.count(DOUBLE_DECISIONS)
    node_name = seen.member.node_name
    if not _is_over(books, node_name, ()):
        return []
    prepared = books.preparations.on(node_name)
    for preparation in prepared:
        books.preparations.touch(preparation.root)  # it sees that its room is gone, and goes elsewhere
    if not _is_over(books, node_name, prepared):
        return []
    landed = seen.member.entity
    entities = {
        member.entity
        for cast in books.members.casts().values()
        for stage in (Stage.BOUND, Stage.ASSUMED)
        for member in cast.stages[stage].values()
        if member.node_name == node_name
    }
    torn = [(entity, books.members.cast(entity)) for entity in sorted(entities)]
    candidates = [(entity, cast) for entity, cast in torn if _may_go(books, cast)]
    if not candidates:
        return []
    _, cast = min(candidates, key=lambda pair: _order(pair[0], pair[1], landed))
    assert cast.group is not None
    cause = f"a binding of {seen.member.key} landed on {node_name} that nobody here decided, and not both fit"
    return end_gang(books, cast, cast.group, ending=RELEASE, kind=DOUBLE_DECISION, cause=cause, now_s=now_s)


def is_landed(books: Books, seen: Seen) -> bool:
    """Whether a pod of ours is bound now, and to where nobody here has asked for."""
    if seen.after is not Stage.BOUND or seen.before not in (Stage.WAITING, Stage.ASSUMED):
        return False
    binding = books.inflight.find(seen.member.pod.metadata.uid)
    here = binding is not None and binding.node_name == seen.member.node_name
    return books.synced and not here and books.members.is_ours(seen.member.pod)


def _may_go(books: Books, cast: Cast) -> bool:
    is_gang = cast.group is not None and cast.group.is_gang
    return is_gang and is_ours(books, cast) and not has_started(books, cast)


def _order(entity: EntityKey, cast: Cast, landed: EntityKey) -> tuple[int, bool]:
    return (cast.group.priority if cast.group is not None else 0, entity != landed)


def _is_over(books: Books, node_name: str, without: Sequence[Preparation]) -> bool:
    """Whether a node has been given more than it has, those left out that are not bound yet."""
    table = books.state.table
    row = table.row_of.get(node_name)
    if row is None:
        return False
    taken = table.requested[row].copy()
    for preparation in without:
        pod = books.state.pod(preparation.key)
        taken -= table.axis.row(pod_requests(pod)) if pod is not None else 0
    return bool((taken > table.allocatable[row]).any())
