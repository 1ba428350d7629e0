"""Disruption budgets: how many pods of a kind may be disturbed at once.

In come pods somebody thinks of evicting; out comes which budgets they are counted against.  A budget is a
wish here: preemption respects it where it can.  Next: `placement/victims.py`.
"""

from msgspec import Struct

from muster.api.core import LabelSelector, Pod
from muster.api.selectors import matches_selector


class Budget(Struct, frozen=True):
    """One budget; `disrupted` are names of pods that are counted already."""

    namespace: str
    name: str
    uid: str = ""
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()

    def counts(self, pod: Pod) -> bool:
        """Whether evicting this pod uses the budget up by one."""
        meta = pod.metadata
        return (
            meta.namespace == self.namespace
            and meta.name not in self.disrupted
            and matches_selector(self.selector, meta.labels)
        )
