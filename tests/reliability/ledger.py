"""What a watch of pods showed of gangs, and which promises it shows broken.

In go the events of one watch, in its order, with the time each was seen; out come counts, times and the
broken promises as sentences.  Pods ask for whole cores (`requests.cpu`), nodes have so many.
"""

import itertools
from collections import Counter
from typing import Any, NamedTuple

Object = dict[str, Any]


class Bound(NamedTuple):
    """A pod that is on a node."""

    gang: str
    node: str
    cores: int


class Ledger:
    """`cores_of`: what each node has.  `size_of`: how many members make each gang whole."""

    def __init__(self, cores_of: dict[str, int], size_of: dict[str, int]) -> None:
        self.broken: list[str] = []
        self.binds_s: list[float] = []  # when each binding was seen
        self.half_s: dict[str, float] = {}  # the longest that each gang was seen to hold a part
        self.complete_s: dict[str, float] = {}  # when all members of each gang were first seen to be there
        self.whole_s: dict[str, float] = {}  # when each gang was first seen whole
        self.cores_of = cores_of
        self._size_of = size_of
        self._bound: dict[str, Bound] = {}  # by uid
        self._pods: dict[str, str] = {}  # uid → gang
        self._there_of: Counter[str] = Counter()  # pods by gang
        self._bound_of: Counter[str] = Counter()  # bound pods by gang
        self._used_of: Counter[str] = Counter()  # cores by node
        self._half_since_s: dict[str, float] = {}

    def see(self, kind: str, pod: Object, now_s: float) -> None:
        """Take one event of the watch: ADDED, MODIFIED or DELETED, and the pod."""
        uid = pod["metadata"]["uid"]
        gang = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
        node = pod["spec"].get("nodeName", "")
        if kind == "DELETED":
            if uid in self._pods:
                self._there_of[self._pods.pop(uid)] -= 1
            if (bound := self._bound.pop(uid, None)) is not None:
                self._bound_of[bound.gang] -= 1
                self._used_of[bound.node] -= bound.cores
        else:
            if uid not in self._pods:
                self._there_of[gang] += 1
            self._pods[uid] = gang
            if node:
                self._see_bound(uid, Bound(gang, node, _cores_of(pod)), now_s)
        self._judge_gang(gang, now_s)

    def bound(self, gang: str) -> int:
        """How many of its pods are on nodes."""
        return self._bound_of[gang]

    def there(self, gang: str) -> int:
        """How many of its pods exist."""
        return self._there_of[gang]

    def used(self, node: str) -> int:
        """How many of its cores the pods on it ask for."""
        return self._used_of[node]

    def was_whole(self, gang: str) -> bool:
        """Whether all its pods were on nodes at one time."""
        return gang in self.whole_s

    def wait_s(self, gang: str) -> float:
        """How long it took from its last member to its last binding; for a gang that was whole."""
        return self.whole_s[gang] - self.complete_s[gang]

    def is_half(self, gang: str) -> bool:
        """Whether it holds a part, and was never whole."""
        return gang in self._half_since_s

    def held_for_s(self, gang: str, now_s: float) -> float:
        """How long it has held a part, now; nought where it does not."""
        return now_s - self._half_since_s.get(gang, now_s)

    @property
    def halves(self) -> list[str]:
        """The gangs that hold a part, and were never whole."""
        return sorted(self._half_since_s)

    def longest_half_s(self, now_s: float) -> float:
        """The longest that a gang which was never whole held a part, up to now."""
        open_s = [now_s - since_s for since_s in self._half_since_s.values()]
        return max([*self.half_s.values(), *open_s], default=0.0)

    def longest_silence_s(self, from_s: float, until_s: float) -> float:
        """The longest time without a binding between two times."""
        inside = [at_s for at_s in self.binds_s if from_s < at_s < until_s]
        marks = [from_s, *inside, until_s]
        return max(later - sooner for sooner, later in itertools.pairwise(marks))

    def _see_bound(self, uid: str, bound: Bound, now_s: float) -> None:
        before = self._bound.get(uid)
        if before is not None:
            if before.node != bound.node:
                self.broken.append(f"a pod of {bound.gang} was bound to {before.node}, then to {bound.node}")
            return
        self._bound[uid] = bound
        self._bound_of[bound.gang] += 1
        self._used_of[bound.node] += bound.cores
        self.binds_s.append(now_s)
        used = self.used(bound.node)
        has = self.cores_of.get(bound.node, 0)
        if used > has:
            self.broken.append(f"{bound.node} has {has} cores and pods for {used} are bound to it")

    def _judge_gang(self, gang: str, now_s: float) -> None:
        size = self._size_of.get(gang)
        if size is None or gang in self.whole_s:
            return
        if self.there(gang) >= size:
            self.complete_s.setdefault(gang, now_s)
        count = self.bound(gang)
        if 0 < count < size:
            self._half_since_s.setdefault(gang, now_s)
            return
        since_s = self._half_since_s.pop(gang, None)
        if since_s is not None:
            self.half_s[gang] = max(self.half_s.get(gang, 0.0), now_s - since_s)
        if count >= size:
            self.whole_s[gang] = now_s


def _cores_of(pod: Object) -> int:
    asked = (container["resources"]["requests"]["cpu"] for container in pod["spec"]["containers"])
    return sum(int(cores) for cores in asked)
