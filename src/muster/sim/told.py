"""What the scheduler has been told, and what it decided on it: judged at the very moment of each decision.

A `Told` listens on the line and keeps the last word on every node, pod and group.  `GangWhole` and
`RoomAsTold` judge each batch of bindings by it, so that late news is no excuse and no accusation.
Next: `checkers.py`.
"""

from typing import Protocol

from muster.api.core import Node, Pod
from muster.framework.groups import Group, GroupKey, PodKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    CompositeGone,
    CompositeSeen,
    Effect,
    Event,
    GroupGone,
    GroupSeen,
    NodeGone,
    NodeSeen,
    PatchPodStatus,
    PodGone,
    PodSeen,
)
from muster.scheduling.binding import STALE, UNKNOWN, cause_of
from muster.scheduling.conditions import INITIALLY_SCHEDULED, WHOLE
from muster.scheduling.standing import AFTER_THE_START
from muster.sim.loop import Noting
from muster.sim.view import GPU, GPU_MILLI, Amounts, amount


class Judge(Protocol):
    """Looks at decisions as they are made."""

    def judge(self, binds: tuple[BindPod, ...], now_s: float) -> None:
        """These bindings have just been asked for; they are on the wire already."""
        ...


class Told:
    """The last word on everything, and the bindings that are on the wire."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[PodKey, Pod] = {}
        self.groups: dict[GroupKey, Group] = {}
        self.composites: dict[GroupKey, Group] = {}
        self.group_of: dict[PodKey, GroupKey | None] = {}
        self.on_the_wire: dict[PodKey, BindPod] = {}  # until the watch shows the pod bound
        self.unanswered: set[PodKey] = set()  # of these: nobody knows what became of them
        self.accepted: set[str] = set()  # uids of pods whose binding has been answered with success
        self.least_needed: dict[str, int] = {}  # uid of a group → the least minimum it was ever told to have
        self.ever_bound: dict[str, set[str]] = {}  # uid of a group → uids of members that were ever bound
        self.judges: list[Judge] = []
        self._begun: set[str] = set()  # uids of composites that had started

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """Learn, take note of the bindings asked for, and have them judged."""
        self._learn(event)
        binds = tuple(
            effect for effect in effects if isinstance(effect, BindPod) and not self._is_asked_again(effect)
        )
        for effect in effects:
            if isinstance(effect, PatchPodStatus) and effect.condition is not None:
                self._give_up(effect)
        self.on_the_wire |= {bind.key: bind for bind in binds}
        for judge in self.judges if binds else ():
            judge.judge(binds, now_s)

    def _is_asked_again(self, bind: BindPod) -> bool:
        """Whether this very binding is on the wire already: asking again decides nothing."""
        known = self.on_the_wire.get(bind.key)
        return known is not None and (known.uid, known.node_name) == (bind.uid, bind.node_name)

    def _give_up(self, said: PatchPodStatus) -> None:
        """The scheduler says that the pod waits: it does not count on its binding any more.

        One that was never answered may have been accepted all the same: while its node is there, the room
        stays taken.
        """
        bind = self.on_the_wire.get(said.key)
        if bind is None or bind.uid != said.uid:
            return
        if said.key not in self.unanswered or bind.node_name not in self.nodes:
            del self.on_the_wire[said.key]
            self.unanswered.discard(said.key)

    def reset(self) -> None:
        """A new scheduler is told everything anew, and knows of no binding on the wire."""
        for known in (self.nodes, self.pods, self.groups, self.composites, self.group_of, self.on_the_wire):
            known.clear()
        self.unanswered.clear()
        self.accepted.clear()

    def _learn(self, event: Event) -> None:
        match event:
            case NodeSeen(node):
                self.nodes[node.metadata.name] = node
            case NodeGone(name):
                self.nodes.pop(name, None)
            case GroupSeen(group):
                self._learn_group(group)
            case GroupGone(key):
                self._note_begun(self.groups[key].parent if key in self.groups else None)
                self.groups.pop(key, None)
            case CompositeSeen(group):
                self._note_begun(group.key)
                self.composites[group.key] = group
            case CompositeGone(key):
                self.composites.pop(key, None)
            case PodSeen(pod, group_key):
                self._learn_pod(pod, group_key)
            case PodGone(key):
                self.pods.pop(key, None)
                self.group_of.pop(key, None)
                self.on_the_wire.pop(key, None)
                self.unanswered.discard(key)
            case BindDone(key, uid):
                self.accepted.add(uid)
                self.unanswered.discard(key)
                self._note_bound(key, uid)
            case BindFailed(key, uid) if key in self.on_the_wire and self.on_the_wire[key].uid == uid:
                self._learn_failure(event)

    def _learn_failure(self, event: BindFailed) -> None:
        cause = cause_of(event)
        if cause == UNKNOWN:
            self.unanswered.add(event.key)
        elif cause != STALE:  # these are asked again
            self.unanswered.discard(event.key)
            del self.on_the_wire[event.key]

    def _learn_group(self, group: Group) -> None:
        self.groups[group.key] = group
        least = self.least_needed.get(group.uid, group.needed)
        self.least_needed[group.uid] = min(least, group.needed)
        for key, pod in self.pods.items():
            if self.group_of[key] == group.key and pod.spec.node_name:  # told before its group
                self._note_bound(key, pod.metadata.uid)

    def _learn_pod(self, pod: Pod, group_key: GroupKey | None) -> None:
        key = PodKey(pod.metadata.namespace, pod.metadata.name)
        self.pods[key] = pod
        self.group_of[key] = group_key
        if pod.spec.node_name:
            self._note_bound(key, pod.metadata.uid)
        bind = self.on_the_wire.get(key)
        if bind is not None and (pod.spec.node_name or bind.uid != pod.metadata.uid):
            del self.on_the_wire[key]
            self.unanswered.discard(key)

    def _note_bound(self, key: PodKey, uid: str) -> None:
        group_key = self.group_of.get(key)
        group = self.groups.get(group_key) if group_key is not None else None
        if group is not None:
            self.ever_bound.setdefault(group.uid, set()).add(uid)

    def groups_in(self, composite: GroupKey) -> list[Group]:
        """The groups of a tree."""
        return [group for group in self.groups.values() if group.parent == composite]

    def is_under_way(self, group: Group) -> bool:
        """Whether it is a group of which fewer than its minimum were ever bound, by all that was told.

        The least minimum it ever had: a gang that has started stays so when somebody raises it.
        """
        said = group.find_condition(INITIALLY_SCHEDULED)
        is_said = said is not None and said.status == "True"
        return not is_said and len(self.ever_bound.get(group.uid, ())) < self.least_needed[group.uid]

    def is_tree_under_way(self, composite: GroupKey) -> bool:
        """Whether fewer groups of this tree than it needs have ever had their minimum bound.

        One that has started stays so when its minimum is raised or a group of it goes; since then its groups
        say that they are whole, or what they have lost.  Where none says anything, a group that is not there
        has had its time.
        """
        tree = self.composites.get(composite)
        if tree is None:
            return False
        return not self._has_begun(tree, min(tree.needed, len(self.groups_in(composite))))

    def _has_begun(self, tree: Group, needed: int) -> bool:
        groups = self.groups_in(tree.key)
        if tree.uid in self._begun or any(map(_says_started, groups)):
            return True
        return sum(not self.is_under_way(group) for group in groups) >= needed

    def _note_begun(self, composite: GroupKey | None) -> None:
        """The tree is about to change: whether it has started is to be remembered."""
        tree = self.composites.get(composite) if composite is not None else None
        if tree is not None and self._has_begun(tree, tree.needed):
            self._begun.add(tree.uid)

    def count_placed(self, group: GroupKey) -> int:
        """Members that count toward the minimum: on the wire, bound and not failed, or succeeded."""
        return sum(
            key in self.on_the_wire
            or pod.status.phase == "Succeeded"
            or (bool(pod.spec.node_name) and pod.status.phase != "Failed")
            for key, pod in self.pods.items()
            if self.group_of[key] == group
        )

    def taken_on(self, node_name: str) -> Amounts:
        """What pods bound there, or on the wire to there, ask for."""
        taken: Amounts = {}
        for key, pod in self.pods.items():
            bind = self.on_the_wire.get(key)
            where = bind.node_name if bind is not None else pod.spec.node_name
            if where == node_name and not pod.is_terminal:
                for resource, asked in requests_of(pod).items():
                    taken[resource] = taken.get(resource, 0) + asked
        return taken


class GangWhole(Noting):
    """A gang is never taken below its minimum by a decision of ours.

    Those bound now, those on the wire and those that count as placed must reach minCount, as the scheduler
    had been told at that moment.  `ever_whole` are the uids of groups that one decision has made whole.
    """

    name = "gang whole"

    def __init__(self, told: Told) -> None:
        super().__init__()
        self.ever_whole: set[str] = set()
        self._told = told
        told.judges.append(self)

    def judge(self, binds: tuple[BindPod, ...], now_s: float) -> None:
        for key in {bind.group for bind in binds if bind.group is not None}:
            group = self._told.groups.get(key)
            minimum = group.needed if group is not None else 1
            placed = self._told.count_placed(key)
            if placed < minimum:
                count = sum(bind.group == key for bind in binds)
                self._complaints.append(
                    f"gang {key} of {minimum} had {placed} placed after binding {count} at {now_s:.3f}"
                )
            elif group is not None:
                self.ever_whole.add(group.uid)
        groups = [self._told.groups.get(bind.group) for bind in binds if bind.group is not None]
        for parent in {group.parent for group in groups if group is not None and group.parent is not None}:
            if self._told.is_tree_under_way(parent):
                self._judge_tree(self._told.composites[parent], now_s)

    def _judge_tree(self, tree: Group, now_s: float) -> None:
        """No group of a tree is bound before as many as it needs can be."""
        groups = self._told.groups_in(tree.key)
        whole = sum(self._told.count_placed(group.key) >= group.needed for group in groups)
        if whole < tree.needed:
            self._complaints.append(
                f"tree {tree.key} of {tree.needed} groups had {whole} placed after a binding at {now_s:.3f}"
            )


class RoomAsTold(Noting):
    """No pod is sent to a node that, by all that had been told, has no room for it or is not there."""

    name = "room as told"

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told
        told.judges.append(self)

    def judge(self, binds: tuple[BindPod, ...], now_s: float) -> None:
        for name in sorted({bind.node_name for bind in binds}):
            node = self._told.nodes.get(name)
            offered = {} if node is None else node.status.allocatable or {}
            taken = self._told.taken_on(name)
            over = [key for key, asked in taken.items() if asked > amount(str(offered.get(key, 0)))]
            if over:
                self._complaints.append(f"node {name} was given more {', '.join(sorted(over))} than it has")


def _says_started(group: Group) -> bool:
    """Whether it says what is said only once its tree has started."""
    said = group.find_condition(WHOLE)
    return said is not None and (said.status == "True" or said.reason in AFTER_THE_START)


def requests_of(pod: Pod) -> Amounts:
    """What a pod takes: the sum of its containers, and one of `pods`; not that for which it has a claim."""
    total = {"pods": 1000}
    for container in pod.spec.containers:
        for resource, text in ((container.resources and container.resources.requests) or {}).items():
            total[resource] = total.get(resource, 0) + amount(str(text))
    if GPU_MILLI in (pod.metadata.annotations or {}):
        total.pop(GPU, None)  # a part is no whole one; `devices.py` judges
    claimed = pod.status.extended_resource_claim_status
    for each in (claimed.request_mappings or ()) if claimed is not None else ():
        total.pop(each.resource_name, None)
    return total
