"""What is due of all gangs of a tree: of each by itself, then of the tree.

A composite group is a gang of groups: it is under way until enough of its groups were bound at the same time,
released whole when that takes too long, and whatever becomes of its groups later is theirs alone.  In come
the casts of a root; next: `transaction.py`, one gang, and `standing.py`, whether something has started.
"""

from muster.framework.groups import Group
from muster.framework.ports import Effect, EvictPod
from muster.scheduling.books import Books
from muster.scheduling.contradictions import find_fault
from muster.scheduling.gangs import RELEASE
from muster.scheduling.members import Cast, EntityKey, group_entity
from muster.scheduling.standing import bind_timeout_s, count, has_started, is_ours, says_tree_started
from muster.scheduling.transaction import BIND_TIMEOUT, end_gang, go_on_ending, is_late, tend_gang


def tend_gangs(books: Books, root: EntityKey, cast: Cast, now_s: float) -> list[Effect]:
    """See how far the gangs of this tree are, and do what is due."""
    effects: list[Effect] = []
    for leaf in cast.leaves():
        if leaf.group is not None and leaf.group.is_gang:
            effects += tend_gang(books, leaf, leaf.group, now_s)
        elif leaf.group is not None and cast.is_composite:
            effects += _tend_basic(books, leaf, leaf.group, now_s)
    if cast.is_composite:
        effects += _tend_tree(books, root, cast, now_s)
    return effects


def _tend_basic(books: Books, leaf: Cast, group: Group, now_s: float) -> list[Effect]:
    """A basic group of a tree is released with the others; nothing else is asked of it."""
    entity = group_entity(group.key)
    gang = books.gangs.find(entity)
    if gang is None:
        return []
    if gang.ending:
        return go_on_ending(books, entity, gang, leaf, group, now_s)
    gang.has_bare = gang.has_bare and leaf.is_holding
    books.gangs.look_at(entity, gang.not_before_s if gang.not_before_s > now_s else None)
    return []


def _tend_tree(books: Books, root: EntityKey, cast: Cast, now_s: float) -> list[Effect]:
    """A composite whose groups are placed in part gives up all of them when its time is over.

    One that was whole once has started, whatever becomes of its groups, until nothing of it is left.
    """
    group = cast.group
    if group is None or find_fault(cast) is not None:
        books.gangs.forget(root)
        return []
    is_new = books.gangs.find(root) is None
    gang = books.gangs.make(root)
    if not any(count(books, leaf).held for leaf in cast.leaves()):
        gang.since_s = gang.started_s = None
        books.gangs.look_at(root, None)
        return []
    if has_started(books, cast) or (is_new and says_tree_started(books, cast)):
        gang.since_s, gang.started_s = None, now_s if gang.started_s is None else gang.started_s
        books.gangs.look_at(root, None)
        return []
    if not is_late(books, root, gang, cast, group, now_s):
        return []
    timeout_s = bind_timeout_s(books, cast)
    cause = f"composite group {group.key} was not whole within {timeout_s:.0f} s"
    effects: list[Effect] = []
    for leaf in cast.leaves():
        if leaf.group is not None and leaf.is_holding and is_ours(books, leaf):
            effects += end_gang(
                books, leaf, leaf.group, ending=RELEASE, kind=BIND_TIMEOUT, cause=cause, now_s=now_s
            )
    if any(isinstance(effect, EvictPod) for effect in effects):
        gang.since_s = now_s  # what stays has another while
        books.gangs.look_at(root, now_s + timeout_s)
    return effects
