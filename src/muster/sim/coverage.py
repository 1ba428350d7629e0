"""What a run has been through: every kind of transition must happen over the seeds, else they prove nothing.

Counts what actions, faults and the API's objects show; `REQUIRED` is what a run of many seeds must have met.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from muster.sim.view import (
    ClusterView,
    Object,
    condition_of,
    group_of,
    has_ended,
    is_leaving,
    is_waiting,
    min_count_of,
    node_of,
    phase_of,
    uid_of,
)

FAULTS = ("bind refused", "bind unanswered", "status write refused", "event late", "event doubled")

REQUIRED = (
    "gang placed at once",
    "gang refused",
    "gang placed after refusal",
    "gang gated, then placed",
    "gang placed after its minimum was lowered",
    "gang member placed later",
    "basic group placed in part",
    "lone pod placed",
    "lone pod waited, then placed",
    "pod preempted",
    "pod succeeded",
    "pod failed",
    "pod deleted while waiting",
    "pod deleted while bound",
    "group gone",
    "group deleted while its pods run",
    "pod made again under its name",
    "group made again under its name",
    "scheduler restarted",
    *FAULTS,
)


class Coverage:
    """Counts what happened into `counts`, by comparing the cluster before and after each step."""

    name = "coverage"

    def __init__(self, look: Callable[[], ClusterView], counts: Counter[str]) -> None:
        self.counts = counts
        self._look = look
        self._pods: dict[str, Object] = {}
        self._groups: dict[str, Object] = {}
        self._refused: set[str] = set()
        self._gated: set[str] = set()
        self._lowered: set[str] = set()
        self._whole: set[str] = set()
        self._bound_at_first: dict[str, int] = {}
        self._counted: set[tuple[str, str]] = set()
        self._waited: dict[str, float] = {}

    def count(self, name: str) -> None:
        """Note that something happened."""
        self.counts[name] += 1

    def check(self, now_s: float) -> Iterable[str]:
        """Compare with what was there after the last step; never complains."""
        view = self._look()
        pods = {uid_of(pod): pod for pod in view.pods.values()}
        groups = {uid_of(group): group for group in view.groups.values()}
        for uid, pod in pods.items():
            self._see_pod(uid, pod, now_s)
        for uid, pod in self._pods.items():
            if uid not in pods and not has_ended(pod):
                self.count("pod deleted while bound" if node_of(pod) else "pod deleted while waiting")
        for uid, group in groups.items():
            self._see_group(uid, group, view)
        self.counts["group gone"] += len(self._groups.keys() - groups.keys())
        self._pods, self._groups = pods, groups
        return ()

    def _see_pod(self, uid: str, pod: Object, now_s: float) -> None:
        before = self._pods.get(uid)
        if is_waiting(pod):
            self._waited.setdefault(uid, now_s)
        if node_of(pod) and not (before and node_of(before)) and not group_of(pod):
            self.count("lone pod placed")
            if now_s - self._waited.get(uid, now_s) > 1:
                self.count("lone pod waited, then placed")
        if has_ended(pod) and not (before and has_ended(before)):
            self.count(f"pod {phase_of(pod).lower()}")

    def _see_group(self, uid: str, group: Object, view: ClusterView) -> None:
        before = self._groups.get(uid)
        members = view.members(str(group["metadata"]["name"]))
        bound = sum(bool(node_of(pod)) for pod in members)
        waiting = sum(is_waiting(pod) for pod in members)
        minimum = min_count_of(group)
        if is_leaving(group) and not (before and is_leaving(before)) and bound:
            self.count("group deleted while its pods run")
        if minimum is None:
            self._count_once(uid, "basic group placed in part", when=bool(bound and waiting))
            return
        if before and (min_count_of(before) or 0) > minimum and uid not in self._whole:
            self._lowered.add(uid)
        if waiting and bound + waiting < minimum:
            self._gated.add(uid)
        condition = condition_of(group, "PodGroupInitiallyScheduled")
        if condition is not None and condition["status"] == "False":
            self._refused.add(uid)
            self._count_once(uid, "gang refused", when=True)
        if bound >= minimum and uid not in self._whole:
            self._whole.add(uid)
            self._bound_at_first[uid] = bound
            self._count_placed(uid)
        self._count_once(uid, "gang member placed later", when=bound > self._bound_at_first.get(uid, bound))

    def _count_once(self, uid: str, name: str, *, when: bool) -> None:
        """Count what a group may go through many times only the first time."""
        if when and (uid, name) not in self._counted:
            self._counted.add((uid, name))
            self.count(name)

    def _count_placed(self, uid: str) -> None:
        self.count("gang placed after refusal" if uid in self._refused else "gang placed at once")
        if uid in self._gated:
            self.count("gang gated, then placed")
        if uid in self._lowered:
            self.count("gang placed after its minimum was lowered")


def missing(counts: Counter[str], required: Iterable[str]) -> list[str]:
    """What never happened."""
    return sorted(name for name in required if not counts[name])
