"""Pods with scheduling gates, and with them their whole group, are not tried (KEP-3521)."""

from typing import ClassVar

from muster.api.core import Pod
from muster.framework.events import Change, HintRule
from muster.framework.groups import Group, Subgroup
from muster.framework.status import Status


class SchedulingGates:
    """One gated member holds its group: whoever made it says that the group is not whole yet."""

    name: ClassVar[str] = "SchedulingGates"

    def pre_enqueue(
        self,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        gated = [pod for pod in waiting if pod.spec.scheduling_gates]
        if not gated:
            return Status.success()
        gates = ", ".join(gate.name for gate in gated[0].spec.scheduling_gates or ())
        others = "" if len(gated) == 1 else f" and {len(gated) - 1} more members have gates"
        return Status.unresolvable(
            f"waits for the scheduling gates of pod {gated[0].metadata.name}: {gates}{others}"
        )

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (HintRule(Change.POD_UPDATED), HintRule(Change.POD_REMOVED))
