"""The order of the active queue: priority first, then who could have been tried first."""

from typing import ClassVar

from muster.framework.points import Entity


class PrioritySort:
    """Lone pods and groups stand in one line; a group's priority is its own, not its members'."""

    name: ClassVar[str] = "PrioritySort"

    def sort_key(self, entity: Entity) -> tuple[float, ...]:
        return (-entity.priority, entity.queued_s, entity.sequence)
