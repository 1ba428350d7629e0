"""Members that are placed and not bound yet, for volumes or claims of theirs or of others of their gang.

Only the records: who, where, since when, and whether ready.  Next: `preparation.py`, which acts on them.
"""

from collections.abc import Iterator

from muster.base.heap import KeyedHeap
from muster.framework.groups import PodKey
from muster.framework.ports import Prepare, WriteClaim
from muster.framework.status import Status
from muster.scheduling.members import EntityKey

UNPREPARED_S_MAX = 600.0  # as long as stock waits for volumes


class Preparation:
    """One member that is placed and not bound yet.

    `writes`: what it needs to have written; `status`: whether it is ready, or what it waits for;
    `is_nominated`: its pod says which node it waits for; `stale`: those of its writes that were refused for
    being of an older state.
    """

    __slots__ = (
        "attempt",
        "is_nominated",
        "key",
        "node_name",
        "root",
        "since_s",
        "stale",
        "status",
        "uid",
        "writes",
    )

    def __init__(
        self,
        *,
        key: PodKey,
        uid: str,
        node_name: str,
        root: EntityKey,
        attempt: int,
        since_s: float,
        writes: tuple[Prepare, ...] | None,
    ) -> None:
        self.key = key
        self.uid = uid
        self.node_name = node_name
        self.root = root
        self.attempt = attempt
        self.since_s = since_s
        self.writes = writes or ()
        self.stale: list[WriteClaim] = []
        self.is_nominated = writes is not None
        self.status = Status.success() if writes is None else Status.wait("its volumes")


class Preparations:
    """All members in preparation, by uid and by root; `touched` are roots to be looked at."""

    def __init__(self) -> None:
        self.touched: dict[EntityKey, None] = {}
        self._by_uid: dict[str, Preparation] = {}
        self._of_root: dict[EntityKey, dict[str, Preparation]] = {}
        self._due: KeyedHeap[str] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Preparation]:
        return iter(self._by_uid.values())

    def add(self, preparation: Preparation) -> None:
        """A member has been placed and is not to be bound yet."""
        self._by_uid[preparation.uid] = preparation
        self._of_root.setdefault(preparation.root, {})[preparation.uid] = preparation
        self._due.put(preparation.uid, (preparation.since_s + UNPREPARED_S_MAX,))

    def find(self, uid: str) -> Preparation | None:
        """The preparation of the pod with this uid."""
        return self._by_uid.get(uid)

    def of(self, root: EntityKey) -> tuple[Preparation, ...]:
        """The members of a tree in preparation, in the order in which they were placed."""
        return tuple(self._of_root.get(root, {}).values())

    def on(self, node_name: str) -> tuple[Preparation, ...]:
        """The members in preparation for this node."""
        return tuple(each for each in self._by_uid.values() if each.node_name == node_name)

    def end(self, uid: str) -> Preparation | None:
        """It is over, one way or the other; None when it was over before."""
        preparation = self._by_uid.pop(uid, None)
        if preparation is None:
            return None
        self._due.remove(uid)
        of_root = self._of_root[preparation.root]
        del of_root[uid]
        if not of_root:
            del self._of_root[preparation.root]
            self.touched.pop(preparation.root, None)
        return preparation

    def touch(self, root: EntityKey) -> None:
        """Have the members of a tree looked at."""
        if root in self._of_root:
            self.touched[root] = None

    def see_pod(self, uid: str) -> None:
        """A pod has changed: if it is in preparation, its tree is looked at."""
        preparation = self._by_uid.get(uid)
        if preparation is not None:
            self.touch(preparation.root)

    def touch_all(self) -> None:
        """Have everybody looked at: who it concerns is not known."""
        self.touched.update(dict.fromkeys(self._of_root))

    def next_due_s(self) -> float | None:
        """When the next one has waited too long."""
        return self._due.next_due_s()

    def overdue(self, now_s: float) -> Iterator[Preparation]:
        """Those that have waited too long, the longest first."""
        return (self._by_uid[uid] for uid in self._due.take_due(now_s))
