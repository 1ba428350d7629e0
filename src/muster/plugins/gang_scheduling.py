"""All-or-nothing admission for pod groups with the gang policy (KEP-4671)."""

from typing import ClassVar

from muster.api.core import Pod
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import Group
from muster.framework.status import Status


class GangScheduling:
    """Hold a gang back until `min_count` members exist, then place that many or none.

    Bound members count until their objects are gone, succeeded ones for good, failed ones not at all.  A
    basic group asks for one member placed.
    """

    name: ClassVar[str] = "GangScheduling"

    def pre_enqueue(self, group: Group | None, *, waiting: tuple[Pod, ...], placed: int) -> Status:
        if group is None or group.min_count is None:
            return Status.success()
        known = len(waiting) + placed
        if known >= group.min_count:
            return Status.success()
        return Status.unresolvable(f"waits for members: {known} of {group.min_count} exist")

    def placement_feasible(self, group: Group, *, assigned: int, remaining: int) -> Status:
        if assigned >= group.needed:
            return Status.success()
        counts = f"{assigned} scheduled, {remaining} remaining"
        if assigned + remaining < group.needed:
            return Status.unschedulable(f"minCount ({group.needed}) cannot be satisfied: {counts}")
        return Status.wait(f"minCount ({group.needed}) is not yet satisfied: {counts}")

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.POD_ADDED, _same_group),
            HintRule(Change.POD_REMOVED, _same_group),
            HintRule(Change.GROUP_ADDED, _same_group),
            HintRule(Change.GROUP_CHANGED, _asks_for_less),
        )


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
