"""Composite groups as the API shows them in a storm: which groups are of which tree, and what has started.

A tree is a gang of groups: it has started once enough of its groups had their minimum bound.  What a tree
does after it was emptied depends on what the scheduler has seen of that, and when; it is not judged before
the tree is whole again.  `TrueAfterItsTree` judges what is said as it is said.  Next: `bounds.py` and
`settled.py`, what may be so for a while, and at the end.
"""

from muster.sim.loop import Noting
from muster.sim.storm.ledger import COMPOSITES, GROUPS, PODS, Ledger
from muster.sim.storm.promises import (
    ON_MEMBER_LOSS,
    Starts,
    annotations_of,
    holds,
    is_exempt,
    says_scheduled,
    says_whole,
)
from muster.sim.view import (
    Object,
    counts_for,
    group_of,
    is_waiting,
    min_count_of,
    min_group_count_of,
    name_of,
    parent_of,
    uid_of,
)


class Forest:
    """Follows the ledger, and knows of every tree how far it is."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._been_whole: dict[str, set[str]] = {}  # by uid of the composite: uids of its groups
        self._started: set[str] = set()  # uids of composites
        self._emptied: set[str] = set()  # of those of which a group that was whole was emptied

    def groups_of(self, composite: str) -> list[Object]:
        """The groups that name this composite."""
        return [group for group in self._ledger.groups.values() if parent_of(group) == composite]

    def has_started(self, composite: Object) -> bool:
        """Whether enough groups of the tree were whole at some time, none of them emptied before the last."""
        return uid_of(composite) in self._started

    def was_emptied(self, composite: Object) -> bool:
        """Whether a group of it that had been whole has lost everything that held room."""
        return uid_of(composite) in self._emptied

    def may_wait(self, group: Object) -> bool:
        """Whether a group is of a tree that is not there or under way, or may have begun anew."""
        if not parent_of(group):
            return False
        composite = self._ledger.composites.get(parent_of(group))
        if composite is None or not self.has_started(composite):
            return True
        return self.was_emptied(composite) and self.count_whole(composite) < min_group_count_of(composite)

    def is_under_way(self, group: Object) -> bool:
        """Whether a group is of a tree that has not started, beyond doubt."""
        composite = self._ledger.composites.get(parent_of(group))
        return composite is not None and not (self.has_started(composite) or self.was_emptied(composite))

    def is_hopeless(self, group: Object) -> bool:
        """Whether a group is of a tree that is not there, is held, or lacks members that others need."""
        if not parent_of(group):
            return False
        composite = self._ledger.composites.get(parent_of(group))
        return composite is None or self._is_held(composite) or not self.is_possible(composite)

    def is_possible(self, composite: Object) -> bool:
        """Whether enough groups of the tree have their members, waiting or placed."""
        groups = self.groups_of(name_of(composite))
        return sum(map(self._has_members, groups)) >= min_group_count_of(composite)

    def count_whole(self, composite: Object) -> int:
        """How many of its groups are whole now."""
        return sum(map(self.is_whole, self.groups_of(name_of(composite))))

    def is_whole(self, group: Object) -> bool:
        """Whether its minimum is placed; of a basic one, one member."""
        members = self._ledger.members_of(name_of(group))
        return sum(counts_for(group, pod) for pod in members) >= (min_count_of(group) or 1)

    def holding(self, composite: Object) -> list[str]:
        """Pods of the tree, by name, that hold room and may be deleted: none of an exempt group."""
        found: list[str] = []
        for group in self.groups_of(name_of(composite)):
            pods = [pod for pod in self._ledger.members_of(name_of(group)) if holds(pod)]
            if not is_exempt(group, pods):
                found += [name_of(pod) for pod in pods]
        return sorted(found)

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        """Look at the tree that an object belongs to."""
        thing = after if after is not None else before
        if thing is not None and (composite := self._ledger.composites.get(self.tree_of(kind, thing))):
            self._look(composite)

    def tree_of(self, kind: str, thing: Object) -> str:
        """The composite of a pod, of a group, or itself, by name; "" where there is none."""
        if kind == COMPOSITES:
            return name_of(thing)
        group = self._ledger.groups.get(group_of(thing)) if kind == PODS else thing
        return parent_of(group) if group is not None and kind in (PODS, GROUPS) else ""

    def restored(self, now_s: float) -> None:
        """What has started after the backup never has; of what is there the groups say it."""
        self._been_whole.clear()
        self._started.clear()
        self._emptied.clear()
        for composite in self._ledger.composites.values():
            groups = self.groups_of(name_of(composite))
            self._been_whole[uid_of(composite)] = set(map(uid_of, filter(says_scheduled, groups)))
            self._emptied.add(uid_of(composite))
            if any(map(says_whole, groups)):  # said of none of them before; one that counted may be deleted
                self._started.add(uid_of(composite))
            self._look(composite)

    def _look(self, composite: Object) -> None:
        uid, groups = uid_of(composite), self.groups_of(name_of(composite))
        been_whole = self._been_whole.setdefault(uid, set())
        for group in groups:
            if self.is_whole(group):
                been_whole.add(uid_of(group))
            elif not any(map(holds, self._ledger.members_of(name_of(group)))) and uid_of(group) in been_whole:
                been_whole.discard(uid_of(group))
                self._emptied.add(uid)
        if len(been_whole) >= min_group_count_of(composite):
            self._started.add(uid)

    def _is_held(self, composite: Object) -> bool:
        """Whether a group of it has lost members, and its owner wants nobody to be placed then."""
        return any(
            annotations_of(group).get(ON_MEMBER_LOSS) == "hold" and not self.is_whole(group)
            for group in self.groups_of(name_of(composite))
        )

    def _has_members(self, group: Object) -> bool:
        members = self._ledger.members_of(name_of(group))
        there = sum(counts_for(group, pod) or is_waiting(pod) for pod in members)
        return there >= (min_count_of(group) or 1)


class TrueAfterItsTree(Noting):
    """`muster.dev/Whole` turns True on a group of a tree only once its tree has started."""

    name = "true after its tree"

    def __init__(self, ledger: Ledger, starts: Starts, forest: Forest) -> None:
        super().__init__()
        self._ledger = ledger
        self._starts = starts
        self._forest = forest
        self._least: dict[str, int] = {}  # by uid of the composite: the least minGroupCount it ever had

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        """Judge what is said of a group as it is said."""
        if after is None or kind not in (GROUPS, COMPOSITES):
            return
        if kind == COMPOSITES:
            needed = min_group_count_of(after)
            self._least[uid_of(after)] = min(needed, self._least.get(uid_of(after), needed))
            return
        was_said = before is not None and uid_of(before) == uid_of(after) and says_whole(before)
        composite = self._ledger.composites.get(parent_of(after))
        if composite is None or was_said or not says_whole(after) or self._forest.has_started(composite):
            return
        ever = sum(map(self._starts.was_ever_bound, self._forest.groups_of(name_of(composite))))
        if ever < self._least.get(uid_of(composite), 1) and not self._starts.is_by_outdated(after):
            text = f"and {ever} of {self._least[uid_of(composite)]} groups of its tree were ever bound"
            self._complaints.append(f"group {name_of(after)} says that it is whole, {text}")

    def restored(self, now_s: float) -> None:
        """A composite may be as it was."""
        self._least.clear()
        for composite in self._ledger.composites.values():
            self._least[uid_of(composite)] = min_group_count_of(composite)
