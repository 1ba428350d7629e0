"""Room promised to pods that are not placed yet: the nodes they are nominated to.

A preemptor's members are nominated when its victims are asked to leave; others may nominate too, and theirs
are kept.  A promise counts against whoever is not more important, until its pod is bound or gone, or its
entity has been decided on anew.  In come pods as seen and decisions; out go patches of `nominatedNodeName`,
and a snapshot in which the room promised to others is taken.  Next: `preemption.py`, which nominates.
"""

from typing import NamedTuple

from muster.api.core import Pod
from muster.framework.groups import ObjectKey, PodKey
from muster.framework.ports import PatchPodStatus


class Promised(NamedTuple):
    """One promise that counts."""

    key: PodKey
    uid: str
    node_name: str
    turn: int


class _Nomination:
    """Where a pod is nominated ("" after we have taken it back, until the object says so).

    `turn` orders promises; `is_ours`: we wrote it; `is_shown`: the object has it; `is_unwritten`: the write
    was given up; `counts`: it holds room.
    """

    __slots__ = ("counts", "is_ours", "is_shown", "is_unwritten", "key", "node_name", "turn")

    def __init__(self, key: PodKey, node_name: str, turn: int, *, is_ours: bool) -> None:
        self.key = key
        self.node_name = node_name
        self.turn = turn
        self.is_ours = is_ours
        self.is_shown = not is_ours
        self.is_unwritten = False
        self.counts = True


class Nominations:
    """Nominations by uid of the pod, ours before the object shows them and others' as it shows them."""

    def __init__(self) -> None:
        self._nominations: dict[str, _Nomination] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._nominations)

    def node_of(self, uid: str) -> str:
        """Where the pod is nominated, "" if nowhere."""
        known = self._nominations.get(uid)
        return known.node_name if known is not None else ""

    def promises(self) -> list[Promised]:
        """Every promise that counts, the oldest first."""
        found = [
            Promised(nomination.key, uid, nomination.node_name, nomination.turn)
            for uid, nomination in self._nominations.items()
            if nomination.counts and nomination.node_name
        ]
        return sorted(found, key=lambda promised: promised.turn)

    def see_pod(self, pod: Pod, *, is_waiting: bool) -> str:
        """Take note of a pod as it is now; the node whose promise ended by that, or ""."""
        uid, shown = pod.metadata.uid, pod.status.nominated_node_name
        known = self._nominations.get(uid)
        if not is_waiting:
            return self.end(uid)
        if known is not None and known.is_ours and not known.is_shown:
            if shown == known.node_name:
                known.is_shown = True
                if not shown:
                    del self._nominations[uid]
            return ""
        if known is not None and known.node_name == shown:
            return ""
        ended = self.end(uid)
        if shown:
            key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
            self._nominations[uid] = _Nomination(key, shown, self._next_turn(), is_ours=False)
        return ended

    def nominate(self, pod: Pod, node_name: str) -> PatchPodStatus | None:
        """Promise the pod room on this node ("": take the promise back); None when that is so already."""
        uid = pod.metadata.uid
        known = self._nominations.get(uid)
        if known is not None and known.node_name == node_name and not known.is_unwritten:
            known.counts = True
            return None
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        self._nominations[uid] = _Nomination(key, node_name, self._next_turn(), is_ours=True)
        return PatchPodStatus(key=key, uid=uid, nominated_node_name=node_name)

    def withdraw(self, pod: Pod) -> PatchPodStatus | None:
        """The pod's entity was decided on anew and found no place there.

        Ours is taken back; somebody else's stays on the object, but holds no room any more.
        """
        known = self._nominations.get(pod.metadata.uid)
        if known is None or not known.node_name:
            return None
        if known.is_ours:
            return self.nominate(pod, "")
        known.counts = False
        return None

    def end(self, uid: str) -> str:
        """The pod is placed or gone; the node it was promised room on, or ""."""
        known = self._nominations.pop(uid, None)
        return known.node_name if known is not None else ""

    def unwrite(self, effect: PatchPodStatus) -> None:
        """A write was given up: the promise stands, and is written again when it is next thought of."""
        known = self._nominations.get(effect.uid)
        if known is None or not known.is_ours or known.node_name != effect.nominated_node_name:
            return
        if known.node_name:
            known.is_unwritten = True
        else:
            del self._nominations[effect.uid]

    def _next_turn(self) -> int:
        self._turns += 1
        return self._turns
