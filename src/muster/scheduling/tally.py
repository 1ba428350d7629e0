"""How far the members of a group have come, counted as they come and go: nobody walks thousands to know.

A gang of 10,000 is counted whenever some of it was bound or has begun to run; walking its members each time
took 6 s of processor time until it stood.  `members.py` keeps one tally a cast; `standing.py` reads it.
"""

from collections.abc import Iterable

from muster.api.core import Pod
from muster.api.times import parse_seconds


class Tally:
    """`running` and `ready` count bound members by their status."""

    __slots__ = ("_made_s", "_succeeded", "ready", "running")

    def __init__(self) -> None:
        self.running = 0
        self.ready = 0
        self._succeeded = 0
        self._made_s: float | None = None  # of the group object that `_succeeded` was counted for

    def count_bound(self, pod: Pod, by: int) -> None:
        """A bound member has come (`by` 1) or gone (-1), with this status."""
        status = pod.status
        self.running += by * (status.phase == "Running")
        if status.conditions:
            self.ready += by * is_ready(pod)

    def count_succeeded(self, pod: Pod, by: int) -> None:
        """A succeeded member has come (`by` 1) or gone (-1)."""
        if self._made_s is not None:
            self._succeeded += by * _is_since(pod, self._made_s)

    def succeeded(self, made_s: float, pods: Iterable[Pod]) -> int:
        """How many of the succeeded members, `pods`, belong to the group object made then.

        Those started before belonged to another of its name.
        """
        if self._made_s != made_s:
            self._made_s = made_s
            self._succeeded = sum(_is_since(pod, made_s) for pod in pods)
        return self._succeeded


def is_ready(pod: Pod) -> bool:
    """Whether the pod's condition says so."""
    condition = pod.find_condition("Ready")
    return condition is not None and condition.status == "True"


def _is_since(pod: Pod, made_s: float) -> bool:
    start = pod.status.start_time
    return start is None or parse_seconds(start) >= made_s
