"""Room of a gang under way whose binding was refused: kept for it until it is whole, released, or elsewhere.

A refused binding gives its room back, and whoever is decided on next could take what half a gang waits for.
So while other members of the gang are bound, the room stays taken for everybody but the gang itself.  In come
refusals and ends; out goes a snapshot in which the room is taken.  And whether room that was decided on is
still there: other schedulers keep nothing for anybody.  Next: `preemption.py`, which asks for it.
"""

from muster.cluster.requests import pod_requests
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import PodKey
from muster.scheduling.books import Books
from muster.scheduling.gangs import Kept
from muster.scheduling.members import EntityKey, Member, Stage
from muster.scheduling.standing import has_started


def keep_room(books: Books, member: Member, node_name: str) -> None:
    """Keep the node's room for a refused member if its gang is under way."""
    leaf = books.members.cast(member.entity)
    if leaf.group is None or not leaf.group.is_gang or not leaf.is_holding or has_started(books, leaf):
        return
    books.kept[member.pod.metadata.uid] = Kept(member.entity, member.key, node_name)


def give_up_room(books: Books, uid: str, now_s: float) -> None:
    """The pod is placed or gone."""
    kept = books.kept.pop(uid, None)
    member = books.members.find(kept.key) if kept is not None else None
    if kept is not None and member is not None:
        books.free_promise(kept.node_name, member.pod, now_s)


def give_up_rooms(books: Books, entity: EntityKey, now_s: float) -> None:
    """The gang is whole, or given up."""
    for uid in [uid for uid, kept in books.kept.items() if kept.entity == entity]:
        give_up_room(books, uid, now_s)


def without_kept(books: Books, root: EntityKey, snapshot: Snapshot) -> Snapshot:
    """The snapshot as the entity may use it: room kept for others is taken."""
    rows = snapshot.row_of_node
    theirs = [
        (member, rows[kept.node_name])
        for kept in books.kept.values()
        if kept.node_name in rows
        and (member := books.members.find(kept.key)) is not None
        and member.stage is Stage.WAITING
        and books.members.root_of(kept.entity) != root
    ]
    if not theirs:
        return snapshot
    fork = snapshot.fork()
    for member, row in theirs:
        fork.place(member.pod, row)
    return fork


def has_room_still(books: Books, key: PodKey, node_name: str) -> bool:
    """Whether the node of an assumed pod holds all that is placed on it, of what this pod asks for."""
    table, pod = books.state.table, books.state.pod(key)
    row = table.row_of[node_name]
    asked = pod_requests(pod) if pod is not None else {}
    over = table.requested[row] > table.allocatable[row]
    return not any(over[index] and asked.get(name) for index, name in enumerate(table.axis.names))


def explain_lost_room(node_name: str) -> str:
    """What its pod is told."""
    return f"node {node_name} has lost the room that it had when the pod was placed"
