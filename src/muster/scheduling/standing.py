"""How far a gang is: members counted by what they have come to, and whether it has started.

A gang has started once its minimum was bound at the same time.  `PodGroupInitiallyScheduled=True` is the
record of that; `muster.dev/Whole` takes it back while a gang that had started is given up whole.  In come the
books and a group's cast; next: `transaction.py`.
"""

from typing import NamedTuple

from muster.framework.groups import BIND_TIMEOUT_S, Group
from muster.scheduling.books import Books
from muster.scheduling.conditions import WHOLE
from muster.scheduling.contradictions import find_fault
from muster.scheduling.members import Cast, Member, Stage, composite_entity, group_entity

BOUND, RUNNING, READY = "Bound", "Running", "Ready"
UNDER_WAY, HALF_HELD = "UnderWay", "HalfHeld"
RELEASING, RELEASED, RESTARTING = "Releasing", "Released", "Restarting"
NOTHING_BOUND, FINISHED = "NothingBound", "Finished"
MEMBERS_LOST, MIN_COUNT_RAISED = "MembersLost", "MinCountRaised"
NOT_STARTED = frozenset({UNDER_WAY, HALF_HELD, RELEASING, RELEASED, RESTARTING, NOTHING_BOUND})
AFTER_THE_START = frozenset({MEMBERS_LOST, MIN_COUNT_RAISED, RESTARTING, FINISHED})

# the pod ended because its kubelet would not have it
_VOID_REASONS = ("UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "Terminated", "NodeShutdown")


class Counts(NamedTuple):
    """Members of one pod group: all that exist, and of those how many are how far.

    `bound` are on a node that exists, or have succeeded; `ready` includes those that have
    succeeded; `assumed` are on the wire; `held` are bound or on the wire.
    """

    created: int
    assumed: int
    bound: int
    running: int
    ready: int
    succeeded: int
    held: int
    needed: int


def count(books: Books, leaf: Cast) -> Counts:
    """Count the members of a pod group."""
    bound = leaf.stages[Stage.BOUND]
    succeeded = leaf.accepted_count - len(bound)
    decided = leaf.stages[Stage.ASSUMED]
    assumed = len(decided)
    if len(books.preparations):  # volumes may have to come before the binding
        assumed = sum(books.inflight.find(member.pod.metadata.uid) is not None for member in decided.values())
    void = sum(is_void(books, member) for member in bound.values()) if books.state.strays else 0
    return Counts(
        created=len(leaf.stages[Stage.WAITING]) + len(decided) + len(bound) + succeeded,
        assumed=assumed,
        bound=len(bound) - void + succeeded,
        running=leaf.tally.running,
        ready=leaf.tally.ready + succeeded,
        succeeded=succeeded,
        held=assumed + len(bound),
        needed=leaf.group.needed if leaf.group is not None else 1,
    )


def is_void(books: Books, member: Member) -> bool:
    """Whether the node that the member is bound to does not exist: the API takes such a binding, too."""
    return books.synced and books.state.node(member.node_name) is None


def was_turned_away(member: Member) -> bool:
    """Whether the kubelet refused the pod: the binding was accepted, and void."""
    status = member.pod.status
    return member.stage is Stage.FAILED and (
        status.reason.startswith("OutOf") or status.reason in _VOID_REASONS
    )


def has_started(books: Books, cast: Cast) -> bool:
    """Whether the minimum of the gang (of a composite: of enough groups) was bound at the same time."""
    group = cast.group
    if cast.is_composite:
        tree = books.gangs.find(composite_entity(group.key)) if group is not None else None
        if tree is not None and tree.started_s is not None:
            return True
        needed = group.needed if group is not None else 1
        return sum(has_started(books, child) for child in cast.children.values()) >= needed
    if group is None or not group.is_gang:
        return cast.accepted_count > 0
    gang = books.gangs.find(group_entity(group.key))
    if gang is not None and gang.started_s is not None:
        return True
    is_enough = cast.accepted_count >= group.needed  # void ones among them
    return says_started(books, group) or (is_enough and count(books, cast).bound >= group.needed)


def tree_has_started(books: Books, leaf: Cast) -> bool:
    """Whether the tree of this pod group has started; True for a group in no tree that can be placed."""
    root = _tree_of(books, leaf)
    return root is None or has_started(books, root)


def bind_timeout_s(books: Books, cast: Cast) -> float:
    """So long the gang (or tree) may hold room before it has started: by its own word, else by its tree's."""
    root = _tree_of(books, cast)
    for group in (cast.group, root.group if root is not None else None):
        if group is not None and group.terms.bind_timeout_s is not None:
            return group.terms.bind_timeout_s
    return BIND_TIMEOUT_S


def says_tree_started(books: Books, root: Cast) -> bool:
    """Whether a tree had started, by what stands on its groups: what a new scheduler has to go by.

    `muster.dev/Whole` is True of none of them before, and tells of one whose minimum is bound that its tree
    is under way.  A group of which nothing is left, or that is no more, has had its time, unless one that is
    there says otherwise, or never had its minimum.
    """
    said = [books.conditions.of_group(leaf.group, WHOLE) for leaf in root.leaves() if leaf.group is not None]
    if any(one is not None and (one.status == "True" or one.reason in AFTER_THE_START) for one in said):
        return True
    if any(one is not None and one.reason in (UNDER_WAY, HALF_HELD) for one in said):
        return False
    needed = min(root.group.needed if root.group is not None else 1, len(root.children))
    return sum(_has_run(books, child) for child in root.children.values()) >= needed


def _has_run(books: Books, cast: Cast) -> bool:
    if cast.is_composite:
        return says_tree_started(books, cast)
    if cast.group is None or has_started(books, cast):
        return cast.group is not None
    said = books.conditions.of_group(cast.group, WHOLE)
    is_left = not cast.count(Stage.WAITING) if said is None else said.reason == NOTHING_BOUND
    return is_left and books.conditions.has_been_scheduled(cast.group)


def _tree_of(books: Books, leaf: Cast) -> Cast | None:
    if leaf.parent is None:
        return None
    root = books.members.cast(books.members.root_of(leaf.parent))
    return root if root.group is not None and find_fault(root) is None else None


def says_started(books: Books, group: Group) -> bool:
    """Whether the conditions say that the gang has started."""
    said = books.conditions.of_group(group, WHOLE)
    return books.conditions.has_been_scheduled(group) and (said is None or said.reason not in NOT_STARTED)


def is_ours(books: Books, leaf: Cast) -> bool:
    """Whether some member is ours, or all are gone that we have spoken of.

    A group of another scheduler is its own to speak about.
    """
    if not any(leaf.stages.values()) and leaf.group is not None:
        return books.conditions.of_group(leaf.group, WHOLE) is not None
    return any(
        books.members.is_ours(member.pod)
        for member in leaf.of(Stage.WAITING, Stage.ASSUMED, Stage.BOUND, Stage.SUCCEEDED, Stage.FAILED)
    )
