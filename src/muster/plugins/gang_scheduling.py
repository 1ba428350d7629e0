"""All-or-nothing admission for pod groups with the gang policy (KEP-4671) and trees of them (KEP-6012)."""

from typing import ClassVar

from muster.api.core import Pod
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import Group, Subgroup, explain_missing
from muster.framework.status import Status


class GangScheduling:
    """Hold a gang back until `min_count` members exist, then place that many or none.

    Bound members count until their objects are gone, succeeded ones for good, failed ones not at all.  A
    basic group asks for one member placed.  The members of a composite group are its groups; one of them is
    there when its own minimum is.
    """

    name: ClassVar[str] = "GangScheduling"

    def pre_enqueue(
        self,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        if group is None:
            return Status.success()
        if group.is_composite:
            return _quorum(group, children)
        if group.min_count is None:
            return Status.success()
        known = len(waiting) + placed
        if known >= group.min_count:
            return Status.success()
        text = f"waits for members: {known} of {group.min_count} exist"
        where = explain_missing(group.min_count - known, waiting)
        return Status.unresolvable(f"{text}; {where}" if where else text)

    def placement_feasible(self, group: Group, *, assigned: int, remaining: int) -> Status:
        if assigned >= group.needed:
            return Status.success()
        counts = f"{assigned} scheduled, {remaining} remaining"
        minimum = f"{'minGroupCount' if group.is_composite else 'minCount'} ({group.needed})"
        if assigned + remaining < group.needed:
            return Status.unschedulable(f"{minimum} cannot be satisfied: {counts}")
        return Status.wait(f"{minimum} is not yet satisfied: {counts}")

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.POD_ADDED, _same_group),
            HintRule(Change.POD_REMOVED, _same_group),
            HintRule(Change.GROUP_ADDED, _same_group),
            HintRule(Change.GROUP_CHANGED, _asks_for_less),
        )


def _quorum(group: Group, children: tuple[Subgroup, ...]) -> Status:
    """Whether enough groups of a composite have enough members of their own."""
    ready = sum(_is_ready(child) for child in children)
    if ready >= group.needed:
        return Status.success()
    text = f"waits for groups: {ready} of {group.needed} are complete"
    lacking = next((child for child in children if not _is_ready(child)), None)
    if len(children) < group.needed:
        text += f", {len(children)} exist"
    if lacking is not None:
        text += f"; {_lack(lacking)}"
    return Status.unresolvable(text)


def _is_ready(child: Subgroup) -> bool:
    if child.group.is_composite:
        return sum(_is_ready(each) for each in child.children) >= child.group.needed
    return child.known >= child.group.needed


def _lack(child: Subgroup) -> str:
    """What the first group that is not complete lacks, as near to the pods as can be said."""
    if child.group.is_composite:
        lacking = next((each for each in child.children if not _is_ready(each)), None)
        if lacking is not None:
            return _lack(lacking)
        return (
            f"composite pod group {child.group.key} has {len(child.children)} of {child.group.needed} groups"
        )
    return f"pod group {child.group.key} has {child.known} of {child.group.needed} members"


def _same_group(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A pod helps only its own gang."""
    return Hint.QUEUE if event.group_key == rejected.key else Hint.SKIP


def _asks_for_less(rejected: Rejected, event: ClusterEvent) -> Hint:
    """A raised minCount helps nobody; anything else that changed may."""
    if event.group_key != rejected.key:
        return Hint.SKIP
    old, new = event.old_group, event.group
    if old is not None and new is not None and new.needed > old.needed:
        return Hint.SKIP
    return Hint.QUEUE
